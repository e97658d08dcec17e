"""The process that grades submissions for another one; see `apart`."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .channel import Channel, Closed
from .processes import die_with_parent, forkserver

if TYPE_CHECKING:
    from .submission import Result, Step

_NEVER = 10.0**9
_ENDED = "It ended the process that was grading it."


def main(descriptor: int, parent: int) -> None:
    """Grade what is asked for on a connection, until it is closed or the parent process is gone."""
    die_with_parent()
    if os.getppid() != parent:  # it was gone before that
        return
    _start_server()
    channel = Channel(socket.socket(fileno=descriptor))
    while True:
        try:
            asked = json.loads(channel.receive(_NEVER))
            for told in graded(**asked):
                channel.send(json.dumps(told).encode(), _NEVER)
        except Closed:
            return


def _start_server() -> None:
    """Let the server import torch while this process does."""
    from multiprocessing.forkserver import ensure_running

    forkserver()
    ensure_running()


def graded(
    folder: str, faults: dict[str, str], seed: int, skip: int = 0, lose: bool = False
) -> Iterator[dict]:
    """Yield a submission's results, one by one, then the end, with a note if there is one.

    `skip` results are there already; `lose` gives up the first of the others.
    """
    from .submission import NothingToGrade, steps

    try:
        todo = steps(Path(folder), seed, faults)[skip:]
    except NothingToGrade as nothing:
        yield {"end": _anywhere(str(nothing), folder)}
        return
    for number, step in enumerate(todo):
        result = step.lost(_ENDED) if lose and number == 0 else _run(step)
        told = {"part": step.part, **dataclasses.asdict(result)}
        told["remarks"] = [[label, _anywhere(text, folder)] for label, text in result.remarks]
        yield told
    yield {"end": ""}


def _run(step: Step) -> Result:
    """Return a step's result; a fault of the grader's own costs no other result."""
    try:
        return step.run()
    except Exception as error:
        return step.lost(f"The grader itself failed: {type(error).__name__}: {error}")


def _anywhere(text: str, folder: str) -> str:
    """Return a text without what differs from run to run: folders of a moment, addresses."""
    text = text.replace(f"{folder}/", "").replace(folder, "The folder")
    text = re.sub(r"[^\s'\"]*/glassformer-[a-z0-9_]{8}(?![a-z0-9_-])", ".", text)
    return re.sub(r"\b0x[0-9a-fA-F]{6,}", "0x…", text)
