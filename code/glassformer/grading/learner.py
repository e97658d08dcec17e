"""The process in which a submission's code runs, and the one that watches over it.

Both are forked from a server that has imported torch once. The warden runs no foreign code and
knows neither expected values nor seeds; it ends the learner's process and whatever that has
started, in sessions of its own too, as soon as its leash is let go.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass

import psutil
import torch

from .channel import Channel
from .processes import die_with_parent, inherit_orphans, kill
from .responding import described_error, respond

# A process forked from one with several threads of torch hangs in its first operation.
torch.set_num_threads(1)
# What torch imports only at first use is imported here, once for all.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)

MOST_PROCESSES = 32
_MEMORY = 2**30  # bytes beyond what torch itself maps
_LARGEST_FILE = 4 * 2**20
_NEVER = 10.0**9


@dataclass(frozen=True)
class Work:
    """What a learner's process is given: the submission's cells, and which function to call."""

    cells: tuple[tuple[int, str], ...]
    function: str
    harness: str | None
    folder: str
    cpu_seconds: int


def warden(leash: socket.socket, line: socket.socket, work: Work) -> None:
    """Start the learner's process; tell on the leash how it ended; leave nothing behind."""
    os.setsid()
    inherit_orphans()
    learner = os.fork()
    if learner == 0:
        try:
            _learn(line, work)
        finally:
            os._exit(0)
    line.close()
    ended = _watch(learner, leash)
    _kill_descendants()
    with contextlib.suppress(OSError):
        leash.sendall(ended.encode())
    os._exit(0)


def _watch(learner: int, leash: socket.socket) -> str:
    """Wait until the learner's process ends or the leash is let go; return which it was."""
    counted = time.monotonic()
    while True:
        pid, status = os.waitpid(learner, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
        if select.select([leash], [], [], 0.02)[0]:
            return "let go"
        if time.monotonic() - counted > 0.1:
            counted = time.monotonic()
            if len(psutil.Process().children(recursive=True)) > MOST_PROCESSES:
                return "processes"


def _kill_descendants() -> None:
    """Kill all processes below this one, until there are none; orphans are among them."""
    me = psutil.Process()
    while left := me.children(recursive=True):
        kill(left)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _learn(line: socket.socket, work: Work) -> None:
    """Run the submission's cells, then answer calls of its function, as long as there are any."""
    die_with_parent()
    channel = _shut_in(line, work)

    def send(told: dict) -> None:
        channel.send(json.dumps(told).encode(), _NEVER)

    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.modules["glassformer.exercises"] = _silent_exercises()
    errors: dict[int, str] = {}
    send({"started": True})
    for index, source in work.cells:
        send({"cell": index})
        try:
            exec(compile(source, f"<cell {index}>", "exec"), vars(main))
        except BaseException as error:
            errors[index] = described_error(error)
    function = vars(main).get(work.function)
    names = [
        name for name, value in list(vars(main).items()) if isinstance(value, types.FunctionType)
    ]
    kind = "missing" if function is None else "function" if callable(function) else "other"
    send({"errors": errors, "found": kind, "names": names[:100]})
    harness = _made(work.harness)
    while True:
        request = channel.receive(_NEVER).decode()
        channel.send(respond(function, request, harness).encode(), _NEVER)


def _made(source: str | None) -> Callable | None:
    """Return the harness that a source text defines."""
    if source is None:
        return None
    space: dict[str, object] = {"__name__": "harness"}
    exec(source, space)
    return next(value for name, value in space.items() if isinstance(value, types.FunctionType))


def _shut_in(line: socket.socket, work: Work) -> Channel:
    """Limit this process and close whatever it has inherited, the line excepted."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.dup2(line.fileno(), 3)
    line.detach()
    os.closerange(4, 2**16)
    os.chdir(work.folder)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
    mapped = psutil.Process().memory_info().vms
    for what, most in (
        (resource.RLIMIT_CPU, work.cpu_seconds),
        (resource.RLIMIT_AS, mapped + _MEMORY),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))
    return Channel(socket.socket(fileno=3))


def _silent_exercises() -> types.ModuleType:
    """Return a stand-in for `glassformer.exercises` whose functions do nothing."""
    module = types.ModuleType("glassformer.exercises")
    for name in ("check", "hint", "solution", "progress"):
        setattr(module, name, lambda *_, **__: None)
    return module
