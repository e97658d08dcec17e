"""What grading asks of the system about processes; nothing here needs torch."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import signal
import sys

import psutil

_SUBREAPER, _DEATH_SIGNAL = 36, 1  # Linux's prctl options


def forkserver():
    """Return the way to start processes from a server that has imported torch once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"{__package__}.server"])
    return context


def inherit_orphans() -> None:
    """Become the parent of all processes below this one that lose theirs."""
    _prctl(_SUBREAPER, 1)


def die_with_parent() -> None:
    """End as soon as the parent has ended."""
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    """Set a property of this process where the system is Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def kill(processes: list[psutil.Process]) -> None:
    """Kill processes that may be gone already."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
