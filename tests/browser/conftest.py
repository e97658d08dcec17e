"""Fixtures of the browser tests: a browser, the site over HTTP and from disk, watched pages."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from browsing import FLAGS, PATIENCE, served, watched
from lab import Notebook, running_lab, write_notebook
from playwright.sync_api import expect

from glassformer.chromium import MISSING, find_chromium

HERE = Path(__file__).parent

expect.set_options(timeout=PATIENCE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark everything in this folder, so that `pytest -m browser` is these tests."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="module")
def browser():
    """Return a running Chromium, one for each file of tests.

    Playwright keeps an event loop running while it is open, which other tests of the same worker
    could trip over: so it closes with the file.
    """
    program = find_chromium()
    if program is None:
        pytest.fail(MISSING, pytrace=False)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def pages(site) -> Path:
    """Return the folder that is visited: the built book, or what a file of tests puts here."""
    return site


@pytest.fixture(scope="module")
def http_site(pages) -> str:
    """Return the address of the pages, served under the strict content security policy."""
    with served(pages) as address:
        yield address


@pytest.fixture(scope="module")
def file_site(pages) -> str:
    """Return the address of the pages on disk, as somebody opens them who is on a plane."""
    return pages.as_uri()


@pytest.fixture
def visit(browser):
    """Return a function that opens an address in a fresh context and returns the watched page.

    `visit(address, theme="light", width=1440, mathematics=False)`; from a `file:` address the
    network is off. When the test ends, it fails if a page had a console error or warning, a page
    error, a failed or foreign request or a policy violation.
    """
    with ExitStack() as pages:

        def open_address(address: str, theme="light", width=1440, mathematics=False):
            own = "file:" if address.startswith("file:") else "/".join(address.split("/")[:3]) + "/"
            page = pages.enter_context(watched(browser, own, theme, width, mathematics))
            page.goto(address)
            return page

        yield open_address


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """Return a running JupyterLab whose kernel has the package."""
    with running_lab(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="module")
def kernel(lab, browser, request):
    """Return a notebook, open in JupyterLab on a watched page: one for each file of tests."""
    name = f"{request.path.stem}.ipynb"
    write_notebook(lab.folder / name)
    with watched(browser, f"{lab.address}/", mathematics=False) as page:
        page.goto(lab.url(name))
        yield Notebook(page)


@pytest.fixture
def notebook(kernel):
    """Return the notebook without cells; what earlier tests defined is still there."""
    kernel.empty()
    return kernel
