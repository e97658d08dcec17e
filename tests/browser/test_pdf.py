"""The printed book: complete, numbered, linked, readable aloud, and made without a network."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pypdf import PdfReader

from glassformer import site_pdf
from glassformer.chromium import MISSING
from glassformer.site_assets import MATHEMATICS

A4 = (595, 842)
FIGURE = re.compile(rb"<</Type /StructElem\n/S /Figure\n(.*?)endobj", re.S)


# What a printed book keeps -----------------------------------------------------------------------


class Book:
    """A PDF, and what its pages say."""

    def __init__(self, path: Path) -> None:
        self.bytes, self.reader = path.read_bytes(), PdfReader(path)
        self.titles = list(self._outline(self.reader.outline))
        self.text = functools.cache(self._text)

    def _outline(self, items, level=1):
        for item in items:
            if isinstance(item, list):
                yield from self._outline(item, level + 1)
            else:
                page = self.reader.get_destination_page_number(item) + 1
                yield level, " ".join(item.title.split()), page

    def _text(self, number: int) -> str:
        """Return what a page says, beginning with its number."""
        return letters(self.reader.pages[number - 1].extract_text())

    def starts(self) -> list[int]:
        """Return the pages on which the contents and each chapter begin."""
        return [page for level, _, page in self.titles if level == 1]

    def looked_at(self) -> list[int]:
        """Return the pages whose text is looked at, for reading all of them takes long."""
        return sorted({*self.starts(), *(page for *_, page in self.titles[::3])})

    def head(self, number: int) -> str:
        """Return what a page begins with: the book's title, its chapter's, and its number."""
        chapter = [title for level, title, at in self.titles if level == 1 and at <= number][-1]
        above = dict.fromkeys([site_pdf.TITLE, chapter]) if chapter != "Contents" else ()
        return letters("".join(above) + str(number))

    def part(self, start: int, end: int) -> str:
        """Return what the pages say from one on to before another, without their numbers."""
        return "".join(self.text(n).removeprefix(str(n)) for n in range(start, end))


def letters(text: str) -> str:
    """Return a text without spaces and dots, which extracting it may add or lose."""
    return re.sub(r"[\s.]", "", text)


def contents_faults(book: Book) -> list[str]:
    """The contents list each chapter and section with its page, and nothing else has a number."""
    listed, at, faults = book.part(*book.starts()[:2]), len("Contents"), []
    for level, title, page in book.titles:
        if level > 2 or title == "Contents":
            continue
        entry = f"{letters(title)}{page}"
        found = listed.find(entry, at)
        if found < 0 or re.search(r"\d", listed[at:found]):  # in between there are parts at most
            faults.append(f"the contents do not say that {title!r} is on page {page}")
        else:
            at = found + len(entry)
    return faults


def outline_faults(book: Book) -> list[str]:
    """A bookmark leads to the page on which its title stands, below the page's head."""
    return [
        f"the bookmark {title!r} leads to page {page}"
        for _, title, page in book.titles
        if page in book.looked_at()
        and letters(title) not in book.text(page).removeprefix(book.head(page))
    ]


def page_faults(book: Book) -> list[str]:
    """Pages are of size A4; one on which something begins has its head and its number."""
    sizes = {tuple(round(float(x)) for x in page.mediabox[2:]) for page in book.reader.pages}
    faults = [f"a page has the size {size}" for size in sizes - {A4}]
    return faults + [
        f"page {n} does not begin with {book.head(n)!r}"
        for n in book.looked_at()
        if not book.text(n).startswith(book.head(n))
    ]


def link_faults(book: Book) -> list[str]:
    """Links lead into the book or, under https, to the web; never to a file."""
    places, faults = set(book.reader.named_destinations), []
    for number, page in enumerate(book.reader.pages, 1):
        for annotation in page.get("/Annots", []):
            link = annotation.get_object()
            uri = link.get("/A", {}).get("/URI", "https://")
            if not uri.startswith("https://") or link.get("/Dest", "") not in places | {""}:
                faults.append(f"page {number}: a link to {link.get('/Dest', uri)} leads nowhere")
    return faults


def figure_faults(book: Book) -> list[str]:
    """Figures and formulas are drawn with lines, and say in words what they show."""
    mute = [figure for figure in FIGURE.findall(book.bytes) if b"/Alt" not in figure]
    faults = [f"{len(mute)} figures have no text alternative"] if mute else []
    pixels = len(re.findall(rb"/Subtype /Image", book.bytes))
    faults += [f"{pixels} images are made of pixels"] if pixels else []
    undrawn = [n for n in book.looked_at() if re.search(r"\\\(|\\\[|\\frac", book.text(n))]
    return faults + [f"page {n}: a formula is not drawn" for n in undrawn]


def reading_faults(book: Book) -> list[str]:
    """The book says its title and its language, and is tagged for those who hear it."""
    root = book.reader.trailer["/Root"]
    told = (root.get("/Lang"), book.reader.metadata.title, root["/MarkInfo"]["/Marked"])
    shown = root["/ViewerPreferences"]["/DisplayDocTitle"]
    return [] if (*told, shown) == ("en-GB", site_pdf.TITLE, True, True) else [f"it says {told}"]


CHECKS = (contents_faults, outline_faults, page_faults, link_faults, figure_faults, reading_faults)


# The whole book ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed(site, tmp_path_factory) -> tuple[Book, str]:
    """Return the course's whole book, and what was said while it was printed."""
    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    command = [sys.executable, "-m", "glassformer.site_pdf", str(site), str(target)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return Book(target), run.stdout


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_whole_book_keeps_it(printed, check):
    assert check(printed[0]) == []


def test_the_whole_book_is_there(printed, site):
    book, said = printed
    pages = [path.read_text("utf-8") for path in sorted((site / "book").glob("*.html"))]
    titles = {title for level, title, _ in book.titles if level == 1} - {"Contents"}
    headings = [re.search(r"<article.*?<h1>(.*?)<a class", text, re.S)[1] for text in pages]
    assert {re.sub("<.*?>", "", heading) for heading in headings} == titles
    figures = sum(text.count('<figure class="gf-figure"') for text in pages) + 1  # the cover's, too
    formulas = int(re.findall(r"(\d+) formulas drawn", said)[-1])
    assert len(FIGURE.findall(book.bytes)) == figures + formulas > 400


def test_what_needs_a_mouse_can_be_read(printed, site):
    book, text = printed[0], (site / "book/01_data.html").read_text("utf-8")
    said = book.part(*book.starts()[2:4])  # after the contents and the first page
    box = r'<div class="predict admonition" id="[^"]+">\s*<p class="[^"]+">(.*?)<'
    asked = re.findall(box, text)
    assert len(asked) == said.count("Predict:") == said.count("Answer") >= 2
    assert [title for title in asked if letters(title) not in said] == []
    assert said.count("Solutionto") == text.count('class="solution dropdown') >= 3
    assert said.count("(anexplorer)") == text.count('class="gf-explorer"') == 1
    for only_on_screen in ("Show code cell", "Commit to this answer", "what you missed"):
        assert letters(only_on_screen) not in said


def test_its_contents_are_not_empty(printed):
    titles = printed[0].titles
    assert sum(level == 1 for level, *_ in titles) >= 15
    assert sum(level == 2 for level, *_ in titles) > 80


def test_progress_is_told(printed):
    book, said = printed
    assert re.search(r"\d s +04_attention: \d+ formulas drawn\n", said)
    assert f": {len(book.reader.pages)} pages, {len(book.bytes) / 1e6:.1f} MB\n" in said


# A small book, and what goes wrong ---------------------------------------------------------------

PAGE = """<!doctype html><html><head><title>%s</title>
<link rel="stylesheet" media="print" href="../_static/print.css">%s</head><body>
<nav class="bd-links"><p class="caption">Part one</p><ul>
<li class="toctree-l1"><a href="a.html">First</a></li>
<li class="toctree-l1"><a href="b.html">Second</a></li></ul></nav>
<article class="bd-article"><section id="top"><h1>%s<a class="headerlink" href="#top">#</a></h1>
%s</section></article></body></html>"""
LONG = "<p>A paragraph that fills pages.</p>" * 60
SVG = (
    '<figure class="gf-figure"><div class="gf-figure-frame"><svg width="90" height="90" %s>'
    '<defs><pattern id="h" width="9" height="9" patternUnits="userSpaceOnUse">'
    '<path d="M0 9L9 0" style="stroke:#c9ced6"/></pattern></defs>'
    '<path d="M0 0L90 0L90 90L0 90z" style="fill:url(#h)"/></svg></div></figure>'
)
GOOD = {
    "index": f"<p>Why?</p>{LONG}<h2>Inside</h2><p><a href='b.html#top'>on</a></p>",
    "a": "<p id='x'>It asks <a href='https://example.org'>elsewhere</a>.</p>"
    + SVG % 'aria-label="Hatched: nothing is here."',
    "b": f"{LONG}<h2>The end</h2><p id='x'><a href='a.html#x'>back</a>, <a href='#x'>here</a>, "
    "<a href='../genindex.html'>index</a></p>" + SVG % 'aria-label="Hatched again."',
}
SETTINGS = '<script>window.MathJax = {"svg": {"fontCache": "local"}}</script>'
DRAWING = SETTINGS + f'<script defer src="../_static/{MATHEMATICS}"></script>'


def small_site(folder: Path, site: Path, head: str = "", **pages: str) -> Path:
    """Write a site of three pages, with some of them changed; mathematics comes from `site`."""
    (folder / "book").mkdir(parents=True)
    (folder / "_static").symlink_to(site / "_static")
    refresh = '<meta http-equiv="Refresh" content="0; url=book/index.html" />'
    (folder / "index.html").write_text(refresh, encoding="utf-8")
    for name, body in (GOOD | pages).items():
        title = {"index": "The start", "a": "First", "b": "Second"}[name]
        text = PAGE % (title, head, title, body)
        (folder / f"book/{name}.html").write_text(text, encoding="utf-8")
    return folder


def print_small(folder: Path) -> Book:
    """Print the site in a folder; return its book."""
    site_pdf.write_pdf(folder, folder / "book.pdf", lambda text: None)
    return Book(folder / "book.pdf")


def test_a_small_book_keeps_it_all(site, tmp_path):
    book = print_small(small_site(tmp_path / "s", site))
    assert {check.__name__: check(book) for check in CHECKS} == {c.__name__: [] for c in CHECKS}
    assert [(level, title) for level, title, _ in book.titles] == [
        (1, "Contents"),
        (1, "The start"),
        (2, "Inside"),
        (1, "First"),
        (1, "Second"),
        (2, "The end"),
    ]
    annotations = [
        link.get_object() for page in book.reader.pages for link in page.get("/Annots", [])
    ]
    assert {link["/Dest"] for link in annotations if "/Dest" in link} >= {"/a.x", "/b.x", "/b.top"}
    assert [link["/A"]["/URI"] for link in annotations if "/A" in link] == ["https://example.org/"]


def test_each_check_finds_what_it_is_for(site, tmp_path, monkeypatch):
    """One book with everything wrong."""
    numbers = site_pdf.page_numbers
    wrong = lambda pdf: {name: page + 1 for name, page in numbers(pdf).items()}  # noqa: E731
    monkeypatch.setattr(site_pdf, "page_numbers", wrong)
    monkeypatch.setattr(site_pdf, "PAPER", site_pdf.PAPER | {"prefer_css_page_size": False})
    monkeypatch.setattr(site_pdf, "EMPTY", site_pdf.EMPTY.replace("en-GB", "en"))
    pixel = "<img alt='' src='../_static/minus.png'>"
    broken = (
        SVG % "" + pixel + r"<p id='x'>\(x\)</p><p><a href='http://plain.example'>plain</a></p>"
    )
    book = print_small(small_site(tmp_path / "s", site, a=broken))
    assert len(contents_faults(book)) == 5
    assert page_faults(book)[0] == "a page has the size (612, 792)"
    assert [fault.partition(": ")[2] for fault in link_faults(book)] == [
        "a link to http://plain.example/ leads nowhere"
    ]
    mute, pixels, formula = figure_faults(book)
    assert mute == "1 figures have no text alternative" and pixels.endswith("made of pixels")
    assert formula.endswith("a formula is not drawn")
    assert reading_faults(book)
    book.titles = [(level, title, page + 1) for level, title, page in book.titles[:2]]
    assert len(outline_faults(book)) == 2
    book.text = lambda number: ""
    assert "page 3 does not begin with '3'" in page_faults(book)


def test_what_cannot_be_printed_is_said_in_one_sentence_and_changes_nothing(site, tmp_path):
    for name, change, said in (
        ("net", {"b": "<img src='https://example.org/x.png'>"}, "https://example.org/x.png"),
        ("link", {"b": "<a href='a.html#nowhere'>b</a>"}, "leads to #a.nowhere, which is nowhere"),
        ("tex", {"b": r"<span class='math'>\(\frac{1\)</span>", "head": DRAWING}, r"\frac{1"),
        ("gone", {"head": DRAWING.replace(MATHEMATICS, "tex-svg-0.js")}, "tex-svg-0.js cannot be"),
    ):
        folder = small_site(tmp_path / name, site, **change)
        (folder / "book.pdf").write_bytes(b"before")
        with pytest.raises(site_pdf.Unprintable, match=re.escape(said)):
            print_small(folder)
        assert (folder / "book.pdf").read_bytes() == b"before"
        assert sorted(path.name for path in folder.iterdir()) == [
            "_static",
            "book",
            "book.pdf",
            "index.html",
        ]


@pytest.mark.parametrize(
    ("chromium", "said"),
    [("nowhere", MISSING), ("", "There is no built site in {}: run `make book`.")],
)
def test_what_is_missing_is_said_in_one_sentence(tmp_path, chromium, said):
    environment = os.environ | {"GLASSFORMER_CHROMIUM": chromium and str(tmp_path / chromium)}
    command = [sys.executable, "-m", "glassformer.site_pdf", str(tmp_path), str(tmp_path / "x.pdf")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (1, said.format(tmp_path) + "\n")
    assert not list(tmp_path.iterdir())


def test_a_package_that_is_missing_is_named(site, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(site_pdf.Unprintable, match="needs pypdf: install it with `pip install py"):
        site_pdf.write_pdf(site, tmp_path / "book.pdf", lambda text: None)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(site_pdf, "book_pdf", lambda *given: b"%PDF")
    (tmp_path / "file").touch()
    with pytest.raises(site_pdf.Unprintable, match="book.pdf cannot be written: "):
        site_pdf.write_pdf(tmp_path, tmp_path / "file" / "book.pdf", lambda text: None)
    site_pdf.write_pdf(tmp_path, tmp_path / "book.pdf", lambda text: None)
    assert (tmp_path / "book.pdf").read_bytes() == b"%PDF"


def test_numbers_that_never_settle_are_given_up(monkeypatch):
    class Restless:
        pages = 0

        def pdf(self, **paper):
            self.pages += 1
            return self.pages

        def evaluate(self, script, numbers):
            assert numbers == {"a": self.pages}

    monkeypatch.setattr(site_pdf, "page_numbers", lambda pdf: {"a": pdf})
    page = Restless()
    with pytest.raises(site_pdf.Unprintable, match="page numbers do not settle"):
        site_pdf.print_numbered(page, lambda text: None)
    assert page.pages == site_pdf.PASSES


# One page of the site ----------------------------------------------------------------------------


def test_a_page_alone_is_printed_light_whole_and_open(visit, file_site):
    page = visit(f"{file_site}/book/01_data.html", theme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    hidden = page.evaluate(
        """() => [...document.querySelectorAll("details .highlight, .solution p, .predict p")]
          .filter((e) => !e.closest(".gf-recall, .gf-verdict, .gf-question p") && !e.offsetHeight)
          .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert hidden == []
    shown = page.evaluate(
        """() => ["#pst-primary-sidebar", ".bd-header-article", ".prev-next-footer", ".headerlink"]
          .filter((s) => document.querySelector(s)?.offsetHeight)"""
    )
    assert shown == []
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
