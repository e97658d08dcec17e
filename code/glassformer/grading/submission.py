"""Grade what one learner hands in: notebooks of exercises, and the milestone's config.json."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..exercises.answers import Wrong
from ..exercises.bank import chapter_exercises, chapters
from ..exercises.definition import Chapter, Exercise
from ..exercises.judging import Verdict, judge
from ..milestones import judge_m1, m1_started
from .reading import LARGEST, Notebook, Unreadable, read_notebook, read_regular
from .sandbox import CellEndsAll, Sandbox


def grade_notebook(
    path: Path, chapter: Chapter, seed: int = 0, within: Path | None = None
) -> Iterator[Verdict]:
    """Grade a notebook of a chapter's exercises, one verdict after the other."""
    exercises = chapter_exercises(chapter)
    try:
        grader = Grader(read_notebook(path, within), seed)
    except Unreadable as unreadable:
        yield from (_failed(e, f"The notebook {path.name} {unreadable}.") for e in exercises)
        return
    yield from map(grader.grade, exercises)


class Grader:
    """Grades exercises by a notebook's cells; cells that end Python are left out from then on."""

    def __init__(self, notebook: Notebook, seed: int = 0) -> None:
        self.notebook, self.seed = notebook, seed
        self._ending: dict[int, str] = {}

    def grade(self, exercise: Exercise) -> Verdict:
        """Return the verdict on one exercise, whose function gets a process of its own."""
        while True:
            cells = [cell for cell in self.notebook.cells if cell[0] not in self._ending]
            sandbox = Sandbox(cells, exercise.function_name, exercise.prepared, exercise.seconds)
            try:
                with sandbox:
                    return _judged(
                        exercise, sandbox, self.notebook.faults | self._ending, self.seed
                    )
            except CellEndsAll as end:
                if end.cell not in dict(cells):  # not even the first was reached
                    return _failed(exercise, f"The notebook cannot be run: {end.reason}.")
                self._ending[end.cell] = f"when run, {end.reason}"


def _judged(exercise: Exercise, sandbox: Sandbox, faults: dict[int, str], seed: int) -> Verdict:
    """Return the verdict on a function that waits in a sandbox, or on its absence."""
    if sandbox.found == "function":
        return judge(exercise, sandbox.respond, (seed,))
    name = exercise.function_name
    if sandbox.found == "other":
        return _failed(exercise, f"`{name}` is not a function.")
    near = difflib.get_close_matches(name, sandbox.names, n=1)
    reason = f"`{name}` is not defined in the notebook; keep the starter's name."
    if near:
        reason += f" Is `{near[0]}` meant?"
    broken = {**faults, **sandbox.errors}
    if broken:
        number = min(broken)
        reason += f" Cell {number} cannot be used: {broken[number]}."
    return _failed(exercise, reason)


def _failed(exercise: Exercise, reason: str) -> Verdict:
    return Verdict(exercise, 0, True, Wrong(reason))


def chapter_of(path: Path) -> Chapter | None:
    """Return the chapter that a notebook's file name belongs to, "04_attention (1).ipynb" too."""
    known = chapters()
    for chapter in known:
        if path.stem.lower().startswith(chapter.notebook.lower()):
            return chapter
    number = path.stem[:2]
    return next((c for c in known if number.isdigit() and c.number == int(number)), None)


class NothingToGrade(Exception):
    """There is nothing at a path that could be graded; the text says what was looked for."""


@dataclass(frozen=True)
class Result:
    """What a learner got for one exercise or milestone."""

    name: str
    earned: int
    points: int
    status: str
    remarks: tuple[tuple[str, str], ...] = ()
    misconception: str = ""

    @classmethod
    def of(cls, verdict: Verdict) -> Result:
        """Return the result that a verdict comes to."""
        looks_like = verdict.looks_like.name if verdict.looks_like else ""
        e = verdict.exercise
        return cls(
            e.name, verdict.earned, e.points, verdict.status, tuple(verdict.lines()), looks_like
        )


M1_POINTS = 10
Part = tuple[str, Iterator[Result]]


def grade_submission(path: Path, seed: int = 0) -> Iterator[Part]:
    """Grade a notebook, a config.json or a folder; yield the title and results of each part."""
    if path.is_dir():
        yield from _grade_folder(path, seed)
    elif path.suffix == ".json":
        yield path.name, iter([grade_config(path)])
    elif path.suffix == ".ipynb":
        chapter = chapter_of(path)
        if chapter is None:
            known = ", ".join(f"{c.notebook}.ipynb" for c in chapters())
            raise NothingToGrade(f"{path.name} is not one of the exercise notebooks: {known}.")
        yield path.name, map(Result.of, grade_notebook(path, chapter, seed))
    else:
        raise NothingToGrade(
            f"There is nothing to grade at {path}: give a notebook, a config.json or a folder."
        )


def _grade_folder(folder: Path, seed: int) -> Iterator[Part]:
    """Grade the notebooks and the config.json that a folder holds, in the book's order."""
    config = folder / "config.json"
    found = [(chapter, _notebooks(folder, chapter)) for chapter in chapters()]
    if not any(paths for _, paths in found) and not m1_started(config):
        known = ", ".join(f"{c.notebook}.ipynb" for c in chapters())
        raise NothingToGrade(f"{folder} holds nothing to grade: neither config.json nor {known}.")
    for chapter, paths in found:
        if len(paths) == 1:
            graded = grade_notebook(paths[0], chapter, seed, within=folder)
            yield paths[0].name, map(Result.of, graded)
        elif paths:
            names = " and ".join(path.name for path in paths)
            reason = f"There are several notebooks of this chapter, {names}: keep one."
            failed = (_failed(exercise, reason) for exercise in chapter_exercises(chapter))
            yield f"{chapter.notebook}.ipynb", map(Result.of, failed)
    if m1_started(config):
        yield "config.json", iter([grade_config(config, folder)])


def _notebooks(folder: Path, chapter: Chapter) -> list[Path]:
    """Return what in a folder goes by the name of a chapter's notebook."""
    return sorted(p for p in folder.glob("*.ipynb") if chapter_of(p) is chapter)


def grade_config(path: Path, within: Path | None = None) -> Result:
    """Return the result of milestone M1: all points for an accepted design, none otherwise."""
    try:
        if os.path.lexists(path):
            read_regular(path, LARGEST, within)
        findings = judge_m1(path)
    except Unreadable as unreadable:
        findings = [f"{path.name} {unreadable}."]
    status = "failed" if findings else "passed"
    remarks = tuple(("to change", finding) for finding in findings)
    return Result("m1.design", 0 if findings else M1_POINTS, M1_POINTS, status, remarks)
