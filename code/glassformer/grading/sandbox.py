"""A submission's function in a process of its own, called with data and a deadline."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import shutil
import socket
import sys
import tempfile
import textwrap
import time
import types
from collections.abc import Iterator, Sequence

import psutil

from .channel import Channel, Closed, TooMuch
from .learner import MOST_PROCESSES, Work, warden
from .processes import forkserver, kill
from .responding import Lost, too_long

CELLS_SECONDS = 5.0  # for running all cells of a notebook once
_wardens: set[int] = set()  # of this process's sandboxes
_START_SECONDS = 120.0  # the first process waits until the server has imported torch


class CellEndsAll(Exception):
    """Running one of the cells ended the process, or never ended."""

    def __init__(self, cell: int, reason: str) -> None:
        super().__init__(reason)
        self.cell, self.reason = cell, reason


class Sandbox:
    """A learner's process: made of a submission's cells, asked through `respond`, then ended."""

    def __init__(
        self, cells: Sequence[tuple[int, str]], function: str, harness, seconds: float
    ) -> None:
        self.seconds, self._deadline = seconds, None
        self.folder = tempfile.mkdtemp(prefix="glassformer-")
        source = textwrap.dedent(inspect.getsource(harness)).partition("\n")[2] if harness else None
        cpu = math.ceil(CELLS_SECONDS + seconds) + 1
        work = Work(tuple(cells), function, source, self.folder, cpu)
        self._leash, far_leash = socket.socketpair()
        line, far_line = socket.socketpair()
        self._line, self._over = Channel(line), None
        self._process = forkserver().Process(target=warden, args=(far_leash, far_line, work))
        with _without_main():
            self._process.start()
        _wardens.add(self._process.pid)
        far_leash.close()
        far_line.close()

    def __enter__(self) -> Sandbox:
        """Run the cells; `CellEndsAll` names one that ends the process or does not end."""
        deadline, cell = time.monotonic() + _START_SECONDS, 0
        try:
            self._line.receive(deadline, self._leash)  # it is there, and has run nothing yet
            deadline = time.monotonic() + CELLS_SECONDS
            while True:
                told = json.loads(self._line.receive(deadline, self._leash))
                if "cell" not in told:
                    break
                cell = int(told["cell"])
            self.errors = {int(i): str(text)[:400] for i, text in told["errors"].items()}
            self.found, self.names = str(told["found"]), [str(name) for name in told["names"]]
        except TimeoutError:
            self.close()
            raise CellEndsAll(cell, f"it runs for more than {CELLS_SECONDS:g} seconds") from None
        except (Closed, TooMuch, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            reason = self._how_it_ended()
            self.close()
            raise CellEndsAll(cell, reason) from None
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def respond(self, request: str) -> bytes:
        """Carry a request to the function; `Lost` says why there is no answer."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self.seconds
        try:
            self._line.send(request.encode(), self._deadline)
            return self._line.receive(self._deadline, self._leash)
        except TimeoutError:
            raise Lost(too_long(self.seconds)) from None
        except TooMuch:
            raise Lost("It answered with far more data than asked for.") from None
        except Closed:
            how = self._how_it_ended()
            raise Lost(f"{how[0].upper()}{how[1:]}.") from None

    def _how_it_ended(self) -> str:
        """Return in words what ended the learner's process."""
        self._leash.settimeout(2.0)
        try:
            ended = self._leash.recv(100).decode()
        except OSError:
            ended = ""
        said = {
            "signal SIGXCPU": "it used more processor time than it may",
            "signal SIGKILL": "its process was killed: too much time or memory, or by itself",
            "signal SIGSEGV": "it broke Python itself (a segmentation fault)",
            "processes": f"it started more than {MOST_PROCESSES} processes",
            "": "it ended the process that was watching it",
        }
        return said.get(ended, f"it ended Python itself ({ended}) instead of returning a value")

    def close(self) -> None:
        """End the learner's process and all that it has started; remove its folder."""
        self._leash.close()
        self._line.connection.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        _wardens.discard(self._process.pid)
        _kill_orphans()
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill_orphans() -> None:
    """Kill what answers left behind that ended their own wardens."""
    for server in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "multiprocessing.forkserver" in " ".join(server.cmdline()):
                orphans = [child for child in server.children() if child.pid not in _wardens]
                kill([below for child in orphans for below in child.children(recursive=True)])
                kill(orphans)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Keep a new process from importing the program that starts it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
