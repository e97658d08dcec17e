"""`glassformer train`, `generate` and `export`, from config.json to a model that others load."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from glassformer import cli_models, generation
from glassformer.bpe import BytePairTokenizer
from glassformer.cli import app
from glassformer.generation import generate
from glassformer.milestones import WORKSPACE
from glassformer.models import Transformer, TransformerConfig
from glassformer.pretraining import PROMPT, STATE, Run, load_trained

START = [sys.executable, "-c", "from glassformer.cli import app; app()"]
DESIGN = TransformerConfig(
    260, 24, 2, 4, 2, max_seq_len=48, ffn_dim_multiplier=1.0, tie_word_embeddings=True
)


def call(*arguments):
    """Call `glassformer` in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Return a folder with a trained design, and what was printed meanwhile."""
    folder = tmp_path_factory.mktemp("my design")
    DESIGN.to_json(folder / "config.json")
    done = call("train", folder, "--steps", 4)
    assert done.exit_code == 0, done.output
    return folder, done.output


@pytest.fixture
def folder(shared, tmp_path):
    """Return a copy of the trained folder."""
    return shutil.copytree(shared[0], tmp_path / "mine")


def test_training_tells_how_it_goes(shared):
    folder, told = shared
    assert f"{DESIGN.num_params():,} parameters" in told and "tokens of Moby-Dick in 260" in told
    assert (
        re.search(r"^step 4 of 4 · after \d+ s · loss ", told, re.M)
        and "bits per letter" in told
        and f"'{PROMPT}" in told
    )
    command = shlex.split(told.partition("Trained. Let it write: glassformer ")[2])
    assert call(*command, "--tokens", 5).output.startswith("Call me")
    files = {".lock", "config.json", "model.safetensors", "tokenizer.json", "history.json", STATE}
    assert {path.name for path in folder.iterdir()} == files


def test_trained_already_it_says_so_and_changes_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = call("train", folder, "--steps", 4)
    assert done.exit_code == 0 and "Trained" not in done.output
    assert "All 4 steps are done already.\nLet it write: glassformer generate" in done.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_default_folder_need_not_be_named(shared, tmp_path, monkeypatch):
    shutil.copytree(shared[0], tmp_path / WORKSPACE)
    monkeypatch.chdir(tmp_path)
    told = call("train", "--steps", 4).output
    assert told.endswith('Let it write: glassformer generate "Call me"\n')
    assert call("generate", "Call me", "--tokens", 5).output.startswith("Call me")


def test_the_help_says_that_tokens_come():
    assert "token by token" in call("generate", "--help").output


def test_what_is_written_is_what_generate_writes(folder):
    written = call("generate", "Call me", "--folder", folder, "--tokens", 20, "--temperature", 0)
    model, tokenizer = load_trained(folder)
    ids = generate(model, tokenizer.encode("Call me"), 20)
    assert written.output == tokenizer.decode(ids.tolist()) + "\n"


def test_a_text_longer_than_the_window_goes_on(folder):
    written = call("generate", "Call me", "--folder", folder, "--tokens", 130)
    assert written.exit_code == 0 and len(written.output) > 130


def test_a_seed_gives_the_same_text_and_another_another(folder):
    texts = [call("generate", "A", "--folder", folder, "--seed", s).output for s in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_where_letters_are_few_the_others_are_question_marks(folder):
    command = [*START, "generate", "“Aye", "--folder", str(folder), "--tokens", "3"]
    few = {**os.environ, "PYTHONIOENCODING": "ascii"}
    written = subprocess.run(command, env=few, capture_output=True, text=True)
    assert written.returncode == 0 and written.stdout.startswith("?Aye"), written.stderr


def test_a_token_without_text_hides_no_prompt(folder, monkeypatch):
    monkeypatch.setattr(BytePairTokenizer, "decode_stream", lambda self, ids: iter(()))
    assert call("generate", "Call me", "--folder", folder).output == "Call me\n"


def test_the_text_streams(monkeypatch):
    """A token is there before the next one is chosen."""
    chosen: list[int] = []
    choose = generation.choose

    def noted(*given, **choices):
        chosen.append(choose(*given, **choices).item())
        return torch.tensor(chosen[-1:])

    monkeypatch.setattr(generation, "choose", noted)
    ids = generation.stream(Transformer(DESIGN).eval(), [1, 2], 40, temperature=1.0)
    for written in (1, 2, 3):
        assert next(ids) == chosen[-1] and len(chosen) == written


@pytest.mark.parametrize("prompt", ["Call me", "The whale", "“Aye, aye!”—"])
def test_transformers_loads_the_export_and_writes_the_same_tokens(folder, prompt):
    out = folder.parent / "exported"
    done = call("export", out, "--folder", folder)
    assert done.exit_code == 0 and "AutoModelForCausalLM.from_pretrained" in done.output
    peer = AutoModelForCausalLM.from_pretrained(out)
    splitter = AutoTokenizer.from_pretrained(out)
    model, tokenizer = load_trained(folder)
    ids = tokenizer.encode(prompt)
    assert splitter(prompt)["input_ids"] == ids
    theirs = peer.generate(torch.tensor([ids]), max_new_tokens=30, do_sample=False)[0]
    assert theirs.tolist() == generate(model, ids, 30).tolist()
    assert splitter.decode(theirs) == tokenizer.decode(theirs.tolist())


def test_an_export_does_not_overwrite_the_model_itself(folder):
    done = call("export", folder, "--folder", folder)
    assert done.exit_code == 2 and "export to a folder of its own" in done.output


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["generate", "Call é"], "The letter 'é' does not occur"),
        (["generate", ""], "The prompt is empty"),
        (["generate", "a", "--top-p", "0"], "top_p = 0.0 cannot be"),
        (["train", "--steps", "9"], "belongs to a run with steps = 4, not 9"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(folder, arguments, told):
    where = [str(folder)] if arguments[0] == "train" else ["--folder", str(folder)]
    done = call(arguments[0], *where, *arguments[1:])
    assert done.exit_code == 2 and told in done.output
    assert (
        done.output.count("\n") <= 2 + ("parameters" in done.output)
        and "Traceback" not in done.output
    )


@pytest.mark.parametrize(
    "config, told",
    [
        (None, "config.json; chapter 9 shows how to write one."),
        ("{", "is not JSON"),
        ('{"dim": 8}', "The config lacks vocab_size"),
        (
            '{"vocab_size": 30, "dim": 8, "n_layers": 1, "n_heads": 1}',
            "vocab_size = 30 is too small",
        ),
    ],
)
def test_a_bad_config_is_told_in_a_sentence(tmp_path, config, told):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    done = call("train", tmp_path)
    assert done.exit_code == 2 and told in done.output and done.output.count("\n") == 1


def test_an_untrained_folder_says_what_to_do(tmp_path):
    for command in (["generate", "a"], ["export", tmp_path / "out"]):
        done = call(*command, "--folder", tmp_path)
        assert done.exit_code == 2 and "`glassformer train` writes it" in done.output


def test_ctrl_c_ends_between_steps_and_the_same_command_goes_on(tmp_path):
    DESIGN.to_json(tmp_path / "config.json")
    command = [*START, "train", str(tmp_path), "--steps", "400"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while "step 40 of" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        told = process.stdout.read()
    assert process.returncode == 130 and told.endswith("goes on from here.\n")
    assert (tmp_path / STATE).exists() and not (tmp_path / "model.safetensors").exists()


def test_ctrl_c_on_a_full_disk_does_not_say_that_it_goes_on(tmp_path, monkeypatch):
    def full(run):
        raise ValueError("training.safetensors cannot be written: No space left on device.")

    DESIGN.to_json(tmp_path / "config.json")
    monkeypatch.setattr(Run, "save", full)
    monkeypatch.setattr(cli_models, "_stoppable", lambda: nullcontext(lambda: True))
    done = call("train", tmp_path, "--steps", 400)
    assert done.exit_code == 2 and "No space left on device" in done.output
    assert "goes on from here" not in done.output


def test_ctrl_c_in_the_last_step_lets_it_finish(tmp_path, monkeypatch):
    DESIGN.to_json(tmp_path / "config.json")
    monkeypatch.setattr(cli_models, "_stoppable", lambda: nullcontext(lambda: True))
    done = call("train", tmp_path, "--steps", 1)
    assert done.exit_code == 0 and "Trained." in done.output
    assert (tmp_path / "model.safetensors").exists()


def test_on_a_terminal_a_bar_tells_loss_speed_and_time_left(tmp_path):
    DESIGN.to_json(tmp_path / "config.json")
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [*START, "train", str(tmp_path), "--steps", "20"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown, end = b"", time.monotonic() + 120
        while time.monotonic() < end:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other side has closed
                break
    os.close(ours)
    told = shown.decode()
    assert process.returncode == 0
    assert "tokens/s" in told and "loss" in told and "0:00:0" in told


def test_the_history_is_plain_data(folder):
    entries = json.loads((folder / "history.json").read_text("utf-8"))
    assert [entry["step"] for entry in entries] == [1, 2, 3, 4]
    assert set(entries[0]) == {"step", "train_loss", "held_out_loss", "bits_per_letter", "sample"}
