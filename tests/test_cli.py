"""The command line: help, exit statuses, colours on a terminal only, a seed."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys

import nbformat
import pytest
from typer.testing import CliRunner

from glassformer.cli import app
from glassformer.config import TransformerConfig
from glassformer.exercises.bank import chapter_exercises, chapters
from glassformer.exercises.notebooks import notebook

FIRST = chapters()[0]
GOOD = TransformerConfig(
    vocab_size=256, dim=32, n_layers=2, n_heads=4, n_kv_heads=2, max_seq_len=512
)
START = [sys.executable, "-c", "from glassformer.cli import app; app()"]


def run(*arguments) -> subprocess.CompletedProcess:
    """Run `glassformer` with arguments, its output not on a terminal."""
    return subprocess.run([*START, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def design(tmp_path):
    """Return the path of an accepted design."""
    GOOD.to_json(tmp_path / "config.json")
    return tmp_path / "config.json"


def written(folder, fill):
    """Write the first chapter's notebook."""
    path = folder / f"{FIRST.notebook}.ipynb"
    path.write_text(nbformat.writes(notebook(FIRST, fill)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["grade", "--help"],
        ["grade-class", "--help"],
        ["gradescope", "--help"],
        ["train", "--help"],
        ["generate", "--help"],
        ["export", "--help"],
    ],
)
def test_help_everywhere(arguments):
    done = run(*arguments)
    assert done.returncode == 0 and "Usage" in done.stdout and not done.stderr


def test_the_command_is_installed():
    from importlib.metadata import entry_points

    (command,) = (e for e in entry_points(group="console_scripts") if e.name == "glassformer")
    assert command.load() is app


def test_a_good_design_has_status_0(design):
    done = run("grade", design)
    assert done.returncode == 0 and "15 of 15 points" in done.stdout and not done.stderr


def test_a_wrong_design_has_status_1_and_says_what_to_change(design):
    design.write_text(design.read_text().replace('"max_seq_len": 512', '"max_seq_len": 8'))
    done = run("grade", design)
    assert done.returncode == 1 and "\n0 of 15 points" in done.stdout
    assert done.stdout.count("max_seq_len = 8 is too short for") == 2
    assert "Traceback" not in done.stderr


def test_a_design_for_the_first_milestone_alone_has_its_points(design):
    design.write_text(design.read_text().replace('"n_kv_heads": 2', '"n_kv_heads": null'))
    done = run("grade", design)
    said = " ".join(done.stdout.split())
    assert done.returncode == 1 and "10 of 15 points" in said
    assert "✓ │ m1.design │ passed │ 10 of 10" in said
    assert "· │ m2.cache │ not attempted │ 0 of 5" in said
    assert "m2.cache to change: n_kv_heads is left open" in said


def test_nothing_to_grade_has_status_2_and_one_line(tmp_path):
    done = run("grade", tmp_path / "nowhere")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.count("\n") == 1 and "nothing to grade" in done.stderr


def test_where_processes_cannot_be_forked_is_said(design, monkeypatch):
    monkeypatch.delattr(os, "fork")
    done = CliRunner().invoke(app, ["grade", str(design)])
    assert done.exit_code == 2 and "needs Linux or macOS" in done.stderr


def test_a_solved_notebook_has_status_0(tmp_path):
    done = run("grade", written(tmp_path, lambda e: e.solved.source))
    most = sum(e.points for e in chapter_exercises(FIRST))
    assert done.returncode == 0 and f"{most} of {most} points" in done.stdout


def test_mistakes_are_named(tmp_path):
    done = run("grade", written(tmp_path, lambda e: e.mutants[0].source), "--seed", 3)
    said = " ".join(done.stdout.split())
    assert done.returncode == 1
    for exercise in chapter_exercises(FIRST):
        assert exercise.name in said and " ".join(exercise.mutants[0].message.split()) in said


def on_a_terminal(*arguments) -> bytes:
    """Return what `glassformer` shows on a terminal."""
    main, far = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    command = [*START, *map(str, arguments)]
    child = subprocess.Popen(command, stdout=far, env=environment)
    os.close(far)
    shown = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        shown += piece
    child.wait()
    os.close(main)
    return shown


def test_colours_on_a_terminal_only(design):
    assert "\x1b[" not in run("grade", design).stdout
    assert b"\x1b[" in on_a_terminal("grade", design)


def test_a_class_has_a_progress_bar_on_a_terminal_and_plain_lines_elsewhere(design, tmp_path):
    for name in ("ada", "ben"):
        (tmp_path / "class" / name).mkdir(parents=True)
        shutil.copy(design, tmp_path / "class" / name)
    arguments = ("grade-class", tmp_path / "class", "--out")
    plain = run(*arguments, tmp_path / "plain")
    assert plain.returncode == 0 and not plain.stderr and "\x1b" not in plain.stdout
    assert plain.stdout.startswith(
        "1 of 2: ada\n2 of 2: ben\n2 submissions graded: 30 of 30 points"
    )
    shown = on_a_terminal(*arguments, tmp_path / "shown")
    assert "━".encode() in shown and b"2/2" in shown and b"1 of 2" not in shown
    again = run(*arguments, tmp_path / "plain")
    assert again.stdout.startswith("2 submissions graded, 2 of them before: 30 of 30 points")
