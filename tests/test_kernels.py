"""Chapters print the same under every CPU kernel that PyTorch chooses from, and with two threads.

`pytest --nbval book` runs them as this machine would; here they run as other machines do.
"""

from __future__ import annotations

import os
import subprocess
import sys

import nbformat
import pytest
import torch

from chapters import CHAPTERS, ROOT, demo, read

ONE_THREAD = "torch.set_num_threads(1)"
ORDER = ["DEFAULT", "AVX2", "AVX512"]
NATIVE = torch.backends.cpu.get_cpu_capability()
# One thread and this processor's own kernels: `pytest --nbval book` runs that.
SETTINGS = [
    (kernel, threads)
    for kernel in ("default", "avx2", "avx512")
    for threads in (1, 2)
    if (kernel.upper(), threads) != (NATIVE, 1)
]


def run_chapters(folder, notebooks, capability, threads) -> subprocess.CompletedProcess:
    """Run copies of the notebooks with nbval under the given kernels and number of threads."""
    folder = folder / "book"
    folder.mkdir(parents=True)
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = cell.source.replace(ONE_THREAD, f"torch.set_num_threads({threads})")
        nbformat.write(notebook, folder / name)
    environment = os.environ | {
        "ATEN_CPU_CAPABILITY": capability,
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-q", "-n0"]
    command += ["--rootdir", str(ROOT), "-p", "conftest", "-p", "no:cacheprovider"]
    command += ["--nbval", str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.kernels
@pytest.mark.parametrize(("capability", "threads"), SETTINGS)
def test_chapters_print_the_same(tmp_path, capability, threads):
    if NATIVE not in ORDER or ORDER.index(capability.upper()) > ORDER.index(NATIVE):
        pytest.skip(f"this processor has no {capability} kernels")
    run = run_chapters(tmp_path, {p.name: read(p) for p in CHAPTERS}, capability, threads)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_every_chapter_sets_its_threads():
    for path in CHAPTERS:
        source = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
        assert source.count(ONE_THREAD) == 1, f"{path.name} needs {ONE_THREAD} in its setup cell"


def test_every_chapter_begins_alike():
    """The setup cell, up to the chapter's own imports, is one text in ten places."""
    starts = {
        next(c.source for c in read(path).cells if c.cell_type == "code").partition(ONE_THREAD)[0]
        for path in CHAPTERS
    }
    assert len(starts) == 1


def test_an_output_that_depends_on_kernels_or_threads_is_found(tmp_path):
    notebook = demo()
    notebook.cells[1].source += f"\nimport torch\n{ONE_THREAD}\nprint(torch.get_num_threads())"
    notebook.cells[1].outputs[0].text += "1\n"
    one = run_chapters(tmp_path / "one", {"demo.ipynb": notebook}, "default", 1)
    two = run_chapters(tmp_path / "two", {"demo.ipynb": notebook}, "default", 2)
    assert (one.returncode, two.returncode) == (0, 1), one.stdout + one.stderr
