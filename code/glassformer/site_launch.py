"""Launching and downloading on the site: buttons and links of the notebooks.

With an address a chapter's page opens its notebook in Binder, Colab and JupyterHub, and likewise
its exercises. Downloads need no address, and work on pages opened from disk.
"""

from __future__ import annotations

import html
import json
from pathlib import Path

from docutils import nodes

from .repository import address_of

ICONS = {"Binder": "binder.svg", "Colab": "colab.png", "JupyterHub": "jupyterhub.svg"}
SCRIPT = "launch.js"


def read_address(app, config) -> None:
    """Read the address from the book's settings: Jupyter Book hands them to the theme alone."""
    try:
        config.glassformer_address = address_of(Path(app.srcdir))
    except ValueError as error:
        from sphinx.errors import ConfigError

        raise ConfigError(str(error)) from None


def add_buttons(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Add the buttons of the repository, and on a notebook's page those that open the notebook."""
    address, buttons = app.config.glassformer_address, context.get("header_buttons")
    if address is None or buttons is None:
        return
    if context.get("page_source_suffix") == ".ipynb":
        links = address.launchers(f"{pagename}.ipynb")
        launch = [link_button(name, link, f"Open this chapter in {name}") for name, link in links]
        if launch:
            buttons.insert(0, group("launch-buttons", "fas fa-rocket", "Open and run", launch))
    source = link_button("", address.url, "Source repository") | {
        "icon": repository_icon(address.url)
    }
    buttons.insert(1, source | {"label": "source-repository-button"})


def link_button(name: str, link: str, tooltip: str) -> dict:
    """Return a button of the theme's header."""
    icon = f"_static/images/logo_{ICONS[name]}" if name else ""
    return {
        "type": "link",
        "text": name,
        "url": html.escape(link),
        "tooltip": tooltip,
        "icon": icon,
    }


def group(label: str, icon: str, tooltip: str, buttons: list[dict]) -> dict:
    """Return buttons of the theme's header, behind one that opens them."""
    return {"type": "group", "label": label, "icon": icon, "tooltip": tooltip, "buttons": buttons}


def repository_icon(url: str) -> str:
    """Return the theme's icon for where a repository is."""
    known = [name for name in ("github", "gitlab", "bitbucket") if f"://{name}." in url]
    return f"fab fa-{known[0]}" if known else "fas fa-code"


def add_links(app, doctree: nodes.document, docname: str) -> None:
    """Put links that open a notebook behind the one that downloads it."""
    from sphinx.addnodes import download_reference

    address = app.config.glassformer_address
    if address is None or app.builder.format != "html":
        return
    for node in list(doctree.findall(download_reference)):
        path, _ = app.env.relfn2path(node["reftarget"], docname)
        links = address.launchers(path) if path.endswith(".ipynb") else []
        place = node.parent.index(node) + 1
        node.parent[place:place] = launch_text(links)


def launch_text(links: list[tuple[str, str]]) -> list[nodes.Node]:
    """Return a bracket with the links: " (open it in Binder, Colab or JupyterHub)"."""
    text: list[nodes.Node] = []
    for number, (name, link) in enumerate(links, start=1):
        before = " (open it in " if number == 1 else " or " if number == len(links) else ", "
        text += [nodes.Text(before), nodes.reference("", name, refuri=link)]
    return text and [*text, nodes.Text(")")]


def write_copies(app, failure: Exception | None) -> None:
    """Write a script beside each notebook that hands its text to a page opened from disk.

    Such a page may not read other files, and a browser would show the notebook, not store it.
    """
    if failure or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.ipynb"):
        given = ", ".join(json.dumps(text) for text in (path.name, path.read_text("utf-8")))
        path.with_name(f"{path.name}.js").write_text(f"storeNotebook({given});\n", encoding="utf-8")


def setup(app) -> None:
    """Register settings, buttons, links and the script."""
    app.add_config_value("glassformer_address", None, "html")
    app.connect("config-inited", read_address)
    app.connect("doctree-resolved", add_links)
    app.connect("html-page-context", add_buttons, priority=600)
    app.connect("build-finished", write_copies)
    app.add_js_file(SCRIPT, loading_method="defer")
