"""What the site tells those who have only an address: search engines, chats, a reader who is lost.

Every page describes itself. With the site's public address there are canonical links, a sitemap and
cards for links that are shared; without one no page names a host. The address follows from the
repository's in `_config.yml`; a site elsewhere sets `html: baseurl` there.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from docutils import nodes

    from .repository import Address

HOSTS = {"github.com": "github.io", "gitlab.com": "gitlab.io"}
LENGTH = 200  # characters of a description
LOST = "404"
UNLISTED = [f"{name}.html" for name in (LOST, "search", "genindex", "py-modindex")]
CARD, CARD_SIZE = "card.png", (1200, 630)
CARD_ALT = (
    'What the token "am" gathers, number by number: 2.7 % of the value of <START>, 86.5 % of that '
    'of "i", 10.8 % of its own'
)
LOST_BODY = """\
<h1>Page not found</h1>
<p>There is no page at this address: it has moved, or the link has a slip. Everything is still in
<a href="{home}">the book</a>, and the search finds it.</p>
<form class="gf-lost" role="search" action="{search}" method="get">
<input type="search" name="q" aria-label="Words to search for" autocomplete="off">
<button type="submit">Search the book</button></form>"""


# The site's address -------------------------------------------------------------------------------


def pages_address(repository: Address | None) -> str:
    """Return where a repository's pages are published, or "" where that is not known."""
    if repository is None:
        return ""
    _, _, host, owner, name = repository.url.split("/")
    if host not in HOSTS:
        return ""
    site = f"{owner}.{HOSTS[host]}".lower()
    return f"https://{site}/" if name.lower() == site else f"https://{site}/{name}/"


def checked(address: str) -> str:
    """Return an address with its closing slash, or refuse it in one sentence."""
    if not re.fullmatch(r"https://(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[\w.~-]+)*/?", address, re.A):
        raise ValueError(
            f"`html: baseurl` of _config.yml cannot be {ascii(address)[:80]}: give the site's "
            "address as https://host/path/, or leave it out."
        )
    return address.rstrip("/") + "/"


def take_address(app, config) -> None:
    """Settle the site's address; only with one, load what writes sitemap and cards."""
    from sphinx.errors import ConfigError

    try:
        given = config.html_baseurl
        address = checked(given) if given else pages_address(config.glassformer_address)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    config.html_baseurl = address
    config.notfound_urls_prefix = urlsplit(address).path or "/"
    config.notfound_context = {"title": "Page not found", "body": LOST_BODY}
    if not address:
        return
    app.setup_extension("sphinx_sitemap")
    app.setup_extension("sphinxext.opengraph")
    config.sitemap_url_scheme, config.sitemap_excludes = "{link}", UNLISTED
    config.ogp_site_name = config.html_title
    config.ogp_site_url, config.ogp_image = address, f"_static/{CARD}"
    config.ogp_image_alt = html.escape(CARD_ALT, quote=False)
    config.ogp_enable_meta_description = False  # every page has one already
    sizes = zip(("width", "height"), CARD_SIZE, strict=True)
    tags = [f'<meta property="og:image:{side}" content="{size}" />' for side, size in sizes]
    config.ogp_custom_meta_tags = [
        *tags,
        '<meta name="twitter:card" content="summary_large_image" />',
    ]


# What a page says of itself -----------------------------------------------------------------------


def description(doctree: nodes.document) -> str:
    """Return a page's description: a chapter's question and what it teaches, or its first words."""
    from docutils import nodes

    boxes = (n for n in doctree.findall(nodes.Element) if "opening" in n.get("classes", ()))
    box = next(boxes, doctree)
    title = [box[0].astext()] if box is not doctree else []
    texts = title + [n.astext() for n in box.findall(nodes.paragraph)][: 1 if title else 2]
    return shortened(" ".join(" ".join(texts).split()))


def shortened(text: str) -> str:
    """Return a text that fits a description: whole words, and a sign that there is more."""
    if len(text) <= LENGTH:
        return text
    return text[: LENGTH - 1].rsplit(" ", 1)[0].rstrip(" ,;:–") + "…"


def describe(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Give a page its description, for search engines and cards; complete the page not found."""
    if pagename == LOST:
        context["pageurl"], context["content_root"] = None, app.config.notfound_urls_prefix
        context["metatags"] = '<meta name="robots" content="noindex">'
        pages = {"home": app.config.root_doc, "search": "search"}
        links = {name: context["pathto"](page) for name, page in pages.items()}
        context["body"] = context["body"].format(**links)
    if doctree is None:
        return
    said = html.escape(description(doctree), quote=True)
    context["metatags"] += f'<meta name="description" content="{said}" />\n'
    context["meta"] = {**(context["meta"] or {}), "og:description": said}


# Files --------------------------------------------------------------------------------------------


def write_card(app) -> None:
    """Draw the picture that is shown with a shared link: the cover, under the book's name."""
    if app.builder.format != "html" or not app.config.html_baseurl:
        return
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    cover = imread(Path(app.srcdir) / "book/_static/cover.png")
    figure = Figure([side / 100 for side in CARD_SIZE], dpi=100, facecolor="white")
    figure.text(0.5, 0.83, app.config.html_title, size=44, family="serif", ha="center")
    axes = figure.add_axes((0.06, 0.06, 0.88, 0.7), frameon=False, xticks=[], yticks=[])
    axes.imshow(cover, interpolation="lanczos")
    figure.savefig(Path(app.config.html_static_path[-1]) / CARD, metadata={"Software": None})


TOLD = re.compile(
    r'<title>.*?</title>|<meta (?:property|name)="(?:og:|twitter:|description)[^>]*>'
    r'|<link rel="canonical"[^>]*>',
    re.S,
)
ENTRANCE = """\
<!doctype html>
<html lang="en-GB"><head><meta charset="utf-8">
<meta http-equiv="Refresh" content="0; url={page}">
{told}
</head><body><p><a href="{page}">{name}</a></p></body></html>
"""


def write_entrance(app, failure: Exception | None) -> None:
    """Write the site's `index.html`, which leads on to the book and tells the same of it."""
    page = f"{app.config.root_doc}.html"
    if failure or app.builder.format != "html" or app.config.root_doc == "index":
        return
    told = "\n".join(TOLD.findall((Path(app.outdir) / page).read_text(encoding="utf-8")))
    text = ENTRANCE.format(page=page, told=told, name=html.escape(app.config.html_title))
    (Path(app.outdir) / "index.html").write_text(text, encoding="utf-8")


def setup(app) -> None:
    """Register settings, descriptions and files."""
    app.setup_extension("notfound.extension")
    app.connect("config-inited", take_address, priority=600)  # after the repository's
    app.connect("builder-inited", write_card, priority=600)  # after the folder was made
    app.connect("html-page-context", describe, priority=450)
    app.connect("build-finished", write_entrance, priority=400)
