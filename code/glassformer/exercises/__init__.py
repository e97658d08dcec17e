"""Exercises that answer at once: `check`, `hint`, `solution` and `progress` for notebooks."""

from .in_notebook import check, hint, progress, solution

__all__ = ["check", "hint", "progress", "solution"]
