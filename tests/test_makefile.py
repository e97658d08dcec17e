"""What `make` does again, and what it leaves as it is."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from chapters import ROOT

FORGET = "rm -rf _build/.jupyter_cache _build/.doctrees"


@pytest.fixture
def course(tmp_path):
    """Return a folder with the Makefile, in which everything is up to date."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    files = ("requirements.txt", "pyproject.toml", "code/glassformer/figures/style.py")
    for age, name in enumerate((*files, "code/glassformer/site.py", ".venv/installed")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1_000 + age, 1_000 + age))
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build/package-seen").touch()
    return tmp_path


def planned(folder) -> str:
    """Return what `make book` would run."""
    told = subprocess.run(["make", "-n", "book"], cwd=folder, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_chapters_are_executed_again_when_what_they_run_has_changed(course):
    assert FORGET not in planned(course)
    os.utime(course / "code/glassformer/figures/style.py", (4_000_000_000, 4_000_000_000))
    assert FORGET in planned(course)


def test_chapters_are_kept_when_only_the_page_around_them_has_changed(course):
    os.utime(course / "code/glassformer/site.py", (4_000_000_000, 4_000_000_000))
    assert FORGET not in planned(course)
