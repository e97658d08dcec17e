"""What every test shares: how work is split between workers, the built site, CPU-safe figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_configure(config):
    """Run `--nbval` in this environment, with the chapters' own time limit."""
    if hasattr(config.option, "nbval_current_env"):
        config.option.nbval_current_env = True
        config.option.nbval_cell_timeout = 300


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Start with what takes longest."""
    items.sort(key=lambda item: item.get_closest_marker("kernels") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep a file's tests on one worker, as a notebook's cells need; spread test_kernels.py."""
    from xdist.scheduler import LoadScopeScheduling

    class OneWorkerPerFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return nodeid if "test_kernels.py" in nodeid else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return OneWorkerPerFile(config, log)


def pytest_collectstart(collector):
    """Compare stored figures byte by byte only under the Matplotlib that drew them."""
    if type(collector).__name__ == "IPyNbFile":
        import matplotlib

        if f"matplotlib=={matplotlib.__version__};" not in (ROOT / "requirements.txt").read_text():
            collector.skip_compare = (*collector.skip_compare, "image/svg+xml")


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Return the folder of the strictly built site; one build serves all tests and workers.

    It shows the outputs stored in the notebooks; that these are what the code gives is checked by
    `pytest --nbval book`, and `make book` executes them.
    """
    from filelock import FileLock

    worker = os.environ.get("PYTEST_XDIST_WORKER")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if worker else base) / "site"
    done, log = folder / "done", folder / "build.log"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not done.exists():
            config = (ROOT / "_config.yml").read_text(encoding="utf-8")
            config, changed = re.subn(
                r"execute_notebooks: cache", 'execute_notebooks: "off"', config
            )
            assert changed == 1
            (folder / "_config.yml").write_text(config, encoding="utf-8")
            start = "from jupyter_book.cli.main import main; main()"
            command = [sys.executable, "-c", start, "build", "-W", "--keep-going"]
            command += ["--config", str(folder / "_config.yml"), "--path-output", str(folder), "."]
            run = subprocess.run(
                command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            log.write_text(run.stdout, encoding="utf-8")
            done.write_text(str(run.returncode))
    if done.read_text() != "0":
        lines = log.read_text(encoding="utf-8").splitlines()
        told = [line for line in lines if re.search(r"WARNING|ERROR|rror:", line)] or lines[-30:]
        pytest.fail("The strict build of the book fails:\n" + "\n".join(told), pytrace=False)
    return folder / "_build" / "html"
