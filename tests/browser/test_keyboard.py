"""Whole pages by keyboard: everything is reached, is in view and shows that it has the focus."""

from __future__ import annotations

import pytest
from browsing import watched

GOOD = (
    '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>t</title>'
    "<main><h1>h</h1>%s</main>"
)

# A radio button may be drawn by its label. What an event exchanged is not waited for any more.
SHOWN = """
  const drawn = (e) => (e.matches("input") && e.closest("label")) || e;
  const looks = (e) => {
    const { outline, boxShadow, opacity, textDecoration, borderColor, backgroundColor } =
      getComputedStyle(e);
    return [outline, boxShadow, opacity, textDecoration, borderColor, backgroundColor].join();
  };
  const shown = (e) => [e, drawn(e), ...drawn(e).querySelectorAll("input ~ *")].map(looks).join();
"""
# Of a group of radio buttons the keyboard reaches one: the others follow by the arrows.
EXPECTED = """() => {
  const every = "a[href], button, input, select, textarea, summary, [tabindex]";
  const first = (e) => e.parentElement.querySelector(":scope > summary");
  const chosen = (e) => {
    const group = [...document.querySelectorAll("input[type=radio]")]
      .filter((other) => other.name === e.name && other.form === e.form);
    return group.find((other) => other.checked) ?? group[0];
  };
  window.awaited = new Set([...document.querySelectorAll(every)].filter((e) => {
    if (e.tabIndex < 0 || e.matches(":disabled")) return false;
    if (!e.checkVisibility({ visibilityProperty: true })) return false;
    if (e.matches("summary") && e !== first(e)) return false;
    return e.type !== "radio" || e === chosen(e);
  }));
  return window.awaited.size;
}"""
STEP = f"""() => {{
  {SHOWN}
  const e = document.activeElement, faults = [], before = window.last;
  const name = (e) => e.outerHTML.slice(0, 120);
  if (before && before.e.isConnected && shown(before.e) === before.shown)
    faults.push(`does not show that it has the focus: ${{name(before.e)}}`);
  if (!e || e === document.body) {{ window.last = null; return {{ done: true, faults }}; }}
  const again = !window.reached.has(e) ? false : e === window.first ? "start" : "trapped";
  window.first ??= e;
  window.reached.add(e);
  window.awaited.delete(e);
  window.last = {{ e, shown: shown(e) }};
  const box = [...drawn(e).getClientRects()].find(({{ width, height }}) => width && height);
  const within = (start, end, most) => end > 0 && start < most;
  const inView = box && within(box.top, box.bottom, innerHeight) &&
    within(box.left, box.right, innerWidth);
  const faint = getComputedStyle(drawn(e)).opacity < 0.5;
  if (!inView || faint) faults.push(`is not in view: ${{name(e)}}`);
  if (again === "trapped") faults.push(`is met again before the page ends: ${{name(e)}}`);
  return {{ done: Boolean(again), faults }};
}}"""
LEFT = """() => [...window.awaited].filter((e) => e.isConnected && e.checkVisibility())
  .map((e) => `is never reached: ${e.outerHTML.slice(0, 120)}`)"""


def faults_by_keyboard(page) -> list[str]:
    """Go through the page by the Tab key, from the top to the end; return what is wrong."""
    page.evaluate("() => { window.reached = new Set(); window.first = window.last = null; }")
    most, faults = page.evaluate(EXPECTED) + 60, []  # frames that scroll are reached, too
    for _ in range(most):
        page.keyboard.press("Tab")
        step = page.evaluate(STEP)
        faults += step["faults"]
        if step["done"]:
            return faults + page.evaluate(LEFT)
    return [*faults, f"the page does not end after {most} steps"]


@pytest.mark.parametrize("name", ["book/04_attention.html", "book/index.html"])
def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit, http_site, name):
    page = visit(f"{http_site}/{name}")
    page.locator(".gf-explorer > div").first.wait_for()
    assert faults_by_keyboard(page) == []
    links = "all => all.filter((link) => !window.reached.has(link)).length"
    permalinks = page.locator(":is(h1, h2, h3) > a.headerlink")
    assert permalinks.count() > 5 and permalinks.evaluate_all(links) == 0


def test_the_first_step_leads_past_the_contents(visit, http_site):
    page = visit(f"{http_site}/book/04_attention.html")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to main content"
    assert page.locator(":focus").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator("#main-content :focus").count() == 1


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="#">one</a><a href="#" style="outline: none">two</a>', "does not show"),
        (
            '<a href="#">one</a><a href="#" style="position: fixed; top: -99px">two</a>',
            "not in view",
        ),
        (
            '<a href="#">one</a><a href="#" id="b">two</a><a href="#">three</a>'
            "<script>b.onblur = () => b.focus()</script>",
            "is never reached|does not end|is met again",
        ),
        (
            '<a href="#">one</a><input id="b"><a href="#">three</a><script>b.onkeydown = (e) => '
            'e.key === "Tab" && e.preventDefault()</script>',
            "is met again",
        ),
    ],
)
def test_a_page_that_fails_the_keyboard_is_found(browser, tmp_path, body, fault):
    (tmp_path / "page.html").write_text(GOOD % body, encoding="utf-8")
    with watched(browser, "file:") as page:
        page.goto(f"{tmp_path.as_uri()}/page.html")
        found = "\n".join(faults_by_keyboard(page))
    assert any(part in found for part in fault.split("|")), found


def test_a_page_that_passes_is_passed(browser, tmp_path):
    body = '<a href="#">one</a><button>two</button><details><summary>more</summary>text</details>'
    (tmp_path / "page.html").write_text(GOOD % body, encoding="utf-8")
    with watched(browser, "file:") as page:
        page.goto(f"{tmp_path.as_uri()}/page.html")
        assert faults_by_keyboard(page) == []
