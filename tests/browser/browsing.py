"""Pages opened in a real Chromium, watched for everything that a reader should never meet."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "code/explorers/node_modules/axe-core/axe.min.js"
SCREENSHOTS = ROOT / "_build/screenshots"
POLICY = "default-src 'self' 'unsafe-inline' data:"
THEMES = ("light", "dark")
WIDTHS = (360, 768, 1440)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE, DESK = WIDTHS[0], WIDTHS[-1]
PATIENCE = 90_000  # milliseconds: a busy machine is slow, not wrong
MATHJAX = re.compile(r"/tex-svg\.js")


# A web server ------------------------------------------------------------------------------------


class Handler(SimpleHTTPRequestHandler):
    """Serve files under the strict content security policy that the site must bear."""

    def end_headers(self):
        """Send the policy with every response, errors too."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_):
        """Keep quiet: the watch on the page tells what failed."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine; yield its address, without a closing slash."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


# A watched page ----------------------------------------------------------------------------------

REPORT = "report_violation"
LISTEN = f"""addEventListener("securitypolicyviolation",
  (e) => {REPORT}(`${{e.effectiveDirective}} forbids ${{e.blockedURI}} in ${{e.sourceFile}}`));"""


def watch(context: BrowserContext, own: str) -> list[str]:
    """Return the list to which everything goes that goes wrong on the context's pages.

    Requests to anything but `own`, `data:` and `blob:` are noted and stopped.
    """
    problems: list[str] = []
    foreign = re.compile(rf"^(?!{re.escape(own)}|data:|blob:|about:)", re.I)

    def note_request(request):
        if foreign.match(request.url):
            problems.append(f"foreign request: {request.url}")

    def note_response(response):
        if response.status >= 400:
            problems.append(f"failed request: {response.url} ({response.status})")

    def note_failure(request):
        left_early = request.failure == "net::ERR_ABORTED" and request.url.endswith("/favicon.svg")
        if not left_early:  # the icon comes last: who goes on at once does without
            problems.append(f"failed request: {request.url} ({request.failure})")

    def note_message(message):
        if message.type in ("error", "warning"):
            problems.append(f"console {message.type}: {message.text} ({message.location['url']})")

    context.on("request", note_request)
    context.on("response", note_response)
    context.on("requestfailed", note_failure)
    context.on("console", note_message)
    context.on("weberror", lambda e: problems.append(f"page error: {e.error}"))
    context.expose_function(REPORT, lambda text: problems.append(f"policy violation: {text}"))
    context.add_init_script(LISTEN)
    context.route(foreign, lambda route: route.abort())
    return problems


@contextmanager
def watched(
    browser: Browser, own: str, theme: str = "light", width: int = DESK, mathematics: bool = True
) -> Iterator[Page]:
    """Yield a page in a fresh context; fail at the end if anything went wrong on it.

    `own` is where everything must come from: the address of a server, or `file:`, and then the
    network is off. Without `mathematics` MathJax is left out, which draws for seconds.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=theme,
        reduced_motion="reduce",
        offline=own == "file:",
    )
    context.set_default_timeout(PATIENCE)
    problems = watch(context, own)
    if not mathematics:
        context.route(MATHJAX, lambda route: route.fulfill(content_type="text/javascript", body=""))
    try:
        page = context.new_page()
        yield page
        page.evaluate("new Promise(requestAnimationFrame)")  # what is still on its way arrives
    finally:
        context.close()
    told = "\n  ".join(dict.fromkeys(problems))
    assert not problems, f"The page went wrong:\n  {told}"


# What to do with a page --------------------------------------------------------------------------


SETTLED = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  await frame().then(frame);
  const running = document.getAnimations().filter((a) => a instanceof CSSTransition);
  await Promise.allSettled(running.map((transition) => transition.finished));
}"""


def look(page: Page, theme: str, width: int) -> None:
    """Show the page in a theme and at a width, without loading it again."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function("t => document.documentElement.dataset.theme === t", arg=theme)
    page.evaluate(SETTLED)


def mathematics_drawn(page: Page) -> None:
    """Wait until MathJax has drawn every formula, and fail if one is left or is in error."""
    page.evaluate("window.MathJax?.startup?.promise")
    left = page.evaluate(
        """() => {
          const letters = (m, selector) => [...m.querySelectorAll(selector)];
          const wrong = (m) => !m.querySelector("mjx-container svg") ||
            m.querySelector("[data-mml-node=merror]") ||
            letters(m, "svg [data-mml-node=mi]").filter((e) => !e.firstChild).length !==
            letters(m, "math mi").filter((e) => !e.textContent).length;  // a letter left blank
          return [...document.querySelectorAll(".math")].filter(wrong).map((m) => m.textContent);
        }"""
    )
    assert not left, f"formulas not drawn: {left}"


def open_everything(page: Page) -> None:
    """Answer every prediction, open every closed part, and bring every explorer to life."""
    for place in page.locator(".gf-explorer").all():
        place.scroll_into_view_if_needed()  # one that is far away may wait for that
        expect(place.locator(".gfx").first).to_be_visible()
    page.evaluate(
        """() => {
          for (const form of document.querySelectorAll(".gf-question")) {
            const field = form.querySelector("input, select");
            if (field.type === "radio") field.checked = true;
            else field.value = field.options ? field.options[1].value : "1";
            form.requestSubmit();
          }
          document.querySelectorAll("details").forEach((d) => (d.open = true));
        }"""
    )


STICKING_OUT = """(within) => {
  const wide = document.documentElement.clientWidth, found = [];
  const framed = (e) => {  // in a frame that scrolls, or in a part that is put away
    for (let p = e; p && p !== document.body; p = p.parentElement) {
      const { overflowX, position, visibility, clipPath, clip } = getComputedStyle(p);
      if (p !== e && /auto|scroll/.test(overflowX)) return true;
      if (visibility === "hidden" || (position === "absolute" && p.offsetWidth <= 1)) return true;
    }
    return false;
  };
  for (const e of document.querySelector(within).querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (box.width && box.height && (box.right > wide + 1 || box.left < -1) && !framed(e))
      found.push(`${e.outerHTML.slice(0, 100)} [${box.left | 0}, ${box.right | 0}]`);
  }
  const page = document.documentElement.scrollWidth;
  if (page > wide) found.push(`the page is ${page} pixels wide in a window of ${wide}`);
  return found;
}"""


def no_sideways_scroll(page: Page, within: str = "body") -> None:
    """Fail if the page scrolls sideways, or if something in it sticks out that no frame scrolls."""
    found = page.evaluate(STICKING_OUT, within)
    assert not found, "too wide:\n  " + "\n  ".join(found)


def axe(page: Page, selector: str | None = None) -> list[str]:
    """Return a line for each of axe-core's violations on the page, or in the part selected."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        """async (selector) => {
          const options = { resultTypes: ["violations"] };
          const { violations } = await axe.run(selector ?? document, options);
          return violations.flatMap((v) => v.nodes.map((n) =>
            `${v.id}: ${n.target.join(" ")}: ${n.failureSummary.split("\\n").slice(1).join(";")}`));
        }""",
        selector,
    )
    return found


def screenshot(page: Page | Locator, name: str) -> Path:
    """Store a picture of the page or of one element as `_build/screenshots/<name>.png`."""
    path = SCREENSHOTS / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(page, Page):
        page.screenshot(path=path, full_page=True)
    else:
        page.screenshot(path=path)
    return path
