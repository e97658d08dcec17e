"""The milestone's test skips with a hint, fails with what to change, and passes what holds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from chapters import ROOT
from glassformer import milestones
from glassformer.config import TransformerConfig
from glassformer.milestones import (
    M1_BUDGET,
    M2_CACHE,
    WORKSPACE,
    design_started,
    judge_m1,
    judge_m2,
    largest_within,
)
from one_sentence import refused

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


def run_milestone(config_path, test="test_m01_config.py") -> str:
    """Run a milestone's test as a reader does and return what it prints."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    command += ["-p", "no:nbval", f"tests/milestones/{test}"]
    root = config_path.parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    "test, shown",
    [
        ("test_m01_config.py", "chapter 9 shows how"),
        ("test_m02_kv_budget.py", "chapter 8, under Milestone M2, counts what"),
    ],
)
def test_not_started_is_skipped_with_a_hint(config_path, test, shown):
    told = run_milestone(config_path, test)
    assert "1 skipped" in told and "not started: write your design to checkpoints/myllm" in told
    assert shown in told


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
    for judge in (judge_m1, judge_m2):
        (finding,) = judge(path)
        assert "\n" not in finding


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


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("judged") / "config.json"


def judged(path, config: TransformerConfig) -> list[str]:
    config.to_json(path)
    return judge_m1(path)


designs = st.builds(
    lambda heads, half, **sizes: TransformerConfig(dim=2 * heads * half, n_heads=heads, **sizes),
    heads=st.integers(1, 12),
    half=st.integers(1, 40),
    vocab_size=st.integers(1, 100_000),
    n_layers=st.integers(1, 200),
    max_seq_len=st.integers(32, 200),
    ffn_dim_multiplier=st.floats(0.5, 8),
    tie_word_embeddings=st.booleans(),
).filter(lambda config: config.num_params() > M1_BUDGET)


@settings(max_examples=100)
@given(designs)
def test_over_the_budget_each_advice_is_enough_and_asks_for_no_more(path, config):
    (finding,) = judged(path, config)
    has, over = re.search(r"has ([\d,]+) parameters, ([\d,]+) more", finding).groups()
    assert int(has.replace(",", "")) == config.num_params()
    assert int(over.replace(",", "")) == config.num_params() - M1_BUDGET
    told = dict(re.findall(r"(vocab_size|dim|n_layers) at most ([\d,]+)", finding))
    for field in ("vocab_size", "dim", "n_layers"):
        step = 2 * config.n_heads if field == "dim" else 1
        most = int(told.get(field, "0").replace(",", ""))
        if most:
            assert replace(config, **{field: most}).num_params() <= M1_BUDGET
        assert replace(config, **{field: most + step}).num_params() > M1_BUDGET
    assert told or "no single field" in finding


def test_the_budget_is_met_to_the_last_word(path):
    most = largest_within(replace(GOOD, vocab_size=10**6), "vocab_size", M1_BUDGET)
    assert judged(path, replace(GOOD, vocab_size=most)) == []
    (finding,) = judged(path, replace(GOOD, vocab_size=most + 1))
    assert f"vocab_size at most {most:,}" in finding


def test_a_deep_design_is_quick_to_judge(path):
    start = time.perf_counter()
    assert judged(path, TransformerConfig(2, 2, 4_900, 1, max_seq_len=2**20)) == []
    assert time.perf_counter() - start < 3  # all blocks built, it takes about six seconds


def test_all_that_is_wrong_is_said_at_once(path):
    findings = judged(path, replace(GOOD, vocab_size=10**6, max_seq_len=8))
    assert [f.split()[0] for f in findings] == ["The", "max_seq_len", "vocab_size"]


def test_logits_of_another_shape_are_refused(path, monkeypatch):
    monkeypatch.setattr(
        milestones, "Transformer", lambda config: lambda ids: torch.zeros(4, 31, config.vocab_size)
    )
    (finding,) = judged(path, GOOD)
    assert "(4, 31, 1024), not (4, 32, 1024)" in finding


def test_judging_leaves_random_numbers_alone(path):
    before = torch.get_rng_state()
    assert judged(path, GOOD) == []
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "where", ["Config.JSON", "config (1).json", "config.json.txt", "myllm/config.json"]
)
def test_a_file_in_the_wrong_place_is_found(tmp_path, where):
    GOOD.to_json(tmp_path / where)
    if (tmp_path / "config.json").exists():
        pytest.skip("this file system does not tell capital letters")
    assert design_started(tmp_path / "config.json")
    (finding,) = judge_m1(tmp_path / "config.json")
    assert "There is no file" in finding and f"Was {tmp_path / where} meant?" in finding


def test_nothing_is_started_without_a_file(tmp_path):
    (tmp_path / "configuration.md").write_text("notes")
    for path in (tmp_path / "config.json", tmp_path / "nowhere" / "config.json"):
        assert not design_started(path)
        assert "There is no file" in judge_m1(path)[0]


@pytest.mark.parametrize("path", [5, None, b"config.json", "a\0b", GOOD])
def test_only_a_text_or_a_path_is_judged(path):
    for judge in (judge_m1, judge_m2, design_started):
        with refused("path = ", "must be a text or a Path"):
            judge(path)


# M2: the cache within its budget

SHARED = replace(GOOD, n_kv_heads=1, max_seq_len=512)  # 6,291,456 bytes of keys and values


@pytest.mark.parametrize(
    "change, told",
    [
        ({}, "1 passed"),
        ({"n_kv_heads": 2}, "takes 12,582,912 bytes, and 8,000,000 are the limit; with all else"),
        ({"n_kv_heads": None}, "n_kv_heads is left open, so each of the 4 query heads"),
        ({"max_seq_len": 511}, "max_seq_len = 511 is too short for 512 tokens"),
        ({"vocab_size": 8000}, "The design has 3,"),
    ],
)
def test_the_cache_milestone_accepts_a_choice_or_says_what_to_change(config_path, change, told):
    replace(SHARED, **change).to_json(config_path)
    printed = run_milestone(config_path, "test_m02_kv_budget.py")
    assert told in printed and "Traceback" not in printed


@settings(max_examples=200)
@given(
    heads=st.integers(1, 48),
    kv_heads=st.integers(1, 48),
    half=st.integers(1, 16),
    layers=st.integers(1, 12),
)
def test_the_advice_on_shared_heads_is_the_largest_that_fits(path, heads, kv_heads, half, layers):
    kv_heads = kv_heads if heads % kv_heads == 0 else None
    design = TransformerConfig(8, 2 * half * heads, layers, heads, kv_heads, max_seq_len=512)
    design.to_json(path)
    told = " ".join(judge_m2(path))
    taken = 2 * layers * design.kv_heads * design.head_dim * 512 * 8 * 4  # keys, values; float32
    assert ("are the limit" in told) == (taken >= M2_CACHE)
    if advised := re.search(r"n_kv_heads at most (\d+)", told):
        fits = [
            n
            for n in range(1, heads + 1)
            if heads % n == 0 and n * taken < M2_CACHE * design.kv_heads
        ]
        assert int(advised[1]) == max(fits)


def test_a_cache_that_fits_to_the_byte_is_accepted_and_one_more_is_not(path, monkeypatch):
    SHARED.to_json(path)
    monkeypatch.setattr(milestones, "M2_CACHE", 6_291_457)
    assert judge_m2(path) == []
    monkeypatch.setattr(milestones, "M2_CACHE", 6_291_456)
    assert "no n_kv_heads alone can mend that" in judge_m2(path)[0]


def test_a_monstrous_number_of_heads_is_judged_at_once(path):
    TransformerConfig(8, 2 * 10**9, 1, 10**9, max_seq_len=512).to_json(path)
    assert any("are the limit" in finding for finding in judge_m2(path))
