"""Whatever stands in config.json: no traceback, and no invalid design is accepted.

The milestones' own tests, run by pytest in this process, and `glassformer grade` read the same
file; what they say is compared with verdicts of this module's own, from the JSON values alone.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from chapters import ROOT
from glassformer import milestones
from glassformer.cli import app
from glassformer.exercises.judging import own_settings

GOOD = {
    "vocab_size": 256,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "max_seq_len": 512,
    "ffn_dim_multiplier": 4.0,
    "norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": False,
}
BUDGET, WINDOW, LONGEST, TOKENS, FILE = 2_000_000, 32, 2**20, 2**18, 2**16
CACHE, SEQUENCES, CONVERSATION = 8_000_000, 8, 512  # of the second milestone
POINTS = (10, 5)
BOTH, NEITHER = (True, True), (False, False)
QUIET = ("terminal", "cacheprovider", "capture", "faulthandler", "logging", "unraisableexception")


# Verdicts of its own ------------------------------------------------------------------------------


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object of these pairs; a key that stands twice makes it none."""
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


def depth(value: object) -> int:
    """Return how deep lists and objects are nested."""
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0) if isinstance(value, (dict, list)) else 0


def finite(value: object) -> bool:
    """Return whether there is no NaN and no infinity in a value."""
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list)):
        return all(map(finite, inner))
    return not isinstance(value, float) or math.isfinite(value)


def parameters(c: dict[str, object]) -> int:
    """Return the number of parameters of a design, by the chapter's formulas."""
    d, heads, layers = c["dim"], c["n_heads"], c["n_layers"]
    kv = heads if c.get("n_kv_heads") is None else c["n_kv_heads"]
    hidden = 64 * max(1, -(-int(float(c.get("ffn_dim_multiplier", 4.0)) * d * 2 / 3) // 64))
    tables = (1 if c.get("tie_word_embeddings", False) else 2) * c["vocab_size"] * d
    return tables + layers * (2 * d * d + 2 * d * d * kv // heads + 3 * d * hidden + 2 * d) + d


def valid(c: object) -> bool:
    """Return whether JSON data is a design within the parameters that both milestones allow."""
    if type(c) is not dict or not all(type(c.get(n)) is int for n in list(GOOD)[:4]):
        return False
    heads, kv = c["n_heads"], c.get("n_kv_heads")
    kv, window = heads if kv is None else kv, c.get("max_seq_len", 128)
    sizes = (*(c[n] for n in list(GOOD)[:4]), kv, window)
    numbers = [c.get(n, 1.0) for n in ("ffn_dim_multiplier", "norm_eps", "rope_theta")]
    return (
        all(type(n) is int and 1 <= n <= 10**12 for n in sizes)
        and all(type(x) in (int, float) and 1e-30 <= x <= 1e30 for x in numbers)
        and type(c.get("tie_word_embeddings", False)) is bool
        and c["dim"] % (2 * heads) == 0 == heads % kv
        and parameters(c) <= BUDGET
        and all(depth(v) <= 20 and finite(v) for k, v in c.items() if k not in GOOD)
    )


def holds(c: object) -> tuple[bool, bool]:
    """Return whether JSON data is a design that the first milestone must accept, and the second."""
    if not valid(c):
        return NEITHER
    window, kv = c.get("max_seq_len", 128), c.get("n_kv_heads")
    kept = 2 * c["n_layers"] * (kv or 0) * (c["dim"] // c["n_heads"])  # numbers for each token
    return (
        WINDOW <= window <= LONGEST and c["vocab_size"] <= TOKENS,
        bool(kv) and CONVERSATION <= window and kept * 4 * SEQUENCES * CONVERSATION < CACHE,
    )


def acceptable(content: bytes) -> tuple[bool, bool]:
    """Return whether a file's content is a design that each milestone must accept."""
    if len(content) > FILE:
        return NEITHER
    try:
        return holds(json.loads(content.decode("utf-8"), object_pairs_hook=once))
    except (ValueError, RecursionError, AssertionError):
        return NEITHER


# The judges ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """Return a course folder of its own, with the milestones' tests."""
    folder = tmp_path_factory.mktemp("course")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/milestones", folder / "tests/milestones", ignore=ignored)
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return folder


def emptied(course: Path) -> Path:
    """Return the folder for config.json in the course, empty."""
    folder = course / milestones.WORKSPACE
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def workspace(course):
    return emptied(course)


class Reports:
    """A pytest plugin that keeps what each milestone's test came to, and what it said."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.told.append((report.outcome, str(report.longrepr or "")))


def milestone_tests(workspace: Path) -> list[tuple[str, str]]:
    """Run the milestones' tests in this process; return each one's outcome and what it said."""
    reports, folder = Reports(), workspace.parents[1]
    options = [word for name in QUIET for word in ("-p", f"no:{name}")]
    options += ["-c", str(folder / "pyproject.toml"), "--import-mode=importlib"]
    options += [str(folder / "tests/milestones")]
    with own_settings():
        pytest.main(options, plugins=[reports])
    assert len(reports.told) == len(POINTS), reports.told
    return reports.told


def grade(path: Path) -> tuple[int, str]:
    """Run `glassformer grade` in this process; return its exit status and all that it printed."""
    done = CliRunner().invoke(app, ["grade", str(path)])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done.exit_code, " ".join(done.output.split())


def refused(said: str, words: str = "") -> None:
    """Expect these words in few lines, and no traceback."""
    assert "Traceback" not in said and "Error" not in said and len(said) < 2_000, said
    assert words in " ".join(said.split()), said


def judged(workspace: Path, content: bytes, words: str = "") -> tuple[bool, bool]:
    """Return whether each milestone accepts a file; whatever refuses it says these words."""
    (workspace / "config.json").write_bytes(content)
    told = milestone_tests(workspace)
    status, printed = grade(workspace / "config.json")
    for outcome, said in told:
        assert outcome in ("passed", "failed"), (outcome, said)
        refused(said, words if outcome == "failed" else "")
    accepted = tuple(outcome == "passed" for outcome, _ in told)
    earned = sum(points for points, passed in zip(POINTS, accepted, strict=True) if passed)
    assert status == (0 if accepted == BOTH else 1), (told, status, printed)
    refused(printed, words)
    refused(printed, f" {earned} of {sum(POINTS)} points")
    return accepted


# Every kind of file that was thought of -----------------------------------------------------------


def design(**changes) -> bytes:
    return json.dumps(GOOD | changes).encode()


def instead(value: str) -> bytes:
    """Return the good design with another text where the vocabulary's size stood."""
    return design().replace(b'"vocab_size": 256', b'"vocab_size": ' + value.encode())


KINDS = {
    "empty": (b"", "is empty"),
    "truncated": (design()[:-9], "is not JSON"),
    "trailing comma": (design()[:-1] + b",}", "is not JSON"),
    "comments": (b"// mine\n" + design(), "is not JSON (line 1, column 1)"),
    "single quotes": (design().replace(b'"', b"'"), "is not JSON"),
    "byte-order mark": (b"\xef\xbb\xbf" + design(), "byte-order mark"),
    "UTF-16": (design().decode().encode("utf-16"), "UTF-8"),
    "over 64 KiB": (design() + b" " * FILE, "larger than 64 KiB"),
    "nested 100,000 deep": (b"[" * 100_000, "larger than 64 KiB"),
    "nested as deep as fits": (b"[" * 60_000, "nested too deep"),
    "an integer of 5,000 digits": (instead("9" * 5_000), "digits"),
    "NaN": (instead("NaN"), "vocab_size = nan"),
    "1e999": (instead("1e999"), "vocab_size = inf"),
    "a list": (b"[" + design() + b"]", "this is a list"),
    "missing keys": (b'{"vocab_size": 256}', "lacks dim, n_layers, n_heads"),
    "duplicate keys": (design()[:-1] + b', "dim": 64}', "'dim' stands twice"),
    "a string": (instead('"256"'), "vocab_size = '256'"),
    "a float": (instead("256.0"), "vocab_size = 256.0"),
    "a bool": (instead("true"), "vocab_size = True"),
    "null": (instead("null"), "vocab_size = None"),
    "a list for an integer": (instead("[256]"), "vocab_size = [256]"),
    "zero": (design(n_layers=0), "n_layers = 0"),
    "negative": (design(dim=-32), "dim = -32"),
    "indivisible heads": (design(n_heads=5), "must divide dim = 32"),
    "indivisible key heads": (design(n_kv_heads=3), "must divide n_heads = 4"),
    "odd head size": (design(dim=36), "take dim = 40"),
    "over budget": (design(dim=512), "dim at most 288"),
    "sizes of 10⁹": (design(vocab_size=10**9, dim=10**9, n_layers=10**9), "no single field"),
    "10⁶ layers": (design(n_layers=10**6), "n_layers at most"),
    "huge vocabulary with dim 1": (
        design(vocab_size=10**9, dim=1, n_heads=1, n_kv_heads=1),
        "must be even",
    ),
    "max_seq_len under 32": (design(max_seq_len=31), "max_seq_len = 31 is too short for"),
}
FIRST_ONLY, SECOND_ONLY = (True, False), (False, True)
DIVIDED = {  # good enough for one milestone
    "huge vocabulary with dim 2": (
        design(vocab_size=400_000, dim=2, n_heads=1, n_kv_heads=1, n_layers=1),
        "set it to 262,144 or less",
        SECOND_ONLY,
    ),
    "endless window": (design(max_seq_len=10**9), "set it to 1,048,576 or less", SECOND_ONLY),
    "window under 512": (design(max_seq_len=511), "set it to 512 or more", FIRST_ONLY),
    "key heads left open": (design(n_kv_heads=None), "n_kv_heads is left open", FIRST_ONLY),
    "a cache too large": (design(dim=96, n_layers=10), "take n_kv_heads at most 1", FIRST_ONLY),
    "deep": (design(dim=2, n_heads=1, n_kv_heads=1, n_layers=4_000), "fewer layers", FIRST_ONLY),
}


@pytest.mark.parametrize(("content", "words"), KINDS.values(), ids=KINDS)
def test_each_kind_of_file_gets_its_line(workspace, content, words):
    assert acceptable(content) == judged(workspace, content, words) == NEITHER


@pytest.mark.parametrize(("content", "words", "accepted"), DIVIDED.values(), ids=DIVIDED)
def test_one_milestone_may_be_reached_without_the_other(workspace, content, words, accepted):
    assert acceptable(content) == judged(workspace, content, words) == accepted


def test_extra_keys_are_welcome(workspace):
    content = design(name="my first", notes=["a", {"b": None}])
    assert acceptable(content) == judged(workspace, content) == BOTH


def test_missing_is_skipped_with_a_hint_and_is_nothing_to_grade(workspace):
    for outcome, said in milestone_tests(workspace):
        assert outcome == "skipped" and "not started: write your design to" in said
    assert grade(workspace)[0] == 2


def refused_by_all(workspace: Path, *words: str) -> None:
    """Expect every judge to refuse what is handed in, with all of these words."""
    status, printed = grade(workspace)
    assert status == 1 and printed.count("to change") == len(POINTS)
    for outcome, said in [("failed", printed), *milestone_tests(workspace)]:
        assert outcome == "failed"
        for each in words:
            refused(said, each)


@pytest.mark.parametrize("where", ["Config.json", "myllm/config.json"], ids=["case", "folder"])
def test_a_file_in_the_wrong_place_is_told(workspace, where):
    (workspace / where).parent.mkdir(exist_ok=True)
    (workspace / where).write_bytes(design())
    if (workspace / "config.json").exists():
        pytest.skip("this file system does not tell capital letters")
    refused_by_all(workspace, "There is no file", "meant? Move it to")


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing", "link to itself", "device"])
def test_what_is_no_file_is_told(workspace, kind):
    path = workspace / "config.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        to = {"link to nothing": "nowhere", "link to itself": path, "device": "/dev/zero"}[kind]
        path.symlink_to(to)
    refused_by_all(workspace, "config.json")


# Every file that can be drawn ---------------------------------------------------------------------

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
size = st.integers(-1, 12) | st.sampled_from([16, 24, 32, 64, 128, 256, 512, 10**6, 10**9, 10**30])
near = st.builds(
    lambda changes, gone: {k: v for k, v in (GOOD | changes).items() if k not in gone},
    st.dictionaries(st.sampled_from(list(GOOD)), size | st.floats() | anything, max_size=4)
    | st.dictionaries(st.text(max_size=4), anything, max_size=3),
    st.sets(st.sampled_from(list(GOOD)), max_size=2),
)


@st.composite
def cut(draw) -> bytes:
    """Return a good file of which a few bytes were replaced."""
    content = bytearray(design())
    for _ in range(draw(st.integers(1, 4))):
        where = draw(st.integers(0, len(content)))
        content[where : where + draw(st.integers(0, 9))] = draw(st.binary(max_size=6))
    return bytes(content)


contents = (
    st.binary(max_size=100)
    | st.text(st.characters(), max_size=100).map(lambda s: s.encode("utf-8", "surrogatepass"))
    | anything.map(lambda data: json.dumps(data).encode())
    | near.map(lambda data: json.dumps(data).encode())
    | cut()
)


@settings(max_examples=250)
@example(design())
@given(content=contents)
def test_any_file_is_judged_as_its_values_say(course, content):
    assert judged(emptied(course), content) == acceptable(content)


def test_the_search_meets_good_designs_and_bad_ones():
    met: set[tuple[bool, bool]] = set()

    @settings(max_examples=250)
    @given(near)
    def search(data):
        met.add(holds(data))

    search()
    assert met >= {BOTH, FIRST_ONLY, NEITHER}


@pytest.mark.parametrize(
    ("limit", "change"), [("M1_BUDGET", {"dim": 512}), ("M2_CACHE", {"dim": 96, "n_layers": 10})]
)
def test_an_invalid_design_that_passes_would_be_seen(workspace, monkeypatch, limit, change):
    monkeypatch.setattr(milestones, limit, 10**9)
    content = design(**change)
    assert judged(workspace, content) != acceptable(content)


@pytest.mark.parametrize(
    ("part", "change"),
    [("_over_budget", {"dim": 512}), ("_over_cache", {"dim": 96, "n_layers": 10})],
)
def test_a_traceback_would_be_seen(workspace, monkeypatch, part, change):
    monkeypatch.setattr(milestones, part, lambda config: 1 / 0)
    with pytest.raises(AssertionError):
        judged(workspace, design(**change))


# Whole processes ----------------------------------------------------------------------------------

WHOLE = ("UTF-16", "nested as deep as fits", "sizes of 10⁹")


@pytest.mark.parametrize("kind", WHOLE)
def test_in_processes_of_their_own(workspace, kind):
    content, words = KINDS[kind]
    (workspace / "config.json").write_bytes(content)
    pytest_run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:nbval"]
    pytest_run += ["tests/milestones"]
    grading = [sys.executable, "-c", "from glassformer.cli import app; app()", "grade"]
    grading += [str(workspace / "config.json")]
    for command in (pytest_run, grading):
        done = subprocess.run(command, cwd=workspace.parents[1], capture_output=True, text=True)
        told = re.sub(r"\s+", " ", done.stdout)
        assert done.returncode == 1 and told.count(words) >= len(POINTS), told
        assert "Traceback" not in done.stdout and not done.stderr
