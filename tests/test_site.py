"""The Sphinx extension and the notebooks' normal form."""

from __future__ import annotations

import copy
import json
import re

import nbformat
import pytest
from myst_nb.core.utils import coalesce_streams

from chapters import ROOT, demo
from glassformer.notebooks import normalise
from glassformer.site import inline_svg, palette_css
from glassformer.site_streams import joined

PALETTE = json.loads((ROOT / "code/glassformer/palette.json").read_text(encoding="utf-8"))
SVG = (
    '<?xml version="1.0"?><svg viewBox="0 0 9 9" role="presentation"><defs><path id="a"/></defs>'
    '<use href="#a"/><use xlink:href="#a"/><rect clip-path="url(#a)"/><a href="#elsewhere"/></svg>'
)


def contrast(one: str, other: str) -> float:
    """Contrast ratio as WCAG defines it."""

    def luminance(hexed: str) -> float:
        parts = [int(hexed[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("role", [role for role in PALETTE if role not in ("paper", "line")])
def test_every_colour_reads_on_its_ground(role, theme):
    assert contrast(PALETTE[role][theme], PALETTE["paper"][theme]) >= 4.5


def test_contrast_can_fail():
    assert contrast("#bbbbbb", "#ffffff") < 4.5
    assert round(contrast("#000000", "#ffffff")) == 21


def test_the_style_sheet_has_both_themes():
    css = palette_css()
    light, dark = re.findall(r"\{(.*?)\}", css, flags=re.S)
    for role, hexes in PALETTE.items():
        assert f"--gf-{role}: {hexes['light']};" in light
        assert f"--gf-{role}: {hexes['dark']};" in dark
    assert 'html[data-theme="dark"]' in css


def test_an_inline_figure_has_a_name_and_ids_of_its_own():
    figure = inline_svg(SVG, 'Two "ticks" & a line', "c1o0-")
    assert figure.startswith('<figure class="gf-figure">')
    assert (
        '<svg viewBox="0 0 9 9" role="group" aria-label="Two &quot;ticks&quot; &amp; a line">'
        in figure
    )
    assert figure.count("c1o0-a") == 4 and 'href="#elsewhere"' in figure
    assert "<?xml" not in figure


def test_links_inside_a_figure_stay_links_for_a_screen_reader():
    linked = SVG.replace("<rect", '<a xlink:href="01_data.html"><rect').replace(
        "<a href", "</a><a href"
    )
    assert 'role="group" aria-label="A map"' in inline_svg(linked, "A map", "c1o0-")
    unlinked = SVG.replace('<a href="#elsewhere"/>', "")
    assert 'role="img" aria-label="A map"' in inline_svg(unlinked, "A map", "c1o0-")


def test_printed_pieces_are_joined_as_they_were_printed():
    def pieces():
        printed = [nbformat.v4.new_output("stream", text=text) for text in ("a", "\nb\n", "  c\n")]
        return [*printed[:2], nbformat.v4.new_output("display_data"), printed[2]]

    text, display = coalesce_streams(joined(pieces()))
    assert text["text"] == "a\nb\n  c\n" and display["output_type"] == "display_data"
    assert coalesce_streams(pieces())[0]["text"] == "a\n\nb\n  c\n"  # MyST-NB alone: an empty line


def test_the_normal_form_is_stable_and_drops_what_changes():
    clean = normalise(demo())
    noisy = copy.deepcopy(clean)
    noisy.metadata.language_info["version"] = "3.99"
    noisy.metadata["widgets"] = {"state": {}}
    noisy.cells[1].metadata["execution"] = {"iopub.execute_input": "2031-01-01"}
    noisy.cells[1].id = "random"
    noisy.cells[1].outputs[0].text = "24 tokens"
    noisy.cells[1].outputs.append(
        nbformat.v4.new_output("stream", name="stdout", text=", ln 24 = 3.1781\n")
    )
    assert nbformat.writes(normalise(noisy)) == nbformat.writes(clean)


def test_the_normal_form_keeps_sources_tags_and_outputs():
    chapter = demo()
    chapter.cells[2].metadata["tags"] = ["remove-cell"]
    clean = normalise(copy.deepcopy(chapter))
    assert clean.cells[2].metadata == {"tags": ["remove-cell"]}
    assert [c.source for c in clean.cells] == [c.source for c in chapter.cells]
    assert clean.cells[1].outputs == chapter.cells[1].outputs
    assert len({cell.id for cell in clean.cells}) == len(clean.cells)
