"""The card of a term: shown by hover, focus and tap, dismissed by Escape, in view everywhere."""

from __future__ import annotations

import pytest
from browsing import DESK, PHONE, THEMES, axe, look, mathematics_drawn, no_sideways_scroll, watch
from playwright.sync_api import Page, expect

CHAPTER = "book/04_attention.html"
LONG = 800  # milliseconds: more than a card waits before it comes or goes

SHOWN = """[...document.querySelectorAll(".gf-card")]
  .filter((card) => card.checkVisibility()).map((card) => card.id)"""

FAULTS = """(link) => {
  const card = document.getElementById(link.getAttribute("aria-describedby"));
  if (!card?.checkVisibility()) return ["not shown"];
  const box = card.getBoundingClientRect();
  const { clientWidth, clientHeight } = document.documentElement;
  const lines = [...link.getClientRects()];
  const apart = lines.map((l) => Math.max(box.top - l.bottom, l.top - box.bottom));
  return [
    (box.left < 0 || box.right > clientWidth) && "beyond a side",
    (box.top < 0 || box.bottom > clientHeight) && "beyond top or bottom",
    Math.max(...apart) < 0 && "on top of its link",
    Math.min(...apart) > 12 && "far from its link",
    card.querySelector(".math:not(:has(svg))") && "a formula is not drawn",
    card.innerText.trim().length < 12 && "says nothing",
  ].filter(Boolean);
}"""

EVERY_FAULT = """() => [...document.querySelectorAll("a.gf-term")]
  .filter((link) => link.checkVisibility({ visibilityProperty: true }))
  .flatMap((link) => {
    link.scrollIntoView({ block: "center", behavior: "instant" });
    link.focus({ preventScroll: true });
    return (FAULTS)(link).map((fault) => `${link.hash}: ${fault}`);
  })""".replace("FAULTS", FAULTS)


def term(page: Page, id_: str):
    """Return the link to an entry."""
    return page.locator(f'a.gf-term[href$="#{id_}"]')


def shows(page: Page, *ids: str) -> None:
    """Fail unless these cards and no others are seen, now or soon."""
    page.wait_for_function(f"ids => String({SHOWN}) === String(ids)", arg=list(ids))


def at(link) -> list[str]:
    """Return what is wrong with a link's open card."""
    return link.evaluate(FAULTS)


@pytest.fixture
def page(visit, http_site) -> Page:
    """Return the chapter on a desk, drawn."""
    page = visit(f"{http_site}/{CHAPTER}", mathematics=True)
    mathematics_drawn(page)
    return page


def test_hover_and_focus_show_a_card_that_stays_until_it_is_left_or_dismissed(page):
    link, card = term(page, "term-query"), page.locator("#card-term-query")
    assert page.evaluate(SHOWN) == []
    link.hover()
    shows(page, "card-term-query")
    assert at(link) == []
    expect(card).to_contain_text("what the token looks for")
    expect(card).to_contain_text("[T, d]")
    card.hover()  # over it the pointer may rest
    page.wait_for_timeout(LONG)
    shows(page, "card-term-query")
    page.keyboard.press("Escape")
    shows(page)
    term(page, "term-key").hover()
    shows(page, "card-term-key")
    page.mouse.move(0, 0)
    shows(page)

    term(page, "term-attention").focus()
    page.keyboard.press("Tab")
    shows(page, "card-term-query")
    page.mouse.move(300, 300)  # a mouse that passes by takes nothing away
    page.wait_for_timeout(LONG)
    shows(page, "card-term-query")
    page.keyboard.press("Escape")
    shows(page)
    expect(link).to_be_focused()
    page.keyboard.press("Tab")
    shows(page, "card-term-key")
    page.keyboard.press("Enter")
    page.wait_for_url("**/notation.html#term-key")


def test_every_card_is_in_view_drawn_and_accessible_on_every_screen(page):
    for theme in THEMES:
        for width in (PHONE, DESK):
            look(page, theme, width)
            faults = page.evaluate(EVERY_FAULT)
            assert faults == [], f"{theme}, {width} pixels"
            term(page, "trace-h0").focus()
            shows(page, "card-trace-h0")
            no_sideways_scroll(page)
            for part in ("#card-trace-h0", ".opening", "p:has(a.gf-term-math)"):
                assert axe(page, part) == []
    page.locator("#card-trace-h0").evaluate("(card) => (card.style.color = '#999')")
    page.locator("#card-trace-h0").evaluate("(card) => (card.style.background = '#aaa')")
    assert any("color-contrast" in line for line in axe(page, "#card-trace-h0"))


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        ("card.style.left = '-40px'", "beyond a side"),
        ("card.style.top = `${scrollY + innerHeight - 9}px`", "beyond top or bottom"),
        ("card.style.top = `${scrollY + link.getBoundingClientRect().top}px`", "on top"),
        ("card.style.top = `${scrollY + link.getBoundingClientRect().bottom + 40}px`", "far"),
        ("card.querySelector('mjx-container').remove()", "not drawn"),
        ("card.replaceChildren()", "says nothing"),
        ("card.hidePopover()", "not shown"),
    ],
)
def test_a_card_out_of_place_is_found(spoilt, spoil, fault):
    link = term(spoilt, "term-query")
    link.focus()
    shows(spoilt, "card-term-query")
    assert at(link) == []
    card = "const card = document.querySelector('#card-term-query'), kept = card.innerHTML"
    link.evaluate(f"(link) => {{ {card}; link.restore = () => (card.innerHTML = kept); {spoil} }}")
    assert any(fault in line for line in at(link))
    link.evaluate("(link) => { link.restore(); link.blur(); }")


@pytest.fixture(scope="module")
def spoilt(browser, http_site):
    """Return the chapter, drawn, for all that is broken on purpose."""
    page = browser.new_page()
    page.goto(f"{http_site}/{CHAPTER}")
    mathematics_drawn(page)
    yield page
    page.close()


def test_on_a_phone_the_first_tap_shows_the_card_and_the_way_on(browser, http_site):
    context = browser.new_context(
        viewport={"width": PHONE, "height": 740}, has_touch=True, is_mobile=True
    )
    problems, page = watch(context, http_site), context.new_page()
    page.goto(f"{http_site}/{CHAPTER}")
    link, other = term(page, "term-query"), term(page, "term-attention")
    link.tap()
    shows(page, "card-term-query")
    assert at(link) == [] and page.url.endswith(CHAPTER)
    no_sideways_scroll(page)
    assert axe(page, "#card-term-query") == []
    other.tap()
    shows(page, "card-term-attention")
    page.locator("h1:visible").first.tap()
    shows(page)
    link.tap()
    page.locator("#card-term-query a").tap()
    page.wait_for_url("**/notation.html#term-query")
    page.go_back()
    link.tap()
    shows(page, "card-term-query")
    link.tap()
    page.wait_for_url("**/notation.html#term-query")
    context.close()
    assert problems == []


def test_without_the_script_the_link_leads_to_its_entry(browser, http_site):
    page = browser.new_page()
    page.route("**/terms.js*", lambda route: route.fulfill(content_type="text/javascript", body=""))
    page.goto(f"{http_site}/{CHAPTER}")
    link = term(page, "term-query")
    link.hover()
    page.wait_for_timeout(LONG)
    shows(page)
    assert at(link) == ["not shown"]
    link.click()
    page.wait_for_url("**/notation.html#term-query")
    expect(page.locator("#term-query")).to_be_in_viewport()
    page.close()


def test_on_paper_terms_are_plain_text(page):
    page.emulate_media(media="print")
    link = term(page, "term-query")
    link.focus()
    decoration = "(link) => getComputedStyle(link).textDecorationLine"
    assert link.evaluate(decoration) == "none" and page.evaluate(SHOWN) == []
    page.emulate_media(media="screen")
    assert link.evaluate(decoration) == "underline"
