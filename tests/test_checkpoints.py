"""Weights in files: what is saved comes back, and what does not fit is refused in one sentence."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from safetensors.torch import load_file, save, save_file

from glassformer import checkpoints
from glassformer.checkpoints import (
    TINY_CONFIG,
    initial_baby_groot,
    initial_tiny,
    load_baby_groot,
    load_model,
    load_tiny,
    load_weights,
    save_model,
    save_weights,
)
from glassformer.models import BabyGrootGPT, Transformer
from one_sentence import refused
from test_config import small_configs

SHIPPED = [load_baby_groot, initial_baby_groot, load_tiny, initial_tiny]


@pytest.mark.parametrize("load", SHIPPED)
def test_shipped_weights_are_those_of_the_course(load):
    model, again = load(), load()
    groot = isinstance(model, BabyGrootGPT)
    assert model.num_params() == (968 if groot else 19_104)
    assert {p.dtype for p in model.parameters()} == {torch.float64 if groot else torch.float32}
    assert not model.training
    assert all(torch.isfinite(p).all() and p.requires_grad for p in model.parameters())
    for p, q in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(p, q) and p.data_ptr() != q.data_ptr(), "each call gives its own copy"


def test_a_loaded_config_is_the_callers_own():
    model = load_tiny()
    model.config.max_seq_len = 64
    assert TINY_CONFIG.max_seq_len == 16 == load_tiny().config.max_seq_len


def test_baby_groots_first_weights_were_drawn_in_float32():
    for tensor in initial_baby_groot().state_dict().values():
        assert torch.equal(tensor, tensor.float().double())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("models")


@settings(max_examples=30)
@given(small_configs)
def test_a_model_comes_back_as_it_was_saved(folder, config):
    model = Transformer(replace(config, extra={"name": "mine"}))
    save_model(model, folder)
    again = load_model(folder)
    assert again.config == config and again.config.extra == {"name": "mine"}
    assert not again.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert (again.output.weight is again.tok_embeddings.weight) == config.tie_word_embeddings
    held = sum(tensor.numel() for tensor in load_file(folder / "model.safetensors").values())
    assert held == config.num_params(), "a tied head is stored once"
    ids = torch.zeros(1, 1, dtype=torch.int64)
    assert torch.equal(again(ids), model(ids))


def test_baby_groot_comes_back_as_it_was_saved(tmp_path):
    model = BabyGrootGPT(7, 3, 6).double()
    save_weights(model, tmp_path / "groot.safetensors")
    again = BabyGrootGPT(7, 3, 6).double()
    load_weights(again, tmp_path / "groot.safetensors")
    assert all(map(torch.equal, model.parameters(), again.parameters()))


@pytest.fixture
def tiny(tmp_path) -> Path:
    """Return a folder that holds the tiny model."""
    save_model(load_tiny(), tmp_path / "tiny")
    return tmp_path / "tiny"


def test_loading_and_saving_leave_random_numbers_alone(tiny):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    for load in SHIPPED:
        load()
    save_model(load_model(tiny), tiny)
    assert torch.equal(torch.get_rng_state(), before)
    Transformer(TINY_CONFIG)
    assert not torch.equal(torch.get_rng_state(), before), "building does draw"


def weights() -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in load_tiny().state_dict().items()}


def without(name: str) -> dict:
    return {key: tensor for key, tensor in weights().items() if key != name}


WHOLE = save(weights())
BROKEN = {
    "empty": b"",
    "text": b"these are no weights",
    "a pickle": b"PK\x03\x04" + b"\0" * 200,
    "cut in its header": WHOLE[:100],
    "cut in its numbers": WHOLE[:-1],
    "longer than it says": WHOLE + b"\0",
    "a header of gigabytes": b"\xff" * 8 + WHOLE[8:],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_checkpoint_gives_one_clear_sentence(tiny, kind):
    (tiny / "model.safetensors").write_bytes(BROKEN[kind])
    with refused("model.safetensors is not a whole safetensors file"):
        load_model(tiny)
    with refused("model.safetensors is not a whole safetensors file"):
        load_weights(load_tiny(), tiny / "model.safetensors")


norm = "layers.1.ffn_norm.weight"
FOREIGN = {
    "missing": (without(norm), f"lacks the weight {norm}"),
    "foreign": (weights() | {"bias": torch.zeros(3)}, "has a weight bias that this model"),
    "renamed": (without(norm) | {"norm.scale": torch.ones(32)}, "layers.1.ffn_norm.weight"),
    "misshapen": (weights() | {norm: torch.ones(4, 8)}, f"{norm} has shape [4, 8]"),
    "another model": (load_baby_groot().state_dict(), "has a weight head.bias that this model"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_checkpoint_of_another_model_gives_one_clear_sentence(tiny, kind):
    tensors, words = FOREIGN[kind]
    save_file(tensors, tiny / "model.safetensors")
    model = load_tiny()
    with refused("model.safetensors", words):
        load_weights(model, tiny / "model.safetensors")
    for name, tensor in weights().items():
        assert torch.equal(model.state_dict()[name], tensor), "a refused file changes nothing"
    with refused("model.safetensors"):
        load_model(tiny)


def test_a_config_that_does_not_fit_its_weights_is_seen_before_anything_is_built(tiny, monkeypatch):
    replace(TINY_CONFIG, vocab_size=10**9, n_layers=10**6).to_json(tiny / "config.json")
    monkeypatch.setattr(checkpoints, "Transformer", None)
    with refused("19,104 numbers", "they do not belong together"):
        load_model(tiny)


def test_a_folder_without_its_files_gives_one_clear_sentence(tiny):
    (tiny / "model.safetensors").unlink()
    with refused("There is no checkpoint", "model.safetensors"):
        load_model(tiny)
    (tiny / "model.safetensors").mkdir()
    with refused("model.safetensors cannot be read", "not a file"):
        load_model(tiny)
    (tiny / "config.json").unlink()
    with refused("There is no file", "config.json"):
        load_model(tiny)
    with refused("There is no file"):
        load_model(tiny / "nowhere")


def test_a_place_that_cannot_be_written_gives_one_clear_sentence(tiny, monkeypatch):
    (tiny / "file").write_text("in the way")
    with refused("cannot be written"):
        save_model(load_tiny(), tiny / "file")
    old = (tiny / "model.safetensors").read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with refused("cannot be written: No space left on device"):
        save_weights(initial_tiny(), tiny / "model.safetensors")
    assert (tiny / "model.safetensors").read_bytes() == old
    assert {p.name for p in tiny.iterdir()} == {"config.json", "file", "model.safetensors"}


DEVICE = Path("/dev/zero")


@pytest.mark.skipif(not DEVICE.exists(), reason="this system has no such device")
def test_a_device_without_an_end_is_refused_at_once():
    with refused("/dev/zero cannot be read", "not a file"):
        load_weights(load_tiny(), DEVICE)


def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tiny):
    (tiny / "model.safetensors").unlink()
    os.mkfifo(tiny / "model.safetensors")
    with refused("cannot be read", "not a file"):
        load_model(tiny)


@pytest.mark.parametrize("model", [5, None, "tiny", {}, torch.ones(2), TINY_CONFIG])
def test_only_models_are_saved_and_filled(tiny, model):
    with refused("needs a model"):
        save_weights(model, tiny / "model.safetensors")
    with refused("needs a model"):
        load_weights(model, tiny / "model.safetensors")
    with refused("needs a Transformer"):
        save_model(model, tiny)


def test_baby_groot_has_no_config_to_save(tmp_path):
    with refused("needs a Transformer", "save_weights", "BabyGrootGPT"):
        save_model(load_baby_groot(), tmp_path)


@pytest.mark.parametrize("path", [5, None, b"tiny", ["tiny"], "a\0b", "\ud800", TINY_CONFIG])
def test_only_a_text_or_a_path_names_a_file(path):
    for use in (load_weights, save_weights, save_model, lambda model, path: load_model(path)):
        with refused("path = ", "must be a text or a Path"):
            use(load_tiny(), path)


def test_a_config_changed_since_is_not_saved(tiny):
    model = load_tiny()
    model.config.n_heads = 5
    with refused("n_heads = 5 cannot be"):
        save_model(model, tiny)
    assert load_model(tiny).config == TINY_CONFIG
