"""What keeps to its line: a formula and its comma, a number and its unit, short code."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

CLOSING = re.compile(r"[.,:;!?)\]’”]+")
UNIT = re.compile(r"(?<=\d) (?=%|(?:[KMG]iB|nats?|bytes?|MFLOPs?)\b)")
SHORT = 16  # characters: longer code may break where it has a space


class KeepTogether(SphinxPostTransform):
    """Keep together what a line should not end between."""

    default_priority = 900  # terms are linked by then

    def run(self) -> None:
        """Change the page's text, short code and what follows a formula."""
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, (nodes.literal, nodes.math, nodes.FixedTextElement)):
                hold_unit(text)
        for code in self.document.findall(nodes.literal):
            if len(code.astext()) <= SHORT:
                code["classes"].append("gf-keep")
        for formula in list(self.document.findall(nodes.math)):
            hold_punctuation(formula)


def hold_unit(text: nodes.Text) -> None:
    """Put a space that does not break between a number and its unit."""
    held = UNIT.sub("\u00a0", text)
    if held != text:
        text.parent.replace(text, nodes.Text(held))


def hold_punctuation(formula: nodes.math) -> None:
    """Wrap a formula with the punctuation right behind it: browsers break before that otherwise."""
    whole = formula.parent if len(formula.parent) == 1 else formula  # alone in a link, the link
    parent = whole.parent
    place = parent.index(whole)
    after = parent[place + 1] if place + 1 < len(parent) else None
    mark = CLOSING.match(after) if isinstance(after, nodes.Text) else None
    if mark:
        kept = nodes.inline("", "", whole.deepcopy(), nodes.Text(mark[0]), classes=["gf-keep"])
        parent[place : place + 2] = [kept, nodes.Text(after[mark.end() :])]


def setup(app) -> None:
    """Register the transform."""
    app.add_post_transform(KeepTogether)
