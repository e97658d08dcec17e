"""What a page of the built site weighs, and when it can be read, beside stock Jupyter Book.

The stock page is the same notebook under Jupyter Book's own settings. What it asks of CDNs comes
from the npm packages of the versions that it names, fetched into a temporary folder.
"""

from __future__ import annotations

import gzip
import mimetypes
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copy

from browsing import FLAGS, served

from glassformer.chromium import find_chromium

ROOT = Path(__file__).resolve().parent.parent
TEXT = re.compile(r"\.(?:html|js|css|json|svg|txt)$")  # what servers compress; fonts, pictures are
# Where on their hosts the stock page's CDNs keep a package's file.
PACKAGED = re.compile(r"https://[^/]+/npm/((?:@[^/]+/)?[^/@]+)@([^/]+)/([^?]+)")
REQUIRE = re.compile(r"https://[^/]+/ajax/libs/require\.js/([\d.]+)/require\.min\.js")
STOCK_CONFIG = """\
title: Stock
execute: {execute_notebooks: "off"}
parse: {myst_enable_extensions: [colon_fence, deflist, dollarmath, amsmath, tasklist]}
bibtex_bibfiles: [book/references.bib]
sphinx: {extra_extensions: [sphinx_exercise]}
"""
LAID_OUT = """() => {
  const laid = (selector) => document.querySelector(selector)?.getBoundingClientRect().height > 0;
  const look = () => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    const there = paint && laid("article h1") && laid("article p");
    if (!there) return void requestAnimationFrame(look);
    readable = Math.max(paint.startTime, performance.now());
  };
  globalThis.readable = 0;
  look();
}"""


@dataclass
class Weight:
    """What a page asks for: bytes as they travel, by address, and what could not be counted."""

    own: dict[str, int] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.own.values()) + sum(self.foreign.values())


def travelling(name: str, content: bytes) -> int:
    """Return how many bytes a file is on its way: texts are compressed."""
    return len(gzip.compress(content, 6)) if TEXT.search(name.partition("?")[0]) else len(content)


class Packages:
    """Files of npm packages, fetched once each into a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def file(self, url: str) -> bytes | None:
        """Return what a CDN has at an address, or nothing if that is not known."""
        if found := PACKAGED.fullmatch(url.partition("?")[0]):
            name, version, path = found.groups()
        elif found := REQUIRE.fullmatch(url):
            name, version, path = "requirejs", found[1], "require.js"
        else:
            return None
        target = self.fetched(name, version) / "package" / path
        return target.read_bytes() if target.is_file() else None

    def fetched(self, name: str, version: str) -> Path:
        """Return the folder of a package, fetched by npm if it is not there."""
        target = self.folder / f"{name.replace('/', '-')}-{version}"
        if not target.exists():
            target.mkdir()
            command = ["npm", "pack", "--silent", f"{name}@{version}", "--pack-destination", target]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            with tarfile.open(next(target.glob("*.tgz"))) as archive:
                archive.extractall(target, filter="data")
        return target


def stock_site(folder: Path, chapters: list[Path]) -> Path:
    """Build chapters under Jupyter Book's own settings; return the folder of the site."""
    (folder / "book").mkdir()
    for path in (*chapters, ROOT / "book/references.bib"):
        copy(path, folder / "book")
    names = "".join(f"- file: book/{path.stem}\n" for path in chapters)
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{names}")
    (folder / "_config.yml").write_text(STOCK_CONFIG)
    (folder / "index.md").write_text("# Stock\n")
    start = "from myst_nb.core import render; render.load_mime_renders = list; "  # none of ours
    start += "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", "-q", "."]
    run = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    if run.returncode:
        sys.exit(f"The stock build fails:\n{run.stderr[-2000:]}")
    return folder / "_build/html"


def answer_for_cdns(context, packages: Packages, weight: Weight) -> None:
    """Answer requests to CDNs from packages, at once, and weigh what they got."""

    def answer(route):
        url = route.request.url
        content = packages.file(url)
        if content is None:
            weight.unknown.append(url)
            return route.abort()
        weight.foreign[url] = travelling(url, content)
        kind = mimetypes.guess_type(url.partition("?")[0])[0] or "application/octet-stream"
        headers = {"Access-Control-Allow-Origin": "*", "Content-Type": kind}
        return route.fulfill(body=content, headers=headers)

    context.route(re.compile(r"^https://"), answer)


def started(playwright):
    """Return a browser that has just been started."""
    return playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)


def weigh(playwright, site: Path, name: str, packages: Packages) -> Weight:
    """Return what a page asks for when it is served, its mathematics drawn."""
    weight, browser = Weight(), started(playwright)
    context = browser.new_context(bypass_csp=True)  # the course's own: stock could not bear it
    answer_for_cdns(context, packages, weight)
    with served(site) as address:
        page = context.new_page()
        page.on("response", lambda answer: _take(weight, site, address, answer))
        page.goto(f"{address}/{name}", wait_until="networkidle")
        page.evaluate("window.MathJax?.startup?.promise")
        page.wait_for_load_state("networkidle")
    browser.close()
    return weight


def widgets_weight(packages: Packages) -> int:
    """Return what stock adds to a page on which a widget is alive: what MyST-NB names for it."""
    from myst_nb.core.config import ipywidgets_js_factory

    return sum(travelling(url, packages.file(url)) for url in ipywidgets_js_factory())


def _take(weight: Weight, site: Path, address: str, answer) -> None:
    if answer.url.startswith(address) and answer.ok:
        path = answer.url.removeprefix(f"{address}/").partition("?")[0]
        weight.own[path] = travelling(path, (site / path).read_bytes())


def seconds_until_readable(playwright, page_file: Path, packages: Packages) -> float:
    """Return when a page's first words stand there, opened from disk in a browser just started."""
    browser = started(playwright)
    context = browser.new_context()
    answer_for_cdns(context, packages, Weight())
    context.add_init_script(f"({LAID_OUT})()")
    page = context.new_page()
    page.goto(page_file.as_uri(), wait_until="commit")
    page.wait_for_function("globalThis.readable > 0")
    seconds = page.evaluate("readable") / 1e3
    browser.close()
    return seconds
