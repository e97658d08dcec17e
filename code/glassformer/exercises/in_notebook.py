"""What a learner calls: `check`, `hint`, `solution`, `progress`. None of them ever raises."""

from __future__ import annotations

import difflib
import signal
import threading
from collections.abc import Callable

from ..grading.responding import Lost, TimeUp, respond, too_long
from .bank import all_exercises, chapter_exercises, chapters
from .bank import exercise as find
from .definition import Exercise
from .judging import Verdict, judge

_verdicts: dict[str, Verdict] = {}  # the latest of each exercise in this session
_met: set[str] = set()  # all that were checked, attempted or not
_hints_given: dict[str, int] = {}


class Note:
    """A text for the learner: Markdown where that is drawn, plain elsewhere."""

    def __init__(self, markdown: str) -> None:
        self._markdown = markdown

    def __repr__(self) -> str:
        return self._markdown

    def _repr_markdown_(self) -> str:
        return self._markdown


def check(name: str, answer: object) -> Note | None:
    """Say whether an answer is right, and if not, what was tried and which mistake it looks like.

    Nothing is shown for an exercise that was not attempted.
    """
    exercise = _find(name)
    if isinstance(exercise, Note):
        return exercise
    _met.add(name)
    if not callable(answer):
        call = f"check({name!r}, {exercise.function_name})"
        return Note(f"`check` needs the function itself, without calling it: `{call}`.")
    verdict = judge(exercise, _limited(exercise, answer))
    if not verdict.attempted:
        return None
    _verdicts[name] = verdict
    return Note(told(verdict))


def told(verdict: Verdict) -> str:
    """Return a verdict as Markdown."""
    exercise = verdict.exercise
    if verdict.status == "passed":
        return f"✓ **{exercise.name}**: right, {verdict.score}."
    lines = [f"✗ **{exercise.name}**: not yet, {verdict.score}.", ""]
    for label, text in verdict.lines():
        code = label not in ("wrong", "looks like")
        lines.append(f"- *{label}*: " + (f"`{text.replace('`', chr(39))}`" if code else text))
    return "\n".join([*lines, "", f'`hint("{exercise.name}")` helps on.'])


def hint(name: str) -> Note:
    """Return one more of an exercise's three hints at each call."""
    exercise = _find(name)
    if isinstance(exercise, Note):
        return exercise
    number = _hints_given[name] = min(_hints_given.get(name, 0) + 1, len(exercise.hints))
    last = " (the last one)" if number == len(exercise.hints) else ""
    return Note(f"**Hint {number} of {len(exercise.hints)}**{last}: {exercise.hints[number - 1]}")


def solution(name: str) -> Note:
    """Return the explained solution of an exercise, once it was attempted and checked."""
    exercise = _find(name)
    if isinstance(exercise, Note):
        return exercise
    if name not in _verdicts:
        return Note(
            f'First try it yourself, and run `check("{name}", …)`; then the solution opens.'
        )
    return Note(f"```python\n{exercise.solved.source}\n```\n\n{exercise.explanation.strip()}")


def progress() -> Note:
    """Return what is done in this session, and what is next."""
    started = {name.split(".")[0] for name in _met} or {chapters()[0].name}
    lines = ["| exercise | points | minutes | |", "| --- | --- | --- | --- |"]
    shown = [e for c in chapters() if c.name in started for e in chapter_exercises(c)]
    for exercise in shown:
        verdict = _verdicts.get(exercise.name)
        state = "·" if verdict is None else "✓ done" if verdict.status == "passed" else "✗ not yet"
        earned = verdict.earned if verdict else 0
        points = f"{earned} of {exercise.points}"
        lines.append(f"| `{exercise.name}` | {points} | {exercise.minutes} | {state} |")
    done = {name for name, verdict in _verdicts.items() if verdict.status == "passed"}
    rest = [e.name for e in (*shown, *all_exercises()) if e.name not in done]
    lines += ["", f"Next: `{rest[0]}`." if rest else "All exercises are done."]
    return Note("\n".join(lines))


def _find(name: object) -> Exercise | Note:
    """Return the exercise of a name, or a sentence that names the nearest ones."""
    try:
        return find(name)
    except KeyError:
        known = [exercise.name for exercise in all_exercises()]
        near = difflib.get_close_matches(str(name)[:60], known, n=3, cutoff=0.3) or known[:3]
        return Note(f"There is no exercise {str(name)[:60]!r}. Near it: {', '.join(near)}.")


def _limited(exercise: Exercise, function: Callable) -> Callable[[str], str]:
    """Return a way to call a function here that ends after the exercise's seconds.

    An alarm interrupts Python code, again and again should the function swallow it. There is none
    on Windows or outside the main thread; there the learner interrupts the kernel.
    """

    def ring(*_: object) -> None:
        raise TimeUp

    def call(request: str) -> str:
        main = threading.current_thread() is threading.main_thread()
        if not (main and hasattr(signal, "SIGALRM")):
            return respond(function, request, exercise.prepared)
        if exercise.prepared:  # what it imports is not charged to the answer
            respond(exercise.start.function, request, exercise.prepared)
        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, exercise.seconds, 0.5)
        try:
            return respond(function, request, exercise.prepared)
        except TimeUp:
            raise Lost(too_long(exercise.seconds)) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    return call
