"""How the package refuses: each question is asked in one way, and answered in one sentence.

A refusal is a ValueError whose message names what was given and says what would be right.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import torch
from torch import Tensor

LARGEST = 10**12  # a size beyond any machine, and still exact in floating point
MOST_NUMBERS = 10**9  # that one model or one cache holds: 4 GB in float32
_NO_MEMORY = re.compile(r"allocate memory|enough memory|out of memory")


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether a value is a whole or a floating-point number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Return a value as Python shows it, in one line of at most 40 characters."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # thousands of digits, or of lists in lists
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= 40 else text[:37] + "…"


def bad(name: str, value: object, rule: str) -> ValueError:
    """Return the refusal of a value that breaks a rule."""
    return ValueError(f"{name} = {shown(value)} cannot be: {rule}.")


def need_whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Refuse what is no whole number from `least` on, up to `most` if there is a bound."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        span = f", {least} or more" if most is None else f" from {least} to {most:,}"
        raise bad(name, value, f"it must be a whole number{span}")


def need_kind(value: object, kind: type | tuple[type, ...], needs: str) -> None:
    """Refuse a value of another kind; `needs` begins the sentence: "trace needs a model, not …"."""
    if not isinstance(value, kind):
        plain = value is None or isinstance(value, (str, bytes, int, float))
        got = shown(value) if plain else f"a {type(value).__name__}"
        raise ValueError(f"{needs}, not {got}.")


def as_ids(ids: object) -> Tensor:
    """Return token ids as a tensor; what is no list of numbers is refused."""
    try:
        return torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(
            "A prompt is token ids: whole numbers in a list or tensor; encode words first."
        ) from None


def as_path(path: object) -> Path:
    """Return a path; what is none is refused."""
    try:
        found = Path(path)  # type: ignore[arg-type]
        if b"\0" not in os.fsencode(found):
            return found
    except (TypeError, UnicodeError):
        pass
    raise bad("path", path, "it must be a text or a Path, such as 'checkpoints/myllm'")


def need_regular(path: Path, done: str) -> None:
    """Refuse a folder, a device or a pipe where a file should be `done`: read or written."""
    if path.exists() and not path.is_file():
        raise ValueError(
            f"{path} cannot be {done}: it is a folder or a device, not a file; "
            "give the path of a file."
        )


def need_memory(numbers: int, what: str, advice: str, dtype: torch.dtype = torch.float32) -> None:
    """Refuse what would hold more numbers than the course builds, or than memory has room for."""
    limit = f"the {MOST_NUMBERS:,} that the course builds"
    if numbers <= MOST_NUMBERS:
        try:
            torch.empty(numbers, dtype=dtype)  # reserved, never touched, and given back
            return
        except (RuntimeError, MemoryError):
            limit = "this machine's memory holds"
    count = f"{numbers:,}" if numbers < 10**15 else "over 10^15"
    raise ValueError(f"{what} would hold {count} numbers, more than {limit}; {advice}.")


def within_memory(function):
    """Return a function whose want of memory is told in a sentence, not in PyTorch's pages."""

    @functools.wraps(function)
    def told(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, RuntimeError) and not _NO_MEMORY.search(str(error)):
                raise
        raise ValueError(
            "This takes more memory than there is; give fewer or shorter sequences, "
            "or a smaller model."
        )

    return told
