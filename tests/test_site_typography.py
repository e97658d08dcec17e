"""Formulas keep their comma, numbers their unit, and short code its line."""

from __future__ import annotations

import pytest
from docutils import nodes
from docutils.utils import new_document

from glassformer.site_typography import KeepTogether, hold_punctuation, hold_unit


def paragraph(*children) -> nodes.paragraph:
    """Return a paragraph of texts and nodes."""
    return nodes.paragraph("", "", *(nodes.Text(c) if isinstance(c, str) else c for c in children))


def held(kept: nodes.paragraph) -> list[str]:
    """Return the parts that a line does not end in."""
    return [n.astext() for n in kept.findall(nodes.inline) if "gf-keep" in n["classes"]]


@pytest.mark.parametrize(
    ("after", "kept"),
    [(": what it takes", ["ln 19:"]), ("). So", ["ln 19)."]), (" nats", []), ("-wide", [])],
)
def test_a_formula_keeps_what_closes_it(after, kept):
    text = paragraph("costs ", nodes.math("", "ln 19"), after)
    hold_punctuation(text[1])
    assert held(text) == kept
    assert text.astext() == f"costs ln 19{after}"


def test_a_linked_formula_keeps_its_link():
    link = nodes.reference("", "", nodes.math("", "H"), refuri="notation.html")
    text = paragraph("of ", link, ", which")
    hold_punctuation(link[0])
    assert held(text) == ["H,"] and text.astext() == "of H, which"
    assert [r["refuri"] for r in text.findall(nodes.reference)] == ["notation.html"]


def test_a_formula_at_the_end_stays_as_it_is():
    text = paragraph("of ", nodes.math("", "H"))
    hold_punctuation(text[1])
    assert held(text) == [] and text.astext() == "of H"


def test_a_number_keeps_its_unit():
    text = paragraph("86.5 % of i, a % b, 2 GiB of 16 rows, 5 bytestreams")
    hold_unit(text[0])
    assert text.astext() == "86.5\u00a0% of i, a % b, 2\u00a0GiB of 16 rows, 5 bytestreams"


@pytest.mark.parametrize(
    "kind", [nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw]
)
def test_what_is_no_prose_stays_as_it_was_written(kind):
    document = new_document("page")
    document += [paragraph("5 % here"), kind("", "5 % there")]
    KeepTogether(document).run()
    assert document[0].astext() == "5\u00a0% here" and document[1].astext() == "5 % there"
