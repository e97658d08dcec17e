"""Sphinx extension of the course site: figures, explorers, palette, mathematics, predictions.

Sphinx and docutils are imported where they are used, so that the package needs neither.
"""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from pathlib import Path

PALETTE_CSS = "glassformer.css"
BOXED = r'<section class="\1-content">'
EXPLORER_MIME = "application/vnd.glassformer.explorer+json"


def palette_css() -> str:
    """Return the palette as CSS custom properties, `--gf-query` and so on, for both themes."""
    return _colours(":root", "light") + _colours('html[data-theme="dark"]', "dark")


def notebook_palette_css(colab: bool) -> str:
    """Return the palette for the explorers in a notebook, in the theme of whatever shows it.

    JupyterLab, Notebook, VS Code and Colab each mark a dark page in their own way. Elsewhere the
    system's setting counts; Colab does not mark its light page, so there it must not.
    """
    dark = 'body[data-jp-theme-light="false"], body.vscode-dark, html[theme="dark"]'
    dark += ", body.vscode-high-contrast:not(.vscode-high-contrast-light)"
    unmarked = "body:not([data-jp-theme-light]):not([data-vscode-theme-kind])"
    css = _colours(".gfx-host", "light") + _colours(f":is({dark}) .gfx-host", "dark")
    if not colab:
        elsewhere = _colours(f"{unmarked} .gfx-host", "dark")
        css += f"@media (prefers-color-scheme: dark) {{\n{elsewhere}}}\n"
    return css


def _colours(selector: str, theme: str) -> str:
    palette = json.loads(resources.files("glassformer").joinpath("palette.json").read_text("utf-8"))
    lines = "".join(f"  --gf-{role}: {hexes[theme]};\n" for role, hexes in palette.items())
    return f"{selector} {{\n{lines}}}\n"


def inline_svg(svg: str, alt: str, prefix: str) -> str:
    """Return the SVG as an HTML figure: named by `alt`, ids made unique, scrolling when wide."""
    svg = svg[svg.index("<svg") :]
    end = svg.index(">")
    opening, rest = svg[:end], svg[end:]
    for attribute in ("role", "aria-label", "aria-labelledby", "aria-hidden", "focusable"):
        opening = re.sub(rf'\s{attribute}="[^"]*"', "", opening)
    role = "group" if "<a " in rest else "img"  # what is inside an image, links too, goes unread
    svg = f'{opening} role="{role}" aria-label="{html.escape(alt)}"{rest}'
    ids = set(re.findall(r'\sid="([^"]+)"', svg))
    svg = re.sub(r'(\sid=")([^"]+)"', lambda m: f'{m[1]}{prefix}{m[2]}"', svg)
    svg = re.sub(
        r'(url\(#|href="#)([^)"]+)',
        lambda m: m[1] + prefix + m[2] if m[2] in ids else m[0],
        svg,
    )
    # A frame that scrolls must be reachable by keyboard.
    return (
        f'<figure class="gf-figure"><div class="gf-figure-frame" tabindex="0" role="group" '
        f'aria-label="Figure">{svg}</div></figure>'
    )


class FigureRenderer:
    """Put the SVGs of `glassformer.figures.show` inline, so that their colours follow the theme."""

    mime_priority_overrides = ()

    @staticmethod
    def handle_mime(renderer, data, inline: bool):
        """Render an SVG output that has a text alternative; leave every other output to MyST-NB."""
        if inline or data.mime_type != "image/svg+xml" or data.cell_index is None:
            return None
        alt = " ".join(alternative(renderer, data).split())
        if not alt:
            return None
        from docutils import nodes

        prefix = f"c{data.cell_index}o{data.output_index}-"
        return [nodes.raw(text=inline_svg(data.string, alt, prefix), format="html")]


def alternative(renderer, data) -> str:
    """Return the plain text that stands beside an output in its bundle."""
    _, outputs = renderer.renderer.nb_client.code_cell_outputs(data.cell_index)
    for output in outputs:
        bundle = output.get("data", {})
        if bundle.get(data.mime_type) == data.content:
            return str(bundle.get("text/plain", ""))
    return ""


def adjust_page(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Name the page's language, and leave out Thebe's scripts, which name another host.

    Hidden code is called what stands on it, "Show code cell source", by screen readers too; an
    entry of the bibliography is an item of its list.

    Sphinx itself stays at plain English: its script for other languages needs `eval`, which a
    content security policy may forbid.
    """
    context["language"] = "en-GB"
    if "body" in context:
        body = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')
        body = re.sub(r"(>Solution to)(<a [^>]*>) ", r"\1 \2", body)  # no underlined blank
        body = body.replace(' aria-label="Toggle hidden content"', "")
        # Of these there are many on a page: no id can name them all.
        context["body"] = re.sub(r'<section id="(exercise|solution)-content">', BOXED, body)
    for kind in ("script_files", "css_files"):
        context[kind] = [
            file
            for file in context.get(kind, ())
            if "thebe" not in f"{file} {getattr(file, 'attributes', '')}".lower()
        ]


def write_static_files(app) -> None:
    """Put palette, explorers, mathematics and icons where the site's static files are collected."""
    if app.builder.format != "html":
        return
    from .site_assets import write_assets
    from .site_explorers import write_explorers

    folder = Path(app.doctreedir).parent / "glassformer_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PALETTE_CSS).write_text(palette_css(), encoding="utf-8")
    write_explorers(folder)
    write_assets(folder)
    app.config.html_static_path.append(str(folder))


def setup(app) -> dict:
    """Register the extension with Sphinx."""
    from . import (
        site_address,
        site_citations,
        site_explorers,
        site_launch,
        site_questions,
        site_streams,
        site_terms,
        site_typography,
    )
    from .site_assets import ICONS, write_unscripted

    site_explorers.setup(app)
    site_questions.setup(app)
    site_terms.setup(app)
    site_streams.setup(app)
    site_launch.setup(app)
    site_address.setup(app)
    site_citations.setup(app)
    site_typography.setup(app)
    app.connect("builder-inited", write_static_files)
    app.connect("build-finished", write_unscripted)
    app.connect("html-page-context", adjust_page, priority=900)
    app.add_css_file(ICONS, priority=690)
    app.add_css_file(PALETTE_CSS, priority=700)
    app.add_css_file("book.css", priority=710)
    app.add_css_file("print.css", priority=740, media="print")
    app.add_js_file("book.js")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
