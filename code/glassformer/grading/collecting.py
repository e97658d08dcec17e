"""`pytest exercises`: each exercise of a notebook is one test, graded as in `glassformer grade`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..exercises.bank import chapter_exercises
from ..exercises.definition import Exercise
from ..exercises.judging import Verdict
from .reading import Unreadable, read_notebook
from .submission import Grader, chapter_of


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """Collect the exercise notebooks."""
    if file_path.suffix == ".ipynb" and chapter_of(file_path):
        return ExerciseNotebook.from_parent(parent, path=file_path)
    return None


class ExerciseNotebook(pytest.File):
    """A notebook of exercises."""

    def collect(self) -> Iterator[pytest.Item]:
        """Return a test for each exercise of the notebook's chapter."""
        try:
            grader = Grader(read_notebook(self.path))
        except Unreadable as unreadable:
            raise self.CollectError(f"The notebook {self.path.name} {unreadable}.") from None
        for exercise in chapter_exercises(chapter_of(self.path)):
            yield ExerciseTest.from_parent(
                self, name=exercise.name, exercise=exercise, grader=grader
            )


class NotYet(Exception):
    """An exercise that is not solved."""


class ExerciseTest(pytest.Item):
    """One exercise: skipped as long as it is not attempted."""

    def __init__(self, *, exercise: Exercise, grader: Grader, **rest) -> None:
        super().__init__(**rest)
        self._exercise, self._grader = exercise, grader

    def runtest(self) -> None:
        """Grade the exercise."""
        verdict = self._grader.grade(self._exercise)
        if not verdict.attempted:
            pytest.skip("not attempted")
        if verdict.status != "passed":
            raise NotYet(told(verdict))

    def repr_failure(self, excinfo: pytest.ExceptionInfo, style: str | None = None):
        """Show what is wrong, without a traceback."""
        return (
            str(excinfo.value) if excinfo.errisinstance(NotYet) else super().repr_failure(excinfo)
        )

    def reportinfo(self) -> tuple[Path, int, str]:
        """Head a failure by the exercise's name."""
        return self.path, 0, self.name


def told(verdict: Verdict) -> str:
    """Return a verdict as plain lines."""
    return "\n".join([verdict.score, *(f"{label}: {text}" for label, text in verdict.lines())])
