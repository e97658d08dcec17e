"""What the site's pages are drawn with: mathematics and icons, each as one small file of the site.

Of MathJax they take the parts and the outlines that a book needs; of the theme's icons those that
stand on pages, as a style sheet that needs no script.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from urllib.parse import quote

MATHEMATICS, ICONS, UNSCRIPTED = "tex-svg.js", "icons.css", "unscripted.css"

# In this order; no menu, no extensions fetched while reading. It draws with outlines: from disk, a
# browser may open no fonts.
COMPONENTS = ("startup", "core", "input/tex-base", "input/tex/extensions/ams", "output/svg")
COMPONENTS += ("output/svg/fonts/tex", "a11y/assistive-mml")
# The page's words are painted before its formulas are drawn, which takes longer.
WORDS_FIRST = """\
MathJax.startup = Object.assign({ pageReady: () => new Promise((painted) =>
  document.hidden ? painted() : requestAnimationFrame(() => setTimeout(painted)),
).then(() => MathJax.startup.defaultPageReady()) }, MathJax.startup);
"""
ALPHABETS = ("normal", "italic", "bold", "boldItalic", "texCalligraphic", "texVariant")
ALPHABETS += ("largeop", "smallop", "texSize3", "texSize4")
# Of the letters that exist for mathematics alone: bold and italic, Latin and Greek.
LETTERS = (range(0x1D400, 0x1D468), range(0x1D6E2, 0x1D71C))

ICON_NAMES = ("angle-left", "angle-right", "arrow-up", "bars", "circle-half-stroke", "code")
ICON_NAMES += ("download", "expand", "file", "file-pdf", "lightbulb", "list", "magnifying-glass")
ICON_NAMES += ("moon", "pencil-alt", "rocket", "sun", "xmark", "github", "gitlab", "bitbucket")
ICON = re.compile(r'[{,]"?([\w-]+)"?:\[(\d+),(\d+),\[([^]]*)\],"\w+","([^"]+)"\]')


def mathematics(es5: Path) -> str:
    """Return MathJax's components as one script, with the outlines that the book needs."""
    texts = {name: (es5 / f"{name}.js").read_text(encoding="utf-8") for name in COMPONENTS}
    texts["output/svg/fonts/tex"] = outlines(texts["output/svg/fonts/tex"])
    return WORDS_FIRST + ";\n".join(texts.values())


def outlines(font: str) -> str:
    """Return MathJax's font without other alphabets: their letters would be left blank."""
    start, *alphabets = re.split(r"(?<=AddPaths\)\()(?=\w+\.\w+,\{)", font)
    for alphabet in alphabets:
        named = alphabet[alphabet.index(".") + 1 : alphabet.index(",")] in ALPHABETS
        keep = in_book if named else lambda code: False
        start += re.sub(r'(\d+):"[^"]*",?', lambda m, keep=keep: m[0] * keep(int(m[1])), alphabet)
    return start


def in_book(code: int) -> bool:
    """Return whether a book's mathematics may need a character."""
    return not 0x1D400 <= code < 0x1D800 or any(code in letters for letters in LETTERS)


def icons_css(script: str) -> str:
    """Return the style sheet that draws the icons, taken out of the theme's script of all icons."""
    found = {}
    for name, width, height, others, path in ICON.findall(script):  # brands, outlined, solid
        for each in (name, *re.findall(r'"([\w-]+)"', others)):
            found[each] = (int(width), int(height), path)
    rules = ["/* Font Awesome Free (https://fontawesome.com), CC BY 4.0 */", DRAWN]
    for name in ICON_NAMES:
        width, height, path = found[name]
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        svg = quote(f'{svg}<path d="{path}"/></svg>', safe=" /=:")
        rules.append(
            f'.fa-{name}{SHARED.get(name, "")} {{ --gf-icon: url("data:image/svg+xml,{svg}"); '
        )
        rules[-1] += f"--gf-icon-width: {width / height:.4g}em; }}"
    return "\n".join(rules) + "\n"


DRAWN = """\
:is(.fa-solid, .fas, .fab), .reference.download::before {
  display: inline-block;
  font-family: inherit; /* else a font of all icons is fetched */
  width: var(--gf-icon-width);
  height: 1em;
  vertical-align: -0.125em;
  background: currentColor;
  mask: var(--gf-icon) center / contain no-repeat;
}
:is(.fa-solid, .fas, .fab)::before { content: none; }
.reference.download.download::before {
  content: ""; font-family: inherit; margin-inline-end: 0.3em; padding: 0;
}
.fa-lg { font-size: 1em; }
@media (forced-colors: active) {
  :is(.fa-solid, .fas, .fab), .reference.download::before {
    background: ButtonText; forced-color-adjust: none;
  }
}"""
SHARED = {"download": ", .reference.download::before"}  # what else shows an icon


def write_assets(folder: Path) -> None:
    """Write both files into a folder of static files, with MathJax's licence."""
    es5 = package("mathjax", "django-static-mathjax") / "static/mathjax/es5"
    (folder / MATHEMATICS).write_text(mathematics(es5), encoding="utf-8")
    licence = (es5.parent / "LICENSE").read_text(encoding="utf-8")
    (folder / "MathJax-LICENSE.txt").write_text(licence, encoding="utf-8")
    theme = package("pydata_sphinx_theme", "pydata-sphinx-theme")
    script = theme / "theme/pydata_sphinx_theme/static/scripts/fontawesome.js"
    (folder / ICONS).write_text(icons_css(script.read_text(encoding="utf-8")), encoding="utf-8")


# Where no script runs ----------------------------------------------------------------------------

# Buttons would do nothing, and what they open on a narrow screen follows the text instead.
PLAIN = """\
.bd-header-article button, #pst-back-to-top { display: none !important; }
@media (max-width: 959.98px) {
  .bd-container__inner { flex-direction: column; }
  .bd-sidebar-primary {
    order: 2; position: static; visibility: visible; width: auto; max-width: none;
    height: auto; max-height: none; margin: 0;
  }
}
"""


def unscripted_css(sheets: list[str]) -> str:
    """Return each theme's rules of all sheets for the system's theme, which needs no script."""
    text = re.sub(r"/\*.*?\*/", "", "".join(sheets), flags=re.S)
    text = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", text)
    css = PLAIN
    for theme in ("light", "dark"):
        marked = re.compile(rf"""\[data-theme=["']?{theme}["']?\]""")
        rules = [r for r in re.findall(r"[^{}]+\{[^{}]*\}", text) if marked.search(r.split("{")[0])]
        css += f"@media (prefers-color-scheme: {theme}) {{\n"
        css += (
            "".join(marked.sub('[data-theme="auto"]', rule).strip() + "\n" for rule in rules)
            + "}\n"
        )
    return css


def write_unscripted(app, failure: Exception | None) -> None:
    """Write that style sheet from the site's others, once they are all there."""
    static = Path(app.outdir) / "_static"
    if failure or app.builder.format != "html":
        return
    sheets = [*sorted(static.glob("styles/*.css")), *sorted(static.glob("*.css"))]
    texts = [s.read_text(encoding="utf-8") for s in sheets if s.name != UNSCRIPTED]
    (static / UNSCRIPTED).write_text(unscripted_css(texts), encoding="utf-8")


def package(name: str, requirement: str) -> Path:
    """Return the folder of an installed package; say how to install one that is missing."""
    found = importlib.util.find_spec(name)
    if not found:
        from sphinx.errors import ExtensionError

        raise ExtensionError(f"The site is built with {requirement}: pip install {requirement}.")
    return Path(found.origin).parent
