"""Predictions that the page grades: the right answer is computed by the chapter, never typed in.

A cell next to a `predict` box asks one of four kinds of question, under the box's name::

    ask.choice("block-louder", {"positive": r1 > 0, "negative": r1 < 0}, likely={"positive": "…"})
    ask.number("data-tokens", len(vocabulary), likely={60: "…"})
    ask.token("logits-second", words[second], words, likely={"i": "…"})
    ask.shape("attention-scores", scores.shape, likely={(4, 8): "…"})

`likely` gives one sentence to each wrong answer that somebody will give: it names the
misconception. The site puts the question into its box; elsewhere it is read as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .refusals import bad

QUESTION_MIME = "application/vnd.glassformer.question+json"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")


@dataclass(frozen=True)
class Question:
    """A question as the page gets it, and the same in words for every other reader."""

    data: dict[str, Any]
    words: str

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        return {QUESTION_MIME: self.data, "text/plain": self.words}


def choice(name: str, holds: Mapping[str, Any], likely: Mapping[str, str]) -> Question:
    """Ask which of the box's choices holds; each is named by its first words, in order.

    What a choice claims is computed: exactly one may be true, and each other one has its sentence.
    """
    true = [label for label, claim in holds.items() if _truth(label, claim)]
    if len(true) != 1:
        found = ", ".join(true) or "none"
        raise ValueError(f"One choice of {name!r} must hold, but these do: {found}.")
    if set(likely) != set(holds) - set(true):
        raise ValueError(f"Each wrong choice of {name!r} needs its sentence, and no other does.")
    return _made(name, "choice", true[0], likely, choices=list(holds))


def number(
    name: str, value: Any, likely: Mapping[float, str], within: float = 0, unit: str = ""
) -> Question:
    """Ask for a number; one that is off by no more than `within` is right."""
    right = _plain(value)
    for wrong in likely:
        if abs(wrong - right) <= within:
            raise bad("likely", wrong, f"a wrong answer is off by more than {within}")
    return _made(name, "number", right, likely, within=within, unit=unit)


def token(name: str, value: str, among: Iterable[str], likely: Mapping[str, str]) -> Question:
    """Ask for a token of the vocabulary."""
    among = list(among)
    for given in (value, *likely):
        if given not in among:
            raise bad("token", given, "it must be of the vocabulary")
    return _made(name, "token", value, likely, among=among)


def shape(name: str, value: Iterable[int], likely: Mapping[tuple[int, ...], str]) -> Question:
    """Ask for the shape of a tensor."""
    return _made(name, "shape", tuple(int(size) for size in value), likely)


def _truth(label: str, claim: Any) -> bool:
    """Return a computed claim as True or False; a number or a text claims nothing."""
    claim = claim.item() if hasattr(claim, "item") else claim
    if not isinstance(claim, bool):
        raise bad("a choice's claim", claim, f"{label!r} needs a comparison, true or false")
    return claim


def _plain(value: Any) -> int | float:
    """Return a computed number, also one in a tensor, as Python's own."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise bad("value", value, "the answer must be a number")
    return value


def _made(name: str, kind: str, right: Any, likely: Mapping, **more: Any) -> Question:
    if not _NAME.fullmatch(name):
        raise bad("name", name, 'it must be the chapter and a word, such as "data-tokens"')
    for wrong, sentence in likely.items():
        if wrong == right:
            raise bad("likely", wrong, "it is the right answer")
        if not re.fullmatch(r"[^\n]+[.?]", sentence):
            raise bad("likely", sentence, "it must be a sentence in one line")
    told = [[_storable(wrong), text] for wrong, text in likely.items()]
    data = {"name": name, "kind": kind, "right": _storable(right), "likely": told, **more}
    return Question(data, _words(data))


def _storable(answer: Any) -> Any:
    """Return an answer for JSON; a float is rounded, so that every processor gives the same."""
    if isinstance(answer, tuple):
        return list(answer)
    return float(f"{answer:.6g}") if isinstance(answer, float) else answer


def _words(data: Mapping[str, Any]) -> str:
    """Say the answer, and what the likely wrong ones overlook, in lines of text."""

    def say(value: Any) -> str:
        if data["kind"] == "number":
            return f"{value:,}"
        return str(value) if data["kind"] == "shape" else f"“{value}”"

    unit = f" {data['unit']}" if data.get("unit") else ""
    lines = [f"The computed answer: {say(data['right'])}{unit}"]
    lines += [f"Not {say(wrong)}: {sentence}" for wrong, sentence in data["likely"]]
    return "\n".join(lines)


__all__ = ["Question", "choice", "number", "shape", "token"]
