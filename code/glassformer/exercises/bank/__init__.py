"""All exercises: one folder per chapter, one module per exercise, found by their names."""

from __future__ import annotations

import importlib
import pkgutil
import re

from ..definition import Chapter, Exercise


def chapters() -> list[Chapter]:
    """Return the chapters that have exercises, in the book's order."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    found = [importlib.import_module(f"{__name__}.{name}").chapter for name in names]
    return sorted(found, key=lambda chapter: chapter.number)


def chapter_exercises(chapter: Chapter) -> list[Exercise]:
    """Return the exercises of a chapter, in order."""
    return [exercise(f"{chapter.name}.{name}") for name in chapter.order]


def all_exercises() -> list[Exercise]:
    """Return every exercise, in the book's order."""
    return [exercise for chapter in chapters() for exercise in chapter_exercises(chapter)]


def exercise(name: str) -> Exercise:
    """Return the exercise of a name such as "data.encode"; KeyError if there is none."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", name):
        raise KeyError(name)
    try:
        return importlib.import_module(f"{__name__}.{name}").exercise
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(__name__):
            raise KeyError(name) from None
        raise
