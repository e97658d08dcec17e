"""`states`: what prose prints is what was computed, at the digits printed."""

from fractions import Fraction

import pytest
import torch

from glassformer.checks import states

TWO_THIRDS = Fraction(2, 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("968", 968),
        ("19,104", 19104),
        ("86.5 %", 0.8652),
        ("86.5", 86.52),
        ("−0.80", -0.80331),
        ("-0.80", -0.80331),
        ("1e-5", 1e-5),
        ("10⁻⁵", 1e-5),
        ("3 × 10^{-3}", 0.00304),
        ("2/3", 2 / 3),
        ("2/3", TWO_THIRDS),
        ("72.4 %", Fraction(55, 76)),
        ("3.22", torch.tensor(3.2249, dtype=torch.float64)),
        ("4", torch.tensor(4)),
        ("0.12", 0.125),
        ("0.13", 0.125),
        ("128 KiB", 128),
    ],
)
def test_what_is_right_passes(text, value):
    states(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("968", 967),
        ("968", 968.51),
        ("19,104", 19105),
        ("86.5 %", 0.8656),
        ("86.5 %", 86.5),
        ("0.80", -0.80331),
        ("0.803", 0.8024),
        ("2/3", 0.667),
        ("1e-5", 1e-6),
        ("1", float("nan")),
        ("1", float("inf")),
        pytest.param("1", 10**400, id="401 digits"),
        pytest.param("1", -(10**400), id="minus, 401 digits"),
        ("1", True),
        ("0", False),
        ("1", torch.tensor(True)),
        ("1", "1"),
        ("1", None),
        ("1", 1j),
        ("1", [1]),
        ("1", torch.ones(2)),
    ],
)
def test_what_is_wrong_fails_in_one_clear_sentence(text, value):
    with pytest.raises(AssertionError, match="The prose states .* computed here is .*") as caught:
        states(text, value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "many", "1 of 2", "1/0", 1, None, True])
def test_a_text_without_one_number_is_refused(text):
    with pytest.raises(AssertionError, match="needs one number"):
        states(text, 1)
