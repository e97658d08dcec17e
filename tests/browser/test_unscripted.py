"""The site where no script runs: it reads, opens, leads on, and follows the system's theme."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from browsing import PATIENCE, PHONE
from playwright.sync_api import expect

DARK, LIGHT = "dark", "light"


@contextmanager
def unscripted(browser, address: str, leave_out: str = ""):
    """Yield a page on a phone in the dark, without scripts and without a network."""
    context = browser.new_context(
        java_script_enabled=False,
        offline=True,
        color_scheme=DARK,
        viewport={"width": PHONE, "height": 900},
    )
    context.set_default_timeout(PATIENCE)
    if leave_out:
        context.route(f"**/{leave_out}", lambda route: route.abort())
    try:
        page = context.new_page()
        page.goto(address)
        yield page
    finally:
        context.close()


def ground(page) -> str:
    """Return the theme that the page is in, by how light its ground is."""
    colour = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    dark = re.fullmatch(r"rgb\((\d\d), (\d\d), (\d\d)\)", colour)  # without any, a page is white
    return DARK if dark else LIGHT


def test_a_chapter_reads_without_scripts(browser, file_site):
    with unscripted(browser, f"{file_site}/book/04_attention.html") as page:
        expect(page.locator(".bd-article h1")).to_contain_text("Self-attention")
        assert page.locator(".bd-article h2:visible").count() >= 10
        expect(page.locator(".gf-figure svg[role=img]").first).to_be_visible()
        formulas = "".join(page.locator(".math:visible").all_inner_texts())
        assert "\\sqrt" in formulas and "\\(" in formulas  # as it was written
        words = page.locator(".gf-explorer").inner_text()
        assert "86.5 %" in words and words.endswith("Here it needs JavaScript.")
        assert "on the course’s site" not in words.replace("'", "’")
        assert not page.locator("button:visible").count()


def test_answers_and_hidden_code_open_without_scripts(browser, file_site):
    with unscripted(browser, f"{file_site}/book/04_attention.html") as page:
        for closed in (".predict:not(.gf-recall *) details", "div.cell details.hide"):
            part = page.locator(closed).first
            inside = part.locator(":scope > :not(summary)").first
            expect(inside).to_be_hidden()
            part.locator("summary").first.click()
            expect(inside).to_be_visible()


@pytest.mark.parametrize("name", ["book/index.html", "book/progress.html", "search.html"])
def test_other_pages_lead_on_without_scripts(browser, file_site, name):
    with unscripted(browser, f"{file_site}/{name}") as page:
        expect(page.locator(".bd-article h1, .bd-search-container h1").first).to_be_visible()
        assert ground(page) == DARK
        page.locator(".bd-links a:visible", has_text="The block").click()
        expect(page.locator(".bd-article h1")).to_contain_text("The block")
        page.locator(".prev-next-area a.right-next").click()
        expect(page.locator(".bd-article h1")).to_contain_text("Logits")


def test_the_search_says_what_it_needs(browser, file_site):
    with unscripted(browser, f"{file_site}/search.html") as page:
        expect(page.locator("noscript .admonition")).to_be_visible()


def test_the_theme_follows_the_system(browser, file_site):
    with unscripted(browser, f"{file_site}/book/index.html") as page:
        assert ground(page) == DARK
        page.emulate_media(color_scheme=LIGHT)
        assert ground(page) == LIGHT
    with unscripted(browser, f"{file_site}/book/index.html", "_static/unscripted.css*") as page:
        assert ground(page) == LIGHT  # without its style sheet it would not
