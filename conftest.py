"""What every test shares: how work is split between workers, the built site, CPU-safe figures."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Where two threads are asked for, they wait asleep: those that spin starve each other.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


# Seconds that no test takes on any machine, unless it never ends: then it fails, and tells where
# each thread was. `check` sets the same alarm: a test that calls it has the limit of `check`.
PATIENCE = 1200


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Let no test run for ever; run `--nbval` here, with the chapters' own time limit."""
    if getattr(config.option, "timeout", 0) is None:
        config.option.timeout = PATIENCE
    if hasattr(config.option, "nbval_current_env"):
        config.option.nbval_current_env = True
        config.option.nbval_cell_timeout = 300
        compare_pictures()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Start with what takes longest."""
    items.sort(key=lambda item: item.get_closest_marker("kernels") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep a file's tests on one worker, as a notebook's cells need; spread the longest files."""
    from xdist.scheduler import LoadScopeScheduling

    class OneWorkerPerFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            spread = ("test_kernels.py", "test_pages.py", "test_exercises.py")
            return nodeid if file.endswith(spread) else file

    config.option.loadscopereorder = False
    return OneWorkerPerFile(config, log)


def pytest_collectstart(collector):
    """Compare stored figures byte by byte only under the Matplotlib that drew them."""
    if type(collector).__name__ == "IPyNbFile" and not same_matplotlib():
        collector.skip_compare = (*collector.skip_compare, "image/svg+xml")


def same_matplotlib() -> bool:
    """Return whether this Matplotlib is the one that drew the stored figures."""
    import matplotlib

    return f"matplotlib=={matplotlib.__version__};" in (ROOT / "requirements.txt").read_text()


def compare_pictures() -> None:
    """Let nbval compare the stored PNGs, too: as pictures, not byte by byte.

    How a PNG is packed, and how dark the edge of a line is, differ between machines.
    """
    from nbval.plugin import IPyNbCell

    compare = IPyNbCell.compare_outputs

    def compare_all(cell, test, ref, skip_compare=None):
        same = compare(cell, test, ref, skip_compare)
        if not same or not same_matplotlib():
            return same
        pairs = zip(stored_pngs(test), stored_pngs(ref), strict=True)
        if any(different_pictures(new, old) for new, old in pairs):
            cell.comparison_traceback.append("a stored PNG is not what this cell draws")
            return False
        return True

    IPyNbCell.compare_outputs = compare_all


def stored_pngs(outputs) -> list[str]:
    """Return the PNGs among a cell's outputs, as stored."""
    bundles = [output.get("data", {}) for output in outputs]
    return [bundle["image/png"] for bundle in bundles if "image/png" in bundle]


def different_pictures(one: str, other: str) -> bool:
    """Return whether two PNGs show more than three pixels that are clearly different."""
    import numpy as np
    from PIL import Image

    files = (io.BytesIO(base64.b64decode(png)) for png in (one, other))
    first, second = (np.asarray(Image.open(file).convert("RGB")).astype(int) for file in files)
    return first.shape != second.shape or (abs(first - second).max(axis=2) > 64).sum() > 3


@pytest.fixture(name="different_pictures")
def comparison_of_pictures():
    """Return the function by which stored PNGs are compared."""
    return different_pictures


# The site ----------------------------------------------------------------------------------------

SITES = ROOT / "_build" / "sites"


# Of the package, what no page shows; the explorers' scripts are put into a built site each time.
NOT_SHOWN = ("explorers/static", "exercises", "grading", "cli.py")


def fingerprint() -> str:
    """Return a digest of everything that the site is built from, the explorers' scripts aside."""
    digest = hashlib.sha256()
    not_shown = [ROOT / "code/glassformer" / name for name in NOT_SHOWN]
    made_from = [ROOT / name for name in ("_config.yml", "_toc.yml", "requirements.txt")]
    made_from += sorted((ROOT / "exercises").glob("*.ipynb"))  # what chapters offer for download
    for folder in ("book", "code/glassformer"):
        made_from += sorted(path for path in (ROOT / folder).rglob("*") if path.is_file())
    made_from = [p for p in made_from if not any(p == n or n in p.parents for n in not_shown)]
    for path in made_from:
        if path.suffix != ".pyc" and ".ipynb_checkpoints" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def build_site(folder: Path) -> subprocess.CompletedProcess:
    """Build the book strictly into a folder, with the outputs that the notebooks store."""
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config, changed = re.subn(r"execute_notebooks: cache", 'execute_notebooks: "off"', config)
    assert changed == 1
    (folder / "_config.yml").write_text(config, encoding="utf-8")
    start = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", "-W", "--keep-going"]
    command += ["--config", str(folder / "_config.yml"), "--path-output", str(folder), "."]
    return subprocess.run(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def forget_old_sites() -> None:
    """Remove the sites of sources that have changed since, unless a run may still read them."""
    for folder in SITES.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < time.time() - 3600:
            shutil.rmtree(folder, ignore_errors=True)


def built_site() -> Path:
    """Return the folder of the strictly built site, built again if anything has changed."""
    from filelock import FileLock

    SITES.mkdir(parents=True, exist_ok=True)
    with FileLock(SITES / "lock"):
        folder = SITES / fingerprint()
        done = folder / "done"
        if not done.exists():
            forget_old_sites()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            run = build_site(folder)
            if run.returncode != 0:
                lines = run.stdout.splitlines()
                told = [line for line in lines if re.search(r"WARNING|ERROR|rror:", line)]
                failure = "\n".join(told or lines[-30:])
                pytest.fail(f"The strict build of the book fails:\n{failure}", pytrace=False)
            done.touch()
        os.utime(folder)
        from glassformer.site_explorers import write_explorers

        write_explorers(folder / "_build" / "html" / "_static")
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the folder of the built site; one build serves all tests, workers and runs.

    It shows the outputs stored in the notebooks; that these are what the code gives is checked by
    `pytest --nbval book`, and `make book` executes them.
    """
    return built_site()
