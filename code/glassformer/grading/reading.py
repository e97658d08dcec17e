"""Read what was handed in: nothing in it is run, and whatever is wrong with it is one sentence."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

LARGEST = 10 * 2**20  # bytes of a notebook


class Unreadable(Exception):
    """A file that cannot be graded; the text says why."""


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook, cell by cell."""

    path: Path
    cells: tuple[tuple[int, str], ...]  # number of the cell among all, from 1, and its code
    faults: dict[int, str]  # cells that Python cannot read, and why


def read_notebook(path: Path, within: Path | None = None) -> Notebook:
    """Return a notebook's code cells; `Unreadable` says what keeps it from being graded."""
    data = _parsed(read_regular(path, LARGEST, within))
    cells = data.get("cells") if isinstance(data, dict) else None
    if isinstance(data, dict) and "worksheets" in data:
        raise Unreadable(
            "is a notebook of an old format (version 3 or earlier); open and save it in JupyterLab"
        )
    if not isinstance(cells, list):
        raise Unreadable("is JSON, but not a notebook: it has no list of cells")
    code, faults = [], {}
    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        lines = source if isinstance(source, list) else [source]
        text = "".join(line for line in lines if isinstance(line, str))
        plain = _without_magics(text)
        fault = _fault(plain)
        if fault:
            faults[number] = fault
        elif plain.strip():
            code.append((number, plain))
    return Notebook(path, tuple(code), faults)


def read_regular(path: Path, largest: int, within: Path | None = None) -> bytes:
    """Return the bytes of a regular file that lies in a folder; never waits, never follows out."""
    if within is not None and not _inside(path, within):
        raise Unreadable("is a link that leads out of the submission")
    try:
        # Without waiting: opening a pipe that nobody writes to would never return.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise Unreadable("is a link to nothing" if path.is_symlink() else "is not there") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    with (
        os.fdopen(descriptor, "rb", closefd=True)
        if _regular(descriptor)
        else _refuse(descriptor) as file
    ):
        content = file.read(largest + 1)
    if len(content) > largest:
        raise Unreadable(
            f"is larger than {largest // 2**20} MB; clear its outputs and save it again"
        )
    return content


def printable(text: str) -> str:
    """Return a text without what could act on a terminal or turn the direction of a page."""
    text = text.encode("utf-8", "replace").decode()  # halves of a character, too
    harmless = "\n\u200c\u200d"  # the last two join letters in some scripts
    return "".join(c if c.isprintable() or c in harmless else "\ufffd" for c in text)


def _inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def _regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _refuse(descriptor: int):
    os.close(descriptor)
    raise Unreadable("is a folder, a pipe or a device, not a file")


def _parsed(content: bytes) -> object:
    """Return the data of JSON text in UTF-8, with or without a byte-order mark."""
    if not content.strip():
        raise Unreadable("is empty")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable("is UTF-16; save it as UTF-8")
    if b"\0" in content:
        raise Unreadable("is not text: it holds zero bytes")
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Unreadable("is not UTF-8 text") from None
    except RecursionError:
        raise Unreadable("is nested too deep for a notebook") from None
    except ValueError:
        raise Unreadable("is not JSON, so it is no notebook, or a damaged one") from None


def _without_magics(text: str) -> str:
    """Return a cell without IPython's own commands, where Python alone cannot read it."""
    if _fault(text) is None:
        return text
    if text.lstrip().startswith("%%"):
        return ""
    return re.sub(r"(?m)^([ \t]*)[%!?].*$", r"\1pass", text)


def _fault(text: str) -> str | None:
    """Return in words why Python cannot read a cell; None if it can."""
    try:
        compile(text, "<cell>", "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return f"{error.msg}, line {error.lineno}"
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return "Python cannot read it"
    return None
