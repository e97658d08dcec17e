"""Figures: each function takes plain numbers and returns a Matplotlib figure for `show`."""

from glassformer.figures.style import show

__all__ = ["show"]
