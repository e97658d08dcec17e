"""The same grading on the workers of a dask cluster: what is handed in goes there as data."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import __version__
from .apart import Apart, CannotGrade
from .handed import Handed, pick_up

if TYPE_CHECKING:
    from .records import Records
    from .roster import Student

_PATIENCE = 20  # seconds for the scheduler to answer, and for it to have a worker
_AHEAD = 3  # submissions for each thread of a worker that are on their way
_own = threading.local()


def grade_on_worker(handed: Handed, seed: int, version: str) -> dict:
    """Grade one submission in a process next to the dask worker's, which may have no children."""
    if version != __version__:
        raise CannotGrade(
            f"A worker has glassformer {__version__}, this machine {version}: install the same."
        )
    if not hasattr(_own, "apart"):
        _own.apart = Apart()
    return _own.apart.grade(handed, seed)


@contextmanager
def on_cluster(
    address: str, run: list[Student], records: Records
) -> Iterator[Iterator[tuple[Student, Handed, dict]]]:
    """Begin to grade submissions on a cluster; give the results to come."""
    client = _connected(address)
    try:
        yield _coming(client, run, records)
    finally:
        client.close()


def _connected(address: str):
    """Return a client of a scheduler that answers and has a worker."""
    try:
        from distributed import Client
    except ImportError:
        raise CannotGrade(
            "--scheduler needs dask's scheduler on this machine: pip install distributed"
        ) from None
    client = None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
        client.wait_for_workers(1, timeout=_PATIENCE)
    except (OSError, ValueError, TypeError) as error:  # a TimeoutError is an OSError
        if client is None:
            raise CannotGrade(f"No dask scheduler answers at {address}.") from error
        client.close()
        raise CannotGrade(f"The dask scheduler at {address} has no workers.") from error
    return client


def _coming(client, run: list[Student], records: Records) -> Iterator[tuple[Student, Handed, dict]]:
    """Yield results; only a few submissions at a time are on their way."""
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    waiting, sent = iter(run), {}

    def send():
        """Send the next submission, if there is one; return what will be its result."""
        student = next(waiting, None)
        if student is None:
            return []
        handed = pick_up(student.folder)
        records.say(f"begun {student.slug}")
        future = client.submit(grade_on_worker, handed, records.seed, __version__, pure=False)
        sent[future.key] = student, handed
        return [future]

    width = _AHEAD * max(1, sum(client.nthreads().values()))
    first = [future for _ in range(width) for future in send()]
    coming = as_completed(first, loop=client.loop)
    for future in coming:
        student, handed = sent.pop(future.key)
        try:
            told = future.result()
        except KilledWorker:
            told = {"results": [], "note": "It ended the dask workers that were grading it."}
        except CancelledError:
            raise CannotGrade(
                "The dask scheduler no longer answers; the same command goes on from here."
            ) from None
        yield student, handed, told
        for following in send():
            coming.add(following)
