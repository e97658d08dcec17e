"""What holds for all explorers: live on every page, proof against nonsense, and leak nothing."""

from __future__ import annotations

import json
import random
import re
from urllib.parse import quote

import pytest
import torch
from browsing import MATHJAX, PATIENCE, SETTLED, no_sideways_scroll, watch, watched
from instrument import SITES
from playwright.sync_api import expect
from safetensors.torch import load, save

from glassformer.checkpoints import load_baby_groot, load_tiny
from glassformer.explorers import EXPLORERS
from glassformer.explorers.base import jsonable
from glassformer.explorers.parts import groot_part, part, tiny_part
from glassformer.site_explorers import LATE, part_file

PAGES = {
    "book/index.html": ["everything"],
    "book/01_data.html": ["tokens"],
    "book/02_model.html": ["training"],
    "book/03_interludes.html": ["embedding"],
    "book/04_attention.html": ["attention"],
    "book/05_block.html": ["block"],
    "book/06_logits.html": ["sampling", "everything"],
    "book/07_modern.html": ["rope", "modern", "matmul"],
    "book/08_kv_cache.html": ["kv-cache"],
    "book/09_m1_config.html": ["designer"],
    "book/10_train.html": ["reader"],
}
PLACES = [(page, name) for page, names in PAGES.items() for name in names]
every_place = pytest.mark.parametrize(("page", "name"), PLACES)
WITH_PROMPT = [
    place
    for place in PLACES
    if EXPLORERS[place[1]].class_traits(sync=True).keys() & {"prompt", "sentence"}
]

NONSENSE = [
    "",
    " \t ",
    "zebra",
    "🦝🌳 groot",
    "שלום עולם",
    "<img src=x onerror=alert(1)>",
    "<script>document.title='x'</script>",
    "'; DROP TABLE tokens; --",
    "i " * 300,
    "\u202egroot\u0000\ufffd",
    "a" * 400,
]

FRAGMENTS = [
    "%",
    "%E0%A4%A",
    "prompt=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
    "prompt=&query=&step=&layer=-1&head=9999999999999999999999",
    "query=NaN&row=Infinity&temperature=-Infinity&epoch=1e400&seed=abc",
    "changes=[[[[&index={}&written=null&name=__proto__",
    'changes=[["constructor",[0],1]]&name=constructor&index=[0]',
    "__proto__=1&constructor=2&toString=3",
    "step=hasOwnProperty&part=__proto__&product=toString&fault=valueOf",
    "x" * 5000,
]


def explorer(page, name: str):
    part = page.locator(f"#explorer-{name}")
    part.scroll_into_view_if_needed()  # one that is far away may wait for that
    expect(part.locator(".gfx").first).to_be_visible()
    return part


def unharmed(page, part, title: str) -> None:
    """Fail unless the explorer stands, speaks, and let no markup or script in."""
    expect(part.locator("section.gfx")).to_be_visible()
    assert part.locator(".gfx-sentence").inner_text().strip()
    assert part.locator("img, script:not([type='application/json']), iframe").count() == 0
    assert page.title() == title


def test_every_explorer_has_its_place():
    assert {name for _, name in PLACES} == set(EXPLORERS)


@pytest.mark.parametrize("over", SITES)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_brings_its_explorers_to_life(visit, request, over, page):
    open_page = visit(f"{request.getfixturevalue(over)}/{page}")
    for name in PAGES[page]:
        part = explorer(open_page, name)
        assert part.locator(".gf-explorer-text").count() == 0
        assert part.locator(".gfx-sentence").inner_text().strip()
    ids = open_page.evaluate("[...document.querySelectorAll('.gfx [id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("page", "name"), WITH_PROMPT)
def test_nonsense_in_the_prompt_changes_nothing_and_enters_nowhere(visit, http_site, page, name):
    open_page = visit(f"{http_site}/{page}")
    part, title = explorer(open_page, name), open_page.title()
    box = part.locator(".gfx-prompt input").first
    for text in NONSENSE:
        box.fill(text)
        unharmed(open_page, part, title)
    unknown = part.locator(".gfx-prompt .gfx-error").first
    expect(unknown).to_contain_text("a" * 40 if name != "reader" else "tokens do not fit")


def test_a_link_opened_on_its_own_page_is_followed(visit, http_site):
    open_page = visit(f"{http_site}/book/04_attention.html")
    part = explorer(open_page, "attention")
    before = part.locator(".gfx-sentence").inner_text()
    open_page.evaluate("location.hash = '#explorer-attention?query=1&mask=false'")
    expect(part.locator(".gfx-sentence")).to_contain_text("i, at position 1, gives ")
    expect(part.get_by_label("causal mask")).not_to_be_checked()
    part.get_by_role("button", name="Reset").click()
    expect(part.locator(".gfx-sentence")).to_have_text(before)
    open_page.evaluate("location.hash = '#ch-attention'")  # an address of something else
    expect(part.locator(".gfx-sentence")).to_have_text(before)


@every_place
def test_a_broken_link_gives_an_explorer_that_works(visit, http_site, page, name):
    open_page = visit(f"{http_site}/{page}")
    title = open_page.title()
    rng = random.Random(name)
    fuzz = [
        *FRAGMENTS,
        *("".join(chr(rng.randrange(32, 0x2FF)) for _ in range(80)) for _ in range(5)),
    ]
    fields = [*EXPLORERS[name].class_traits(sync=True, state=True)]
    wild = [None, True, -1, 10**30, 0.5, "x", "<b>", [], {}, [[1]], "NaN", "-Infinity"]
    for _ in range(10):
        state = {field: rng.choice(wild) for field in fields}
        fuzz.append("&".join(f"{k}={quote(json.dumps(v))}" for k, v in state.items()))
    part = explorer(open_page, name)
    for fragment in fuzz:
        link = f"#explorer-{name}?{quote(fragment, safe='=&%')}"
        open_page.evaluate("(link) => { location.hash = link; }", link)
        open_page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        unharmed(open_page, part, title)
    reached = visit(f"{http_site}/{page}{link}")  # the same from a page that is only now opened
    unharmed(reached, explorer(reached, name), title)


def broken(value: float) -> dict[str, str]:
    """Return part scripts whose models have such a number among their weights."""
    groot, tiny, novelist = load_baby_groot(), load_tiny(), part("novelist")
    weights = load(novelist["weights"])
    weights["tok_embeddings.weight"][7, 2] = value
    weights["layers.1.attention.wv.weight"][0, 0] = value
    with torch.no_grad():
        groot.transformer.attn.q.weight[3, 5] = value
        groot.token_embedding.weight[11, 0] = value
        tiny.tok_embeddings.weight[1, 2] = value
        tiny.layers[0].attention.wk.weight[0, 0] = value
    from glassformer.data import cat_vocabulary

    parts = {
        "groot": groot_part(groot),
        "initial": groot_part(groot),
        "tiny": tiny_part(tiny, cat_vocabulary()),
        "novelist": novelist | {"weights": save(weights)},
    }
    return {
        part_file(
            name
        ): f"(globalThis.glassformerParts ??= {{}}).{name} = {json.dumps(jsonable(held))};"
        for name, held in parts.items()
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("page", PAGES)
def test_weights_that_are_no_numbers_are_shown_and_break_nothing(browser, http_site, page, value):
    scripts = broken(value)

    def fulfil(route):
        name = route.request.url.rpartition("/")[2].partition("?")[0]
        route.fulfill(content_type="text/javascript", body=scripts[name])

    with watched(browser, f"{http_site}/", mathematics=False) as open_page:
        open_page.route(re.compile("|".join(map(re.escape, scripts))), fulfil)
        open_page.goto(f"{http_site}/{page}")
        for name in PAGES[page]:
            part = explorer(open_page, name)
            unharmed(open_page, part, open_page.title())
            monkey(part, 40)
            unharmed(open_page, part, open_page.title())


@pytest.fixture
def phone(browser, http_site):
    """Return a function that opens a page on a phone: narrow, and touched by fingers."""
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    context.set_default_timeout(PATIENCE)
    problems = watch(context, http_site)
    context.route(MATHJAX, lambda route: route.fulfill(content_type="text/javascript", body=""))

    def open_page(name: str):
        page = context.new_page()
        page.goto(f"{http_site}/{name}")
        return page

    yield open_page
    context.close()
    assert problems == []


@pytest.mark.parametrize(
    ("page", "name"), [place for place in PLACES if place[1] in ("tokens", "training", "embedding")]
)
def test_a_finger_is_enough(phone, page, name):
    """The explorers whose own tests do not touch: a tap points at a number, a tap chooses."""
    part = explorer(phone(page), name)
    numbers = part.locator(".gfx-number, .gfx-figure, .gfx-grid td[data-n]")
    for n in (0, min(7, numbers.count() - 1)):
        numbers.nth(n).tap()
        expect(part.locator(".gfx-formula-filled .gfx-value")).to_be_visible()
    if name == "training":
        part.get_by_role("button", name="One epoch").tap()
        expect(part.locator(".gfx-sentence")).to_contain_text("After 1 epoch ")
    option = part.locator(".gfx-option input:not(:checked)").first.element_handle()
    option.tap()
    assert option.is_checked()


HIDDEN = """() => {
  const focused = document.activeElement, own = focused.closest(".gfx-body");
  const panel = own?.parentElement.querySelector(":scope > .gfx-formula");
  const [over, under] = [focused, panel].map((e) => e?.getBoundingClientRect());
  return Boolean(panel) && over.bottom > under.top + 1 ? focused.outerHTML.slice(0, 80) : "";
}"""


@pytest.mark.parametrize(
    ("page", "name"), [place for place in PLACES if place[1] in ("training", "block", "sampling")]
)
def test_the_focus_does_not_hide_under_the_formula(visit, http_site, page, name):
    open_page = visit(f"{http_site}/{page}")
    part = explorer(open_page, name)
    part.evaluate("(p) => scrollTo(0, p.getBoundingClientRect().top + scrollY - 70)")
    part.get_by_role("button", name="Reset", exact=True).focus()
    for _ in range(25):
        open_page.keyboard.press("Tab")
        assert open_page.evaluate(HIDDEN) == ""


CUT_OFF = """(part) => {
  const { right } = part.getBoundingClientRect();
  const framed = (e) => {
    for (let p = e.parentElement; p !== part; p = p.parentElement)
      if (/auto|scroll|hidden/.test(getComputedStyle(p).overflowX)) return true;
    return getComputedStyle(e).position === "absolute";
  };
  return [...part.querySelectorAll("*")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width && box.height && box.right > right + 1 && !framed(e);
  }).map((e) => e.outerHTML.slice(0, 100));
}"""
FORMULA = ".gfx > .gfx-formula:not(.gfx-quiet), .gfx-ev-panel"

# Grids whose corner, when they are scrolled, lets heads of columns stand over those of rows.
OPEN_CORNERS = """(part) => [...part.querySelectorAll(".gfx-grid:has(thead td)")].filter((grid) => {
  grid.closest(".gfx-scroll").scrollLeft = 1e6;
  const corner = grid.querySelector("thead td"), head = grid.querySelector("th[scope=row]");
  const left = (cell) => Math.round(cell.getBoundingClientRect().left);
  const clear = getComputedStyle(corner).backgroundColor === "rgba(0, 0, 0, 0)";
  return clear || left(corner) !== left(head);
}).map((grid) => grid.ariaLabel)"""


@every_place
def test_at_400_percent_nothing_is_cut_off_and_the_formula_leaves_room(
    visit, http_site, page, name
):
    open_page = visit(f"{http_site}/{page}", width=320)
    open_page.set_viewport_size({"width": 320, "height": 256})  # of 1280 by 1024
    part = explorer(open_page, name)
    assert part.evaluate(CUT_OFF) == [] and part.evaluate(OPEN_CORNERS) == []
    no_sideways_scroll(open_page)
    for formula in part.locator(FORMULA).all():
        assert formula.bounding_box()["height"] <= 128


MONKEY = """async (part, [steps, seed]) => {
  let state = seed;
  const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), state % n);
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const controls = "input:not([type=file]):not([type=text]), select, button, td[data-n]";
  const skipped = /play|copy|download|link|run|time|measure/i;
  for (let n = 0; n < steps; n++) {
    const all = [...part.querySelectorAll(controls)].filter((e) =>
      !e.disabled && !(e.tagName === "BUTTON" && skipped.test(e.textContent + e.ariaLabel)));
    const target = all[random(all.length)];
    if (!target) continue;
    if (target.type === "range" || target.type === "number") {
      const [low, high] = [Number(target.min || 0), Math.min(Number(target.max || 10), 1000)];
      target.value = low + random(1000) / 999 * (high - low);
      target.dispatchEvent(new Event("input", { bubbles: true }));
    } else if (target.tagName === "SELECT") {
      target.selectedIndex = random(target.options.length);
      target.dispatchEvent(new Event("change", { bubbles: true }));
    } else if (target.tagName === "TD") {
      target.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    } else target.click();
    await frame();
  }
}"""


def monkey(part, steps: int, seed: int = 1) -> None:
    """Use an explorer's controls and numbers at random, a frame for each."""
    part.evaluate(MONKEY, [steps, seed])


def held(page) -> dict[str, float]:
    """Return how many listeners, nodes and bytes the page holds once all waste is removed."""
    page.evaluate(SETTLED)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {name: metrics[name] for name in ("JSEventListeners", "Nodes", "JSHeapUsedSize")}


def left_behind(page, before: dict[str, float], patience: int = 20) -> list[str]:
    """Return what a page holds more of than before: a busy browser clears up late, a leak stays."""
    most = {
        "JSEventListeners": before["JSEventListeners"] + 5,
        "Nodes": before["Nodes"] * 1.05 + 50,
        "JSHeapUsedSize": before["JSHeapUsedSize"] + 2e6,
    }
    for _ in range(patience):
        after = held(page)
        found = [f"{n}: {before[n]:,} → {after[n]:,}" for n in most if after[n] > most[n]]
        if not found:
            break
        page.wait_for_timeout(500)
    return found


@every_place
def test_hundreds_of_interactions_leave_nothing_behind(visit, http_site, page, name):
    open_page = visit(f"{http_site}/{page}")
    part = explorer(open_page, name)
    reset = part.get_by_role("button", name="Reset", exact=True)
    for seed in (1, 2):  # both rounds go the same ways: what the first one makes once is there
        monkey(part, 150, 7)
        reset.click()
        if seed == 1:
            before = held(open_page)
    assert left_behind(open_page, before) == []


def test_a_leak_would_be_seen(visit, http_site):
    open_page = visit(f"{http_site}/book/04_attention.html")
    before = held(open_page)
    open_page.evaluate(
        """() => { window.kept = []; for (let n = 0; n < 1000; n++) {
          const much = Array.from({ length: 1000 }, () => ({ n }));
          addEventListener("keydown", () => much);
          kept.push(document.createElement("p"), much); } }"""
    )
    assert len(left_behind(open_page, before, patience=3)) == 3  # listeners, nodes, bytes


LOADED = re.compile(
    r'<[^>]*(?:src|href)="\.\./_static/(glassformer-(?:explorers|part)[^"?]*)[^>]*>'
)
AT_ONCE, LATER = 150_000, 400_000  # bytes, compressed


def compressed(site, names) -> int:
    """Return the bytes of files as they travel."""
    import gzip

    return sum(len(gzip.compress((site / "_static" / n).read_bytes(), 9)) for n in set(names))


@pytest.mark.parametrize("page", PAGES)
def test_what_an_explorer_page_loads_is_light(site, page):
    found = LOADED.finditer((site / page).read_text(encoding="utf-8"))
    tags = {tag[1]: tag[0] for tag in found}
    late = {name for name, tag in tags.items() if 'type="text/plain"' in tag}
    assert any(name.endswith(".css") for name in tags) and len(tags) >= 2
    assert late == {part_file(name) for name in LATE} & tags.keys()
    now, then = compressed(site, tags.keys() - late), compressed(site, late)
    print(f"{page}: {now / 1000:.1f} KB compressed for explorers, {then / 1000:.1f} once near")
    assert now <= AT_ONCE and then <= LATER


def test_a_page_without_explorers_loads_nothing_of_them(site):
    assert not LOADED.findall((site / "book/notation.html").read_text(encoding="utf-8"))
