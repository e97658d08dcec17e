"""Judge an answer: run its exercise's tests under pytest, and find which mistake it looks like.

The tests are the only checks. Here pytest runs them inside this process, quietly, on an answer
that is called through `Answer`, wherever the function itself runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ..grading.responding import described_error, respond
from .answers import Answer, Outcome, Wrong
from .definition import Exercise, Function, Variant, points_of
from .draws import Draw

Respond = Callable[[str], "str | bytes"]
_EMPTY_INI = Path(__file__).with_name("pytest.ini")
_OPTIONS = ["-c", str(_EMPTY_INI), "--noconftest", "--import-mode=importlib", "--assert=plain"]
for _plugin in (  # pytest starts at each check, so it starts with little: no output, no files
    *("terminal", "cacheprovider", "faulthandler", "unraisableexception", "threadexception"),
    *("logging", "warnings", "junitxml", "pastebin", "doctest", "debugging", "stepwise"),
    *("capture", "skipping", "legacypath", "tmpdir", "monkeypatch", "recwarn", "unittest"),
    *("setuponly", "setupplan", "reports", "python_path", "subtests"),
):
    _OPTIONS += ["-p", f"no:{_plugin}"]


@dataclass(frozen=True)
class Verdict:
    """What an answer earned, and what to tell about it."""

    exercise: Exercise
    earned: int
    attempted: bool
    wrong: Wrong | None = None
    looks_like: Variant | None = None

    @property
    def status(self) -> str:
        """One of "passed", "failed", "not attempted"."""
        if not self.attempted:
            return "not attempted"
        return "passed" if self.earned == self.exercise.points and not self.wrong else "failed"

    @property
    def score(self) -> str:
        """Points of points, in words."""
        return f"{self.earned} of {self.exercise.points} points"

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to tell about a wrong answer, as pairs of label and text."""
        if self.wrong is None:
            return []
        pairs = [
            ("tried", self.wrong.tried),
            ("came out", self.wrong.got),
            ("expected", self.wrong.expected),
            ("wrong", self.wrong.reason),
            ("looks like", self.looks_like.message if self.looks_like else ""),
        ]
        if self.wrong.reason == pairs[-1][1]:
            del pairs[-2]
        return [(label, text) for label, text in pairs if text]


@dataclass(eq=False)  # pytest keeps its plugins in sets
class _Run:
    """A pytest plugin that hands an answer to the tests of one exercise and keeps the results."""

    answer: Answer
    seeds: Sequence[int]
    collected: int = 0
    earned: int = 0
    failures: list[Wrong] = field(default_factory=list)
    broken: BaseException | None = None  # what kept a test from being run at all

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector):
        """Take the module that is imported already, not a second one by another name."""
        return _Imported.from_parent(parent, path=module_path, ours=self.answer.exercise.module)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run tests that draw their inputs once for each seed."""
        if "draw" in metafunc.fixturenames:
            metafunc.parametrize("draw", self.seeds, indirect=True)

    @pytest.fixture(name="answer")
    def _answer(self) -> Answer:
        return self.answer

    @pytest.fixture(name="draw")
    def _draw(self, request: pytest.FixtureRequest) -> Draw:
        return Draw(request.param, request.function.__name__)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the points that can be earned."""
        self.collected = sum(points_of(item.function) for item in session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo):
        """Count a test as passed only where its own call ended without an exception.

        The report is this short because nobody reads it; pytest's own looks up every line's source.
        """
        outcome = "passed"
        if call.excinfo is not None:
            self.failures.append(_as_wrong(call.excinfo.value))
            self.broken = self.broken if call.when == "call" else call.excinfo.value
            outcome = "failed"
        elif call.when == "call":
            self.earned += points_of(item.function)
        return pytest.TestReport(item.nodeid, item.location, {}, outcome, None, call.when)


def _as_wrong(error: BaseException) -> Wrong:
    """Return what a test found wrong; a value that it could not even look at is wrong, too."""
    if isinstance(error, Wrong):
        return error
    return Wrong(f"What came out cannot be checked: {described_error(error)}.")


class _Imported(pytest.Module):
    """A test module that is imported already."""

    def __init__(self, *, ours, **rest) -> None:
        super().__init__(**rest)
        self._ours = ours

    def _getobj(self):
        return self._ours


@contextmanager
def own_settings() -> Iterator[None]:
    """Keep the user's pytest settings and plugins out of a judgement."""
    names = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    saved = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    current = os.environ.get("PYTEST_CURRENT_TEST")
    try:
        yield
    finally:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        os.environ.update(saved)
        if current is not None:
            os.environ["PYTEST_CURRENT_TEST"] = current


def _run(exercise: Exercise, respond: Respond, seeds: Sequence[int]) -> _Run:
    """Run an exercise's tests on an answer; return what was collected, earned and wrong."""
    run = _Run(Answer(exercise, respond), seeds)
    with own_settings():
        code = pytest.main([*_OPTIONS, exercise.module.__file__], plugins=[run])
    ended = code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if run.collected == 0 or run.broken or not ended:
        said = f"The tests of {exercise.name} cannot be run: pytest says {code!r}."
        raise RuntimeError(said) from run.broken
    return run


def judge(exercise: Exercise, respond: Respond, seeds: Sequence[int] = (0,)) -> Verdict:
    """Return the verdict on an answer whose calls go through `respond`."""
    run = _run(exercise, respond, seeds)
    outcomes = run.answer.outcomes
    attempted = bool(outcomes) and any(outcome.attempted for outcome in outcomes)
    if not run.failures and run.earned == run.collected:
        return Verdict(exercise, exercise.points, attempted)
    if not attempted:
        return Verdict(exercise, 0, False)
    earned = exercise.points * run.earned // run.collected  # more seeds give no more points
    wrong = run.failures[0]
    looks_like = _looks_like(exercise, outcomes)
    looks_like = looks_like or _looks_like(exercise, _shown(exercise, outcomes, wrong))
    return Verdict(exercise, earned, True, wrong, looks_like)


def _looks_like(exercise: Exercise, outcomes: list[Outcome]) -> Variant | None:
    """Return the mutant that, given the same inputs, comes to the same in every call, if any."""
    for mutant in exercise.mutants if outcomes else ():
        again = Answer(exercise, calling(exercise, mutant.function))
        if all(outcome.like(again(*outcome.inputs)) for outcome in outcomes):
            return mutant
    return None


def _shown(exercise: Exercise, outcomes: list[Outcome], wrong: Wrong) -> list[Outcome]:
    """Return the one outcome that is shown as wrong, for an answer with several mistakes.

    None where it is no value, the right number as a tensor, or the same value as in every other
    call: that says nothing.
    """
    solved = Answer(exercise, calling(exercise, exercise.solved.function))
    shown = [o for o in outcomes if o.inputs is wrong.inputs and o.usable]
    shown = [o for o in shown if not o.like(solved(*o.inputs))]
    others = [o for o in outcomes if shown and not o.like(shown[0])]
    return shown[:1] if others else []


def calling(exercise: Exercise, function: Function) -> Respond:
    """Return a way to call a function in this process."""
    return lambda request: respond(function, request, exercise.prepared)
