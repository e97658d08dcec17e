"""The autograder archive for Gradescope: this very package, and the two scripts that run it."""

from __future__ import annotations

import io
import re
import zipfile
from importlib import metadata
from pathlib import Path

from ..config import write_atomically
from .apart import CannotGrade

_PACKAGE = Path(__file__).resolve().parents[1]
_SETUP = """\
#!/usr/bin/env bash
# Installs what grading needs; glassformer itself lies in this archive and comes from nowhere else.
# PyTorch's own index has a much smaller build, for processors only; its address is on PyTorch's
# "Get started" page. To use it, write it here:
# export PIP_EXTRA_INDEX_URL=<address of PyTorch's CPU index>
set -euo pipefail
apt-get update
apt-get install -y python3 python3-venv
python3 -m venv /autograder/venv
/autograder/venv/bin/python -m pip install -r /autograder/source/requirements.txt
"""
_RUN = """\
#!/usr/bin/env bash
# Grades /autograder/submission and leaves the points where Gradescope reads them.
cd /
export PYTHONPATH=/autograder/source
/autograder/venv/bin/python -c 'from glassformer.cli import app; app()' \\
  grade /autograder/submission --seed {seed} --format gradescope >/autograder/results/results.json
test -s /autograder/results/results.json
"""


def write_archive(path: Path, seed: int) -> None:
    """Write the archive; the same package and seed give the same bytes."""
    files = {
        "setup.sh": (_SETUP.encode(), 0o755),
        "run_autograder": (_RUN.format(seed=seed).encode(), 0o755),
        "requirements.txt": ("".join(f"{r}\n" for r in _requirements()).encode(), 0o644),
    }
    for file in sorted(_PACKAGE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            name = f"{_PACKAGE.name}/{file.relative_to(_PACKAGE).as_posix()}"
            files[name] = (file.read_bytes(), 0o644)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, (content, mode) in files.items():
            info = zipfile.ZipInfo(name)  # dated 1980, so that no clock shows
            info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            zipped.writestr(info, content)
    write_atomically(path, archive.getvalue())


def _requirements() -> list[str]:
    """Return what the package needs, as its own metadata say."""
    try:
        needed = metadata.requires(_PACKAGE.name) or []
    except metadata.PackageNotFoundError:
        raise CannotGrade(
            "glassformer is not installed here: run `pip install .` in its folder, then again."
        ) from None
    return [line for line in needed if not re.search(r";.*\bextra\b", line)]
