"""What only a public address brings: canonical links, sitemap, cards, a page for who is lost."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import browsing
import pytest
from browsing import DESK, PHONE, THEMES, axe, look, no_sideways_scroll, served
from PIL import Image

from chapters import CHAPTERS, ROOT
from glassformer.repository import Address, address_of
from glassformer.site_address import CARD_ALT, LENGTH, checked, pages_address, shortened
from small_site import small_site

REPOSITORY, ADDRESS = "https://github.com/Reader/course", "https://reader.github.io/course/"


@pytest.fixture(scope="module")
def addressed(tmp_path_factory) -> Path:
    """Return the folder of a small site that knows its address."""
    folder = tmp_path_factory.mktemp("small")
    run = small_site(folder, url=REPOSITORY)
    assert run.returncode == 0, run.stdout[-3000:]
    return folder / "_build/html"


def metas(page: Path) -> dict[str, str]:
    """Return what a page's head tells, by name."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)"', text)
    found += [("canonical", link) for link in re.findall(r'rel="canonical" href="([^"]*)"', text)]
    return {name: unescape(content) for name, content in found}


# The address itself ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repository", "address"),
    [
        (REPOSITORY, ADDRESS),
        ("https://github.com/Reader/reader.github.io", "https://reader.github.io/"),
        ("https://gitlab.com/Reader/course", "https://reader.gitlab.io/course/"),
        ("https://git.example.org/reader/course", ""),
    ],
)
def test_the_sites_address_follows_from_the_repositorys(repository, address):
    assert pages_address(Address(repository)) == address
    assert pages_address(None) == ""


@pytest.mark.parametrize("wrong", ["http://a.org", "https://a", 'https://a.org/"><b>', "a.org/b"])
def test_an_address_that_is_none_is_refused(wrong):
    assert checked("https://example.org/course") == "https://example.org/course/"
    with pytest.raises(ValueError, match="give the site's address as https://host/path/"):
        checked(wrong)


# With or without ---------------------------------------------------------------------------------

TAGS = r'rel="canonical"|property="og:|name="twitter:'


def test_only_with_an_address_pages_name_the_site(site):
    known = bool(pages_address(address_of(ROOT)))
    for page in (site / "book").glob("*.html"):
        assert bool(re.search(TAGS, page.read_text(encoding="utf-8"))) == known, page.name
    assert (site / "sitemap.xml").exists() == (site / "_static/card.png").exists() == known


def test_every_page_of_the_book_describes_itself(site):
    said = {p.name: metas(p).get("description", "") for p in (site / "book").glob("*.html")}
    assert {name: text for name, text in said.items() if not 40 <= len(text) <= LENGTH} == {}
    assert len(set(said.values())) == len(said) > len(CHAPTERS)
    for chapter in CHAPTERS:
        assert re.match(r".*\? You will be able to ", said[f"{chapter.stem}.html"]), chapter.stem
    pages = [*site.glob("*.html"), *site.glob("book/*.html")]
    titles = {re.search("<title>(.*?)</title>", page.read_text("utf-8"))[1] for page in pages}
    assert len(titles) == len(said) + 4  # index.html is called what it leads to


def test_a_long_description_ends_with_a_whole_word():
    assert shortened("a" * LENGTH) == "a" * LENGTH
    text = shortened("never, " * 99)
    assert len(text) <= LENGTH and text.endswith("never…")


# With one ----------------------------------------------------------------------------------------


def test_pages_have_canonical_links_and_cards(addressed):
    for page in ("book/demo.html", "book/start.html"):
        told = metas(addressed / page)
        assert told["canonical"] == told["og:url"] == ADDRESS + page
        assert told["og:image"] == f"{ADDRESS}_static/card.png"
        assert told["og:image:alt"] == CARD_ALT and CARD_ALT in (ROOT / "README.md").read_text(
            "utf-8"
        )
        assert told["og:site_name"] == "The Glass Transformer"
        assert told["og:description"] == told["description"]
    assert metas(addressed / "book/demo.html")["og:description"] == (
        "What is in a “box” & where? You will be able to tell what is in it: a question, and what "
        "follows from asking it."
    )
    entrance = metas(addressed / "index.html")
    assert entrance.items() >= metas(addressed / "book/start.html").items() - {
        ("viewport", "width=device-width, initial-scale=1")
    }
    with Image.open(addressed / "_static/card.png") as card:
        size = entrance["og:image:width"], entrance["og:image:height"]
        assert card.size == tuple(map(int, size)) and len(card.convert("L").getcolors()) > 50


def test_the_sitemap_lists_the_books_pages_alone(addressed):
    listed = re.findall("<loc>(.*?)</loc>", (addressed / "sitemap.xml").read_text(encoding="utf-8"))
    assert sorted(listed) == [f"{ADDRESS}book/demo.html", f"{ADDRESS}book/start.html"]


@pytest.fixture
def lost(addressed, tmp_path, monkeypatch):
    """Return the address below which a host has the site, and its page for all that is missing."""
    (tmp_path / "course").symlink_to(addressed)

    class Host(browsing.Handler):
        def translate_path(self, path: str) -> str:
            found = super().translate_path(path)
            return found if Path(found).exists() else str(addressed / "404.html")

    monkeypatch.setattr(browsing, "Handler", Host)
    with served(tmp_path) as address:
        yield f"{address}/course"


def test_who_is_lost_finds_back_from_any_depth(lost, visit):
    page = visit(f"{lost}/deep/down/nothing.html")
    assert page.locator("h1:visible").inner_text() == "Page not found"
    found = []
    for theme in THEMES:
        for width in (PHONE, DESK):
            look(page, theme, width)
            no_sideways_scroll(page)
            found += axe(page)
    assert found == []
    links = page.locator("a[href]").evaluate_all("all => all.map((a) => a.href)")
    links = {link for link in links if "#" not in link and "github.com" not in link}
    assert links == {f"{lost}/book/start.html", f"{lost}/book/demo.html"}
    page.locator(".gf-lost input").fill("question")
    page.keyboard.press("Enter")
    page.locator("#search-results a", has_text="Demo").first.click()
    page.wait_for_url(re.compile(f"{lost}/book/demo.html"))
