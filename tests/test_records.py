"""What ships of three trainings: it is what training gives, and within the milestones."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import islice

import pytest
import torch
from safetensors.torch import load

from glassformer import records
from glassformer.checkpoints import save_model
from glassformer.milestones import judge_m1, judge_m2
from glassformer.models import TransformerConfig
from glassformer.pretraining import Recipe, open_run, train
from glassformer.records import DESIGNS, load_novelist, load_records


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.num_params():,}")
def test_the_designs_pass_m1_and_with_a_longer_window_m2(design, tmp_path):
    path = tmp_path / "config.json"
    design.to_json(path)
    assert judge_m1(path) == []
    replace(design, max_seq_len=512).to_json(path)
    assert judge_m2(path) == []


def test_there_is_a_whole_record_of_each_design():
    recipe, kept = Recipe(), load_records()
    assert [record.config for record in kept] == list(DESIGNS)
    looks = list(range(recipe.evaluate_every, recipe.steps + 1, recipe.evaluate_every))
    for record in kept:
        assert [entry["step"] for entry in record.history] == looks
        assert all(entry["sample"].startswith("The whale") for entry in record.history)


def test_training_begins_as_the_record_says(tmp_path):
    run = open_run(DESIGNS[0], tmp_path, Recipe())
    for _ in islice(train(run), run.recipe.evaluate_every):
        pass
    (mine,), theirs = run.progress.history, load_records()[0].history[0]
    for kind in ("train_loss", "held_out_loss", "bits_per_letter"):
        assert mine[kind] == pytest.approx(theirs[kind], abs=0.01)


def test_the_novelist_is_what_the_record_ends_with(tmp_path):
    model, tokenizer = load_novelist()
    run = open_run(DESIGNS[0], tmp_path, Recipe())
    run.model.load_state_dict(model.state_dict())
    end = load_records()[0].history[-1]
    assert run.held_out_loss() == pytest.approx(end["held_out_loss"], abs=1e-3)
    assert tokenizer.encode("Call me Ishmael.") == run.corpus.tokenizer.encode("Call me Ishmael.")
    letters, tokens = run.corpus.letters, len(run.corpus.held_out)
    bits = end["held_out_loss"] * tokens / letters / math.log(2)
    assert end["bits_per_letter"] == pytest.approx(bits)


def test_loading_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(1)
    load_novelist()
    after = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(3))


def test_the_command_trains_the_designs_and_writes_what_ships(tmp_path, monkeypatch, capsys):
    design = TransformerConfig(
        2_000, 8, 1, 2, 1, max_seq_len=32, ffn_dim_multiplier=1.0, tie_word_embeddings=True
    )
    monkeypatch.setattr(records, "DESIGNS", (design,))
    monkeypatch.setattr(records, "Recipe", lambda: Recipe(steps=2, tokens=64))
    monkeypatch.setattr(records, "RECORDS", tmp_path / "records.json")
    monkeypatch.setattr(records, "NOVELIST", tmp_path / "novelist.safetensors")
    records.main(tmp_path / "runs")
    (record,) = load_records()
    assert record.config == design and [entry["step"] for entry in record.history] == [1, 2]
    assert "step 2: 7." in capsys.readouterr().out
    trained = json.loads((tmp_path / f"runs/{design.num_params()}/history.json").read_text())
    assert trained == record.history
    model, _ = load_novelist()
    save_model(model, tmp_path / "copy")
    kept = load((tmp_path / "copy/model.safetensors").read_bytes())
    whole = load((tmp_path / f"runs/{design.num_params()}/model.safetensors").read_bytes())
    for name, weights in whole.items():
        assert torch.equal(kept[name], weights.half().float())
