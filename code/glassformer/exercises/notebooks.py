"""The exercise notebooks, written from the exercises: in starter state, or filled in."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import nbformat

from ..notebooks import normalise, run, store
from ..repository import Address, address_of, setup_lines
from .bank import chapter_exercises, chapters
from .definition import Chapter, Exercise

Fill = Callable[[Exercise], str]

_HOW = """\
Fill in the functions. The cell below each one checks it and says, if something is wrong, what was
tried and which mistake it looks like; it says nothing as long as the exercise is not attempted.
`hint("{name}")` gives one more of three hints at each call, and after an attempt
`solution("{name}")` explains one."""


def notebook(
    chapter: Chapter, fill: Fill | None = None, address: Address | None = None
) -> nbformat.NotebookNode:
    """Return a chapter's notebook; `fill` gives each function's code, the starter without it.

    From the course's address the package is installed where it is missing.
    """
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    exercises = chapter_exercises(chapter)
    how = _HOW.format(name=exercises[0].name)
    cells = [
        markdown(f"# Exercises {chapter.number}: {chapter.title}\n\n{chapter.opening}\n\n{how}"),
        code(
            f"{setup_lines(address)}\n\n{chapter.setup}\n\n"
            "from glassformer.exercises import check, hint, progress, solution"
        ),
    ]
    for exercise in exercises:
        points = f"{exercise.points} points" if exercise.points > 1 else "1 point"
        head = f"## {exercise.title}\n\n`{exercise.name}` · {points} · {exercise.minutes} minutes"
        source = fill(exercise) if fill else exercise.start.source
        cells += [
            markdown(f"{head}\n\n{exercise.statement.strip()}"),
            code(source),
            code(f'check("{exercise.name}", {exercise.function_name})'),
        ]
    cells += [markdown("## What is done"), code("progress()")]
    if chapter.closing:
        cells.append(markdown(chapter.closing.strip()))
    return normalise(nbformat.v4.new_notebook(cells=cells))


def write(folder: Path) -> list[Path]:
    """Write and run the starter notebook of every chapter whose exercises changed; return these."""
    changed = []
    for chapter in chapters():
        path = folder / f"{chapter.notebook}.ipynb"
        if not is_current(path, chapter):
            written = notebook(chapter, address=address_of(folder.parent))
            run(written, folder)
            store(written, path)
            changed.append(path)
    return changed


def is_current(path: Path, chapter: Chapter) -> bool:
    """Return whether a notebook holds what the chapter's exercises say now."""
    if not path.exists():
        return False
    stored = nbformat.read(path, as_version=4)
    written = notebook(chapter, address=address_of(path.parent.parent))
    pair = [[(c.cell_type, c.source) for c in nb.cells] for nb in (stored, written)]
    return pair[0] == pair[1]


def main() -> None:
    """Command line: `python -m glassformer.exercises.notebooks exercises`."""
    parser = argparse.ArgumentParser(
        prog="python -m glassformer.exercises.notebooks", description=__doc__
    )
    parser.add_argument("folder", type=Path)
    for path in write(parser.parse_args().folder):
        print(f"{path}: written", flush=True)


if __name__ == "__main__":
    main()
