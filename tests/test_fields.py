"""Python and the explorers' JavaScript hold the same state: names, defaults, bounds and options."""

from __future__ import annotations

import json

import pytest
from traitlets import Bool, Dict, Enum, Float, Int, List, Unicode

from glassformer.explorers import EXPLORERS, Attention
from glassformer.explorers.base import LONGEST
from test_engine import EXPLORERS as SOURCES
from test_engine import node

# Each field is asked what it makes of values of each kind, and of some far outside its bounds.
ASK = """
import { build } from "esbuild";
const { outputFiles: [{ text }] } = await build({
  entryPoints: ["src/instruments/index.js"], bundle: true, write: false, format: "esm",
  jsx: "automatic", jsxImportSource: "preact",
});
const { instruments } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
const asked = ({ default: standard, options = null, clean }) => {
  const takes = (value) => clean(value) !== undefined;
  const filled = (n) => Array(n).fill(standard?.[0] ?? ["head.bias", [0], 1]);
  return {
    standard, options,
    bounds: [clean(-1e300), clean(1e300)].map((end) => end ?? null),
    whole: clean(0.625) !== 0.625,
    letters: clean("x".repeat(9999))?.length ?? null,
    lengths: [1, 4, 5, 64, 65].filter((n) => takes(filled(n))),
    flag: takes(true), object: takes({}),
  };
};
const map = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
const told = ({ title, fields }) => ({ title, fields: map(fields, asked) });
console.log(JSON.stringify(map(instruments, told)));
"""


@pytest.fixture(scope="module")
def pages() -> dict[str, dict]:
    """Return each explorer as its JavaScript has it: its title, and what its fields do."""
    run = node("--input-type=module", "-e", ASK, folder=SOURCES)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def expected(trait) -> dict:
    """Return what a field does that takes what a trait takes."""
    told = {"standard": trait.default(), "options": None, "bounds": [None, None], "whole": True}
    told |= {"letters": None, "lengths": [], "flag": False, "object": False}
    if isinstance(trait, (Int, Float)):
        return told | {"bounds": [trait.min, trait.max], "whole": isinstance(trait, Int)}
    if isinstance(trait, Enum):
        return told | {"options": list(trait.values)}
    if isinstance(trait, List):
        return told | {"lengths": [n for n in (1, 4, 5, 64, 65) if n <= trait._maxlen]}
    return (
        told
        | {Unicode: {"letters": LONGEST}, Bool: {"flag": True}, Dict: {"object": True}}[type(trait)]
    )


def differences(kind, page: dict) -> list[str]:
    """Return where an explorer in Python and in JavaScript differ, in words."""
    traits, fields = kind.class_traits(state=True), page["fields"]
    found = [f"title: {kind.title!r}, {page['title']!r}"] if kind.title != page["title"] else []
    found += [f"{name}: on one side only" for name in sorted(traits.keys() ^ fields.keys())]
    for name in sorted(traits.keys() & fields.keys()):
        ours, theirs = expected(traits[name]), fields[name]
        found += [f"{name}.{k}: {ours[k]}, {theirs[k]}" for k in ours if ours[k] != theirs[k]]
    return found


@pytest.mark.parametrize("name", EXPLORERS)
def test_both_sides_hold_the_same_state(pages, name):
    assert differences(EXPLORERS[name], pages[name]) == []


def test_no_explorer_is_on_one_side_only(pages):
    assert set(pages) == set(EXPLORERS)


@pytest.mark.parametrize(
    ("name", "what", "other"),
    [
        ("query", "standard", 3),
        ("query", "bounds", [0, 62]),
        ("query", "whole", False),
        ("step", "options", ["q", "scores"]),
        ("prompt", "letters", 399),
        ("mask", "flag", False),
    ],
)
def test_a_difference_is_noticed(pages, name, what, other):
    page = json.loads(json.dumps(pages["attention"]))
    before = page["fields"][name][what]
    page["fields"][name][what] = other
    assert differences(Attention, page) == [f"{name}.{what}: {before}, {other}"]


def test_a_field_on_one_side_only_is_noticed(pages):
    page = {**pages["attention"], "fields": {**pages["attention"]["fields"], "more": {}}}
    del page["fields"]["scale"]
    told = [f"{name}: on one side only" for name in ("more", "scale")]
    assert differences(Attention, page) == told
    assert differences(Attention, page | {"title": "Another"})[1:] == told
