"""The bibliography: what is cited is in it, what is in it is cited, and each entry is complete."""

from __future__ import annotations

import re

import pytest
from pybtex.database import BibliographyData, parse_file, parse_string
from pybtex.style.formatting.alpha import Style

from chapters import CHAPTERS, ROOT, read
from glassformer.site_citations import AuthorYearLabels

VENUE = {
    "article": {"journal", "volume", "pages"},
    "inproceedings": {"booktitle"},
    "techreport": {"institution"},
    "book": {"publisher"},
    "misc": set(),
}
# Or a number of arXiv in the note.
FOUND_BY = {"pages", "doi", "howpublished", "institution", "publisher"}


def book_texts() -> list[str]:
    """Return the text of every page, without code."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "book").glob("*.md"))]
    cells = [cell for path in CHAPTERS for cell in read(path).cells]
    return pages + [cell.source for cell in cells if cell.cell_type == "markdown"]


def cited_in(texts: list[str]) -> set[str]:
    """Return the keys that texts cite."""
    lists = [keys for text in texts for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", text)]
    return {key.strip() for keys in lists for key in keys.split(",")}


def faults(entries: BibliographyData) -> list[str]:
    """Return a line for everything that an entry lacks, or has in a form that cannot be right."""
    found, arxiv = [], re.compile(r"arXiv:\d{4}\.\d{4,5}\b")
    for key, entry in entries.entries.items():
        given = {name for name, value in entry.fields.items() if value.strip()}
        found += [f"{key}: no {name}" for name in {"title", "year"} - given]
        found += [f"{key}: no {name}" for name in VENUE.get(entry.type, {entry.type}) - given]
        if not entry.persons.get("author"):
            found.append(f"{key}: no author")
        if not re.fullmatch(r"(18|19|20)\d\d", entry.fields.get("year", "")):
            found.append(f"{key}: the year is no year")
        note = entry.fields.get("note", "")
        if not given & FOUND_BY and not arxiv.search(note):
            found.append(f"{key}: nothing says where to find it")
        if "arXiv" in note and not arxiv.search(note):
            found.append(f"{key}: {note} is no number of arXiv")
        if not re.fullmatch(r"[\w:]+(--[\w:]+)?", entry.fields.get("pages", "1--2")):
            found.append(f"{key}: pages are written as 1--2")
        if not re.fullmatch(r"10\.\d{4,}/\S+", entry.fields.get("doi", "10.1000/1")):
            found.append(f"{key}: the DOI is no DOI")
        if not key.startswith(plain(entry)) or entry.fields.get("year", "") not in key:
            found.append(f"{key}: the key does not name first author and year")
    return found


def plain(entry) -> str:
    """Return the first author's last name as a key begins with it."""
    authors = entry.persons.get("author", [])
    return re.sub(r"\W", "", authors[0].last_names[-1]).lower() if authors else ""


def test_every_citation_has_its_entry_and_every_entry_its_citation():
    entries = set(parse_file(ROOT / "book/references.bib").entries)
    cited = cited_in(book_texts())
    assert cited - entries == set() and entries - cited == set()
    assert len(entries) > 30


def test_every_entry_is_complete():
    assert faults(parse_file(ROOT / "book/references.bib")) == []


def test_citations_are_found_in_every_form():
    texts = ["as {cite}`a2020b` said", "{cite:t}`c2021d, e2022f`; no `{cite}` here", "`cite`"]
    assert cited_in(texts) == {"a2020b", "c2021d", "e2022f"}


GOOD = """@article{doe2020glass,
  title = {Glass}, author = {Doe, Ada}, journal = {J}, volume = {1}, pages = {1--2}, year = {2020},
  note = {arXiv:2001.00001}, doi = {10.1000/182}}"""


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        ("title = {Glass}", "title = {}", "no title"),
        ("author = {Doe, Ada}, ", "", "no author"),
        ("journal = {J}, ", "", "no journal"),
        ("year = {2020}", "year = {soon}", "the year is no year"),
        ("1--2", "1-2", "pages are written"),
        ("2001.00001", "200.1", "is no number of arXiv"),
        ("10.1000/182", "doi.org/182", "is no DOI"),
        ("doe2020glass", "roe2020glass", "first author"),
        ("doe2020glass", "doe2021glass", "first author"),
        ("@article{doe2020glass", "@novel{doe2020glass", "no novel"),
    ],
)
def test_a_fault_in_an_entry_is_found(here, there, said):
    assert faults(parse_string(GOOD, "bibtex")) == []
    found = faults(parse_string(GOOD.replace(here, there), "bibtex"))
    assert any(said in line for line in found), found


def test_an_entry_that_nobody_could_find_is_found():
    bare = (
        '@misc{doe2020glass, title = {Glass}, author = {Doe, Ada}, year = {2020}, note = "draft"}'
    )
    assert faults(parse_string(bare, "bibtex")) == ["doe2020glass: nothing says where to find it"]


def labels(entries: BibliographyData) -> dict[str, str]:
    """Return what works are called, by key, in the bibliography's order."""
    in_order = Style().sort(entries.entries.values())
    called = AuthorYearLabels().format_labels(in_order)
    return {entry.key: label for entry, label in zip(in_order, called, strict=True)}


def test_no_two_works_are_called_the_same():
    called = labels(parse_file(ROOT / "book/references.bib"))
    assert len(set(called.values())) == len(called) > 30
    assert called["touvron2023llama"] == "Touvron et al., 2023a"
    assert called["touvron2023llama2"] == "Touvron et al., 2023b"
    assert called["press2017using"] == "Press and Wolf, 2017"
    assert called["rush2018annotated"] == "Rush, 2018"


def test_letters_follow_the_order_of_the_bibliography_and_begin_anew_with_each_label():
    works = [
        ("b1", "Roe, B. and Poe, C.", "B", 2020),
        ("a2", r"de la Tour{\'e}, Ada", "Z", 2020),
        ("a1", r"de la Tour{\'e}, Ada", "A", 2020),
        ("b2", "Roe, B. and Poe, D.", "B", 2020),
        ("b3", "Roe, B. and Poe, D. and Moe, E.", "B", 2020),
        ("a3", r"de la Tour{\'e}, Ada", "Z", 2021),
    ]
    text = "".join(
        f"@misc{{{key}, author = {{{who}}}, title = {{{title}}}, year = {{{year}}}}}\n"
        for key, who, title, year in works
    )
    assert labels(parse_string(text, "bibtex")) == {
        "a1": "de la Touré, 2020a",
        "a2": "de la Touré, 2020b",
        "a3": "de la Touré, 2021",
        "b1": "Roe and Poe, 2020a",
        "b2": "Roe and Poe, 2020b",
        "b3": "Roe et al., 2020",
    }


LISTED = re.compile(
    r'<div class="citation" id="(\w+)"[^>]*>\s*<span class="label">(.*?)</span>\s*<p>'
)
CITED = re.compile(r'href="bibliography\.html#(\w+)" title="[^"]*">([^<]*)</a>')


def test_chapters_call_a_work_what_the_bibliography_does(site):
    pages = {path.stem: path.read_text(encoding="utf-8") for path in site.glob("book/*.html")}
    listed = LISTED.findall(pages["bibliography"])
    called = {place: re.sub(r"<[^>]*>", "", label) for place, label in listed}
    entries = parse_file(ROOT / "book/references.bib")
    assert sorted(called.values()) == sorted(f"[{label}]" for label in labels(entries).values())
    cited = [found for text in pages.values() for found in CITED.findall(text)]
    assert len(cited) > 50
    assert all(called[place] == f"[{label}]" for place, label in cited)
