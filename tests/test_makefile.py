"""What `make` does again, and what it leaves as it is."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from chapters import ROOT

FORGET = "rm -rf _build/.jupyter_cache _build/.doctrees"
READ_AGAIN = "rm -rf _build/.doctrees"
RUN = ("figures/style.py", "texts/moby_dick.txt", "weights/tiny.safetensors", "palette.json")
SHOW = ("site.py", "site_questions.py", "explorers/static/site-groot.js")
SHOWN = (*(f"code/glassformer/{name}" for name in SHOW), "book/_static/book.css")


@pytest.fixture
def course(tmp_path):
    """Return a folder with the Makefile, in which everything is up to date."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    files = ["requirements.txt", "pyproject.toml", ".venv/installed", *SHOWN]
    files += [f"code/glassformer/{name}" for name in (*RUN, "cli.py", "grading/apart.py")]
    for age, name in enumerate(files):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1_000 + age, 1_000 + age))
    (tmp_path / "_build").mkdir()
    for stamp in ("package-seen", "pages-seen"):
        (tmp_path / "_build" / stamp).touch()
    return tmp_path


def planned(folder) -> list[str]:
    """Return the commands that `make book` would run."""
    told = subprocess.run(["make", "-n", "book"], cwd=folder, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def change(course, name: str) -> None:
    os.utime(course / name, (4_000_000_000, 4_000_000_000))


def test_nothing_is_forgotten_that_is_up_to_date(course):
    assert not {FORGET, READ_AGAIN} & set(planned(course))


@pytest.mark.parametrize("name", RUN)
def test_chapters_are_executed_again_when_what_they_run_has_changed(course, name):
    change(course, f"code/glassformer/{name}")
    assert FORGET in planned(course)


@pytest.mark.parametrize("name", SHOWN)
def test_pages_alone_are_made_again_when_what_makes_them_has_changed(course, name):
    change(course, name)
    assert READ_AGAIN in planned(course) and FORGET not in planned(course)


@pytest.mark.parametrize("name", ["cli.py", "grading/apart.py"])
def test_all_is_kept_when_something_has_changed_that_no_page_shows(course, name):
    change(course, f"code/glassformer/{name}")
    assert not {FORGET, READ_AGAIN} & set(planned(course))
