"""The built site as one PDF: `python -m glassformer.site_pdf _build/html book.pdf`.

Chromium makes one book of the site's pages (site_pdf.js), draws its mathematics and prints it: once
to learn on which page each heading comes to stand, and again with those numbers in the contents.
"""

from __future__ import annotations

import argparse
import io
import re
import time
from collections.abc import Callable
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from .chromium import MISSING, find_chromium
from .config import write_atomically

TITLE, AUTHOR = "The Glass Transformer", "The Glass Transformer authors"
PLACE = "_book_as_one_page.html"  # where the book's page seems to be: nothing is written there
EMPTY = '<!doctype html><html lang="en-GB" data-theme="light"><meta charset="utf-8"><title></title>'
FLAGS = ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PASSES = 4  # numbers move headings at most once; more would never end
PAPER = {"prefer_css_page_size": True, "print_background": True, "tagged": True, "outline": True}


class Unprintable(Exception):
    """Why there is no PDF, and what to do, in one sentence."""


# What is printed ---------------------------------------------------------------------------------


def pages_of(site: Path) -> dict[str, str]:
    """Return the site's pages that hold an article, by their paths in it."""
    paths = {path.relative_to(site).as_posix(): path for path in sorted(site.rglob("*.html"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    return {name: text for name, text in texts.items() if "<article" in text}


def root_of(site: Path) -> str:
    """Return the path of the site's first page, to which `index.html` leads."""
    index = site / "index.html"
    if not index.is_file():
        raise Unprintable(f"There is no built site in {site}: run `make book`.")
    found = re.search(r'http-equiv="Refresh" content="0; url=([^"]+)"', index.read_text("utf-8"))
    return found[1] if found else "index.html"


def cover() -> str:
    """Return the picture on the title page: what one token gathers, number by number."""
    from . import figures
    from .checkpoints import load_baby_groot
    from .data import groot_vocabulary
    from .figures.style import to_svg
    from .trace import trace

    words = "<START> i am groot".split()
    seen = trace(load_baby_groot(), groot_vocabulary().encode(" ".join(words)))
    shares, values = seen["attention"][2, :3], seen["v"]
    parts: list[Any] = []
    for word, share, value in zip(words, shares, values, strict=False):
        label = f"{100 * share:.1f} % of {word}"
        parts += ["+"] * bool(parts) + [figures.Matrix(share * value, "", "value", rows=[label])]
    total = figures.Matrix(seen["context"][2], "", "context", rows=["context of am"])
    return to_svg(
        figures.equation([*parts, "=", total], one_scale=True),
        "What the token am gathers, number by number: shares of the values of <START>, of i and "
        "of am itself add up to its context.",
    )


# Chromium ----------------------------------------------------------------------------------------


@contextmanager
def book_page(site: Path, program: str):
    """Yield an empty page of Chromium that may read the site's files, and nothing else."""
    from playwright.sync_api import Error, sync_playwright

    refused: list[str] = []
    own = site.resolve().as_uri() + "/"

    def answer(route):
        url = route.request.url
        if url == own + PLACE:
            route.fulfill(content_type="text/html", body=EMPTY)
        elif url.startswith((own, "data:")):
            route.continue_()
        else:
            refused.append(url)
            route.abort()

    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            page = browser.new_context(offline=True, color_scheme="light").new_page()
            page.route("**", answer)
            page.goto(own + PLACE)
            yield page
            browser.close()
    except Error as error:
        told = error.message.partition("\n")[0].removeprefix("Page.evaluate: Error: ")
        raise Unprintable(f"Chromium cannot print the book: {told}") from None
    if refused:
        raise Unprintable(
            f"The book asks for {refused[0]}, which is not in it: put it into _static."
        )


def draw_mathematics(page, names: list[str], say: Callable[[str], None]) -> None:
    """Draw all formulas, chapter by chapter."""
    drawn = 0
    for name in names:
        result = page.evaluate("name => glassformerBook.draw(name)", name)
        if result["failed"]:
            raise Unprintable(f"A formula of {name} cannot be drawn: {result['failed'][0]}")
        drawn += result["count"]
        say(f"  {name}: {drawn} formulas drawn")


def print_numbered(page, say: Callable[[str], None]) -> bytes:
    """Print until the numbers in the contents are those of the pages."""
    numbers: dict[str, int] = {}
    for printing in range(1, PASSES + 1):
        pdf = page.pdf(**PAPER)
        found = page_numbers(pdf)
        say(f"printed, time {printing}: {len(found)} places found")
        if found == numbers:
            return pdf
        numbers = found
        page.evaluate("pages => glassformerBook.number(pages)", numbers)
    raise Unprintable("The page numbers do not settle: shorten the titles of the contents.")


# The PDF -----------------------------------------------------------------------------------------


def page_numbers(pdf: bytes) -> dict[str, int]:
    """Return the number of the page, from 1, on which each place that is linked to stands."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(pdf))
    places = reader.named_destinations.items()
    return {name.lstrip("/"): reader.get_destination_page_number(at) + 1 for name, at in places}


def book_pdf(site: Path, program: str, say: Callable[[str], None] = lambda text: None) -> bytes:
    """Return the built site as a PDF."""
    root, pages = root_of(site), pages_of(site)
    script = resources.files("glassformer").joinpath("site_pdf.js").read_text("utf-8")
    given = {"root": root, "pages": pages, "title": TITLE, "author": AUTHOR, "cover": cover()}
    with book_page(site, program) as page:
        page.emulate_media(media="print")
        page.evaluate(script)
        names = page.evaluate("book => glassformerBook.assemble(book)", given)
        say(f"{len(names)} pages of the site put together")
        draw_mathematics(page, names, say)
        return print_numbered(page, say)


def write_pdf(site: Path, target: Path, say: Callable[[str], None]) -> None:
    """Write the built site as a PDF, whole or not at all."""
    program = find_chromium()
    if program is None:
        raise Unprintable(MISSING)
    try:
        import playwright  # noqa: F401
        import pypdf  # noqa: F401
    except ImportError as error:
        needed = f"`make pdf` needs {error.name}: install it with `pip install {error.name}`."
        raise Unprintable(needed) from None
    pdf = book_pdf(site, program, say)
    try:
        write_atomically(target, pdf)
    except ValueError as error:
        raise Unprintable(str(error)) from None


def main() -> None:
    """Command line: the folder of the built site, and the file to write."""
    parser = argparse.ArgumentParser(prog="python -m glassformer.site_pdf", description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:5.1f} s  {text}", flush=True)

    try:
        write_pdf(given.site, given.target, say)
    except Unprintable as error:
        parser.exit(1, f"{error}\n")
    pages = given.target.read_bytes().count(b"/Type /Page\n")
    say(f"{given.target}: {pages} pages, {given.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
