"""One file for each student's result: what is done stays done, whatever ends a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import __version__
from ..config import alone, write_atomically
from .apart import CannotGrade
from .handed import Handed
from .roster import Student

_LAYOUT = 1  # of a record; another one is graded again


class Records:
    """The results in a folder, and a log of what was graded when."""

    def __init__(self, out: Path, seed: int) -> None:
        self.folder, self.seed = out / "students", seed
        self._log = out / "log.txt"
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, student: Student) -> Path:
        """Return where a student's result is kept."""
        return self.folder / f"{student.slug}.json"

    def key(self, handed: Handed) -> str:
        """Return what a result belongs to; the seed cannot be read from it."""
        basis = json.dumps([_LAYOUT, __version__, self.seed, handed.digest])
        return hashlib.sha256(basis.encode()).hexdigest()

    def find(self, student: Student, handed: Handed) -> dict | None:
        """Return a student's result, if it is complete and of just this submission."""
        try:
            record = json.loads(self.path(student).read_bytes())
            return record if record["key"] == self.key(handed) and record["complete"] else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, student: Student, handed: Handed, graded: dict) -> dict:
        """Write a student's result, all at once, and say so in the log."""
        record = named(student, graded) | {"key": self.key(handed), "complete": True}
        write_atomically(self.path(student), as_json(record))
        self.say(f"graded {student.slug}")
        return record

    def interrupted(self) -> set[str]:
        """Return the slugs of what was begun and never finished: it may be what ended the run."""
        try:
            lines = self._log.read_text(encoding="utf-8").splitlines()
        except OSError:
            return set()
        last = dict(reversed(line.split()) for line in lines if line.count(" ") == 1)
        return {slug for slug, word in last.items() if word == "begun"}

    def say(self, line: str) -> None:
        """Add a line to the log."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{line}\n")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse to run where another run is at work."""
        out = self.folder.parent
        with alone(out, CannotGrade(f"Another run is grading into {out}; wait for it.")):
            for unfinished in self.folder.glob(".*-????????.*"):  # of a run that was killed
                unfinished.unlink()
            yield


def named(student: Student, graded: dict) -> dict:
    """Return results with the student whose they are."""
    return {"student": student.name, "slug": student.slug, **graded}


def as_json(data: object) -> bytes:
    """Return data as JSON text that is the same on every machine."""
    return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode()
