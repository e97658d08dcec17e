"""The picture of a paged cache counts the places that are reserved and used."""

from __future__ import annotations

import re

import pytest

import glassformer.figures as gf
from glassformer.figures.style import to_svg

ALT = "three sequences in windows and in pages"


def written(*arguments) -> list[str]:
    return [text.get_text() for text in gf.paged_cache(*arguments).axes[0].texts]


def test_places_are_counted_with_windows_and_with_pages():
    said = written([6, 11, 3], 16, 4)
    assert "a window each: 48 places, 20 used" in said
    assert "pages of 4: 24 places, 20 used" in said


def test_pages_are_handed_out_in_order_of_demand():
    pages = [text for text in written([6, 11, 3], 16, 4) if text.startswith("page ")]
    owners = ["A", "B", "C", "A", "B", "B"]
    assert pages == [f"page {number}: {owner}" for number, owner in enumerate(owners)]


def test_every_token_stands_once_in_its_window_and_once_in_a_page():
    said = written([6, 11, 3], 16, 4)
    assert sorted(t for t in said if re.fullmatch(r"\d+", t)) == sorted(
        str(place) for length in (6, 11, 3) for place in range(length) for _ in range(2)
    )


@pytest.mark.parametrize("lengths", [[], [17], [0], [1] * 5])
def test_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ValueError, match="1 to 4 lengths, each from 1 to the window of 16"):
        gf.paged_cache(lengths, 16, 4)


def test_it_fits_a_phone_and_is_the_same_each_time():
    svg = to_svg(gf.paged_cache([6, 11, 3], 16, 4), ALT)
    assert float(re.search(r"min-width:(\d+)px", svg)[1]) <= 360 - 2 * 16
    assert svg == to_svg(gf.paged_cache([6, 11, 3], 16, 4), ALT)
    assert svg != to_svg(gf.paged_cache([6, 12, 3], 16, 4), ALT)
