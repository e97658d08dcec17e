"""Checks that tie prose to computed values: what a page says must be what the model gives."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from numbers import Integral, Real

from .refusals import shown

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_POWER = re.compile(
    r"(?:(?<![\d.,])(-?\d+(?:\.\d+)?)\s*×\s*)?(?<![\d.,])10(?:\^\{?(-?\d+)\}?|([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))"
)
NUMBER = re.compile(
    r"[-−]?\d+/\d+|[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-−]?\d+(?:\.\d+)?(?:e[-−+]?\d+)?"
)


def plain_powers(text: str) -> str:
    """Write powers of ten as 1e-5: `10⁻⁵`, `10^{-5}` and `3 × 10^-3` become `1e-5` and `3e-3`."""

    def power(match: re.Match) -> str:
        exponent = match[2] or match[3].translate(_SUPERSCRIPTS)
        return f"{match[1] or 1}e{exponent}"

    return _POWER.sub(power, text.replace("−", "-").replace(r"\times", "×"))


def canonical(number: str) -> str:
    """One spelling for one printed number: no thousands commas, a plain minus sign."""
    return number.replace(",", "").replace("−", "-")


def states(text: str, value) -> None:
    """Assert that the number which prose prints as `text` is `value`, at the digits printed.

    `text` is written as on the page: "968", "19,104", "86.5 %" (of a share, so 0.865), "−0.80",
    "1e-5", "2/3". A whole-number value must be met exactly, any other one when rounded.
    """
    numbers = NUMBER.findall(plain_powers(text)) if isinstance(text, str) else []
    if len(numbers) != 1 or re.search(r"/0+$", numbers[0]):
        raise AssertionError(
            f"states() needs one number as the prose prints it, got {shown(text)}."
        )
    printed = canonical(numbers[0])
    value = _as_number(text, value)
    scale = 100 if "%" in text else 1
    stated, step = Fraction(printed), _last_digit(printed)
    if isinstance(value, Integral) or isinstance(value, Fraction):
        exact = Fraction(value) * scale
        right = abs(exact - stated) <= (0 if exact.denominator == 1 else step / 2)
    else:
        value = float(value)
        # A hair more than half a unit: 0.125 may be printed as 0.12 or as 0.13.
        room = float(step) / 2 * (1 + 1e-9) if step else 1e-9 * max(1.0, abs(float(stated)))
        right = math.isfinite(value) and abs(value * scale - float(stated)) <= room
    if not right:
        found = f"{_as_float(value) * scale:.10g}" + (" %" if scale == 100 else "")
        raise AssertionError(f"The prose states {text!r}, but the value computed here is {found}.")


def _as_number(text: str, value) -> Real:
    """Return a computed value, also one in a tensor, as a number; True and texts are none."""
    try:
        value = value.item() if hasattr(value, "item") else value
    except (RuntimeError, ValueError):  # a tensor of several numbers
        pass
    if isinstance(value, bool) or not isinstance(value, Real):
        got = f"{shown(value)}, which is no number"
        raise AssertionError(f"The prose states {text!r}, but the value computed here is {got}.")
    return value


def _as_float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf if value > 0 else -math.inf


def _last_digit(printed: str) -> Fraction:
    """The worth of one unit in the last digit printed; 0 for a fraction, which is exact."""
    if "/" in printed:
        return Fraction(0)
    mantissa, _, exponent = printed.partition("e")
    places = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(exponent or 0) - places)
