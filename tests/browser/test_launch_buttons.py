"""Buttons and links that launch and download: with an address, and without one."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import PHONE, axe, no_sideways_scroll, served

from chapters import ROOT
from fresh import copy_course
from glassformer.repository import Address, address_of, set_address

URL = "https://github.com/ada/glass-course"
HUB = "https://hub.school.example"
CHAPTER = "book/04_attention"
CONTENTS = f"format: jb-book\nroot: book/progress\nchapters:\n  - file: {CHAPTER}\n"
CONTENTS += "  - file: book/notation\n"
BUILD = "from jupyter_book.cli.main import main; main()"


@pytest.fixture(scope="module")
def launching(tmp_path_factory) -> Path:
    """Return the pages of a course that has an address and a hub: one chapter, and its contents."""
    course = copy_course(tmp_path_factory.mktemp("launching"))
    set_address(course, URL)
    settings = (course / "_config.yml").read_text("utf-8")
    settings = settings.replace('jupyterhub_url: ""', f"jupyterhub_url: {HUB}")
    settings = settings.replace("execute_notebooks: cache", 'execute_notebooks: "off"')
    (course / "_config.yml").write_text(settings, encoding="utf-8")
    (course / "_toc.yml").write_text(CONTENTS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, "build", "."], cwd=course, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return course / "_build" / "html"


def links(page: Path) -> list[str]:
    """Return where the links of a page lead that leave the site."""
    return [html.unescape(link) for link in re.findall(r'href="(https:[^"]*)"', page.read_text())]


def launch_links(page: Path) -> list[str]:
    """Return the links that launch a notebook."""
    return [link for link in links(page) if re.search(r"mybinder|colab|/hub/", link)]


def test_a_chapter_and_its_exercises_are_launched_wherever_they_can_be(launching):
    address = address_of(launching.parents[1])
    paths = (f"{CHAPTER}.ipynb", "exercises/04_attention.ipynb")
    expected = [link for path in paths for _, link in address.launchers(path)]
    assert len(expected) == 6 and launch_links(launching / f"{CHAPTER}.html") == expected
    assert links(launching / f"{CHAPTER}.html").count(URL) == 1


def test_a_page_that_is_no_notebook_has_the_repository_alone(launching):
    assert launch_links(launching / "book/progress.html") == []
    assert links(launching / "book/progress.html").count(URL) == 1


@pytest.fixture(scope="module")
def launching_site(launching):
    """Return where these pages are served."""
    with served(launching) as address:
        yield address


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_buttons_open_on_a_phone_and_are_drawn_by_the_site(launching_site, visit, theme):
    page = visit(f"{launching_site}/{CHAPTER}.html", theme=theme, width=PHONE)
    page.get_by_role("button", name="Open and run").click()
    menu = page.locator(".dropdown-launch-buttons .dropdown-menu")
    names = [item.strip() for item in menu.locator("a").all_inner_texts()]
    assert names == ["Binder", "Colab", "JupyterHub"]
    drawn = "images => images.every((i) => i.complete && i.naturalWidth > 0)"
    assert menu.locator("img").evaluate_all(drawn)
    no_sideways_scroll(page)
    assert axe(page, ".bd-header-article") == []
    page.keyboard.press("Escape")  # it stays open under the mouse, laid out by the theme
    assert menu.is_visible()
    no_sideways_scroll(page)
    repository = page.get_by_role("link", name="Source repository")
    assert repository.get_attribute("href") == URL


def test_the_site_launches_its_chapters_or_without_an_address_nothing(site):
    launched = {page.stem for page in site.rglob("*.html") if launch_links(page)}
    chapters = {path.stem for path in (ROOT / "book").glob("[0-9]*.ipynb")}
    assert launched == (chapters if address_of(ROOT) else set())


def test_a_link_that_launches_is_found(tmp_path):
    address = Address(URL, "main", "https://mybinder.org", "https://colab.example", HUB)
    for name, link in address.launchers("book/01_data.ipynb"):
        page = tmp_path / "page.html"
        page.write_text(f'<a href="{html.escape(link)}">{name}</a> <a href="{URL}">here</a>')
        assert launch_links(page) == [link]


# Downloads ----------------------------------------------------------------------------------------

DOWNLOADS = {
    f"{CHAPTER}.ipynb": ".dropdown-download-buttons a",
    "exercises/04_attention.ipynb": 'a.download[href$=".ipynb"]',
}


@pytest.mark.parametrize("where", ["http_site", "file_site"])
def test_chapter_and_exercises_are_downloaded_from_a_server_and_from_disk(where, visit, request):
    page = visit(f"{request.getfixturevalue(where)}/{CHAPTER}.html")
    for name, link in DOWNLOADS.items():
        if name.startswith("book"):
            page.get_by_role("button", name="Download this page").click()
        with page.expect_download() as download:
            page.locator(link).click()
        assert download.value.suggested_filename == Path(name).name
        assert Path(download.value.path()).read_bytes() == (ROOT / name).read_bytes()


def test_every_notebook_of_the_site_can_be_stored_from_disk(site):
    notebooks = list(site.rglob("*.ipynb"))
    assert len(notebooks) == 2 * len(list((ROOT / "book").glob("[0-9]*.ipynb")))
    for path in notebooks:
        script = path.with_name(f"{path.name}.js").read_text("utf-8")
        assert script.startswith(f'storeNotebook("{path.name}", "{{') and script.endswith('");\n')
