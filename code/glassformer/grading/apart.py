"""Grade a submission in another process, and go on whatever happens to that process.

The process grades one thing after the other and tells each result at once. Should an answer end
it, a new one goes on where it stopped; what ends it twice has earned nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from .channel import Channel, Closed, TooMuch
from .handed import Handed

STEP_SECONDS = 900.0  # far beyond what the limits of an exercise add up to
_TRIES = 2  # for each thing that is graded
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from glassformer.grading.worker import main; main(*map(int, sys.argv[2:]))"
)


class CannotGrade(Exception):
    """No submission can be graded here; the text says why."""


class Apart:
    """A process that grades, with a server of its own from which learners' processes come."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._channel: Channel | None = None
        self._shut = False

    def grade(self, handed: Handed, seed: int) -> dict:
        """Return a submission's results as data, `{"results": …, "note": …}`."""
        if handed.fault:
            return {"results": [], "note": handed.fault}
        with handed.laid_out() as folder:
            return self._graded({"folder": str(folder), "faults": handed.faults, "seed": seed})

    def _graded(self, asked: dict) -> dict:
        """Collect results, from one process after the other if need be."""
        results: list[dict] = []
        lost = 0  # processes since the last result
        while not self._shut and lost <= _TRIES:
            asked |= {"skip": len(results), "lose": lost == _TRIES}
            try:
                for told in self._told(asked):
                    if "end" in told:
                        return {"results": results, "note": told["end"]}
                    results.append(told)
                    lost = 0
            except (Closed, TooMuch, OSError):  # a TimeoutError is an OSError
                self.stop()
                lost += 1
        raise CannotGrade("The process that grades does not run.")

    def _told(self, asked: dict) -> Iterator[dict]:
        """Ask the process, started if there is none, and yield what it tells."""
        if self._process is None:
            self._start()
        self._channel.send(json.dumps(asked).encode(), time.monotonic() + STEP_SECONDS)
        while True:
            told = json.loads(self._channel.receive(time.monotonic() + STEP_SECONDS))
            yield told
            if "end" in told:
                return

    def _start(self) -> None:
        """Start the process: as a program of its own, since a dask worker may not fork children."""
        if self._shut:
            raise Closed
        near, far = socket.socketpair()
        path = json.dumps([os.path.abspath(p) for p in sys.path if p])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, path, str(far.fileno()), str(os.getpid())],
            pass_fds=[far.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )
        far.close()
        self._channel = Channel(near)

    def stop(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            self._channel.connection.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def shut(self) -> None:
        """End the process for good, while another thread waits for what it tells."""
        self._shut = True
        if self._process is not None:
            self._process.kill()
