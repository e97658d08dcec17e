"""The watch on pages and the helpers: each is broken on purpose here and must notice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext

import pytest
from browsing import (
    axe,
    mathematics_drawn,
    no_sideways_scroll,
    open_everything,
    screenshot,
    served,
    watched,
)

from glassformer import chromium

GOOD = (
    '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>t</title>'
    "<main><h1>h</h1>%s</main>"
)


@pytest.fixture
def tiny(tmp_path, browser):
    """Return a function that watches a tiny page with the given body, over HTTP or from disk."""

    def look_at(body: str, over: str = "http", do=lambda page: None):
        (tmp_path / "page.html").write_text(GOOD % body, encoding="utf-8")
        with served(tmp_path) as address:
            base = f"{address}/" if over == "http" else f"{tmp_path.as_uri()}/"
            with watched(browser, base if over == "http" else "file:") as page:
                page.goto(f"{base}page.html")
                return do(page)

    return look_at


@pytest.mark.parametrize("over", ["http", "file"])
def test_a_good_page_passes_the_watch(tiny, over):
    tiny(
        '<script>console.log("all is well")</script><img alt="" src="data:image/gif;base64,'
        'R0lGODlhAQABAAAAACwAAAAAAQABAAA=">',
        over,
    )


@pytest.mark.parametrize("over", ["http", "file"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<script>console.error("lost")</script>', "console error: lost"),
        ('<script>console.warn("old")</script>', "console warning: old"),
        ('<script>throw new Error("broken")</script>', "page error: .*broken"),
        ("<script>Promise.reject(Error('unkept'))</script>", "page error: .*unkept"),
        ('<img alt="" src="missing.png">', "failed request: .*missing.png"),
        ('<img alt="" src="https://cdn.example/x.png">', "foreign request: https://cdn.example/"),
        ('<img alt="" src="http://192.0.2.1/x.png">', "foreign request: http://192.0.2.1/"),
    ],
)
def test_the_watch_sees(tiny, body, problem, over):
    with pytest.raises(AssertionError, match=problem):
        tiny(body, over)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<script>try { eval('1') } catch {}</script>", "policy violation: script-src"),
        ('<img alt="" src="https://cdn.example/x.png">', "policy violation: img-src"),
        (
            "<script>try { new Worker(URL.createObjectURL(new Blob(['']))) } catch {}</script>",
            "policy violation: worker-src",
        ),
    ],
)
def test_the_watch_sees_what_the_policy_forbids(tiny, body, problem):
    with pytest.raises(AssertionError, match=problem):
        tiny(body)


def test_the_network_is_off_for_pages_from_disk(browser, tmp_path):
    """Even where the watch would let a request through."""
    (tmp_path / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="5"/>')
    with served(tmp_path) as address:
        (tmp_path / "page.html").write_text(GOOD % f'<img alt="" src="{address}/dot.svg">')
        for own, width in ((f"{address}/", 5), ("file:", 0)):
            with pytest.raises(AssertionError) if own == "file:" else nullcontext():
                with watched(browser, own) as page:
                    page.context.unroute_all()
                    page.goto(f"{address}/page.html" if width else f"{tmp_path.as_uri()}/page.html")
                    assert page.evaluate("document.images[0].naturalWidth") == width


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('<p style="width: 2000px">wide</p>', "the page is 20"),
        ('<div style="overflow: hidden"><p style="width: 2000px">cut</p></div>', "<p style"),
    ],
)
def test_what_sticks_out_is_found(tiny, body, what):
    with pytest.raises(AssertionError, match=what):
        tiny(body, do=no_sideways_scroll)


def test_a_wide_thing_in_a_frame_of_its_own_may_scroll(tiny):
    tiny(
        '<div style="overflow-x: auto"><p style="width: 2000px">wide</p></div>',
        do=no_sideways_scroll,
    )


def test_axe_finds_a_nameless_button_and_pale_text_under_the_policy(tiny):
    body = '<button></button><p style="color: #aaa; background: #fff">pale</p>'
    found = tiny(body, do=axe)
    assert {line.split(":")[0] for line in found} == {"button-name", "color-contrast"}
    assert tiny(body, do=lambda page: axe(page, "p"))[0].startswith("color-contrast: p: ")
    assert tiny("<button>Reset</button>", do=axe) == []


def test_axe_looks_into_what_was_closed(tiny):
    body = "<details><summary>more</summary><button></button></details>"
    assert tiny(body, do=axe) == []
    assert tiny(body, do=lambda page: (open_everything(page), axe(page))[1])


def test_a_formula_left_as_text_is_found(tiny):
    with pytest.raises(AssertionError, match="formulas not drawn"):
        tiny(r'<span class="math">\(x\)</span>', do=mathematics_drawn)


@pytest.mark.parametrize("node", ["merror", "mi"])
def test_a_formula_with_an_error_or_a_letter_left_blank_is_found(tiny, node):
    drawn = f'<svg><g data-mml-node="{node}"></g></svg><math><mi>x</mi></math>'
    drawn = f"<mjx-container>{drawn}</mjx-container>"
    with pytest.raises(AssertionError, match="formulas not drawn"):
        tiny(f'<span class="math">{drawn}</span>', do=mathematics_drawn)


def test_a_screenshot_is_stored(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("browsing.SCREENSHOTS", tmp_path / "pictures")
    path = tiny("", do=lambda page: screenshot(page.locator("h1"), "chapter/heading"))
    assert path.read_bytes().startswith(b"\x89PNG") and path.name == "heading.png"


# The browser itself ------------------------------------------------------------------------------


def test_the_named_browser_is_the_one_used(monkeypatch, tmp_path):
    program = tmp_path / "my-chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("GLASSFORMER_CHROMIUM", str(program))
    assert chromium.find_chromium() == str(program)
    monkeypatch.setenv("GLASSFORMER_CHROMIUM", str(tmp_path / "nowhere"))
    assert chromium.find_chromium() is None


def test_a_missing_browser_is_a_failure_in_one_sentence(tmp_path):
    """Not a skip: without a browser nothing was tested."""
    environment = os.environ | {"GLASSFORMER_CHROMIUM": str(tmp_path / "nowhere")}
    command = [sys.executable, "-I", chromium.__file__]  # as .ci/browser asks, without the package
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr.strip() == chromium.MISSING
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", __file__]
    command += ["-k", "test_a_screenshot_is_stored"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (
        run.returncode == 1 and re.search(r"1 error", run.stdout) and chromium.MISSING in run.stdout
    )
