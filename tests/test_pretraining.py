"""Training a design of one's own: a peer's steps, what stops it, what it leaves and refuses."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import random
import signal
import sys
import time

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save
from transformers import get_cosine_with_min_lr_schedule_with_warmup

from drawn import configs, drawn
from glassformer import pretraining
from glassformer.checkpoints import load_model, own_tensors
from glassformer.huggingface import to_huggingface
from glassformer.models import Transformer, TransformerConfig
from glassformer.models.fused import fuse
from glassformer.pretraining import (
    HISTORY,
    STATE,
    Corpus,
    Recipe,
    Run,
    load_trained,
    open_run,
    train,
)
from one_sentence import refused

linux = pytest.mark.skipif(sys.platform != "linux", reason="kills and limits processes")
SMALL = TransformerConfig(
    300, 24, 2, 4, 2, max_seq_len=32, ffn_dim_multiplier=1.0, tie_word_embeddings=True
)
SHORT = Recipe(steps=30, tokens=128)


@pytest.fixture(scope="module")
def corpus():
    """Return the novel in 300 pieces, of what is held out a little."""
    whole = Corpus.of(SMALL.vocab_size)
    letters = len(whole.tokenizer.decode(whole.held_out[:2000].tolist()))
    return dataclasses.replace(whole, held_out=whole.held_out[:2000], letters=letters)


@pytest.fixture
def begin(corpus, tmp_path, monkeypatch):
    """Return a function that opens a run in a folder, as `open_run` does, the text already read."""
    monkeypatch.setattr(Corpus, "of", lambda vocab_size: corpus)

    def begin(folder=tmp_path, config=SMALL, recipe=SHORT, **choices) -> Run:
        return open_run(config, folder, recipe, **choices)

    return begin


def ended(run: Run) -> Run:
    """Return the run with all its steps taken."""
    for _ in train(run):
        pass
    return run


def same(one: Run, other: Run) -> bool:
    """Return whether two runs have the same weights, bit for bit, and the same history."""
    a, b = one.model.state_dict(), other.model.state_dict()
    equal = all(torch.equal(a[name], b[name]) for name in a.keys() | b.keys())
    return equal and one.progress == other.progress


# The model and its steps


@settings(max_examples=40)
@given(configs(st.integers(2, 12)), st.integers(1, 3), st.integers(0, 10))
def test_fused_attention_gives_the_same_logits_and_gradients(config, batch, seed):
    plain, fused = drawn(config, seed), fuse(drawn(config, seed))
    ids = torch.randint(config.vocab_size, (batch, config.max_seq_len))
    for model in (plain, fused):
        model(ids).logsumexp(-1).square().sum().backward()
    assert torch.allclose(plain(ids), fused(ids), rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(plain.parameters(), fused.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, rtol=1e-9, atol=1e-9)


def test_steps_are_those_of_hugging_face_and_pytorch(begin, corpus):
    """The peer: Hugging Face's model with the same first weights, PyTorch's AdamW, clipping."""
    run = begin()
    peer = to_huggingface(run.model).train()
    matrices = [p for p in peer.parameters() if p.dim() > 1]
    gains = [p for p in peer.parameters() if p.dim() == 1]
    adamw = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}],
        lr=1.0,
        betas=(0.9, 0.95),
    )
    for step in range(SHORT.steps):
        x, y = corpus.batch(SHORT, step, SMALL.max_seq_len)
        loss = F.cross_entropy(peer(input_ids=x).logits.flatten(0, 1), y.flatten())
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        for group in adamw.param_groups:
            group["lr"] = SHORT.learning_rate(step)
        adamw.step()
        assert run.advance() == pytest.approx(loss.item(), abs=2e-4)
    x, _ = corpus.batch(SHORT, 99, SMALL.max_seq_len)
    with torch.no_grad():
        assert torch.allclose(run.model(x), peer(input_ids=x).logits, atol=5e-3)


@given(st.integers(2, 400))
def test_the_learning_rate_rises_and_falls_like_hugging_face_s(steps):
    recipe = Recipe(steps=steps)
    rising = max(1, round(0.05 * steps))
    peer = torch.optim.SGD([torch.zeros(1)], lr=recipe.peak)
    schedule = get_cosine_with_min_lr_schedule_with_warmup(peer, rising, steps, min_lr_rate=0.1)
    for step in range(steps):
        if step >= rising:
            assert recipe.learning_rate(step) == pytest.approx(schedule.get_last_lr()[0], rel=1e-9)
        else:  # theirs begins at 0, a step that learns nothing
            assert recipe.learning_rate(step) == pytest.approx(recipe.peak * (step + 1) / rising)
        peer.step()
        schedule.step()


def test_the_loss_held_out_counts_each_token_once(begin, corpus):
    run = begin()
    T, ids, nats = SMALL.max_seq_len, corpus.held_out, []
    with torch.no_grad():
        for start in range(0, len(ids) - T, T):
            logits = run.model(ids[None, start : start + T])[0]
            nats += F.cross_entropy(
                logits, ids[start + 1 : start + T + 1], reduction="none"
            ).tolist()
    assert run.held_out_loss() == pytest.approx(math.fsum(nats) / len(nats), abs=1e-5)
    assert len(nats) > len(ids) - T - 1


def test_a_window_longer_than_a_step_is_looked_through_as_it_is_trained(begin):
    longer = dataclasses.replace(SMALL, max_seq_len=512)
    run, seen = begin(config=longer), []
    run.model.register_forward_pre_hook(lambda model, given: seen.append(given[0].shape[1]))
    run.advance()
    run.held_out_loss()
    assert set(seen) == {SHORT.tokens}


def test_training_learns(begin):
    history = ended(begin(recipe=Recipe(steps=60, tokens=512))).progress.history
    losses = [entry["held_out_loss"] for entry in history]
    assert losses[0] > losses[-1] and losses[-1] < 5.4  # guessing among 300 costs 5.7
    assert all(entry["sample"].startswith(pretraining.PROMPT) for entry in history)


def test_what_is_drawn_disturbs_no_one(begin):
    before = torch.get_rng_state()
    run = begin()
    run.advance()
    run.look()
    assert torch.equal(torch.get_rng_state(), before)


# Stopped and gone on


@pytest.fixture(scope="module")
def at_once(corpus, tmp_path_factory) -> Run:
    """Return a run that was never stopped."""
    return ended(Run(SMALL, tmp_path_factory.mktemp("at once"), SHORT, corpus))


@linux
def test_killed_at_twenty_moments_it_ends_with_the_same_weights(begin, at_once, tmp_path):
    folder, draw = tmp_path / "killed", random.Random(3)
    steps = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            ended(begin(folder))
            os._exit(0)
        time.sleep(draw.uniform(0.02, 0.25))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        steps.append(
            begin(folder).progress.step
        )  # whatever was being written, a whole one is there
    assert steps == sorted(steps) and steps[0] < steps[-1]
    assert same(ended(begin(folder)), at_once)


@settings(max_examples=5)
@given(st.lists(st.integers(1, 29), min_size=1, max_size=4))
def test_stopped_between_any_steps_it_goes_on_from_there(tmp_path_factory, corpus, at_once, stops):
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Corpus, "of", lambda vocab_size: corpus)
        for stop in sorted(stops):
            run = open_run(SMALL, folder, SHORT)
            steps = train(run)
            while run.progress.step < stop:
                next(steps)
            steps.close()
            assert open_run(SMALL, folder, SHORT).progress.step == run.progress.step
        assert same(ended(open_run(SMALL, folder, SHORT)), at_once)


def test_batches_that_depend_on_more_than_their_number_are_noticed(
    begin, at_once, tmp_path, monkeypatch
):
    generator, drawn_as_ever = torch.Generator().manual_seed(0), Corpus.batch

    def running(corpus, recipe, step, window):
        step = int(torch.randint(10**6, (1,), generator=generator))
        return drawn_as_ever(corpus, recipe, step, window)

    def run(folder, stop):
        generator.manual_seed(0)
        steps = train(begin(folder))
        for _ in range(stop):
            next(steps)
        steps.close()
        generator.manual_seed(0)  # a new process begins with a new generator
        return ended(begin(folder))

    assert same(run(tmp_path / "a", 7), at_once)
    monkeypatch.setattr(Corpus, "batch", running)
    assert not same(run(tmp_path / "b", 7), run(tmp_path / "c", 8))


def test_the_number_of_threads_is_the_first_run_s(begin):
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        steps = train(begin())
        next(steps)
        steps.close()
        torch.set_num_threads(1)
        begin()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_a_finished_run_stays_as_it_is(begin, tmp_path):
    ended(begin())
    content = (tmp_path / STATE).read_bytes()
    run = begin()
    assert run.finished and list(train(run)) == []
    assert (tmp_path / STATE).read_bytes() == content


def test_a_fresh_run_begins_anew(begin):
    ended(begin())
    assert begin(fresh=True).progress.step == 0


# What it leaves


def test_a_trained_folder_is_a_model_with_its_tokenizer_and_history(begin, tmp_path):
    run = ended(begin())
    model, tokenizer = load_trained(tmp_path)
    assert model.config == SMALL and type(model.layers[0].attention).__name__ == "Attention"
    ids = torch.tensor([tokenizer.encode("Call me Ishmael.")])
    assert torch.allclose(model(ids), run.model(ids), atol=1e-5)
    history = json.loads((tmp_path / HISTORY).read_text("utf-8"))
    assert history == run.progress.history and len(history) == 10
    assert history[-1]["step"] == 30


def test_a_folder_without_a_model_is_refused(tmp_path):
    with refused("There is no", "`glassformer train` writes it"):
        load_trained(tmp_path)


def test_a_tokenizer_of_another_run_is_refused(begin, tmp_path):
    ended(begin())
    pretraining.BytePairTokenizer.train(pretraining.load_novel(), 400).save(
        tmp_path / "tokenizer.json"
    )
    with refused("different runs", "train again"):
        load_trained(tmp_path)


@pytest.mark.parametrize(
    "change, told",
    [
        ({"n_heads": 2, "n_kv_heads": 1}, "n_heads = 2, not 4"),
        ({"rope_theta": 500.0}, "rope_theta = 500.0, not 10000.0"),
    ],
)
def test_a_design_changed_after_training_is_not_what_writes(begin, tmp_path, change, told):
    run = ended(begin(recipe=Recipe(steps=1, tokens=64)))
    dataclasses.replace(run.config, **change).to_json(tmp_path / "config.json")
    with refused("config.json was changed after training", told, "train again"):
        load_trained(tmp_path)


def test_an_edit_while_it_trains_is_kept(begin, tmp_path):
    run = begin(recipe=Recipe(steps=1, tokens=64))
    mine = dataclasses.replace(run.config, n_layers=3)
    mine.to_json(tmp_path / "config.json")
    ended(run)
    assert TransformerConfig.from_json(tmp_path / "config.json") == mine


def test_what_changes_no_number_does_not_end_a_run(begin, tmp_path):
    design = dataclasses.replace(SMALL, n_kv_heads=None)
    ended(begin(config=design, recipe=Recipe(steps=1, tokens=64)))
    same_design = {**design.to_dict(), "n_kv_heads": design.n_heads, "note": "mine"}
    (tmp_path / "config.json").write_text(json.dumps(same_design))
    again = TransformerConfig.from_json(tmp_path / "config.json")
    assert begin(config=again, recipe=Recipe(steps=1, tokens=64)).finished
    assert load_trained(tmp_path)[0].config == again


# What it refuses


@pytest.mark.parametrize(
    "change, told",
    [
        ({"config": dataclasses.replace(SMALL, dim=32)}, "dim = 24, not 32"),
        ({"config": dataclasses.replace(SMALL, n_kv_heads=None)}, "n_kv_heads = 2, not 4"),
        ({"recipe": Recipe(steps=31, tokens=128)}, "steps = 30, not 31"),
        ({"recipe": dataclasses.replace(SHORT, seed=1)}, "seed = 0, not 1"),
    ],
)
def test_another_run_s_checkpoint_is_refused(begin, change, told):
    begin().save()
    with refused("belongs to a run with", told, "begin anew with --fresh"):
        begin(**change)


def test_a_checkpoint_of_another_text_is_refused(begin, monkeypatch):
    begin().save()
    monkeypatch.setattr(pretraining, "load_novel", lambda: "Another text.")
    with refused("another text"):
        begin()


@settings(max_examples=40)
@given(place=st.floats(0, 0.999), bit=st.integers(0, 7))
def test_a_single_wrong_bit_is_noticed(tmp_path_factory, corpus, place, bit):
    folder = tmp_path_factory.getbasetemp() / "bits"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Corpus, "of", lambda vocab_size: corpus)
        if not folder.exists():
            steps = train(open_run(SMALL, folder, SHORT))
            next(steps)
            steps.close()
            (folder / STATE).rename(folder / "whole")
        content = bytearray((folder / "whole").read_bytes())
        content[int(place * len(content))] ^= 1 << bit
        (folder / STATE).write_bytes(content)
        with refused():
            open_run(SMALL, folder, SHORT)


def test_a_step_or_a_loss_that_was_not_written_is_noticed(begin, tmp_path):
    ended(begin())
    whole = (tmp_path / STATE).read_bytes()
    for old, new in ((b'step\\": 30', b'step\\": 10'), (b'threads\\": 1', b'threads\\": 0')):
        assert whole.count(old) >= 1
        (tmp_path / STATE).write_bytes(whole.replace(old, new, 1))
        with refused("is damaged", "Begin anew with --fresh"):
            begin()


@linux
def test_two_trainings_in_one_folder_are_one_too_many(begin, tmp_path):
    first = train(begin())
    next(first)
    with refused(f"Another training is at work in {tmp_path}", "wait"):
        next(train(begin()))
    first.close()
    assert ended(begin()).finished


def test_what_a_killed_run_left_half_written_is_cleared(begin, tmp_path):
    half = tmp_path / f".{STATE}.abcd1234"
    half.write_bytes(b"half")
    ended(begin(recipe=Recipe(steps=1, tokens=64)))
    assert not half.exists()


def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(begin, tmp_path):
    (tmp_path / "file").write_text("")
    with refused("cannot be written"):
        next(train(begin(tmp_path / "file")))


def test_want_of_memory_is_told_in_a_sentence(begin, monkeypatch):
    def full(*_):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 4294967296")

    run = begin()
    monkeypatch.setattr(run, "_loss", full)
    for do in (run.advance, run.look):
        with refused("more memory than there is", "smaller model"):
            do()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 100, None])
def test_a_broken_checkpoint_is_refused_in_a_sentence(begin, tmp_path, content):
    begin().save()
    whole = (tmp_path / STATE).read_bytes()
    (tmp_path / STATE).write_bytes(whole[:-5] if content is None else content)
    with refused("is damaged", "Begin anew with --fresh"):
        begin()


def test_a_checkpoint_that_cannot_be_opened_says_why(begin, tmp_path, monkeypatch):
    begin().save()

    def forbidden(path, *how):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(type(tmp_path), "open", forbidden)
    with refused("training.safetensors cannot be read", os.strerror(errno.EACCES)):
        begin()
    monkeypatch.undo()
    with refused("cannot be read", "a folder"):
        pretraining._read_state(tmp_path)


@linux
def test_a_full_disk_is_told_and_leaves_the_last_checkpoint(begin, tmp_path):
    """A limit on the size of files stands in for a full disk: the write fails halfway."""
    import resource

    steps = train(begin())
    next(steps)
    steps.close()
    before = (tmp_path / STATE).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with refused("training.safetensors cannot be written", os.strerror(errno.EFBIG)):
            ended(begin())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / STATE).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {".lock", STATE}


@pytest.mark.parametrize(
    "field, value",
    [
        ("steps", 0),
        ("steps", 2.5),
        ("tokens", 0),
        ("tokens", 10**9),
        ("seed", -1),
        ("steps", 10**400),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(field, value):
    with refused(f"{field} = ", "must be a whole number"):
        Recipe(**{field: value})


def test_a_vocabulary_smaller_than_the_alphabet_is_refused(tmp_path):
    with refused("vocab_size = 20 is too small", "set it to 85 or more"):
        open_run(dataclasses.replace(SMALL, vocab_size=20), tmp_path, SHORT)


def test_a_vocabulary_larger_than_the_text_supports_is_used_as_far_as_it_goes():
    corpus = Corpus.of(10**12)  # the library would make room for all of them
    assert len(corpus.tokenizer) < 17_000
    assert int(corpus.train.max()) < len(corpus.tokenizer)


def test_the_model_is_the_one_that_the_config_draws(begin):
    torch.manual_seed(0)
    for name, weight in Transformer(SMALL).state_dict().items():
        assert torch.equal(begin().model.state_dict()[name], weight), name


def test_a_trained_model_can_be_loaded_by_itself(begin, tmp_path):
    ended(begin())
    assert load_model(tmp_path).config == SMALL


@pytest.mark.parametrize("told", [None, {}, {"run": "x"}, {"run": "[1]"}, {"run": '{"config": 1}'}])
def test_weights_that_no_run_wrote_are_taken_as_they_are(begin, tmp_path, told):
    run = ended(begin(recipe=Recipe(steps=1, tokens=64)))
    (tmp_path / "model.safetensors").write_bytes(save(own_tensors(run.model), metadata=told))
    assert load_trained(tmp_path)[0].config == run.config
