"""Grading survives whatever an answer does: a clear line, and the points earned elsewhere."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from glassformer.exercises.bank import all_exercises, chapters, exercise
from glassformer.grading import sandbox
from glassformer.grading.reading import Notebook
from glassformer.grading.submission import MOST_ENDING, Grader, Result

ASKED = exercise("data.vocabulary")  # what the answers below are answers to
OTHER = exercise("data.decode")  # solved beside them
TENSOR = exercise("model.last_token_loss")
IMPORTS = "\n".join(dict.fromkeys("\n".join(c.setup for c in chapters()).splitlines()))
RIGHT = "return [*specials, *sorted({w for s in sentences for w in s.split()} - set(specials))]"


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Give answers more time than they need, however busy the machine is."""
    monkeypatch.setattr(sandbox, "CELLS_SECONDS", 30.0)
    for e in (ASKED, OTHER, TENSOR):
        monkeypatch.setattr(e, "seconds", 30.0)


@pytest.fixture
def two_seconds(monkeypatch):
    """Give what never ends two seconds only."""
    monkeypatch.setattr(sandbox, "CELLS_SECONDS", 2.0)
    monkeypatch.setattr(ASKED, "seconds", 2.0)


def function(body: str, e=ASKED) -> str:
    """Return the exercise's function with another body."""
    head = e.start.source.partition(":\n")[0]
    return f"{head}:\n" + "\n".join(f"    {line}" for line in body.splitlines())


def grade(*cells: str, e=ASKED):
    """Grade a notebook of these cells, in which another exercise is solved; return the verdict."""
    code = [IMPORTS, OTHER.solved.source, *cells, 'check("data.vocabulary", build_vocabulary)']
    grader = Grader(Notebook(Path("01_data.ipynb"), tuple(enumerate(code, start=1)), {}))
    verdict = grader.grade(e)
    other = grader.grade(OTHER)
    assert other.status == "passed" and other.earned == OTHER.points, other.lines()
    return verdict


def told(verdict) -> str:
    """Return all that is said of a wrong answer; it is short and no traceback."""
    text = "\n".join(line for _, line in verdict.lines())
    assert len(text) < 2_000 and "Traceback" not in text
    return text


def refused(verdict, *words: str) -> None:
    """Expect no points and a line with these words."""
    assert verdict.status == "failed" and verdict.earned == 0
    for word in words:
        assert word in told(verdict), told(verdict)


# What is right stays right ------------------------------------------------------------------------


@pytest.mark.parametrize("e", all_exercises(), ids=lambda e: e.name)
def test_solutions_and_mutants_get_what_they_get_in_a_notebook(e):
    for variant, status in (
        (e.solved, "passed"),
        (e.mutants[0], "failed"),
        (e.start, "not attempted"),
    ):
        cells = ((1, IMPORTS), (2, variant.source))
        verdict = Grader(Notebook(Path("any.ipynb"), cells, {}), seed=7).grade(e)
        assert verdict.status == status, verdict.lines()
        assert verdict.looks_like is (variant if status == "failed" else None)


@pytest.mark.parametrize(
    "body",
    [
        "import warnings\nwarnings.warn('x' * 10**6)",
        "print('x' * 10**7)",
        "import os\nos.write(1, b'x' * 10**6); os.write(2, b'x' * 10**6)",
        "import os\nos.closerange(0, 3)",
        "import os\nos.chdir('/')",
        "import sys\nsys.stdout = None",
        "from glassformer.exercises import check\ncheck('data.vocabulary', None)",
        "import random\nrandom.seed(1); torch.manual_seed(1)",
    ],
)
def test_harmless_habits_cost_no_points(body):
    assert grade(function(f"{body}\n{RIGHT}")).status == "passed"


def test_a_gradient_attached_costs_no_points():
    body = "logits = logits.clone().requires_grad_()\nlast = (X != 0).sum(1) - 1\n"
    body += "return F.cross_entropy(logits[torch.arange(len(X)), last], Y)"
    assert grade(function(body, TENSOR), e=TENSOR).status == "passed"


# Definitions --------------------------------------------------------------------------------------


def test_definitions():
    refused(grade("pass"), "`build_vocabulary` is not defined")
    refused(grade("def build_vocabluary(s, p): pass"), "Is `build_vocabluary` meant?")
    refused(grade("build_vocabulary = 3"), "is not a function")
    refused(grade("def build_vocabulary(sentences): return []"), "must be callable as", "specials")
    refused(grade("def build_vocabulary(: pass"), "not defined", "Cell 3", "invalid syntax")
    refused(grade("import nowhere\n" + function(RIGHT)), "Cell 3", "No module named 'nowhere'")


def test_the_last_definition_counts_and_the_check_does_not():
    assert grade(function("return []"), function(RIGHT)).status == "passed"
    assert grade(function(RIGHT), "check('nothing', 3)", "check()").status == "passed"
    twice = 'check("data.vocabulary", build_vocabulary)'
    assert grade(function(RIGHT), twice, twice).status == "passed"
    without = ((1, IMPORTS), (2, function(RIGHT)))
    assert Grader(Notebook(Path("any"), without, {})).grade(ASKED).status == "passed"


# Values -------------------------------------------------------------------------------------------

EQUAL = "class Equal:\n    def __eq__(self, other): return True\n    def __len__(self): return 5\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("pass", ["It returned None"]),
        ("return 'a text'", ["a text", "a list is expected"]),
        ("return tuple(specials)", ["a tuple", "a list is expected"]),
        ("return (word for word in specials)", ["a generator"]),
        ("import numpy\nreturn numpy.array(specials)", ["a NumPy array"]),
        ("return [Equal()] * 7", ["an object of type Equal"]),
        ("return Equal()", ["an object of type Equal"]),
        ("return print", ["builtin_function_or_method"]),
        ("a = []\na.append(a)\nreturn a", ["nested too deep"]),
        ("return ['x'] * 10**6", ["more data than"]),
        ("return [10**5000]", ["hundreds of digits"]),
        ("return ['x' * 10**7]", ["more than a million characters"]),
        (f"sentences.append('x')\n{RIGHT}", ["changes its input `sentences` in place"]),
        (f"torch.set_default_dtype(torch.float64)\n{RIGHT}", ["default dtype to torch.float64"]),
    ],
)
def test_values(body, words):
    refused(grade(EQUAL, function(body)), *words)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("torch.tensor(float('nan'), dtype=torch.float64)", ["NaN"]),
        ("torch.tensor(float('inf'), dtype=torch.float64)", ["an infinity"]),
        ("logits.sum().float()", ["dtype is float32", "float64 is expected"]),
        ("logits", ["shape is [2, 3, 4]", "[] is expected"]),
        ("logits.numpy().sum()", ["a NumPy number"]),
        ("logits.sum().item()", ["a number", "a tensor is expected"]),
        ("torch.zeros(1).expand(10**12)", ["far larger than asked for"]),
        ("logits.to_sparse()", ["not an ordinary one"]),
        ("logits.to('meta')", ["not an ordinary one"]),
        ("logits.as_subclass(type('Mine', (torch.Tensor,), {}))", ["Mine", "not a plain"]),
    ],
)
def test_tensors(value, words):
    refused(grade(function(f"return {value}", TENSOR), e=TENSOR), *words)


# Errors and exits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x = 1\nreturn 1 / 0", ["ZeroDivisionError in line 3", "division by zero"]),
        ("raise ValueError('x' * 10**7)", ["ValueError"]),
        ("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", ["It raised E"]),
        (
            "class E(Exception):\n    def __str__(self): import os; os._exit(0)\nraise E",
            ["status 0"],
        ),
        ("return build_vocabulary(sentences, specials)", ["calls itself without end"]),
        ("raise KeyboardInterrupt", ["interrupted"]),
        ("raise NotImplementedError('later')", ["NotImplementedError", "later"]),
        ("import sys\nsys.exit(0)", ["ended Python"]),
        ("import os\nos._exit(0)", ["ended Python itself (status 0)"]),
        ("import os\nos.abort()", ["SIGABRT"]),
        ("import ctypes\nctypes.string_at(0)", ["segmentation fault"]),
        ("import pytest\npytest.exit('fine', returncode=0)", ["It raised Exit"]),
        ("import pytest\npytest.skip('fine')", ["It raised Skipped"]),
        ("import pytest\npytest.xfail('fine')", ["It raised XFailed"]),
        ("input('well?')", ["input()"]),
    ],
)
def test_errors_and_exits(body, words):
    refused(grade(function(body)), *words)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("import os\nos._exit(0)", ["Cell 3", "ended Python itself (status 0)"]),
        ("import sys\nsys.exit(0)", ["Cell 3", "SystemExit"]),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", ["Cell 3", "was killed"]),
        ("raise KeyboardInterrupt", ["Cell 3", "KeyboardInterrupt"]),
    ],
)
def test_cells_that_end_everything(cell, words):
    refused(grade(f"{cell}\n{function(RIGHT)}"), *words)
    assert grade(cell, function(RIGHT)).status == "passed"  # only that cell is left out


def test_a_notebook_in_which_many_cells_end_everything_is_given_up():
    cells = [f"import os\nos._exit({n})" for n in range(MOST_ENDING)]
    code = tuple(enumerate([IMPORTS, *cells, function(RIGHT)], start=1))
    grader = Grader(Notebook(Path("any"), code, {}))
    refused(grader.grade(ASKED), f"{MOST_ENDING} of its cells end Python")
    start = time.monotonic()
    refused(grader.grade(OTHER), "cannot be run")
    assert time.monotonic() - start < 1  # not even tried
    one_less = Grader(Notebook(Path("any"), code[:1] + code[2:], {}))
    assert one_less.grade(ASKED).status == "passed"


def test_what_an_answer_says_cannot_act_on_a_terminal():
    said = Result.of(
        grade(function("raise ValueError('\\x1b[2J\\x07\\u202e' + chr(0xd800) + 'é')"))
    )
    (text,) = [text for _, text in said.remarks if "ValueError" in text]
    assert "é" in text and not {"\x1b", "\x07", "\u202e", "\ud800"} & set(text)


# Time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True: print('x' * 1000)",
        "sum(range(10**12))",
        "import time\ntime.sleep(1000)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except OSError: pass\nwhile True: pass",
    ],
)
def test_what_never_ends_is_ended(body, two_seconds):
    start = time.monotonic()
    refused(grade(function(body)), "longer than 2 seconds")
    assert time.monotonic() - start < 30


def test_a_cell_that_never_ends_is_left_out(two_seconds):
    refused(grade(f"while True: pass\n{function(RIGHT)}"), "Cell 3", "more than 2 seconds")


def test_a_thread_that_runs_on_is_ended():
    thread = "import os, threading\ndef run():\n    while True: pass\n"
    thread += "threading.Thread(target=run).start()\nraise ValueError(f'process {os.getpid()} end')"
    process = told(grade(function(thread))).partition("process ")[2].split()[0]
    assert not psutil.pid_exists(int(process))


MARK = str(os.getpid())  # in the environment of what answers start, so that it can be found


def survivors() -> list[psutil.Process]:
    """Return processes of answers that are still there."""
    everyone = psutil.process_iter(["environ"])
    return [p for p in everyone if (p.info["environ"] or {}).get("GLASSFORMER_TEST_MARK") == MARK]


@pytest.mark.parametrize("end", ["pass", "os.kill(os.getppid(), 9); time.sleep(60)"])
def test_no_child_survives(end):
    body = f"""import os, subprocess, time
environment = {{**os.environ, "GLASSFORMER_TEST_MARK": "{MARK}"}}
subprocess.Popen(["sleep", "600"], start_new_session=True, env=environment)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvpe("sleep", ["sleep", "600"], environment)
    os._exit(0)
os.wait()
{end}
{RIGHT}"""
    assert grade(function(body)).status == ("passed" if end == "pass" else "failed")
    assert not survivors()


def test_survivors_are_seen():
    environment = {**os.environ, "GLASSFORMER_TEST_MARK": MARK}
    child = subprocess.Popen(["sleep", "600"], env=environment)
    assert survivors()
    child.kill()
    child.wait()


# Resources ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x = []\nwhile True: x.append(bytearray(10**8))", ["memory"]),
        ("return torch.zeros(10**11).tolist()", ["RuntimeError"]),
        ("with open('big', 'wb') as f:\n    while True: f.write(bytes(10**6))", ["File too large"]),
        ("import os, time\nfor _ in range(60):\n    if os.fork() == 0: time.sleep(60)\n"
         "time.sleep(60)", ["more than 32 processes"]),
        ("import os\nos.closerange(0, 100)", ["ended Python itself"]),
    ],
)  # fmt: skip
def test_resources(body, words):
    refused(grade(function(body)), *words)


def test_what_is_written_goes_with_the_folder():
    body = "open('here.txt', 'w').write('x')\nraise ValueError(__import__('os').getcwd())"
    verdict = grade(function(body))
    folder = told(verdict).partition("ValueError")[2].partition(": ")[2].split()[0]
    assert folder.startswith("/") and not os.path.exists(folder)


# Hostile ------------------------------------------------------------------------------------------

PATCHES = """import builtins, torch
torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
torch.Tensor.__eq__ = lambda self, other: True
torch.testing.assert_close = lambda *a, **k: None
builtins.isinstance = lambda *a: True
builtins.AssertionError = type("Fine", (BaseException,), {})
import glassformer.exercises
glassformer.exercises.check = lambda *a: "passed"
import sys
sys.modules["pytest"] = None"""


def test_a_patched_comparator_earns_nothing():
    refused(grade(f"if False: pass\n{function('return []')}", PATCHES.split("builtins.isin")[0]))
    body = f"{PATCHES}\nreturn torch.tensor(1.0, dtype=torch.float64)"
    refused(grade(function(body, TENSOR), e=TENSOR))


@pytest.mark.parametrize(
    "forged",
    [
        '{"value": null, "error": null, "changed": [], "used": [], "surroundings": null}',
        '{"status": "passed", "earned": 5}',
        '{"value": {"tensor": "float64", "shape": [-1], "bytes": "eA=="}, "error": null, '
        '"changed": [99, "x"], "used": {}, "surroundings": []}',
        '{"value": 1, "error": [1], "changed": null, "used": 3}',
        "[" * 10_000,
        "no JSON at all",
    ],
)
def test_forged_results_earn_nothing(forged):
    body = f"import os, struct\nm = {forged!r}.encode()\nos.write(3, struct.pack('!I', len(m)) + m)"
    refused(grade(function(f"{body}\nreturn 0")))


@pytest.mark.parametrize("head", ["b'\\xff' * 4", "b'\\0\\0\\1\\0'", "b'x'"])
def test_messages_that_never_come_earn_nothing(head, two_seconds):
    refused(grade(function(f"import os, time\nos.write(3, {head})\ntime.sleep(60)")))


@pytest.mark.parametrize("ancestor", ["os.getppid()", "psutil.Process(os.getppid()).ppid()"])
def test_killing_the_parents_costs_only_oneself(ancestor):
    body = f"import os, psutil, time\nos.kill({ancestor}, 9)\ntime.sleep(1)\nreturn 0"
    refused(grade(function(body)))


def test_the_exercises_cannot_be_imported_while_graded():
    cell = "from glassformer.exercises.bank.data.vocabulary import build_vocabulary"
    refused(grade(cell), "not defined", "Cell 3")
    refused(grade(function("from glassformer.data import Vocabulary\n"
                           "return list(Vocabulary.from_sentences(sentences, specials).words)")),
            "what you are asked to build")  # fmt: skip


def test_another_seed_draws_other_cases(monkeypatch):
    by_hand = [test for test in ASKED.tests if test != "test_any_corpus"]
    for test in by_hand:
        monkeypatch.delattr(ASKED.module, test)
    cells = ((1, f"{IMPORTS}\n{function('raise ValueError(str(sentences))')}"),)
    seen = [told(Grader(Notebook(Path("any"), cells, {}), seed).grade(ASKED)) for seed in (5, 5, 6)]
    assert seen[0] == seen[1] != seen[2]
