"""The links of a built site: those inside it lead somewhere, those outside are well formed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urldefrag, urlsplit

HOLDING = ("href", "src", "xlink:href", "action", "poster", "data", "cite", "data-src")
POINTING = ("for", "aria-labelledby", "aria-describedby", "aria-controls", "aria-owns", "list")
HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
TRACKING = re.compile(r"utm_\w+|fbclid|gclid|mc_[ce]id|igshid|ref_src|spm", re.I)
IN_CSS = re.compile(r"""url\(\s*(["']?)(.*?)\1\s*\)|@import\s+["']([^"']+)""", re.S)
IN_DATA = re.compile(
    r"""["']((?:\.{0,2}/)*[\w./-]+\.(?:html|js|json|ipynb|svg|png|css)(?:#[\w-]*)?)["']"""
)
NAMESPACES = ("http://www.w3.org/", "https://www.w3.org/")


@dataclass
class Page:
    """What a page names: its anchors, and its links by the attribute that holds them."""

    anchors: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)


class Reader(HTMLParser):
    """Read anchors and links, also those in styles, in pictures and in the data of scripts."""

    def __init__(self):
        super().__init__()
        self.page, self.inside = Page(), ""

    def handle_starttag(self, tag, attributes):
        """Take what the attributes hold."""
        given = {name: value or "" for name, value in attributes}
        self.inside = tag if tag in ("style", "script") else ""
        self.page.anchors += [given["id"]] if "id" in given else []
        self.page.anchors += [given["name"]] if tag == "a" and "name" in given else []
        links = [(name, given[name]) for name in HOLDING if given.get(name)]
        links += [
            ("srcset", part.split()[0]) for part in given.get("srcset", "").split(",") if part
        ]
        links += [("style", link) for link in css_links(given.get("style", ""))]
        for name in POINTING:
            links += [(name, f"#{target}") for target in given.get(name, "").split()]
        if given.get("http-equiv", "").lower() == "refresh":
            links.append(("content", given["content"].partition("url=")[2]))
        self.page.links += links

    def handle_data(self, text):
        """Take what styles and data of scripts hold."""
        if self.inside == "style":
            self.page.links += [("style", link) for link in css_links(text)]
        if self.inside == "script":
            self.page.links += [("script", link) for link in IN_DATA.findall(text)]

    def handle_endtag(self, tag):
        """A style or a script ends."""
        self.inside = ""


def css_links(text: str) -> list[str]:
    """Return what a style sheet asks for."""
    return [(second or third).strip() for _, second, third in IN_CSS.findall(text)]


def read_page(path: Path) -> Page:
    """Return the anchors and links of a page, or of a picture."""
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def pages_of(site: Path) -> dict[Path, Page]:
    """Return all pages of a site; templates that came along with the theme are none."""
    return {path: read_page(path) for path in [*site.glob("*.html"), *site.glob("book/*.html")]}


def is_outside(link: str) -> bool:
    """Return whether a link leaves the site."""
    return bool(re.match(r"[a-z][a-z0-9+.-]*:|//", link, re.I)) and not link.startswith("data:")


def broken_links(site: Path, base: str = "/") -> list[str]:
    """Return a line for every link inside the site that leads to no file or to no anchor of it.

    Links from a host's root, as a page not found has them, begin with `base`.
    """
    pages, broken = pages_of(site), []
    for path, page in pages.items():
        for holder, link in dict.fromkeys(page.links):
            if not is_outside(link) and not link.startswith(("data:", "javascript:")):
                fault = dead(site, path, re.sub(f"^{re.escape(base)}", "/", link), pages)
                broken += [f"{path.name}: {holder}={link!r}: {fault}"] if fault else []
        twice = {anchor for anchor in page.anchors if page.anchors.count(anchor) > 1}
        broken += [f"{path.name}: two elements are called {anchor!r}" for anchor in sorted(twice)]
    for path in site.glob("_static/**/*.css"):
        for link in css_links(path.read_text(encoding="utf-8")):
            if not is_outside(link) and not link.startswith("data:"):
                fault = dead(site, path, link, pages)
                broken += [f"{path.name}: url({link}): {fault}"] if fault else []
    return broken


def dead(site: Path, path: Path, link: str, pages: dict[Path, Page]) -> str:
    """Return why a link of a file leads nowhere, or "" if it leads somewhere."""
    address, anchor = urldefrag(link)
    name = unquote(address.partition("?")[0])
    target = (site / name.lstrip("/") if name.startswith("/") else path.parent / name).resolve()
    target = path if not name else target / "index.html" if target.is_dir() else target
    if not target.is_file() or not target.is_relative_to(site.resolve()):
        return "there is no such file"
    if anchor and target.suffix == ".html":
        found = pages.get(target) or read_page(target)
        return "" if unquote(anchor) in found.anchors else "there is no such anchor"
    return ""


def outside_links(site: Path) -> dict[str, str]:
    """Return every link out of the site, with the name of a page that holds it."""
    found = {}
    for path, page in pages_of(site).items():
        for holder, link in page.links:
            if is_outside(link) and holder != "script":
                found.setdefault(link, path.name)
    return dict(sorted(found.items()))


def malformed(link: str) -> str:
    """Return what is wrong with a link out of the site, or "" if nothing is."""
    if re.search(r"\s", link):
        return "holds a blank"
    try:
        parts = urlsplit(link)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "is no address"
    if parts.scheme != "https":
        return "is not https"
    if not HOST.fullmatch(host) or port or parts.username or host.endswith((".local", ".test")):
        return "names no public host"
    tracking = [key for key, _ in parse_qsl(parts.query) if TRACKING.fullmatch(key)]
    return f"tracks its readers: {tracking[0]}" if tracking else ""
