"""The milestone's test skips with a hint, fails with what to change, and passes what holds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapters import ROOT
from glassformer.config import TransformerConfig
from glassformer.milestones import M1_BUDGET, WORKSPACE, judge_m1, largest_within

GOOD = TransformerConfig(
    vocab_size=1024, dim=128, n_layers=6, n_heads=4, n_kv_heads=2, max_seq_len=64
)


@pytest.fixture
def config_path(tmp_path):
    """Return the path of config.json in a course folder of its own, with the milestone's test."""
    shutil.copytree(
        ROOT / "tests/milestones",
        tmp_path / "tests/milestones",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    folder = tmp_path / WORKSPACE
    folder.mkdir(parents=True)
    return folder / "config.json"


def run_milestone(config_path) -> str:
    """Run the milestone's test as a reader does and return what it prints."""
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider"]
    command += ["-p", "no:nbval", "tests/milestones/test_m01_config.py"]
    root = config_path.parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True).stdout


def test_not_started_is_skipped_with_a_hint(config_path):
    told = run_milestone(config_path)
    assert "1 skipped" in told and "not started: write your design to checkpoints/myllm" in told


def test_a_wrong_design_fails_and_says_what_to_change(config_path):
    replace(GOOD, dim=256, max_seq_len=16).to_json(config_path)
    told = run_milestone(config_path)
    assert "1 failed" in told and "Traceback" not in told
    assert "dim at most" in told and "set it to 32 or more" in told


def test_a_design_within_the_budget_passes(config_path):
    GOOD.to_json(config_path)
    assert "1 passed" in run_milestone(config_path)


@pytest.mark.parametrize("field", ["vocab_size", "dim", "n_layers"])
def test_the_advice_is_the_largest_that_fits(field):
    step = 2 * GOOD.n_heads if field == "dim" else 1
    over = replace(GOOD, **{field: 20_000 * step})
    largest = largest_within(over, field, M1_BUDGET)
    assert replace(over, **{field: largest}).num_params() <= M1_BUDGET
    assert replace(over, **{field: largest + step}).num_params() > M1_BUDGET


@pytest.mark.parametrize(
    "change",
    [
        {"vocab_size": 10**9, "dim": 2, "n_heads": 1, "n_kv_heads": 1},
        {"dim": 2 * 10**9, "n_heads": 1, "n_kv_heads": 1},
        {"n_layers": 10**6},
        {"max_seq_len": 10**9},
        {"vocab_size": 400_000, "dim": 2, "n_heads": 1, "n_kv_heads": 1, "n_layers": 1},
    ],
)
def test_a_monstrous_design_is_refused_unbuilt(tmp_path, change):
    replace(GOOD, **change).to_json(tmp_path / "config.json")
    assert judge_m1(tmp_path / "config.json")  # by formula; built, it would not fit any memory


@settings(max_examples=60)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_file_gets_its_sentence(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "config.json"
    path.write_bytes(content)
    findings = judge_m1(path)
    assert len(findings) == 1 and "\n" not in findings[0]


sizes = st.one_of(st.integers(-2, 300), st.sampled_from([0.5, "4", True, None, [4], 10**30]))


@settings(max_examples=100)
@given(
    st.fixed_dictionaries({name: sizes for name in ("vocab_size", "dim", "n_layers", "n_heads")})
)
def test_only_valid_designs_within_the_budget_pass(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("drawn") / "config.json"
    path.write_text(json.dumps(data | {"max_seq_len": 32}))
    if not judge_m1(path):
        assert TransformerConfig.from_json(path).num_params() <= M1_BUDGET
