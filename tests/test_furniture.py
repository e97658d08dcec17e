"""What leads through the book: from page to page, within a page, and to every heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chapters import ROOT

HEADING = re.compile(
    r'<section(?:[^>]* id="([^"]*)")?[^>]*>\s*(?:<span[^>]*></span>\s*)*<h([1-6])[^>]*>(.*?)</h\2>',
    re.S,
)


def order() -> list[str]:
    """Return the book's pages in order."""
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    return [f"{name}.html" for name in re.findall(r"(?:root|file): (\S+)", toc)]


def neighbour(page: Path, side: str) -> str:
    """Return where a page's link to the page before or after it leads, or ""."""
    found = re.search(rf'class="{side}"\s+href="([^"]*)"', page.read_text(encoding="utf-8"))
    return f"book/{found[1]}" if found else ""


def test_from_the_first_page_to_the_last_and_back(site):
    pages = order()
    assert [neighbour(site / page, "right-next") for page in pages] == [*pages[1:], ""]
    assert [neighbour(site / page, "left-prev") for page in pages] == ["", *pages[:-1]]


def heading_faults(text: str) -> list[str]:
    """Return the headings of a page that have no permalink, or one that a rebuild may change."""
    faults = []
    for anchor, _, heading in HEADING.findall(text):
        words = re.sub(r"<[^>]+>", "", heading).strip("# \n")
        if f'<a class="headerlink" href="#{anchor}"' not in heading:
            faults.append(f"no permalink: {words}")
        elif re.fullmatch(r"(?:id|section)-?\d*", anchor):
            faults.append(f"a permalink that counts: #{anchor}, {words}")
    return faults


def unlisted(text: str) -> list[str]:
    """Return the headings that a page's own contents do not list."""
    listed = re.search(r'<nav [^>]*class="page-toc".*?</nav>', text, re.S)
    links = re.findall(r'href="#([^"]*)"', listed[0]) if listed else []
    return [
        anchor
        for anchor, level, _ in HEADING.findall(text)
        if level in "23" and anchor not in links
    ]


def test_every_heading_has_a_permalink_that_stays_and_a_place_in_the_contents(site):
    pages = {name: (site / name).read_text(encoding="utf-8") for name in order()}
    assert {
        name: heading_faults(text) for name, text in pages.items() if heading_faults(text)
    } == {}
    assert {name: unlisted(text) for name, text in pages.items() if unlisted(text)} == {}
    assert sum(len(HEADING.findall(text)) for text in pages.values()) > 100


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ('<section id="why"><h2>Why?</h2></section>', "no permalink: Why?"),
        (
            '<section id="id3"><h2>Why?<a class="headerlink" href="#id3">#</a></h2></section>',
            "a permalink that counts: #id3, Why?",
        ),
    ],
)
def test_a_heading_without_a_lasting_permalink_is_found(broken, fault):
    assert heading_faults(broken) == [fault]
    assert unlisted(broken) == [re.search('id="(.*?)"', broken)[1]]
