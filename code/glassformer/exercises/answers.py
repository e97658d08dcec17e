"""What a test sees of an answer: a call, and what came of it, with words for what is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..grading.responding import Lost, too_long
from ..grading.wire import Foreign, pack, unpack
from .definition import Exercise

NOT_ATTEMPTED = "not attempted"
_WIDEST = 160  # characters of a value that is shown


class Wrong(AssertionError):
    """What an answer gets wrong: what was tried, what came out, what was expected."""

    def __init__(self, reason: str, tried: str = "", got: str = "", expected: str = "") -> None:
        super().__init__(reason)
        self.reason, self.tried, self.got, self.expected = reason, tried, got, expected
        self.inputs: tuple | None = None  # of the call that it is about


@dataclass
class Outcome:
    """What one call of the learner's function came to."""

    exercise: Exercise
    inputs: tuple
    result: object = None
    error: tuple[str, str, int | None] | None = None
    used: list[str] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    surroundings: str | None = None
    lost: str | None = None
    asked: str = ""  # the kind of error that a test asked for, and got

    @property
    def value(self) -> object:
        """What the call returned; a `Wrong` explains why there is nothing that can be used."""
        got = self._returned()
        foreign = _first_foreign(got)
        if foreign:
            raise self.wrong(f"It returned {foreign}.")
        return got

    def _returned(self) -> object:
        self._need_no_error()
        for name in self.used:
            raise self.wrong(self.exercise.forbidden[name])
        if self.surroundings:
            raise self.wrong(f"It changes {self.surroundings}; leave that as it is.")
        if self.changed:
            names = " and ".join(f"`{self.exercise.parameters[i]}`" for i in self.changed)
            raise self.wrong(f"It changes its input {names} in place; make a new one instead.")
        if self.result is None:
            raise self.wrong("It returned None: is a `return` missing?", got="None")
        return self.result

    def part(self, key: str) -> Outcome:
        """The same call, with one entry of what a harness returned as its value."""
        got = self._returned()
        if type(got) not in (dict, Foreign):
            raise self.wrong(f"It returned {_kind(got)}, where a dictionary is expected.")
        if key not in self.value:
            raise self.wrong(f"There is no {key} in what came out.", shown(got))
        return replace(self, result=got[key])

    def equals(self, expected: object) -> None:
        """Fail unless the call returned this value: type, shape and dtype, numbers to rounding."""
        got = self.value
        reason = difference(got, expected)
        if reason:
            raise self.wrong(reason, shown(got), shown(expected))

    def holds(self, condition: Callable[[object], bool], claim: str) -> None:
        """Fail unless a condition is true of the value; the claim says which, as a sentence."""
        got = self.value
        try:
            true = bool(condition(got))
        except Exception:  # a value of another kind than the condition is about
            true = False
        if not true:
            raise self.wrong(claim, shown(got))

    def refuses(self, kind: type[Exception], *words: str) -> None:
        """Fail unless the call raised this kind of error with all these words in its text."""
        if self.lost or self.error is None:
            got = shown(self.value) if not self.lost else self._need_no_error()
            raise self.wrong(f"It should raise a {kind.__name__} here.", got)
        name, text, _ = self.error
        if name != kind.__name__:
            raise self.wrong(f"It should raise a {kind.__name__} here.", f"{name}: {text}")
        self.asked = name
        missing = [word for word in words if word not in text]
        if missing:
            raise self.wrong(f"The error's text should name {missing[0]!r}.", f"{name}: {text}")

    def wrong(self, reason: str, got: str = "", expected: str = "") -> Wrong:
        """Return a `Wrong` that says which call it is about."""
        wrong = Wrong(reason, tried(self.exercise, self.inputs), got, expected)
        wrong.inputs = self.inputs
        return wrong

    def _need_no_error(self) -> None:
        if self.lost:
            raise self.wrong(self.lost)
        if self.error is None:
            return
        kind, text, line = self.error
        place = f" in line {line} of the function" if line else ""
        if kind == "WrongSignature":
            wanted = self.exercise.signature()
            raise self.wrong(
                f"The function must be callable as `{wanted}`; keep the starter's first line."
            )
        said = {
            "TimeUp": too_long(self.exercise.seconds),
            "SystemExit": f"It ended Python{place}; return a value instead.",
            "KeyboardInterrupt": "It was interrupted.",
            "RecursionError": f"It calls itself without end{place}.",
            "MemoryError": f"It asks for more memory than there is{place}.",
        }
        raise self.wrong(
            said.get(kind) or f"It raised {kind}{place}" + (f": {text}" if text else ".")
        )

    @property
    def attempted(self) -> bool:
        """Whether the function is more than the starter."""
        return self.error is None or self.error[:2] != ("NotImplementedError", NOT_ATTEMPTED)

    @property
    def ended(self) -> bool:
        """Whether the call never came back: later calls would only cost their time."""
        return self.lost is not None or (self.error is not None and self.error[0] == "TimeUp")

    @property
    def usable(self) -> bool:
        """Whether the call gave a value as it should, right or wrong."""
        faults = (self.error, self.used, self.changed, self.surroundings, self.lost)
        return self.result is not None and not any(faults)

    def like(self, other: Outcome) -> bool:
        """Return whether another function came to the same, be it as a tensor of one number."""
        told = 1 if self.error and self.error[0] == self.asked else 2  # its words are free there
        mine, theirs = (
            (o.error and o.error[:told], o.used, o.changed, o.surroundings, o.lost)
            for o in (self, other)
        )
        got = _with_numbers(self.result, other.result)
        return mine == theirs and not difference(got, other.result)


class Answer:
    """The learner's function as tests call it; `respond` carries each call to where it runs."""

    def __init__(self, exercise: Exercise, respond: Callable[[str], str | bytes]) -> None:
        self.exercise, self._respond = exercise, respond
        self.outcomes: list[Outcome] = []

    def __call__(self, *inputs: object) -> Outcome:
        """Call the function with data and return what came of it."""
        given, watched = json.loads(pack(list(inputs))), sorted(self.exercise.forbidden)
        request = json.dumps({"inputs": given, "watched": watched})
        try:
            if self.outcomes and self.outcomes[-1].ended:
                raise Lost("It was not called again after it failed to come back.")
            outcome = self._read(inputs, json.loads(self._respond(request)))
        except Lost as lost:
            outcome = Outcome(self.exercise, inputs, lost=str(lost))
        except (ValueError, TypeError, KeyError, RecursionError):
            outcome = Outcome(
                self.exercise, inputs, lost="It answered with data that cannot be read."
            )
        self.outcomes.append(outcome)
        return outcome

    def _read(self, inputs: tuple, told: dict) -> Outcome:
        """Return the outcome that a response describes; what it says is taken for hearsay."""
        error = told["error"]
        if error is not None:
            kind, text, line = error
            error = (str(kind)[:60], str(text)[:300], line if isinstance(line, int) else None)
        return Outcome(
            self.exercise,
            inputs,
            unpack(json.dumps(told["value"])),
            error,
            [name for name in self.exercise.forbidden if name in told["used"]],
            [i for i in range(len(inputs)) if i in told["changed"]],
            str(told["surroundings"])[:60] if told["surroundings"] else None,
        )


def difference(got: object, expected: object) -> str:
    """Return in words how a value differs from the expected one; empty if it does not."""
    if isinstance(expected, Tensor):
        return _tensor_difference(got, expected)
    if isinstance(expected, float):
        return _number_difference(got, expected)
    if type(got) is not type(expected):
        return f"It returned {_kind(got)}, where {_kind(expected)} is expected."
    if isinstance(expected, (list, tuple)):
        if len(got) != len(expected):
            return f"Its length is {len(got)}; {len(expected)} is expected."
        places = ((i, difference(a, b)) for i, (a, b) in enumerate(zip(got, expected, strict=True)))
        return next((f"Entry {i}: {_inner(text)}" for i, text in places if text), "")
    if isinstance(expected, dict):
        if got.keys() != expected.keys():
            mine, theirs = (shown(sorted(map(str, value))) for value in (got, expected))
            return f"Its keys are {mine}; {theirs} are expected."
        places = ((key, difference(got[key], expected[key])) for key in expected)
        return next((f"{key}: {_inner(text)}" for key, text in places if text), "")
    return "" if got == expected else _other(got, expected)


def _with_numbers(got: object, other: object) -> object:
    """Return a value with plain numbers for tensors of one, where the other has plain numbers."""
    if type(other) in (int, float) and type(got) is Tensor and got.numel() == 1:
        return got.item()
    if isinstance(got, dict) and isinstance(other, dict):
        return {key: _with_numbers(part, other.get(key)) for key, part in got.items()}
    if isinstance(got, (list, tuple)) and type(got) is type(other) and len(got) == len(other):
        return type(got)(_with_numbers(a, b) for a, b in zip(got, other, strict=True))
    return got


def _other(got: object, expected: object) -> str:
    return f"It is {shown(got)}; {shown(expected)} is expected."


def _inner(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _tensor_difference(got: object, expected: Tensor) -> str:
    if type(got) is not Tensor:
        return f"It returned {_kind(got)}, where a tensor is expected."
    if got.shape != expected.shape:
        return f"Its shape is {list(got.shape)}; {list(expected.shape)} is expected."
    if got.dtype != expected.dtype:
        return f"Its dtype is {_short(got)}; {_short(expected)} is expected."
    for name, test in (("NaN", torch.isnan), ("an infinity", torch.isinf)):
        if got.is_floating_point() and test(got).any() and not test(expected).any():
            return f"It holds {name}, where only finite numbers are expected."
    if torch.allclose(got, expected, rtol=1e-6, atol=1e-7, equal_nan=True):
        return ""
    far = ~torch.isclose(got, expected, rtol=1e-6, atol=1e-7, equal_nan=True)
    at = far.nonzero()[0].tolist()
    reason = _other(got[tuple(at)], expected[tuple(at)])
    return f"At {at}: {_inner(reason)}" if at else reason


def _number_difference(got: object, expected: float) -> str:
    if type(got) is Tensor:
        return f"It returned {_kind(got)}, where a number is expected: `.item()` gives it."
    if type(got) not in (int, float):
        return f"It returned {_kind(got)}, where a number is expected."
    if type(got) is float and not math.isfinite(got) and math.isfinite(expected):
        return f"It is {got}, where a finite number is expected."
    close = got == expected or math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9)
    return "" if close or (got != got and expected != expected) else _other(got, expected)


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)}"
    names = {"NoneType": "None", "int": "a whole number", "float": "a number", "str": "a text"}
    name = type(value).__name__
    return names.get(name, f"a {name}")


def _short(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def _first_foreign(value: object) -> str:
    """Return the description of the first thing in a value that is not data; empty if none is."""
    if isinstance(value, Foreign):
        return value.what
    parts = value if isinstance(value, (list, tuple)) else ()
    parts = [*value.keys(), *value.values()] if isinstance(value, dict) else parts
    return next((found for part in parts if (found := _first_foreign(part))), "")


def shown(value: object, most: int = 24) -> str:
    """Return a value in few characters: small ones whole, larger tensors by shape."""
    if isinstance(value, Tensor):
        if value.numel() > most:
            return f"a tensor {list(value.shape)}, {_short(value)}"
        rounded = value.double().round(decimals=4) if value.is_floating_point() else value
        text = str(rounded.tolist())
    else:
        text = f"{value:.6g}" if isinstance(value, float) else _listed(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _listed(value: object) -> str:
    """Return lists and the like part by part, so that tensors in them stay short."""
    if isinstance(value, (list, tuple)) and value:
        inside = ", ".join(shown(part, 8) for part in value[:40])
        comma = "," if len(value) == 1 else ""  # without it a tuple of one would be no tuple
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
    if isinstance(value, dict) and value:
        return "{" + ", ".join(f"{k!r}: {shown(v, 8)}" for k, v in list(value.items())[:40]) + "}"
    return repr(value)


def tried(exercise: Exercise, inputs: tuple) -> str:
    """Return a call in words: the function's name and its inputs by their names."""
    named = zip(exercise.parameters, inputs, strict=True)
    given = ", ".join(f"{name}={shown(value)}" for name, value in named)
    return f"{exercise.function_name}({given})"
