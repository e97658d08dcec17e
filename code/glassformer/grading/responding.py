"""The learner's side: call a function with data, and tell what happened as data.

The same code runs in a notebook's kernel (`check`) and in the process of its own that grading
gives to an answer. Whatever the function does, one description comes back, and nothing is raised.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterator

import torch

from .wire import pack, unpack

_LONGEST = 300  # characters of an error's text


class Lost(Exception):
    """A call gave no answer; the text says why."""


def too_long(seconds: float) -> str:
    """Return what is said of a call that does not come back in time."""
    return f"It took longer than {seconds:g} seconds: is there a loop without end?"


class TimeUp(BaseException):
    """Raised in the middle of an answer that takes longer than it may."""


def respond(function: Callable, request: str, harness: Callable | None = None) -> str:
    """Call a function as a request says; return JSON that tells what it gave, used and changed.

    A harness, if there is one, is given the function and the data, and makes the call itself.
    """
    asked = json.loads(request)
    inputs = unpack(json.dumps(asked["inputs"]))
    used: set[str] = set()
    told: dict[str, object] = {"value": None, "error": None, "changed": []}
    with _undisturbed(told), _watching(set(asked["watched"]), used):
        call = function if harness is None else lambda *given: harness(function, *given)
        try:
            if harness is None:
                _need_signature(function, inputs)
            told["value"] = json.loads(pack(call(*inputs)))
        except BaseException as error:
            told["error"] = _told(error, function)
    if harness is None:
        told["changed"] = _changed(asked["inputs"], inputs)
    return json.dumps(told | {"used": sorted(used)})


def _need_signature(function: Callable, inputs: list[object]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*inputs)
    except TypeError:
        raise _WrongSignature(f"it is called with {len(inputs)} inputs") from None


class _WrongSignature(Exception):
    """The function cannot take what the exercise gives it."""


def _changed(before: list[object], inputs: list[object]) -> list[int]:
    """Return the places of inputs that are no longer what they were."""
    after = [json.loads(pack(value)) for value in inputs]
    pairs = zip(before, after, strict=True)
    return [i for i, (old, new) in enumerate(pairs) if json.dumps(old) != json.dumps(new)]


def described_error(error: BaseException) -> str:
    """Return an error in one line."""
    kind, text, _ = _told(error, None)
    return f"{kind}: {text}" if text else kind


def _told(error: BaseException, function: Callable | None) -> list[object]:
    """Return an error as [type, text, line of the function or None]; hostile texts are survived."""
    kind = str(type.__dict__["__name__"].__get__(type(error)))[:60].lstrip("_")
    try:
        text = " ".join(str(error)[: 4 * _LONGEST].split())[:_LONGEST]
    except BaseException:
        text = ""
    return [kind, text, _line(error, getattr(function, "__code__", None))]


def _line(error: BaseException, code: object) -> int | None:
    """Return the line, counted within the function, from which an error came."""
    line, trace, steps = None, error.__traceback__, 0
    while trace is not None and steps < 2_000:
        if trace.tb_frame.f_code is code:
            line = trace.tb_lineno - trace.tb_frame.f_code.co_firstlineno + 1
        trace, steps = trace.tb_next, steps + 1
    return line


@contextlib.contextmanager
def _undisturbed(told: dict[str, object]) -> Iterator[None]:
    """Give a call quiet surroundings, and put back what it changed in them."""
    dtype, gradients, threads = (
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
    )
    limit, ask = sys.getrecursionlimit(), builtins.input
    builtins.input = _nobody
    try:
        with (
            contextlib.redirect_stdout(_Nowhere()),
            contextlib.redirect_stderr(_Nowhere()),
            warnings.catch_warnings(),
            torch.random.fork_rng(devices=[]),
        ):
            warnings.simplefilter("ignore")
            torch.default_generator.manual_seed(0)  # `torch.manual_seed` asks every accelerator
            yield
    finally:
        left = torch.get_default_dtype()
        told["surroundings"] = None if left is dtype else f"torch's default dtype to {left}"
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        sys.setrecursionlimit(limit)
        builtins.input = ask


def _nobody(*_: object) -> str:
    raise EOFError("input() asks a person, and here nobody answers")


class _Nowhere(io.TextIOBase):
    """Output without end costs nothing: it is not kept."""

    def write(self, text: str) -> int:
        return len(text)


@contextlib.contextmanager
def _watching(names: set[str], used: set[str]) -> Iterator[None]:
    """Note which of the named functions of libraries are called, by whatever way."""
    if not names:
        yield
        return

    def see(frame, event, argument):
        if event == "call" and frame.f_code.co_name in names:
            module = str(frame.f_globals.get("__name__", ""))
            ours = module.startswith("glassformer.") and not module.startswith(
                "glassformer.exercises."
            )
            if ours or module.startswith(("torch.", "scipy.", "numpy.")):
                used.add(frame.f_code.co_name)
        elif event == "c_call" and getattr(argument, "__name__", None) in names:
            used.add(argument.__name__)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(before)
