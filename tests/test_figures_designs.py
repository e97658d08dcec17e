"""The picture of several designs gives each part the area of its parameters."""

from __future__ import annotations

import re

import pytest

import glassformer.figures as gf
from glassformer.figures.style import colour, to_svg
from glassformer.models import Transformer, TransformerConfig

TIED = TransformerConfig(256, 96, 20, 6, 2, tie_word_embeddings=True)
UNTIED = TransformerConfig(2048, 128, 4, 4, 2)
ALT = "two designs as strips of areas"


def areas(config: TransformerConfig) -> dict[str, list[float]]:
    """Return the areas drawn in each role's colour, the legend's square left out."""
    from matplotlib.colors import to_hex

    found: dict[str, list[float]] = {}
    for patch in gf.designs_to_scale({"one": config}).axes[0].patches:
        edge = to_hex(patch.get_edgecolor())
        role = next(r for r in ("token", "attention", "residual") if colour(r) == edge)
        if (patch.get_width(), patch.get_height()) != (10, 10):
            found.setdefault(role, []).append(patch.get_width() * patch.get_height())
    return found


@pytest.mark.parametrize("config", [TIED, UNTIED])
def test_areas_are_in_proportion_to_the_parameters(config):
    drawn, c = areas(config), config
    assert len(drawn["token"]) == (1 if c.tie_word_embeddings else 2)
    assert len(drawn["attention"]) == len(drawn["residual"]) == c.n_layers
    point = 288 * 58 / c.num_params()
    assert sum(drawn["residual"]) == pytest.approx(
        point * 3 * c.n_layers * c.dim * c.ffn_hidden_dim, rel=0.01
    )
    assert sum(map(sum, drawn.values())) == pytest.approx(288 * 58, rel=0.01)


def test_it_names_each_design_with_its_count_and_fits_a_phone():
    svg = to_svg(gf.designs_to_scale({"deep": TIED, "plain": UNTIED}), ALT)
    assert "deep: 1,994,592" in svg and "plain: 1,311,872" in svg
    assert float(re.search(r"min-width:(\d+)px", svg)[1]) <= 360 - 2 * 16
    assert svg == to_svg(gf.designs_to_scale({"deep": TIED, "plain": UNTIED}), ALT)


def test_tied_tables_are_drawn_once():
    svg = to_svg(gf.weights_to_scale(Transformer(TIED)), ALT)
    assert "1,994,592 weights" in svg and "output" not in svg
