"""Notebooks where the package is missing: the setup cell fetches it, and the notebook runs.

In a fresh environment (`fresh.py`) and an empty folder, with a copy of the course standing in for
the address that the setup cell names. `make launch` does the same with all notebooks.
"""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chapters import CHAPTERS, ROOT, read
from fresh import URL, Environment, binder_requirements, empty_copy, published
from glassformer.repository import Address, address_of, setup_lines
from glassformer.site_launch import add_buttons

EXERCISES = sorted((ROOT / "exercises").glob("[0-9]*.ipynb"))
RUN = [CHAPTERS[3], *EXERCISES]  # the suite runs the other chapters with the package installed


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Environment:
    """Return an environment with all that Binder's has, without the course's package."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    return Environment(folder, [requirement.name for requirement in binder_requirements()])


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """Return a copy of the course with an address, and how git finds it there."""
    return published(tmp_path_factory.mktemp("course"))


def outputs(notebook) -> list[str]:
    """Return what the code cells of a notebook print."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    return ["".join(o.get("text", "") for o in cell.outputs) for cell in code]


def test_every_notebook_has_the_one_setup_text(address):
    for course in (ROOT, address[0]):
        lines = setup_lines(address_of(course))
        for notebook in sorted(course.glob("*/[0-9]*.ipynb")):
            first = next(c for c in read(notebook).cells if c.cell_type == "code")
            assert first.source.startswith(f"{lines}\n\n"), notebook
    assert f"git+{URL}@main" in lines


@pytest.mark.parametrize("colab, menus", [("", []), ("https://colab.example", ["launch-buttons"])])
def test_where_every_service_is_turned_off_no_page_has_a_menu_of_them(colab, menus):
    config = SimpleNamespace(
        glassformer_address=Address("https://github.com/ada/course", colab=colab)
    )
    context = {"header_buttons": [], "page_source_suffix": ".ipynb"}
    add_buttons(SimpleNamespace(config=config), "book/01_data", "page.html", context, None)
    labels = [button["label"] for button in context["header_buttons"]]
    assert labels == [*menus, "source-repository-button"]


def test_without_an_address_the_cell_says_what_to_do_and_installs_nothing(environment, tmp_path):
    done = environment.run(environment.python, "-c", setup_lines(None), cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("The course's package is missing here")
    assert done.stderr.count("\n") == 1 and not environment.has_course(tmp_path)


def test_an_installation_that_fails_says_so(environment, address, tmp_path):
    lines = setup_lines(address_of(address[0]))
    nowhere = address[1] | {"GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/none.insteadOf"}
    done = environment.run(environment.python, "-c", lines, cwd=tmp_path, **nowhere)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.endswith("That did not work: see above, then run this cell again.\n")
    assert done.stdout.count("\n") == 1 and not environment.has_course(tmp_path)


def test_the_setup_cell_installs_the_package_and_the_notebooks_run(environment, address, tmp_path):
    course, variables = address
    assert not environment.has_course(tmp_path)
    for number, path in enumerate(RUN):
        notebook = course / path.relative_to(ROOT)
        shown = outputs(environment.execute(empty_copy(notebook, tmp_path), **variables))
        assert shown[0] == f"Installing the course's package from {URL} …\n" * (number == 0)
        assert shown[1:] == outputs(read(path))[1:], path.name
    where = "import glassformer; print(glassformer.__file__)"
    done = environment.run(environment.python, "-c", where, cwd=tmp_path)
    assert Path(done.stdout.strip()).parent == environment.packages / "glassformer"


# Binder's environment ----------------------------------------------------------------------------


def package_requirements() -> dict[str, str]:
    """Return what the package needs, and in which versions."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    listed = re.search(r"^dependencies = (\[\n.*?^\])", project, flags=re.M | re.S)[1]
    return versions(map(Requirement, ast.literal_eval(listed)))


def versions(requirements) -> dict[str, str]:
    """Return the versions that are asked for, by name."""
    return {canonicalize_name(r.name): str(r.specifier) for r in requirements}


def test_binder_installs_what_the_package_needs_and_no_more():
    installed = versions(binder_requirements())
    for name in ("jupyterlab", "pip", "setuptools"):
        del installed[name]
    assert installed == package_requirements()


def test_an_environment_without_one_of_them_is_found(monkeypatch):
    less = [r for r in binder_requirements() if r.name != "anywidget"]
    monkeypatch.setitem(globals(), "binder_requirements", lambda: less)
    with pytest.raises(AssertionError, match="anywidget"):
        test_binder_installs_what_the_package_needs_and_no_more()


def test_binder_takes_pytorch_from_conda_and_nothing_from_pip():
    environment = yaml.safe_load((ROOT / "binder/environment.yml").read_text("utf-8"))
    assert environment["channels"] == ["conda-forge"]
    assert all(isinstance(entry, str) for entry in environment["dependencies"])  # no list for pip
    script = (ROOT / "binder/postBuild").read_text("utf-8")
    assert re.findall(r"^pip .*$", script, flags=re.M) == [
        "pip install --no-deps --no-build-isolation -e ."
    ]
    assert os.access(ROOT / "binder/postBuild", os.X_OK)


# The development container ------------------------------------------------------------------------


def test_the_container_makes_the_book_and_asks_for_the_small_torch():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    make, target = container["postCreateCommand"].split()
    assert make == "make" and f"\n{target}: " in (ROOT / "Makefile").read_text("utf-8")
    assert re.fullmatch(r"python:3\.1[0-3]-\w+", container["image"])  # no host, git and make in it
    (asked,) = container["secrets"]
    assert container["remoteEnv"] == {asked: f"${{localEnv:{asked}}}"}
    for told in ("README.md", ".github/workflows/book.yml"):
        assert asked in (ROOT / told).read_text("utf-8")
