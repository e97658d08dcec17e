"""The exercise notebooks: as the exercises say, quiet while unsolved, right when solved."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from chapters import ROOT, read
from glassformer.exercises import notebooks
from glassformer.exercises.bank import chapter_exercises, chapters
from glassformer.exercises.notebooks import is_current, notebook
from glassformer.notebooks import execute

FOLDER = ROOT / "exercises"
every_chapter = pytest.mark.parametrize("chapter", chapters(), ids=lambda c: c.notebook)


def run_pytest(folder, *arguments) -> str:
    """Run pytest as a learner does, in a folder of notebooks, and return what it prints."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


@pytest.fixture
def course(tmp_path):
    """Return a folder with the settings of `pytest exercises`, and no notebooks yet."""
    shutil.copy(FOLDER / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def write(folder, chapter, fill):
    """Write a chapter's notebook with all functions filled in."""
    path = folder / f"{chapter.notebook}.ipynb"
    path.write_text(nbformat.writes(notebook(chapter, fill)), encoding="utf-8")
    return path


@every_chapter
def test_the_stored_notebook_is_current(chapter):
    path = FOLDER / f"{chapter.notebook}.ipynb"
    assert is_current(path, chapter), "run `make exercises`"


@pytest.mark.parametrize("step", ["run", "store"])
def test_a_run_that_was_stopped_leaves_the_notebooks_and_the_next_writes_them(
    step, tmp_path, monkeypatch
):
    before = (FOLDER / "01_data.ipynb").read_text(encoding="utf-8")
    outdated = before.replace("# Exercises 1", "# Exercise 1")
    folder = tmp_path / "exercises"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns(".*", "*.py"))
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (folder / "01_data.ipynb").write_text(outdated, encoding="utf-8")

    def stopped(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as changed, pytest.raises(KeyboardInterrupt):
        if step == "run":
            changed.setattr(notebooks, "run", stopped)
        else:
            changed.setattr(os, "replace", stopped)
        notebooks.write(folder)
    assert (folder / "01_data.ipynb").read_text(encoding="utf-8") == outdated
    assert {path.name for path in folder.iterdir()} <= {path.name for path in FOLDER.iterdir()}
    assert notebooks.write(folder) == [folder / "01_data.ipynb"]
    assert (folder / "01_data.ipynb").read_text(encoding="utf-8") == before


def test_every_stored_notebook_belongs_to_a_chapter():
    known = {f"{chapter.notebook}.ipynb" for chapter in chapters()}
    assert {path.name for path in FOLDER.glob("*.ipynb")} == known


@every_chapter
def test_what_is_not_attempted_shows_nothing(chapter):
    cells = [c for c in read(FOLDER / f"{chapter.notebook}.ipynb").cells if c.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert [bool(cell.outputs) for cell in cells] == [False] * (len(cells) - 1) + [True]
    (table,) = cells[-1].outputs
    for exercise in chapter_exercises(chapter):
        assert f"| `{exercise.name}` | 0 of {exercise.points} |" in table["data"]["text/plain"]


def test_solved_notebooks_are_right_and_pass_nbval(tmp_path):
    cells = []
    for chapter in chapters():
        path = write(tmp_path, chapter, lambda e: e.solved.source)
        execute(path)
        solved = [c for c in read(path).cells if c.cell_type == "code"]
        checks = [c for c in solved if c.source.startswith("check(")]
        said = ["".join(o["data"]["text/plain"] for o in cell.outputs) for cell in checks]
        exercises = chapter_exercises(chapter)
        assert said == [
            f"✓ **{e.name}**: right, {e.points} of {e.points} points." for e in exercises
        ]
        cells += [f"PASSED {path.name}::Cell {n}" for n in range(len(solved))]
    told = run_pytest(tmp_path, "--nbval", "-rp")
    assert sorted(re.findall(r"(?m)^PASSED .*$", told)) == sorted(cells), told
    assert re.search(rf"= {len(cells)} passed", told)


def test_nbval_sees_a_solution_that_breaks(tmp_path):
    chapter = chapters()[0]
    path = write(tmp_path, chapter, lambda e: e.solved.source)
    execute(path)
    changed = path.read_text(encoding="utf-8").replace("[*specials, *sorted(", "[*sorted(")
    path.write_text(changed, encoding="utf-8")
    assert "failed" in run_pytest(tmp_path, "--nbval", "-q", path)


def test_pytest_skips_what_is_not_attempted(course):
    chapter = chapters()[0]
    write(course, chapter, lambda e: e.start.source)
    told = run_pytest(course, "-rs")
    assert f"{len(chapter.order)} skipped" in told and "not attempted" in told


def test_pytest_passes_what_is_solved(course):
    wanted = set()
    for chapter in chapters():
        path = write(course, chapter, lambda e: e.solved.source)
        wanted |= {f"PASSED {path.name}::{e.name}" for e in chapter_exercises(chapter)}
    told = run_pytest(course, "-rp")
    assert set(re.findall(r"(?m)^PASSED \S+$", told)) == wanted, told
    assert re.search(rf"= {len(wanted)} passed in", told)


def test_pytest_says_what_is_wrong_without_a_traceback(course):
    chapter = chapters()[0]
    write(course, chapter, lambda e: e.mutants[0].source)
    told = run_pytest(course)
    assert f"{len(chapter.order)} failed" in told and "Traceback" not in told
    for exercise in chapter_exercises(chapter):
        assert exercise.name in told and exercise.mutants[0].message in told
