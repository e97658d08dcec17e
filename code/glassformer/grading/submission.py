"""Grade what one learner hands in: notebooks of exercises, and the milestones' config.json."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..exercises.answers import Wrong
from ..exercises.bank import chapter_exercises, chapters
from ..exercises.definition import Chapter, Exercise
from ..exercises.judging import Verdict, judge
from ..milestones import MILESTONES, Judgement, Milestone, design_started
from .reading import LARGEST, Notebook, Unreadable, printable, read_notebook, read_regular
from .sandbox import CellEndsAll, Sandbox

MOST_ENDING = 5  # cells that end Python, or never end, before a notebook is given up


class Grader:
    """Grades exercises by a notebook's cells; cells that end Python are left out from then on."""

    def __init__(self, notebook: Notebook, seed: int = 0) -> None:
        self.notebook, self.seed = notebook, seed
        self._ending: dict[int, str] = {}

    def grade(self, exercise: Exercise) -> Verdict:
        """Return the verdict on one exercise, whose function gets a process of its own."""
        while len(self._ending) < MOST_ENDING:
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
        return _failed(
            exercise,
            f"The notebook cannot be run: {MOST_ENDING} of its cells end Python or never end.",
        )


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
    return next((c for c in known if number.isdecimal() and c.number == int(number)), None)


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
        e, lines = verdict.exercise, verdict.lines()
        remarks = tuple((label, printable(text)) for label, text in lines)
        return cls(e.name, verdict.earned, e.points, verdict.status, remarks, looks_like)


@dataclass(frozen=True)
class Step:
    """One thing of a submission to be graded: what it belongs to, and how it is done."""

    part: str
    name: str
    points: int
    how: Callable[[], Result]

    def run(self) -> Result:
        """Grade it."""
        return self.how()

    def lost(self, reason: str) -> Result:
        """Return the result of what could not be graded."""
        return Result(self.name, 0, self.points, "failed", (("wrong", reason),))


Part = tuple[str, Iterator[Result]]


def grade_submission(path: Path, seed: int = 0) -> Iterator[Part]:
    """Grade a notebook, a config.json or a folder; yield the title and results of each part."""
    todo = steps(path, seed)
    for part in dict.fromkeys(step.part for step in todo):
        yield part, map(Step.run, [step for step in todo if step.part == part])


def steps(path: Path, seed: int = 0, faults: Mapping[str, str] | None = None) -> list[Step]:
    """Return what is to be graded of a notebook, a config.json or a folder, in the book's order.

    `faults` names files whose content is not there to be read, and why.
    """
    faults = faults or {}
    if path.is_dir():
        return _folder_steps(path, seed, faults)
    if path.suffix == ".json":
        return _config_steps(path)
    if path.suffix == ".ipynb":
        chapter = chapter_of(path)
        if chapter is None:
            known = ", ".join(f"{c.notebook}.ipynb" for c in chapters())
            raise NothingToGrade(f"{path.name} is not one of the exercise notebooks: {known}.")
        return _notebook_steps(path, chapter, seed)
    raise NothingToGrade(
        f"There is nothing to grade at {path}: give a notebook, a config.json or a folder."
    )


def _folder_steps(folder: Path, seed: int, faults: Mapping[str, str]) -> list[Step]:
    config = folder / "config.json"
    todo: list[Step] = []
    for chapter in chapters():
        paths = _notebooks(folder, chapter)
        if len(paths) == 1:
            fault = faults.get(paths[0].name, "")
            todo += _notebook_steps(paths[0], chapter, seed, folder, fault)
        elif paths:
            names = " and ".join(path.name for path in paths)
            reason = f"There are several notebooks of this chapter, {names}: keep one."
            todo += _failing(f"{chapter.notebook}.ipynb", chapter, reason)
    if design_started(config):
        todo += _config_steps(config, folder, faults.get(config.name, ""))
    if not todo:
        known = ", ".join(f"{c.notebook}.ipynb" for c in chapters())
        raise NothingToGrade(f"{folder} holds nothing to grade: neither config.json nor {known}.")
    return todo


def _notebook_steps(
    path: Path, chapter: Chapter, seed: int, within: Path | None = None, fault: str = ""
) -> list[Step]:
    """Return a step for each exercise of a notebook; one that is unreadable fails in all."""
    try:
        if fault:
            raise Unreadable(fault)
        grader = Grader(read_notebook(path, within), seed)
    except Unreadable as unreadable:
        return _failing(path.name, chapter, f"The notebook {path.name} {unreadable}.")
    return [
        Step(path.name, e.name, e.points, lambda e=e: Result.of(grader.grade(e)))
        for e in chapter_exercises(chapter)
    ]


def _failing(part: str, chapter: Chapter, reason: str) -> list[Step]:
    """Return steps that fail for one reason."""
    return [
        Step(part, e.name, e.points, lambda e=e: Result.of(_failed(e, reason)))
        for e in chapter_exercises(chapter)
    ]


def _config_steps(path: Path, within: Path | None = None, fault: str = "") -> list[Step]:
    """Return a step for each milestone that a config.json is judged by."""
    return [
        Step(path.name, m.name, m.points, lambda m=m: grade_config(m, path, within, fault))
        for m in MILESTONES
    ]


def _notebooks(folder: Path, chapter: Chapter) -> list[Path]:
    """Return what in a folder goes by the name of a chapter's notebook."""
    return sorted(p for p in folder.glob("*.ipynb") if chapter_of(p) is chapter)


def grade_config(
    milestone: Milestone, path: Path, within: Path | None = None, fault: str = ""
) -> Result:
    """Return the result of a milestone: all points for an accepted design, none otherwise."""
    try:
        if fault:
            raise Unreadable(fault)
        if os.path.lexists(path):
            read_regular(path, LARGEST, within)
        judgement = milestone.judge(path)
    except Unreadable as unreadable:
        judgement = Judgement([f"{path.name} {unreadable}."])
    earned = 0 if judgement.findings else milestone.points
    status = "passed" if earned else "failed" if judgement.begun else "not attempted"
    remarks = tuple(("to change", printable(finding)) for finding in judgement.findings)
    return Result(milestone.name, earned, milestone.points, status, remarks)
