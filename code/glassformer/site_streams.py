"""What a cell prints, on the site: its pieces joined as they were printed.

A kernel sends printed text in pieces, cut wherever its clock says. MyST-NB ends each piece with a
line break, so that a cut in front of one would show as an empty line, in one build and not in the
next.
"""

from __future__ import annotations

import copy
from typing import Any


def joined(outputs: list[Any]) -> list[Any]:
    """Return a cell's outputs with the pieces of each stream in one, as they were printed."""
    kept, streams = [], {}
    for output in outputs:
        name = output.get("name") if output["output_type"] == "stream" else None
        if name in streams:
            streams[name]["text"] += output["text"]
            continue
        output = copy.copy(output)
        kept.append(output)
        if name:
            streams[name] = output
    return kept


def setup(app) -> None:
    """Join the pieces before MyST-NB does."""
    from myst_nb.core import render

    coalesce = render.coalesce_streams
    render.coalesce_streams = lambda outputs: coalesce(joined(outputs))
