"""A class is graded: nobody's result hangs on anybody else's, on luck, or on what stopped a run."""

from __future__ import annotations

import base64
import csv
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import psutil
import pytest
from typer.testing import CliRunner

from chapters import ROOT
from glassformer.cli import app
from glassformer.config import TransformerConfig
from glassformer.exercises.bank import chapter_exercises, chapters
from glassformer.exercises.notebooks import notebook
from glassformer.grading import apart, batch, cluster, handed, records, submission
from glassformer.grading.apart import Apart, CannotGrade
from glassformer.grading.formats import for_classroom, for_gradescope
from glassformer.grading.gradescope import write_archive
from glassformer.grading.handed import pick_up
from glassformer.grading.reports import write_reports
from glassformer.grading.roster import read_roster
from glassformer.grading.submission import Result, grade_submission
from glassformer.milestones import MILESTONES

GOOD = TransformerConfig(
    vocab_size=256, dim=32, n_layers=2, n_heads=4, n_kv_heads=2, max_seq_len=512
)
SMALL = min(chapters(), key=lambda chapter: len(chapter.order))  # the chapter quickest to grade
FIRST = chapter_exercises(SMALL)[0]
FULL = sum(e.points for e in chapter_exercises(SMALL))
START = [sys.executable, "-c", "from glassformer.cli import app; app()"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's processes")


def run(*arguments) -> subprocess.CompletedProcess:
    """Run `glassformer`, its output not on a terminal."""
    return subprocess.run([*START, *map(str, arguments)], capture_output=True, text=True)


def hand_in(folder: Path, fill=None, extra: str = "") -> Path:
    """Write a student's notebook, with a cell of code in front of the answers."""
    written = notebook(SMALL, fill)
    if extra:
        written.cells.insert(1, nbformat.v4.new_code_cell(extra))
    folder.mkdir(parents=True)
    path = folder / f"{SMALL.notebook}.ipynb"
    path.write_text(nbformat.writes(written), encoding="utf-8")
    return folder


def design(folder: Path, **changes) -> Path:
    """Write a student's design."""
    folder.mkdir(parents=True)
    replace(GOOD, **changes).to_json(folder / "config.json")
    return folder


def solved(exercise) -> str:
    return exercise.solved.source


def mistaken(exercise) -> str:
    return exercise.mutants[0].source


def first_only(exercise) -> str:
    return (exercise.solved if exercise is FIRST else exercise.start).source


def first_does(body: str):
    """Return a way to fill a notebook: all solved, but the first function does something else."""
    head = FIRST.start.source.partition(":\n")[0]
    answer = f"{head}:\n" + "\n".join(f"    {line}" for line in body.splitlines())
    return lambda exercise: answer if exercise is FIRST else exercise.solved.source


def graded(submissions: Path, out: Path, jobs: int = 2, **rest) -> dict:
    """Grade a class and write its reports; return the results by the students' names."""
    done = batch.grade_class(submissions, out, rest.pop("seed", 0), jobs, **rest)
    write_reports(out, done.results, done.remarks)
    return {s["student"]: s for s in json.loads((out / "results.json").read_text())["students"]}


def alone(folder: Path) -> list[dict]:
    """Return the results of a submission that is graded by itself."""
    results = [r for _, part in grade_submission(folder) for r in part]
    return [{"name": r.name, "earned": r.earned, "status": r.status,
             "misconception": r.misconception} for r in results]  # fmt: skip


def told(student: dict) -> str:
    return student["note"] + "\n".join(t for r in student["results"] for _, t in r["remarks"])


def written(out: Path) -> dict[str, bytes]:
    """Return all that a run has written, apart from its log."""
    files = (
        p for p in sorted(out.rglob("*")) if p.is_file() and p.name not in ("log.txt", ".lock")
    )
    return {str(p.relative_to(out)): p.read_bytes() for p in files}


# Among hostile ones -------------------------------------------------------------------------------

# What the first answer does, and what is said of it; the other answers keep their points.
ANSWERS = {
    "leaves": ("import os\nos._exit(0)", "ended Python itself"),
    "loops": ("while True: pass", "longer than 5 seconds"),
    "ignores signals": (
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except OSError: pass\nwhile True: pass",
        "longer than 5 seconds",
    ),
    "forks": (
        "import os, time\nfor _ in range(60):\n    os.fork() or time.sleep(60)\ntime.sleep(60)",
        "more than 32 processes",
    ),
    "writes everywhere": (
        'import os\nfor fd in range(64):\n    try: os.write(fd, b\'{"end": ""}\' * 1000)\n'
        "    except OSError: pass\nreturn 0",
        "",
    ),
    "eats memory": ("x = []\nwhile True: x.append(bytearray(10**8))", "memory"),
    "says too much": ("raise ValueError('x' * 10**7)", "ValueError"),
    "ends its warden": ("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(5)", ""),
    "ends the server": (
        "import os, psutil, time\nos.kill(psutil.Process(os.getppid()).ppid(), 9)\ntime.sleep(1)",
        "",
    ),
    "ends its grader": (
        "import psutil, time\np = psutil.Process().parents()[2]\n"
        "if 'grading.worker' in ' '.join(p.cmdline()): p.kill()\ntime.sleep(5)",
        "It ended the process that was grading it",
    ),
    "segfault": ("import ctypes\nctypes.string_at(0)", "segmentation fault"),
    "markup": ("raise ValueError('<script>alert(1)</script>\\x1b[31m\\u202e')", "<script>alert(1)"),
}
CELLS = {
    "leaves at once": ("import os\nos._exit(0)", ""),
    "never gets there": ("while True: pass", ""),
    "patches": ("import torch\ntorch.equal = torch.allclose = lambda *a, **k: True", ""),
    "broken cell": ("def broken(:", ""),
}


def pipe(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / f"{SMALL.notebook}.ipynb")


def link_out(folder: Path) -> None:
    folder.mkdir()
    (folder / f"{SMALL.notebook}.ipynb").symlink_to("/etc/passwd")


def too_large(folder: Path) -> None:
    folder.mkdir()
    with (folder / f"{SMALL.notebook}.ipynb").open("wb") as file:
        file.truncate(50 * 2**20)


def odd_number(folder: Path) -> None:
    folder.mkdir()
    (folder / "²² my work.ipynb").write_text("{}")


FILES = {
    "pipe": (pipe, "is a folder, a pipe or a device"),
    "link out": (link_out, "leads out of the submission"),
    "huge": (too_large, "is larger than 10 MB"),
    "odd number": (odd_number, "nothing to grade"),
}
FRIENDLY = {"solved": solved, "mistaken": mistaken, "first": first_only, "starter": None}
HOSTILE = len(ANSWERS) + len(CELLS) + len(FILES)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Return a class of sixty, its results, and what each kind of friendly one gets alone."""
    root = tmp_path_factory.mktemp("mixed")
    expected = {
        kind: alone(hand_in(root / "alone" / kind, fill)) for kind, fill in FRIENDLY.items()
    }
    expected["design"] = alone(design(root / "alone" / "design"))
    expected["wide"] = alone(design(root / "alone" / "wide", dim=1024))
    expected["open"] = alone(design(root / "alone" / "open", n_kv_heads=None))
    for number in range(60 - HOSTILE):
        kind = list(expected)[number % len(expected)]
        shutil.copytree(root / "alone" / kind, root / "class" / f"{number:02} {kind}")
    for name, (body, _) in ANSWERS.items():
        hand_in(root / "class" / name, first_does(body))
    for name, (cell, _) in CELLS.items():
        hand_in(root / "class" / name, solved, cell)
    for name, (make, _) in FILES.items():
        make(root / "class" / name)
    return root, graded(root / "class", root / "out"), expected


@linux
def test_forty_get_among_twenty_hostile_ones_what_they_get_alone(mixed):
    _, results, expected = mixed
    assert len(results) == 60 and HOSTILE == 20
    assert [r["earned"] for r in expected["solved"]] == [e.points for e in chapter_exercises(SMALL)]
    friendly = {name: s for name, s in results.items() if name[:2].isdecimal()}
    assert len(friendly) == 40
    for name, student in friendly.items():
        kept = [{k: r[k] for k in ("name", "earned", "status", "misconception")}
                for r in student["results"]]  # fmt: skip
        assert kept == expected[name[3:]], name


@linux
@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_answer_costs_its_own_points_only(mixed, name):
    student = mixed[1][name]
    first, *others = student["results"]
    assert first["earned"] == 0 and first["status"] == "failed"
    assert all(r["status"] == "passed" for r in others), told(student)
    assert ANSWERS[name][1] in told(student)


@linux
@pytest.mark.parametrize("name", CELLS)
def test_a_hostile_cell_is_left_out(mixed, name):
    assert mixed[1][name]["earned"] == FULL, told(mixed[1][name])


@linux
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_notebook_gets_its_line(mixed, name):
    student = mixed[1][name]
    assert student["earned"] == 0 and FILES[name][1] in told(student)
    assert str(mixed[0]) not in told(student) and "glassformer-handed" not in told(student)


@linux
def test_the_reports_of_hostile_ones_show_text(mixed):
    page = next((mixed[0] / "out/students").glob("markup-*.html")).read_text("utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "<script" not in page
    assert "\x1b" not in page and "\u202e" not in page


# Fast ---------------------------------------------------------------------------------------------

DESIGNS = {
    "good": {},
    "over the budget": {"dim": 1024, "n_layers": 8},
    "short": {"max_seq_len": 16},
    "open": {"n_kv_heads": None},
}


def fresh_pytest(root: Path, folder: Path) -> tuple[float, int]:
    """Run the milestones' own tests in a fresh process; return its seconds and points."""
    course = root / f"course {folder.name}"
    shutil.copytree(ROOT / "tests/milestones", course / "tests/milestones")
    (course / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    shutil.copytree(folder, course / "checkpoints/myllm")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "tests/milestones"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=course, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    passed = dict(re.findall(r"(test_m0\d)_\w+\.py::\w+ (PASSED|FAILED)", done.stdout))
    assert len(passed) == len(MILESTONES), done.stdout
    points = {"test_m01": 10, "test_m02": 5}
    return seconds, sum(points[test] for test, outcome in passed.items() if outcome == "PASSED")


def test_three_hundred_designs_take_a_25th_of_a_pytest_each(tmp_path):
    for number in range(300):
        kind = list(DESIGNS)[number % len(DESIGNS)]
        design(tmp_path / "class" / f"{kind} {number}", **DESIGNS[kind])
    one = {kind: next((tmp_path / "class").glob(f"{kind} *")) for kind in DESIGNS}
    sample = {kind: fresh_pytest(tmp_path, folder) for kind, folder in one.items()}
    start = time.perf_counter()
    done = run("grade-class", tmp_path / "class", "--out", tmp_path / "out")
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    students = json.loads((tmp_path / "out/results.json").read_text())["students"]
    assert len(students) == 300
    for student in students:
        kind = student["student"].rpartition(" ")[0]
        assert student["earned"] == sample[kind][1]
    assert {points for _, points in sample.values()} == {0, 10, 15}  # some pass and some do not
    each = sum(s for s, _ in sample.values()) / len(sample)
    print(
        f"{seconds:.1f} s for 300, {each:.1f} s for one fresh pytest: {300 * each / seconds:.0f}×"
    )
    assert 300 * each / seconds >= 25


# Killed and resumed -------------------------------------------------------------------------------

HOST = """
import os, sys
import glassformer.grading.batch, glassformer.grading.reports
from glassformer.cli import app
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        try:
            app(line.rstrip("\\n").split("\\t"), standalone_mode=False)
        finally:
            os._exit(0)
    print(pid, flush=True)
    os.waitpid(pid, 0)
    print("over", flush=True)
"""


MARK = f"class {os.getpid()}"  # in the environment of all that a run starts


def marked() -> list[psutil.Process]:
    """Return the processes of runs that are still there."""
    everyone = psutil.process_iter(["environ"])
    return [p for p in everyone if (p.info["environ"] or {}).get("GLASSFORMER_TEST_MARK") == MARK]


class Runs:
    """Starts `glassformer grade-class` again and again, from one process that has imported it."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp()  # for what killed runs leave behind
        self._host = subprocess.Popen(
            [sys.executable, "-c", HOST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"GLASSFORMER_TEST_MARK": MARK, "TMPDIR": self._folder},
        )

    def start(self, *arguments) -> int:
        """Begin a run; return its process group."""
        self._host.stdin.write("\t".join(map(str, ("grade-class", *arguments))) + "\n")
        self._host.stdin.flush()
        return int(self._host.stdout.readline())

    def wait(self) -> None:
        """Return when the run is over."""
        assert self._host.stdout.readline() == "over\n"

    def close(self) -> None:
        self._host.stdin.close()
        self._host.stdout.close()
        self._host.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture
def runs():
    started = Runs()
    yield started
    started.close()


def lines(out: Path, word: str) -> list[str]:
    """Return whom the log names after a word."""
    log = out / "log.txt"
    text = log.read_text() if log.exists() else ""
    return [line.split()[1] for line in text.splitlines() if line.startswith(f"{word} ")]


def kill_after(runs: Runs, out: Path, more: int, word: str, delay: float, *arguments) -> None:
    """Kill a run's process group when its log has grown, and a moment has passed."""
    before, patience = len(lines(out, word)), time.monotonic() + 120
    group = runs.start(*arguments)
    while len(lines(out, word)) < before + more:
        assert time.monotonic() < patience
        time.sleep(0.001)
    time.sleep(delay)
    os.killpg(group, signal.SIGKILL)
    runs.wait()


@linux
def test_killed_at_twenty_moments_and_resumed_nothing_is_lost_or_repeated(tmp_path, runs):
    draw, submissions, out = random.Random(7), tmp_path / "class", tmp_path / "out"
    for number in range(200):
        design(submissions / f"design {number}", max_seq_len=20 + number % 50)
    arguments = (submissions, "--out", out, "--seed", 5, "--jobs", 2)
    seen: set[str] = set()
    for kill in range(20):
        if kill < 16:  # while designs are read
            kill_after(runs, out, draw.randint(0, 3), "graded", draw.random() / 50, *arguments)
        else:  # while notebooks run
            for number, fill in enumerate((mistaken, solved, first_only)):
                hand_in(submissions / f"notebook {kill} {number}", fill)
            word = "begun" if kill < 18 else "graded"
            kill_after(runs, out, 1, word, draw.random() / 5, *arguments)
        done = {p.name for p in (out / "students").glob("*.json") if json.loads(p.read_bytes())}
        assert seen <= done and {f"{slug}.json" for slug in lines(out, "graded")} <= done
        seen = done
    runs.start(*arguments)
    runs.wait()
    runs.start(submissions, "--out", tmp_path / "at once", *arguments[3:])
    runs.wait()
    assert written(out) == written(tmp_path / "at once") and len(seen) >= 20
    counts = Counter(lines(out, "graded"))
    assert len(counts) > 60 and max(counts.values()) == 1
    assert marked()  # there is one left to be seen: where they come from
    runs.close()
    patience = time.monotonic() + 60
    while left := marked():  # a grading process may be in the middle of importing torch
        assert time.monotonic() < patience, left
        time.sleep(0.1)


@pytest.fixture
def designs(tmp_path):
    """Return a class of three designs."""
    for name in "abc":
        design(tmp_path / "class" / name)
    return tmp_path / "class"


def test_what_is_another_submission_seed_or_version_is_graded_again(designs, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def again(**rest) -> list[str]:
        before = len(lines(out, "graded"))
        graded(designs, out, **rest)
        return [slug[0] for slug in lines(out, "graded")[before:]]

    assert again() == ["a", "b", "c"] and again() == []
    (designs / "b/config.json").write_text("{}")
    assert again() == ["b"]
    assert again(seed=1) == ["a", "b", "c"]
    next((out / "students").glob("c-*.json")).write_text('{"key": ')
    assert again(seed=1) == ["c"]
    monkeypatch.setattr(records, "__version__", "next")
    assert again(seed=1) == ["a", "b", "c"]


def test_what_was_begun_when_a_run_ended_comes_last(tmp_path):
    kept = records.Records(tmp_path, 0)
    for line in ("begun a-1", "begun b-2", "graded a-1", "begun c-3", "graded c-3", "begun c-3"):
        kept.say(line)
    assert kept.interrupted() == {"b-2", "c-3"}


def test_two_runs_do_not_grade_into_one_folder(designs, tmp_path):
    with records.Records(tmp_path / "out", 0).alone(), pytest.raises(CannotGrade, match="Another"):
        batch.grade_class(designs, tmp_path / "out", 0, 1)


def test_what_a_killed_run_left_unfinished_is_removed(designs, tmp_path):
    (tmp_path / "out/students").mkdir(parents=True)
    left = tmp_path / "out/students/.a-12345678.json.x7"
    left.touch()
    graded(designs, tmp_path / "out")
    assert not left.exists()


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Return a class of six, graded with three at a time."""
    root = tmp_path_factory.mktemp("several")
    for number, fill in enumerate((solved, mistaken, None, first_only)):
        hand_in(root / "class" / f"{number}", fill)
    hand_in(root / "class/hostile", first_does("import os\nos._exit(0)"))
    design(root / "class/design")
    graded(root / "class", root / "three", jobs=3)
    return root


def test_one_job_or_many_write_the_same_bytes(several):
    graded(several / "class", several / "one", jobs=1)
    assert written(several / "one") == written(several / "three")


# On a cluster -------------------------------------------------------------------------------------


@linux
def test_a_cluster_writes_the_same_bytes(several):
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as running:
        arguments = ("--out", several / "there", "--scheduler", running.scheduler_address)
        done = run("grade-class", several / "class", *arguments)
    assert done.returncode == 0, done.stderr
    assert written(several / "there") == written(several / "three")


def test_a_scheduler_that_does_not_answer_is_said(designs, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 1)
    with pytest.raises(CannotGrade, match="No dask scheduler answers at tcp://127.0.0.1:9"):
        batch.grade_class(designs, tmp_path / "out", 0, 1, "tcp://127.0.0.1:9")


def test_a_missing_dask_is_said(designs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CannotGrade, match="pip install distributed"):
        batch.grade_class(designs, tmp_path / "out", 0, 1, "tcp://127.0.0.1:9")


def test_a_worker_of_another_version_is_refused(tmp_path):
    with pytest.raises(CannotGrade, match="install the same"):
        cluster.grade_on_worker(pick_up(tmp_path), 0, "0.0.0")


# Who hands in -------------------------------------------------------------------------------------


def test_one_folder_is_one_student_and_the_rest_is_named(tmp_path):
    for name in (
        "Ann",
        "ANN (1)",
        "ann - Copy",
        "Ben (2)",
        "Zoë's “work” %s {0}",
        ".git",
        "x" * 200,
    ):
        (tmp_path / name).mkdir()
    (tmp_path / os.fsdecode(b"\xff\x1b[31m")).mkdir()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "link").symlink_to(tmp_path / "Ann")
    students, remarks = read_roster(tmp_path)
    twins = {s.name for s in students if s.twins}
    assert twins == {"Ann", "ANN (1)", "ann - Copy"} and len(students) == 7
    assert remarks == [
        "link is a link; links are not followed.",
        "notes.txt is not a student's folder.",
    ]
    assert len({s.slug for s in students}) == 7
    assert all(re.fullmatch(r"[A-Za-z0-9-]{9,60}", s.slug) for s in students)
    assert all(s.name.isprintable() for s in students)


def test_a_student_with_two_submissions_is_asked_to_keep_one(designs, tmp_path):
    design(designs / "A (1)")
    results = graded(designs, tmp_path / "out")
    assert [results[n]["earned"] for n in ("a", "A (1)", "b", "c")] == [0, 0, 15, 15]
    assert "several submissions of this student, a and A (1): keep one" in results["a"]["note"]
    shutil.rmtree(designs / "A (1)")
    assert graded(designs, tmp_path / "out")["a"]["earned"] == 15


def test_a_student_with_nothing_or_too_much_gets_a_line(designs, tmp_path):
    (designs / "none").mkdir()
    (designs / "many").mkdir()
    for number in range(handed.MOST_FILES + 1):
        (designs / "many" / f"{number}.ipynb").touch()
    results = graded(designs, tmp_path / "out")
    assert "The folder holds nothing to grade" in results["none"]["note"]
    assert "more than 50 notebooks" in results["many"]["note"]
    assert results["a"]["earned"] == 15


def test_a_misplaced_design_is_told_without_this_machines_folders(designs, tmp_path):
    design(designs / "d/myllm")
    text = told(graded(designs, tmp_path / "out")["d"])
    assert "Was myllm/config.json meant? Move it to config.json." in text


@pytest.mark.parametrize(
    ("make", "out", "words"),
    [
        (None, "out", "There is no folder"),
        (lambda folder: folder.mkdir(), "out", "holds no submissions"),
        (lambda folder: design(folder / "a"), "class/out", "put the results elsewhere"),
        (lambda folder: design(folder / "a"), "file/out", "cannot be used: Not a directory"),
    ],
)
def test_what_is_no_class_has_status_2_and_one_line(tmp_path, make, out, words):
    if make:
        make(tmp_path / "class")
    (tmp_path / "file").touch()
    arguments = ["grade-class", str(tmp_path / "class"), "--out", str(tmp_path / out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_a_process_that_cannot_start_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "_START", "raise SystemExit")
    folder = hand_in(tmp_path / "a")
    with pytest.raises(CannotGrade, match="does not run"):
        Apart().grade(pick_up(folder), 0)


# Reports ------------------------------------------------------------------------------------------

NAMES = [
    "=cmd()|' -C calc'!A0",
    "+1", "-1", "@SUM(1)", " =1+1",
    '<img src=x onerror="alert(1)">',
    "{{ 7 * 7 }}",
    "a,b\";c",
]  # fmt: skip


class Tags(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.links, self.text = Counter(), [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.links += [v for k, v in attributes if k in ("href", "src")]

    def handle_data(self, data):
        self.text += data


def test_hostile_names_stay_text(tmp_path):
    for name in NAMES:
        design(tmp_path / "class" / name)
    graded(tmp_path / "class", tmp_path / "out")
    with (tmp_path / "out/results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["student"].removeprefix("'") for row in rows) == sorted(NAMES)
    assert not [row["student"] for row in rows if row["student"].strip()[0] in "=+-@"]
    assert all(row["points"] == "15" and row["m1.design"] == "10" for row in rows)
    page = (tmp_path / "out/index.html").read_text("utf-8")
    seen = Tags(page)
    assert not {"img", "script"} & set(seen.tags) and all(name in seen.text for name in NAMES)
    for link in seen.links:
        assert re.fullmatch(r"students/[A-Za-z0-9-]+\.html", link)
        assert Tags((tmp_path / "out" / link).read_text("utf-8")).tags["h1"] == 1
    assert len(seen.links) == len(NAMES)


def test_the_pages_need_nothing_else_and_suit_both_themes(mixed):
    for path in (mixed[0] / "out").rglob("*.html"):
        page = path.read_text("utf-8")
        assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page
        assert "default-src 'none'" in page and '<html lang="en-GB">' in page
        assert not re.search(r"https?://|url\(|@import|<script|<link|<img", page), path


@linux
def test_the_class_report_says_what_is_misunderstood_and_how_often(mixed):
    out, students, _ = mixed[0] / "out", mixed[1], mixed[2]
    results = json.loads((out / "results.json").read_text())
    mutant = FIRST.mutants[0]
    (found,) = [
        m for m in results["misconceptions"]
        if (m["exercise"], m["misconception"]) == (FIRST.name, mutant.name)
    ]  # fmt: skip
    whose = [name for name in students if name.endswith(" mistaken")]
    assert found["students"] == whose and found["count"] == len(whose) > 5
    assert found["message"] == mutant.message
    first = results["exercises"][0]
    every = [r for s in students.values() for r in s["results"] if r["name"] == FIRST.name]
    solvers = [r for r in every if r["status"] == "passed"]
    assert first["name"] == FIRST.name and first["passed"] == len(solvers) > 10
    unbegun = [name for name in students if name.endswith(" starter")]
    assert first["not attempted"] == len(unbegun) and first["failed"] >= len(whose) + len(ANSWERS)
    text = " ".join(Tags((out / "index.html").read_text("utf-8")).text.split())
    assert " ".join(mutant.message.split()) in text and f"{len(whose)} × " in text
    assert "seed" not in json.dumps(results)


def test_a_class_of_designs_has_each_milestone_in_its_reports(tmp_path):
    for name, change in {
        "ada": {},
        "ben": {"n_kv_heads": None},
        "eva": {"dim": 96, "n_layers": 10},
        "leo": {"max_seq_len": 8},
    }.items():
        design(tmp_path / "class" / name, **change)
    students = graded(tmp_path / "class", tmp_path / "out")
    with (tmp_path / "out/results.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    points = {name: (row["m1.design"], row["m2.cache"], row["of"]) for name, row in rows.items()}
    assert points == {
        "ada": ("10", "5", "15"),
        "ben": ("10", "0", "15"),
        "eva": ("10", "0", "15"),
        "leo": ("0", "0", "15"),
    }
    told = json.loads((tmp_path / "out/results.json").read_text())["exercises"]
    counts = {e["name"]: [e[s] for s in ("passed", "failed", "not attempted")] for e in told}
    assert counts == {"m1.design": [3, 1, 0], "m2.cache": [1, 2, 1]}
    page = (tmp_path / f"out/students/{students['ben']['slug']}.html").read_text("utf-8")
    text = Tags(page).text
    assert "m2.cache· not attempted0 of 5" in text and "n_kv_heads is left open" in text


# Formats of platforms -----------------------------------------------------------------------------

RESULTS = [
    Result("data.encode", 4, 4, "passed"),
    Result("data.decode", 1, 3, "failed", (("came out", "<b>3</b>"), ("looks like", "No."))),
    Result("data.entropy", 0, 2, "not attempted"),
]
VISIBLE = {"hidden", "after_due_date", "after_published", "visible"}
TEXTS = {"text", "html", "simple_format", "md", "ansi"}


def is_gradescope(data: dict) -> bool:
    """Return whether data keeps the rules that Gradescope's specification of results.json sets."""
    top = {"score": (int, float), "execution_time": (int, float), "output": str, "tests": list,
           "output_format": str, "test_output_format": str, "test_name_format": str,
           "visibility": str, "stdout_visibility": str, "extra_data": dict,
           "leaderboard": list}  # fmt: skip
    test = {"score": (int, float), "max_score": (int, float), "status": str, "name": str,
            "name_format": str, "number": str, "output": str, "output_format": str, "tags": list,
            "visibility": str, "extra_data": dict}  # fmt: skip
    for part, known in [(data, top), *((t, test) for t in data["tests"])]:
        if not all(k in known and isinstance(v, known[k]) for k, v in part.items()):
            return False
        formats = {v for k, v in part.items() if k.endswith("_format")}
        if not formats <= TEXTS or part.get("visibility", "visible") not in VISIBLE:
            return False
        if part.get("status", "passed") not in ("passed", "failed"):
            return False
    return "score" in data or all("score" in t for t in data["tests"])


def is_classroom(data: dict) -> bool:
    """Return whether data is what the graders of GitHub Classroom give their reporter."""
    test = {"name": str, "status": str, "score": int, "message": str, "test_code": str,
            "filename": str, "line_no": int, "duration": int}  # fmt: skip
    kinds = {"pass", "fail", "error"}
    return (
        data.keys() == {"version", "status", "max_score", "tests"}
        and data["version"] == 1
        and data["status"] in kinds
        and bool(data["tests"])
        and all(t.keys() == test.keys() and t["status"] in kinds for t in data["tests"])
        and all(isinstance(t[k], kind) for t in data["tests"] for k, kind in test.items())
    )


def test_gradescopes_format():
    data = for_gradescope(RESULTS)
    assert is_gradescope(data) and data["score"] == 5
    assert [t["status"] for t in data["tests"]] == ["passed", "failed", "failed"]
    assert [(t["score"], t["max_score"]) for t in data["tests"]] == [(4, 4), (1, 3), (0, 2)]
    assert data["tests"][1]["output"] == "came out: <b>3</b>\nlooks like: No."
    assert data["test_output_format"] == data["output_format"] == "text"  # markup stays text
    nothing = for_gradescope([], "There is nothing.")
    assert is_gradescope(nothing) and nothing["score"] == 0 and "nothing" in nothing["output"]
    assert not is_gradescope(data | {"score": "5"}) and not is_gradescope(data | {"points": 5})


def test_classrooms_format():
    data = for_classroom(RESULTS)
    assert is_classroom(data) and data["status"] == "fail" and data["max_score"] == 9
    assert sum(t["score"] for t in data["tests"]) == 5
    assert for_classroom(RESULTS[:1])["status"] == "pass"
    nothing = for_classroom([], "There is nothing.")
    assert is_classroom(nothing) and nothing["status"] == nothing["tests"][0]["status"] == "error"
    assert not is_classroom(data | {"version": 2})


def test_grade_prints_a_platforms_json_and_nothing_else(tmp_path):
    design(tmp_path / "a")
    scope = CliRunner().invoke(app, ["grade", str(tmp_path / "a"), "--format", "gradescope"])
    assert scope.exit_code == 0 and is_gradescope(json.loads(scope.stdout))
    (tmp_path / "b").mkdir()
    room = CliRunner().invoke(app, ["grade", str(tmp_path / "b"), "--format", "classroom"])
    assert room.exit_code == 2 and json.loads(room.stdout)["status"] == "error"
    assert is_classroom(json.loads(room.stdout)) and room.stderr.count("\n") == 1


def test_the_archive_for_gradescope_grades(tmp_path):
    archive = str(tmp_path / "autograder.zip")
    done = CliRunner().invoke(app, ["gradescope", archive, "--seed", "11"])
    assert done.exit_code == 0, done.stderr
    write_archive(tmp_path / "again.zip", 11)
    assert (tmp_path / "autograder.zip").read_bytes() == (tmp_path / "again.zip").read_bytes()
    root = tmp_path / "autograder"
    with zipfile.ZipFile(archive) as zipped:
        zipped.extractall(root / "source")
        modes = {i.filename: i.external_attr >> 16 for i in zipped.infolist()}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    setup = (root / "source/setup.sh").read_text()
    needed = (root / "source/requirements.txt").read_text()
    assert setup.startswith("#!/usr/bin/env bash\n") and "://" not in setup + needed
    assert "glassformer" not in needed and re.search(r"^torch", needed, re.M)
    assert "pytest-xdist" not in needed
    # As Gradescope lays it out, with this environment in place of the one that setup.sh makes.
    for folder in ("results", "venv/bin"):
        (root / folder).mkdir(parents=True)
    python = root / "venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    design(root / "submission")
    script = (root / "source/run_autograder").read_text()
    assert "--seed 11 " in script
    (root / "run_autograder").write_text(script.replace("/autograder", str(root)))
    subprocess.run(["bash", root / "run_autograder"], check=True)
    data = json.loads((root / "results/results.json").read_text())
    assert is_gradescope(data) and data["score"] == 15
    assert [test["name"] for test in data["tests"]] == ["m1.design", "m2.cache"]


# The page for instructors -------------------------------------------------------------------------

PAGE = (ROOT / "book/instructors.md").read_text("utf-8")


def test_the_page_for_instructors_states_the_limits_as_they_are():
    from glassformer.grading import channel, learner, reading, sandbox

    stated = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", PAGE, re.M))
    assert stated["running all cells once"] == f"{sandbox.CELLS_SECONDS:g} seconds"
    seconds = {e.seconds for c in chapters() for e in chapter_exercises(c)}
    assert stated["answering all calls of one exercise"] == (
        f"{min(seconds):g} seconds" if len(seconds) == 1
        else f"{min(seconds):g} to {max(seconds):g} seconds"
    )  # fmt: skip
    assert stated["memory beyond torch's own"] == f"{learner._MEMORY // 2**30} GiB"
    assert stated["processes"] == str(learner.MOST_PROCESSES)
    assert stated["a file that is written"] == f"{learner._LARGEST_FILE // 2**20} MiB"
    assert stated["what one call gives back"] == f"{channel.LARGEST // 2**20} MiB"
    assert stated["a notebook that is handed in"] == f"{reading.LARGEST // 2**20} MiB"
    assert stated["cells that end Python or never end"] == str(submission.MOST_ENDING)
    assert stated["notebooks and designs of one student"] == str(handed.MOST_FILES)


def test_the_page_for_instructors_says_what_a_milestone_is_worth():
    stated = re.findall(r"^\| `(m\d\.\w+)` \| (\d+) \|", PAGE, re.M)
    assert stated == [(m.name, str(m.points)) for m in MILESTONES]


def test_the_workflow_for_classroom_reports_what_the_reporter_reads(tmp_path):
    workflow = re.search(r"```yaml\n(name: Autograding Tests\n.*?)```", PAGE, re.S)[1]
    command = re.search(r'echo "result=\$\((.*?)\)" >>', workflow)[1]
    assert "run-autograding-tests:" in workflow
    assert "GLASSFORMER_RESULTS: ${{ steps.glassformer.outputs.result }}" in workflow
    assert "id: glassformer" in workflow and "runners: glassformer" in workflow
    design(tmp_path / "checkpoints/myllm")
    program = tmp_path / "glassformer"
    start = shlex.join(START)
    program.write_text(f'#!/bin/sh\nexec {start} "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", command.replace("exercises", "checkpoints/myllm")],
        cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, check=True,
    )  # fmt: skip
    reported = json.loads(base64.b64decode(done.stdout))
    assert is_classroom(reported) and reported["max_score"] == 15


def test_every_command_of_the_page_is_one():
    commands = set(re.findall(r"^glassformer ([a-z-]+)", PAGE, re.M))
    assert commands == {"grade", "grade-class", "gradescope"}
    for command in sorted(commands):
        shown = run(command, "--help")
        assert shown.returncode == 0
        used = {o for line in PAGE.splitlines() if line.startswith(f"glassformer {command} ")
                for o in re.findall(r"--[a-z]+", line)}  # fmt: skip
        assert all(option in shown.stdout for option in used)
