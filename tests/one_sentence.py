"""A refusal is a ValueError of one line: what is wrong, with what, and what would be right."""

from contextlib import contextmanager

import pytest


@contextmanager
def refused(*words: str):
    """Expect a ValueError in one line that holds all the words."""
    with pytest.raises(ValueError) as caught:
        yield caught
    text = str(caught.value)
    assert type(caught.value) is ValueError, f"{type(caught.value).__name__}: {text[:200]}"
    assert text.strip() and "\n" not in text and len(text) < 500, text[:1000]
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"
