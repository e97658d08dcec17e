"""The explorers on the site: notebook outputs and directives become explorers without a kernel.

A page with explorers loads their script, their style sheet and the parts that they need; any other
page loads nothing of them. Where no JavaScript runs, and in other formats, stands what they show
in words.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .site import EXPLORER_MIME, alternative

FAMILIES, STYLE = ("groot", "llama", "own"), "glassformer-explorers.css"
LATE = ("novelist",)  # parts heavier than all else: a page loads them when their explorer is near
# On the site itself, where no script runs; on paper the words stay as they are.
HERE = '<span class="gf-elsewhere">{0}</span><noscript>Here it needs JavaScript.</noscript>'

logger = logging.getLogger(__name__)


class explorer_node(nodes.General, nodes.Element):  # noqa: N801 – docutils names nodes this way
    """An explorer in a page: `page` is its JSON data, `words` its text alternative."""


def explorer(page: dict[str, Any], words: str) -> explorer_node:
    """Return the node of an explorer; its children are the text alternative."""
    node = explorer_node(page=page, words=words)
    for block in _blocks(words):
        if "\n" in block:
            node += nodes.literal_block(block, block, language="none")
        else:
            node += nodes.paragraph(block, block)
    return node


def _blocks(words: str) -> list[str]:
    """Return paragraphs, of one line, and tables, of several."""
    return [block for block in words.split("\n\n") if block.strip()]


def safe_json(data: Any) -> str:
    """Return data as JSON that can stand inside a script element, whatever texts it holds."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def explorer_html(page: dict[str, Any], words: str, number: int = 1) -> str:
    """Return an explorer's place in a page: its data, and its text alternative until it is live."""
    name = page["explorer"]
    place = f"explorer-{name}" + (f"-{number}" if number > 1 else "")
    blocks = "".join(_block_html(block) for block in _blocks(words))
    return (
        f'<div class="gf-explorer" id="{html.escape(place)}" data-explorer="{html.escape(name)}">'
        f'<script type="application/json">{safe_json(page)}</script>'
        f'<div class="gf-explorer-text">{blocks}</div></div>\n'
    )


def _block_html(block: str) -> str:
    from .explorers.words import LIVE

    if "\n" not in block:
        where = html.escape(LIVE)
        return f"<p>{html.escape(block).replace(where, HERE.format(where))}</p>"
    frame = 'tabindex="0" role="group" aria-label="Table"'  # it scrolls: reachable by keyboard
    return f"<pre {frame}>{html.escape(block)}</pre>"


def visit_html(translator, node: explorer_node) -> None:
    """Write an explorer into a page; a second one of its kind there gets an id of its own."""
    counts = translator.__dict__.setdefault("glassformer_explorers", {})
    name = node["page"]["explorer"]
    counts[name] = counts.get(name, 0) + 1
    translator.body.append(explorer_html(node["page"], node["words"], counts[name]))
    raise nodes.SkipNode


def pass_by(translator, node: explorer_node) -> None:
    """Leave it to the children, which are the text alternative."""


class ExplorerRenderer:
    """Turn the stored output of an explorer's cell into the site's explorer."""

    mime_priority_overrides = (("*", EXPLORER_MIME, 1),)

    @staticmethod
    def handle_mime(renderer, data, inline: bool):
        """Render an explorer's own output; leave every other output to MyST-NB."""
        if inline or data.mime_type != EXPLORER_MIME or data.cell_index is None:
            return None
        return [explorer(data.content, alternative(renderer, data))]


class _AnyOption(dict):
    """Accept every option as text: which there are depends on the explorer."""

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str):
        return str


class ExplorerDirective(SphinxDirective):
    """An explorer in a Markdown page: its name, and its state as options."""

    required_arguments = 1
    final_argument_whitespace = False
    option_spec = _AnyOption()

    def run(self) -> list[nodes.Node]:
        """Return the explorer; a warning names what there is, if that cannot be."""
        try:
            return [self._made(self.arguments[0])]
        except _refusals() as error:
            logger.warning("explorer: %s", error, location=self.get_location())
            return []

    def _made(self, name: str) -> explorer_node:
        from .explorers import EXPLORERS

        if name not in EXPLORERS:
            raise ValueError(f"There is no explorer {name!r}; there are {', '.join(EXPLORERS)}.")
        for source in _sources():
            self.env.note_dependency(str(source))  # what an explorer says changes with these
        kind = EXPLORERS[name]
        traits = kind.class_traits(state=True)
        state = {key: _value(traits.get(key), text) for key, text in self.options.items()}
        made = kind(**state)
        try:
            return explorer(made.page(), made.text())
        finally:
            made.close()


def _sources() -> list[Path]:
    package = Path(__file__).parent
    return [*package.glob("explorers/*.py"), *package.glob("weights/*.safetensors")]


def _refusals() -> tuple[type[Exception], ...]:
    from traitlets import TraitError

    return (TraitError, TypeError, ValueError)


def _value(trait, text: str) -> Any:
    """Return what an option's text means: itself for a text, JSON for anything else."""
    from traitlets import Enum, Unicode

    if trait is None or isinstance(trait, (Unicode, Enum)):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(
            f"{trait.name} = {text!r} cannot be read: write a number, true, false or a list."
        ) from None


def write_explorers(folder: Path) -> None:
    """Write the scripts, the style sheet and the parts, as static files of the site."""
    from .explorers.base import jsonable, static
    from .explorers.parts import PARTS, part

    try:
        files = {script_file(family): static(f"site-{family}.js") for family in FAMILIES}
        files[STYLE] = static("explorers.css")
    except FileNotFoundError as error:
        raise ExtensionError(str(error)) from None
    for name in PARTS:
        data = safe_json(jsonable(part(name)))
        files[part_file(name)] = f"(globalThis.glassformerParts ??= {{}}).{name} = {data};\n"
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


def script_file(family: str) -> str:
    """Return the name of the script that brings a family of explorers to life."""
    return f"glassformer-explorers-{family}.js"


def part_file(name: str) -> str:
    """Return the name of the script that holds a part."""
    return f"glassformer-part-{name}.js"


def loading(part: str) -> dict[str, str]:
    """Return the attributes of a part's script: of a late one, what no browser loads by itself."""
    late = {"type": "text/plain", "data-part": part}
    return late if part in LATE else {"loading_method": "defer"}


def load_explorers(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Let a page with explorers load what they need, parts first."""
    pages = [node["page"] for node in doctree.findall(explorer_node)] if doctree else []
    if not pages:
        return
    needed = {name for page in pages for name, given in page["data"].items() if given is None}
    app.add_css_file(STYLE, priority=720)
    for name in sorted(needed):
        app.add_js_file(part_file(name), priority=720, **loading(name))
    from .explorers import EXPLORERS

    for family in sorted({EXPLORERS[page["explorer"]].family for page in pages}):
        app.add_js_file(script_file(family), priority=730, loading_method="defer")


def drop_widget_state(app, doctree) -> None:
    """Leave out the widgets' state that executing a notebook collects: pages do not use it."""
    metadata = getattr(app.env, "nb_metadata", {}).get(app.env.docname, {})
    metadata.get("js_files", {}).pop("ipywidgets_state", None)


def setup(app) -> None:
    """Register node, directive and what pages load."""
    others = {kind: (pass_by, pass_by) for kind in ("latex", "text", "man", "texinfo")}
    app.add_node(explorer_node, html=(visit_html, pass_by), **others)
    app.add_directive("explorer", ExplorerDirective)
    app.connect("doctree-read", drop_widget_state)
    app.connect("html-page-context", load_explorers)
