"""The exercises where only the package is installed: from its wheel, without course or network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from chapters import ROOT
from glassformer.exercises.bank import all_exercises, chapters, exercise
from glassformer.exercises.notebooks import notebook

# Read by every Python that starts there: the course's folder and other machines are out of reach.
GUARD = """
import sys

COURSE, OWN = {course!r}, {own!r}
LOCAL = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "")
sys.path[:] = [p for p in sys.path if not p.startswith(COURSE) or p.startswith(OWN)]


def guard(event, given):
    if event in ("socket.connect", "socket.sendto") and isinstance(given[1], tuple):
        allowed = given[1][0] in LOCAL
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        allowed = given[0] is None or str(given[0]) in LOCAL
    elif event in ("open", "os.listdir", "os.scandir") and isinstance(given[0], str):
        allowed = not given[0].startswith(COURSE) or given[0].startswith(OWN)
    else:
        return
    if not allowed:
        raise PermissionError(f"out of reach: {{event}}")


sys.addaudithook(guard)
"""

RUN = """
import sys
import nbclient, nbformat

for path in sys.argv[1:]:
    nb = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(nb, timeout=600, kernel_name="python3").execute()
    nbformat.write(nb, path)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Return the package's wheel, built from a copy of what git keeps of it."""
    copy, folder = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, copy)
    for name in package_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(copy)]
    done = subprocess.run([*pip, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("glassformer-*.whl")
    return built


def package_files() -> list[str]:
    """Return the files of the package that git keeps."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "code/glassformer"], cwd=ROOT, capture_output=True, text=True
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_wheel_holds_every_file_of_the_package(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {name.removeprefix("code/") for name in package_files()}
    assert expected <= held, sorted(expected - held)
    kinds = {Path(name).suffix for name in expected}
    assert {".ini", ".json", ".safetensors", ".js", ".css"} <= kinds


@pytest.fixture(scope="module")
def elsewhere(wheel, tmp_path_factory) -> Path:
    """Return a folder far from the course, with the package installed in `installed`."""
    folder = tmp_path_factory.mktemp("elsewhere")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-index"]
    options = ["--quiet", "--no-deps", "--target", str(folder / "installed"), str(wheel)]
    subprocess.run([*pip, *options], check=True, capture_output=True)
    guard = GUARD.format(course=str(ROOT), own=sys.prefix)
    (folder / "installed" / "sitecustomize.py").write_text(guard)
    (folder / "run.py").write_text(RUN)
    return folder


def sources(fill) -> list[str]:
    """Return the code of all exercise notebooks, cell by cell, one notebook after the other."""
    found = (cell for chapter in chapters() for cell in notebook(chapter, fill).cells)
    return [cell.source for cell in found if cell.cell_type == "code"]


MUTANT = exercise("kv_cache.position").mutants[1]
ATTEMPT = [
    MUTANT.source,
    'check("kv_cache.position", decode_step)',
    'solution("kv_cache.position")',
    "progress()",
]
OUT_OF_REACH = """
import socket, glassformer
print(glassformer.__file__)
for call in (
    lambda: socket.socket().connect(("192.0.2.1", 80)),
    lambda: socket.getaddrinfo("example.org", 80),
    lambda: open({readme!r}),
):
    try:
        call()
    except PermissionError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def ran(elsewhere) -> dict[str, list[str]]:
    """Run the notebooks there; return what the cells of each showed."""
    first = all_exercises()[0].name
    asked = [f'hint("{first}")', f'solution("{first}")']
    here = OUT_OF_REACH.format(readme=str(ROOT / "README.md"))
    notebooks = {
        "solved": sources(lambda e: e.solved.source),
        "starter": [*sources(None), *asked, *ATTEMPT, here],
    }
    for name, code in notebooks.items():
        cells = [nbformat.v4.new_code_cell(source) for source in code]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), elsewhere / f"{name}.ipynb")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    environment |= {"PYTHONPATH": str(elsewhere / "installed"), "HOME": str(elsewhere)}
    command = [sys.executable, "run.py", *(f"{name}.ipynb" for name in notebooks)]
    done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    return {name: shown(elsewhere / f"{name}.ipynb") for name in notebooks}


def shown(path: Path) -> list[str]:
    """Return what each cell of a notebook showed, as text."""
    read = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [
        [o.get("data", {}).get("text/plain", o.get("text", "")) for o in c["outputs"]] for c in read
    ]
    return ["".join("".join(part) for part in parts) for parts in outputs]


def test_every_solution_is_right_there(ran):
    right = [text for text in ran["solved"] if text.startswith("✓")]
    assert right == [
        f"✓ **{e.name}**: right, {e.points} of {e.points} points." for e in all_exercises()
    ]
    assert "All exercises are done." in ran["solved"][-1]


def test_check_hint_solution_and_progress_help_there(ran):
    asked = ran["starter"][-7:]
    assert not any(text.startswith(("✓", "✗")) for text in ran["starter"][:-7])
    assert asked[0].startswith("**Hint 1 of 3**") and asked[1].startswith("First try it yourself")
    assert asked[3].startswith("✗") and MUTANT.message in asked[3]
    assert "def decode_step" in asked[4] and "| `kv_cache.position` |" in asked[5]


def test_the_course_and_the_network_are_out_of_reach_there(ran, elsewhere):
    where, *refused = ran["starter"][-1].splitlines()
    assert Path(where).is_relative_to(elsewhere / "installed")
    assert [line.split(": ")[1] for line in refused] == [
        "socket.connect",
        "socket.getaddrinfo",
        "open",
    ]
