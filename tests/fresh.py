"""A fresh environment with what Binder's has and nothing of the course, and notebooks run in it.

The packages that `binder/environment.yml` names, and what these need, are linked into a new virtual
environment from the one that runs the tests, since gigabytes of PyTorch would take minutes and a
network. No other package is there, glassformer least of all, and pip finds no index.

`python tests/fresh.py` (`make launch`) installs and runs every notebook in such an environment.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from importlib.metadata import distribution
from pathlib import Path

import nbformat
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chapters import ROOT
from glassformer.repository import set_address

URL = "https://git.course.example/ada/glass-course"
# What conda-forge calls otherwise, and what is not installed by name.
OTHER_NAMES = {"pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}
DEPTH = 4  # share/jupyter/<kind>/<name> is what one package brings

RUN = """
import sys
import nbclient, nbformat

for path in sys.argv[1:]:
    nb = nbformat.read(path, as_version=4)
    try:
        nbclient.NotebookClient(nb, timeout=600, kernel_name="python3").execute()
    finally:
        nbformat.write(nb, path)
"""


def binder_requirements() -> list[Requirement]:
    """Return what `binder/environment.yml` installs, Python aside, by the names that pip uses."""
    listed = yaml.safe_load((ROOT / "binder/environment.yml").read_text("utf-8"))["dependencies"]
    named = [Requirement(re.sub(r"(?<![<>=])=(?!=)", "==", text)) for text in listed]
    for requirement in named:
        requirement.name = OTHER_NAMES.get(requirement.name, requirement.name)
    return [requirement for requirement in named if requirement.name != "python"]


def closure(names: list[str]) -> list[str]:
    """Return the packages and all that they need, with the extras that are asked for."""
    found, waiting = set(), list(map(Requirement, names))
    while waiting:
        asked = waiting.pop()
        for extra in ("", *asked.extras):
            wanted = (canonicalize_name(asked.name), extra)
            if wanted not in found:
                found.add(wanted)
                needed = map(Requirement, distribution(asked.name).requires or ())
                waiting += [
                    r for r in needed if not r.marker or r.marker.evaluate({"extra": extra})
                ]
    return sorted({name for name, _ in found})


class Environment:
    """A virtual environment, and the variables under which its programs run."""

    def __init__(self, folder: Path, names: list[str]):
        """Make it in a folder, with these packages linked in."""
        venv.create(folder, with_pip=True, symlinks=True)
        self.folder, self.python = folder, folder / "bin" / "python"
        self.packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        shutil.rmtree(self.packages)  # the pip that Python ships, and perhaps an old setuptools
        for name in closure(names):
            self.link(name)
        other = ("PYTEST", "COV", "PYTHON", "JUPYTER", "VIRTUAL_ENV")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(other)}
        kept |= {"PATH": f"{folder / 'bin'}{os.pathsep}{kept['PATH']}", "HOME": str(folder)}
        kept |= {"JUPYTER_PREFER_ENV_PATH": "1", "MPLBACKEND": "agg"}
        self.variables = kept | {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}

    def link(self, name: str) -> None:
        """Link in what a package has installed: its modules, and its part of Jupyter."""
        packages = Path(str(distribution(name).locate_file("")))
        for file in distribution(name).files or ():
            place, source = self.packages / file.parts[0], packages / file.parts[0]
            if file.parts[0] == "..":
                whole = Path(os.path.abspath(file.locate())).relative_to(sys.prefix)
                if whole.parts[0] not in ("share", "etc"):
                    continue  # a program
                part = Path(*whole.parts[:DEPTH])
                place, source = self.folder / part, Path(sys.prefix) / part
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(source)

    def run(self, *command: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess:
        """Run a command of the environment in a folder."""
        given = self.variables | variables
        return subprocess.run(
            [*map(str, command)], cwd=cwd, env=given, capture_output=True, text=True
        )

    def execute(self, notebook: Path, **variables: str) -> nbformat.NotebookNode:
        """Run a notebook where it stands and return it with its outputs; fail if a cell does."""
        done = self.run(self.python, "-c", RUN, notebook.name, cwd=notebook.parent, **variables)
        assert done.returncode == 0, f"{notebook.name}: {done.stderr[-2_000:]}"
        return nbformat.read(notebook, as_version=4)

    def has_course(self, cwd: Path) -> bool:
        """Return whether the course's package is there."""
        seen = "import importlib.util as u; print(u.find_spec('glassformer') is not None)"
        return self.run(self.python, "-c", seen, cwd=cwd).stdout == "True\n"


def copy_course(folder: Path) -> Path:
    """Copy into a folder what git keeps of the course, or would."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
    return folder


def published(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return a copy of the course that has an address, and how git finds it there."""
    set_address(copy_course(folder), URL)
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@course.example"]
    for command in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "The course"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    instead = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.{folder.as_uri()}.insteadOf"}
    instead |= {"GIT_CONFIG_VALUE_0": URL, "GIT_TERMINAL_PROMPT": "0"}
    # "false" turns isolation off: the package is built with the setuptools that is there.
    return folder, instead | {"PIP_NO_BUILD_ISOLATION": "false"}


def empty_copy(notebook: Path, folder: Path) -> Path:
    """Put a notebook alone into a folder of its own, as somebody does who downloads it."""
    alone = folder / f"{notebook.parent.name}-{notebook.stem}"
    alone.mkdir()
    return Path(shutil.copy(notebook, alone))


def main() -> None:
    """Install and run every notebook; tell how long each takes."""
    with tempfile.TemporaryDirectory() as place:
        environment = Environment(Path(place) / "venv", [r.name for r in binder_requirements()])
        course, variables = published(Path(place) / "course")
        assert not environment.has_course(course)
        for notebook in sorted(course.glob("*/[0-9]*.ipynb")):
            start = time.monotonic()
            environment.execute(empty_copy(notebook, Path(place)), **variables)
            print(f"{notebook.relative_to(course)}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
