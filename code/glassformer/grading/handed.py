"""What a student has handed in, picked up once: the same data is told apart, graded and sent on.

A folder is only looked at. What grading has no use for stays where it is; what cannot be read is
kept as the sentence that says why.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .reading import LARGEST, Unreadable, read_regular

MOST_FILES = 50  # notebooks and designs of one student
_MOST_ENTRIES = 5_000  # of one folder that are looked at
_DESIGN = re.compile(r"config.*\.json.*", re.IGNORECASE)  # config.json, or what was meant to be it


@dataclass(frozen=True)
class File:
    """A file of a submission: its content, or why there is none."""

    name: str  # within the submission's folder
    content: bytes = b""
    fault: str = ""


@dataclass(frozen=True)
class Handed:
    """The files of one submission that matter to grading."""

    files: tuple[File, ...]
    fault: str = ""  # why there is nothing to grade at all

    @property
    def has_notebooks(self) -> bool:
        """Whether anything of it is to be run; a design is only read."""
        return any(file.name.endswith(".ipynb") for file in self.files)

    @property
    def faults(self) -> dict[str, str]:
        """The files that cannot be read, and why."""
        return {file.name: file.fault for file in self.files if file.fault}

    @property
    def digest(self) -> str:
        """A text that is another one as soon as anything that matters is."""
        digest = hashlib.sha256(self.fault.encode())
        for file in self.files:
            for part in (os.fsencode(file.name), file.fault.encode(), file.content):
                digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    @contextmanager
    def laid_out(self) -> Iterator[Path]:
        """Give a folder of its own that holds the files."""
        with tempfile.TemporaryDirectory(prefix="glassformer-handed-") as folder:
            for file in self.files:
                path = Path(folder, file.name)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(file.content)
            yield Path(folder)


def pick_up(folder: Path) -> Handed:
    """Return what a folder holds of notebooks and designs."""
    try:
        names = _names(folder)
    except OSError as error:
        return Handed((), f"The folder cannot be read: {error.strerror}.")
    if len(names) > MOST_FILES:
        return Handed((), f"The folder holds more than {MOST_FILES} notebooks and designs.")
    return Handed(tuple(_picked(folder, name) for name in names))


def _names(folder: Path) -> list[str]:
    """Return the names that matter, in order; a design one folder further down does, too."""
    names = []
    for entry in _entries(folder):
        if entry.name.startswith("."):
            continue
        if entry.name.endswith(".ipynb") or _DESIGN.fullmatch(entry.name):
            names.append(entry.name)
        elif entry.is_dir(follow_symlinks=False):
            names += [f"{entry.name}/{name}" for name in _designs(Path(entry))]
    return sorted(names)


def _designs(folder: Path) -> list[str]:
    """Return the designs in a folder; none where it cannot be read."""
    try:
        entries = [e for e in _entries(folder) if e.is_file(follow_symlinks=False)]
    except OSError:
        return []
    return [e.name for e in entries if _DESIGN.fullmatch(e.name)]


def _entries(folder: Path) -> list[os.DirEntry]:
    with os.scandir(folder) as entries:
        return list(itertools.islice(entries, _MOST_ENTRIES))


def _picked(folder: Path, name: str) -> File:
    """Return a file as far as it can be read; one further down only has to be there."""
    if "/" in name:
        return File(name)
    try:
        return File(name, read_regular(folder / name, LARGEST, folder))
    except Unreadable as unreadable:
        return File(name, fault=str(unreadable))
