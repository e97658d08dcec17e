"""The chapters, as the tests read them."""

from __future__ import annotations

from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))


def read(path: Path) -> nbformat.NotebookNode:
    """Return the notebook at `path`."""
    return nbformat.read(path, as_version=4)


def demo() -> nbformat.NotebookNode:
    """A chapter of four cells that passes every check: tests break copies of it on purpose."""
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    output = nbformat.v4.new_output("stream", name="stdout", text="24 tokens, ln 24 = 3.1781\n")
    return nbformat.v4.new_notebook(
        cells=[
            markdown(
                "# Demo\n\n"
                ":::{admonition} How many?\n:class: opening\n\n**Takes** 5 minutes\n:::\n\n"
                "::::{admonition} Guess\n:class: predict\n\n- [ ] 23\n- [ ] 25\n\n"
                ":::{dropdown} Answer\n24\n:::\n::::\n\n"
                ":::{admonition} Guess the sign\n:class: predict\n\n:::\n\n"
                "There are 24 tokens, and $\\ln 24 \\approx 3.18$."
            ),
            code(
                "import math\n\nfrom glassformer.checks import states\n\ntokens = 3 + 21\n"
                'print(f"{tokens} tokens, ln {tokens} = {math.log(tokens):.4f}")',
                execution_count=1,
                outputs=[output],
            ),
            code(
                'states("24", tokens)\nstates("3.18", math.log(tokens))',
                execution_count=2,
            ),
            markdown("## Summary\n\n:::{admonition} In short\n:class: summary\n\nTwo words.\n:::"),
        ],
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
    )
