"""Who has handed in: one folder is one student, and whatever else lies there is named."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .reading import printable

_COPY = re.compile(r"(?:\s*\(\d+\)|\s*-\s*copy)+$")  # what is put behind a second submission's name
_LITTER = {"__MACOSX", "Thumbs.db", "desktop.ini"}  # what systems leave behind by themselves


@dataclass(frozen=True)
class Student:
    """A student's folder, by its name; `twins` are other folders that are the same student's."""

    folder: Path
    twins: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's name, as it can be shown anywhere."""
        return _shown(self.folder.name)

    @property
    def slug(self) -> str:
        """A plain file name that no other student has."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", self.folder.name)[:40].strip("-") or "student"
        return f"{plain}-{hashlib.sha256(os.fsencode(self.folder.name)).hexdigest()[:8]}"


def read_roster(submissions: Path) -> tuple[list[Student], list[str]]:
    """Return the students of a folder of submissions, and a line for all that is none."""
    folders, remarks = [], []
    for entry in sorted(os.scandir(submissions), key=lambda entry: os.fsencode(entry.name)):
        if entry.name.startswith(".") or entry.name in _LITTER:
            continue
        if entry.is_symlink():
            remarks.append(f"{_shown(entry.name)} is a link; links are not followed.")
        elif entry.is_dir():
            folders.append(Path(entry.path))
        else:
            remarks.append(f"{_shown(entry.name)} is not a student's folder.")
    return _with_twins(folders), remarks


def _with_twins(folders: list[Path]) -> list[Student]:
    """Return the students, each with the other folders that go by nearly the same name."""
    same = defaultdict(list)
    for folder in folders:
        same[_plain(folder.name)].append(folder)
    return [
        Student(f, tuple(_shown(other.name) for other in same[_plain(f.name)] if other != f))
        for f in folders
    ]


def _plain(name: str) -> str:
    """Return a name without capitals, kinds of blanks, and what marks a copy."""
    folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return _COPY.sub("", folded) or folded


def _shown(name: str) -> str:
    return printable(os.fsencode(name).decode("utf-8", "replace")).replace("\n", "\ufffd")
