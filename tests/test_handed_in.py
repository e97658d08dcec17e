"""Files that are handed in: each gets its own clear line, and the points of the others stay."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.config import TransformerConfig
from glassformer.exercises.bank import chapters
from glassformer.exercises.notebooks import notebook
from glassformer.grading import reading
from glassformer.grading.reading import Unreadable, read_notebook
from glassformer.grading.submission import NothingToGrade, grade_config, grade_submission
from glassformer.milestones import M1, M2, MILESTONES

GOOD = TransformerConfig(
    vocab_size=256, dim=32, n_layers=2, n_heads=4, n_kv_heads=2, max_seq_len=512
)
DESIGN_POINTS = M1.points + M2.points
CELL = {"cell_type": "code", "source": "x = 1"}
every_milestone = pytest.mark.parametrize("milestone", MILESTONES, ids=lambda m: m.name)
FIRST = chapters()[0]


def as_json(*cells, **rest) -> bytes:
    """Return a notebook of these cells as bytes."""
    return json.dumps({"cells": list(cells), "nbformat": 4, "metadata": {}} | rest).encode()


BROKEN = {
    "missing": (None, "is not there"),
    "empty": (b"", "is empty"),
    "blank": (b"  \n ", "is empty"),
    "not JSON": (b"# Exercises", "is not JSON"),
    "truncated": (as_json(CELL)[:-20], "is not JSON"),
    "a list": (b"[1, 2]", "not a notebook"),
    "no cells": (b"{}", "not a notebook"),
    "cells of another kind": (b'{"cells": 3}', "not a notebook"),
    "old format": (b'{"worksheets": [], "nbformat": 3}', "old format"),
    "UTF-16": (as_json(CELL).decode().encode("utf-16"), "UTF-16"),
    "Latin-1": ('{"cells": ["é"]}'.encode("latin-1"), "is not UTF-8"),
    "zero bytes": (b'{"cells": \0}', "zero bytes"),
    "nested": (b"[" * 200_000, "nested too deep"),
    "digits": (b'{"cells": ' + b"1" * 5_000 + b"}", "is not JSON"),
    "50 MB": (b" " * 50 * 2**20, "larger than 10 MB"),
}


@pytest.mark.parametrize(("content", "line"), BROKEN.values(), ids=BROKEN)
def test_a_broken_notebook_gets_its_line(tmp_path, content, line):
    path = tmp_path / "01_data.ipynb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Unreadable, match=line):
        read_notebook(path)


def make(kind: str, path: Path, outside: Path) -> None:
    """Put something that is not a file of the submission where a file should be."""
    outside.write_bytes(as_json(CELL))
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(
            {"dangling": "nowhere", "out": outside, "loop": path, "device": "/dev/zero"}[kind]
        )


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("folder", "is a folder"),
        ("pipe", "a pipe"),
        ("dangling", "a link to nothing"),
        ("out", "out of the submission"),
        ("device", "out of the submission"),
        ("loop", "out of the submission|cannot be read"),
    ],
)
def test_what_is_no_file_gets_its_line(tmp_path, kind, line):
    folder = tmp_path / "in"
    folder.mkdir()
    make(kind, folder / "01_data.ipynb", tmp_path / "outside.ipynb")
    with pytest.raises(Unreadable, match=line):
        read_notebook(folder / "01_data.ipynb", within=folder)


def test_a_byte_order_mark_does_no_harm(tmp_path):
    path = tmp_path / "01_data.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + as_json(CELL))
    assert read_notebook(path).cells == ((1, "x = 1"),)


def test_cells_are_read_one_by_one(tmp_path):
    path = tmp_path / "01_data.ipynb"
    cells = [
        {"cell_type": "markdown", "source": "text"},
        {"cell_type": "code", "source": ["x = 1\n", "y = 2"]},
        {"cell_type": "code", "source": "%matplotlib inline\n!ls\nz = 3"},
        {"cell_type": "code", "source": "%%time\nw = 4"},
        {"cell_type": "code", "source": "def broken(:"},
        {"cell_type": "code", "source": "zero\0byte"},
        {"cell_type": "code", "source": "(" * 5_000},
        {"cell_type": "code", "source": 3},
        {"cell_type": "code"},
        "no cell at all",
    ]
    path.write_bytes(as_json(*cells))
    read = read_notebook(path)
    assert read.cells == ((2, "x = 1\ny = 2"), (3, "pass\npass\nz = 3"))
    assert sorted(read.faults) == [5, 6, 7] and "line 1" in read.faults[5]


@settings(max_examples=100)
@given(st.binary(max_size=80) | st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["cells", "cell_type", "source", "code"]), inner),
    max_leaves=12,
).map(lambda data: json.dumps(data).encode()))  # fmt: skip
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "01_data.ipynb"
    path.write_bytes(content)
    try:
        read_notebook(path)
    except Unreadable as unreadable:
        assert "\n" not in str(unreadable)


# Whole submissions --------------------------------------------------------------------------------


@pytest.fixture
def submission(tmp_path):
    """Return a folder with an odd name, its first chapter solved, and a good design."""
    folder = tmp_path / "Zoë's “work” (final) %s {0}"
    folder.mkdir()
    solved = nbformat.writes(notebook(FIRST, lambda e: e.solved.source))
    (folder / f"{FIRST.notebook}.ipynb").write_text(solved, encoding="utf-8")
    GOOD.to_json(folder / "config.json")
    return folder


def points(folder: Path) -> dict[str, int]:
    """Return the points of a submission, part by part."""
    return {title: sum(r.earned for r in results) for title, results in grade_submission(folder)}


def test_a_folder_is_graded_part_by_part(submission):
    full = sum(e.points for e in map(_exercise, FIRST.order))
    assert points(submission) == {f"{FIRST.notebook}.ipynb": full, "config.json": DESIGN_POINTS}


def _exercise(name: str):
    from glassformer.exercises.bank import exercise

    return exercise(f"{FIRST.name}.{name}")


def test_a_broken_notebook_leaves_the_design_its_points(submission):
    (submission / f"{FIRST.notebook}.ipynb").write_bytes(b"")
    assert points(submission) == {f"{FIRST.notebook}.ipynb": 0, "config.json": DESIGN_POINTS}


def test_two_notebooks_of_a_chapter_are_not_guessed_between(submission):
    (submission / f"{FIRST.notebook} (1).ipynb").write_bytes(as_json(CELL))
    (_, results), *_ = grade_submission(submission)
    for result in results:
        assert result.earned == 0 and "keep one" in result.remarks[0][1]


def test_nothing_to_grade_is_said(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "other.ipynb").write_bytes(as_json(CELL))
    (tmp_path / "²² odd.ipynb").write_bytes(as_json(CELL))
    for path in (
        *(tmp_path, tmp_path / "notes.txt", tmp_path / "other.ipynb"),
        *(tmp_path / "²² odd.ipynb", tmp_path / "nowhere"),
    ):
        with pytest.raises(NothingToGrade, match=r"01_data\.ipynb|give a notebook"):
            list(grade_submission(path))


# The design ---------------------------------------------------------------------------------------

DESIGN = json.dumps(GOOD.to_dict())
CONFIGS = {
    "empty": (b"", "is empty"),
    "truncated": (DESIGN[:-3].encode(), "not JSON"),
    "trailing comma": (DESIGN.replace("}", ",}").encode(), "not JSON"),
    "comment": (b"// mine\n" + DESIGN.encode(), "not JSON"),
    "single quotes": (DESIGN.replace('"', "'").encode(), "not JSON"),
    "byte-order mark": (b"\xef\xbb\xbf" + DESIGN.encode(), "byte-order mark"),
    "UTF-16": (DESIGN.encode("utf-16"), "UTF-8"),
    "over 64 KiB": (DESIGN.encode() + b" " * 2**16, "larger than 64 KiB"),
    "nested": (b"[" * 60_000, "nested too deep"),
    "nested 100,000 deep": (b"[" * 100_000, "larger than 64 KiB"),
    "5,000 digits": (DESIGN.replace("256", "9" * 5_000).encode(), "config"),
    "NaN": (DESIGN.replace("256", "NaN").encode(), "vocab_size"),
    "1e999": (DESIGN.replace("256", "1e999").encode(), "vocab_size"),
    "a list": (b"[]", "config"),
    "missing key": (b'{"vocab_size": 8}', "lacks dim"),
    "duplicate key": (b'{"dim": 8, "dim": 8}', "stands twice"),
    "a text for a number": (DESIGN.replace("256", '"256"').encode(), "vocab_size"),
    "a decimal number": (DESIGN.replace("256", "256.0").encode(), "vocab_size"),
    "a truth value": (DESIGN.replace("256", "true").encode(), "vocab_size"),
    "null": (DESIGN.replace("256", "null").encode(), "vocab_size"),
    "a list for a number": (DESIGN.replace("256", "[256]").encode(), "vocab_size"),
    "zero": (DESIGN.replace("256", "0").encode(), "vocab_size"),
    "negative": (DESIGN.replace("256", "-1").encode(), "vocab_size"),
    "huge": (DESIGN.replace("256", "1000000000").encode(), "parameters"),
    "indivisible heads": (DESIGN.replace('"n_heads": 4', '"n_heads": 5').encode(), "n_heads"),
    "odd head size": (DESIGN.replace('"n_heads": 4', '"n_heads": 32').encode(), "must be even"),
    "a million layers": (
        DESIGN.replace('"n_layers": 2', '"n_layers": 1000000').encode(),
        "n_layers",
    ),
    "huge vocabulary of dim 2": (
        DESIGN.replace("256", "900000")
        .replace('"dim": 32', '"dim": 2')
        .replace('heads": 4', 'heads": 1')
        .replace('heads": 2', 'heads": 1')
        .encode(),
        "parameters",
    ),
    "short window": (
        DESIGN.replace('"max_seq_len": 512', '"max_seq_len": 31').encode(),
        "max_seq_len",
    ),
}


@pytest.mark.parametrize(("content", "line"), CONFIGS.values(), ids=CONFIGS)
@every_milestone
def test_a_wrong_design_gets_its_line(tmp_path, milestone, content, line):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    result = grade_config(milestone, path, tmp_path)
    assert result.earned == 0 and result.status == "failed"
    assert any(line in text for _, text in result.remarks), result.remarks
    assert all("\n" not in text for _, text in result.remarks)


@every_milestone
def test_a_design_that_is_missing_gets_its_line(tmp_path, milestone):
    result = grade_config(milestone, tmp_path / "config.json", tmp_path)
    assert result.status == "failed" and "There is no file" in result.remarks[0][1]


@every_milestone
def test_keys_that_nobody_asked_for_do_no_harm(tmp_path, milestone):
    (tmp_path / "config.json").write_text(json.dumps(GOOD.to_dict() | {"author": "me"}))
    result = grade_config(milestone, tmp_path / "config.json", tmp_path)
    assert (result.name, result.earned) == (milestone.name, milestone.points)


@pytest.mark.parametrize(
    ("change", "statuses", "line"),
    [
        ({}, ("passed", "passed"), ""),
        ({"n_kv_heads": None}, ("passed", "not attempted"), "n_kv_heads is left open"),
        ({"max_seq_len": 64}, ("passed", "failed"), "set it to 512 or more"),
        ({"dim": 96, "n_layers": 10}, ("passed", "failed"), "n_kv_heads at most 1"),
        ({"n_kv_heads": None, "max_seq_len": 8}, ("failed", "not attempted"), "set it to 32"),
        ({"max_seq_len": 2**21}, ("failed", "passed"), "set it to 1,048,576 or less"),
    ],
)
def test_each_milestone_has_a_result_of_its_own(tmp_path, change, statuses, line):
    replace(GOOD, **change).to_json(tmp_path / "config.json")
    ((title, results),) = grade_submission(tmp_path)
    results = list(results)
    assert title == "config.json" and [r.name for r in results] == ["m1.design", "m2.cache"]
    assert tuple(r.status for r in results) == statuses
    for result, milestone in zip(results, MILESTONES, strict=True):
        assert result.points == milestone.points
        assert result.earned == (result.points if result.status == "passed" else 0)
        assert bool(result.remarks) == (result.status != "passed")
    assert line in " ".join(text for r in results for _, text in r.remarks)


def test_a_design_without_its_key_has_not_begun_the_cache(tmp_path):
    path = tmp_path / "config.json"
    data = GOOD.to_dict()
    del data["n_kv_heads"]
    path.write_text(json.dumps(data))
    assert grade_config(M2, path).status == "not attempted"
    path.write_text(json.dumps(data | {"n_kv_heads": "none"}))  # wrong is begun
    assert grade_config(M2, path).status == "failed"


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling", "out", "device"])
@every_milestone
def test_what_is_no_design_earns_nothing(tmp_path, milestone, kind):
    folder = tmp_path / "in"
    folder.mkdir()
    make(kind, folder / "config.json", tmp_path / "outside.json")
    GOOD.to_json(tmp_path / "outside.json")  # it would be accepted, if it were handed in
    result = grade_config(milestone, folder / "config.json", folder)
    assert result.earned == 0 and result.status == "failed"


def test_a_misplaced_design_is_found(tmp_path):
    (tmp_path / "myllm").mkdir()
    GOOD.to_json(tmp_path / "myllm" / "config.json")
    ((title, results),) = grade_submission(tmp_path)
    assert title == "config.json"
    assert all("Move it" in result.remarks[0][1] for result in results)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.dictionaries(st.sampled_from(sorted(GOOD.to_dict())), anything | st.integers(0, 400))


@settings(max_examples=300)
@given(
    st.binary(max_size=100)
    | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | anything.map(lambda data: json.dumps(data).encode())
    | fields.map(lambda change: json.dumps(GOOD.to_dict() | change).encode())
)
def test_no_invalid_design_passes_and_none_is_a_traceback(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("drawn") / "config.json"
    path.write_bytes(content)
    if grade_config(M1, path).earned:
        config = TransformerConfig.from_json(path)
        assert config.num_params() <= 2_000_000 and config.max_seq_len >= 32
    if grade_config(M2, path).earned:
        config = TransformerConfig.from_json(path)
        assert config.num_params() <= 2_000_000 and config.max_seq_len >= 512
        kept = 2 * config.n_layers * config.n_kv_heads * (config.dim // config.n_heads)
        assert kept * 8 * 512 * 4 < 8_000_000


def test_the_limit_is_the_one_that_is_told():
    assert reading.LARGEST == 10 * 2**20
