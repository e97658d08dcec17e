"""The course's address: what may be one, that it stands in one place, and that all places agree."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys

import nbformat
import pytest
import yaml

from chapters import ROOT, read
from fresh import copy_course
from glassformer import repository
from glassformer.exercises.bank import chapters
from glassformer.exercises.notebooks import is_current
from glassformer.repository import (
    Address,
    address_in,
    address_of,
    disagreements,
    launch_section,
    set_address,
    setup_lines,
    with_address,
    with_setup,
)
from one_sentence import refused

URL = "https://github.com/ada/glass-course"
HUB = "https://hub.school.example/user"
SETTINGS = (ROOT / "_config.yml").read_text(encoding="utf-8")
PLACES = ("book/04_attention.ipynb", "exercises/09_m1_config.ipynb", *repository.READMES)


@pytest.fixture
def course(tmp_path):
    """Return a copy of the course."""
    return copy_course(tmp_path)


def files(course) -> dict[str, bytes]:
    """Return what all files of a folder hold."""
    found = (path for path in course.rglob("*") if path.is_file())
    return {path.relative_to(course).as_posix(): path.read_bytes() for path in found}


# What may be an address --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/ada/course",
        "https://gitlab.com/a-1/b.c_d",
        "https://git.cs.school.example/Ada/Glass",
    ],
)
def test_an_address_names_host_owner_and_repository(url):
    assert Address(url).url == url
    for written in (url, f"{url}/", f"{url}.git", f" {url}\n"):
        assert f"\n  url: {url}\n" in with_address(SETTINGS, written)


REFUSED = [
    "github.com/ada/course",
    "http://github.com/ada/course",
    "git@github.com:ada/course.git",
    "file:///home/ada/course",
    "javascript:alert(1)//a.b/c/d",
    "https://github.com/ada",
    "https://github.com/ada/course/tree/main",
    "https://github.com//course",
    "https://ada:secret@github.com/ada/course",
    "https://ada@github.com/ada/course",
    "https://localhost/ada/course",
    "https://127.0.0.1/ada/course",
    "https://github.com:22/ada/course",
    "https://GitHub.com/ada/course",
    "https://github.com/-ada/course",
    "https://github.com/ada/..",
    "https://github.com/ada/.git",
    "https://github.com/ada/cou rse",
    "https://github.com/ada/course\nbranch: evil",
    "https://github.com/ada/course\n",
    "https://github.com/ada/course # comment",
    'https://github.com/ada/course"',
    "https://github.com/ada/course'",
    "https://github.com/ada/course`id`",
    "https://github.com/ada/$(id)",
    "https://github.com/ada/course;id",
    "https://github.com/ada/course?x=1",
    "https://github.com/ada/course#egg",
    "https://github.com/ada/course@main",
    "https://github.com/ada/{course}",
    "https://github.com/ada/course\\n",
    "https://github.com/ada/cöurse",
    "https://github.com/ada/" + "x" * 200,
    "--index-url=https://github.com/ada/course",
    "&anchor",
    "!!python/object:os.system",
]


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_no_plain_address_is_refused_in_one_sentence(url):
    with refused("address", "https://host/owner/repository"):
        Address(url)


@pytest.mark.parametrize(
    "branch", ["", "-main", "a b", "a..b", "a/b", "m'ain", "main\n", "$(id)", "@"]
)
def test_a_branch_is_one_word(branch):
    with refused("branch", "_config.yml"):
        Address(URL, branch)
    assert Address(URL, "v1.0_rc-2").branch == "v1.0_rc-2"


@pytest.mark.parametrize("key", ["binderhub_url", "colab_url", "jupyterhub_url"])
@pytest.mark.parametrize("service", ["http://hub.example", "hub", "https://a.b/?x", 'https://a.b"'])
def test_a_service_has_a_plain_address_too(key, service):
    with refused(key, "_config.yml"):
        address_in({"repository": {"url": URL}, "launch_buttons": {key: service}})


@pytest.mark.parametrize(
    "text, told",
    [
        ("title: a\nrepository: [", "_config.yml is no YAML from line 2 on"),
        ("a: b: c", "_config.yml is no YAML from line 1 on"),
        ("title: \x00", "a character that YAML forbids"),
        ("", "holds no settings"),
        (f"repository: {URL}", "`repository` of _config.yml holds no settings but 'https://"),
        (f"repository: {{url: '{URL}'}}\nlaunch_buttons: [a]", "`launch_buttons` of _config.yml"),
    ],
)
def test_settings_that_cannot_be_read_are_told_in_a_sentence(tmp_path, text, told):
    (tmp_path / "_config.yml").write_text(text, encoding="utf-8")
    with refused(told):
        address_of(tmp_path)


def test_settings_without_an_address_have_none(tmp_path):
    assert address_in({}) is None and address_of(tmp_path) is None
    assert address_in({"repository": {"url": "", "branch": "main"}}) is None


# Where it leads ----------------------------------------------------------------------------------


def links(url, **services) -> dict[str, str]:
    """Return the links to a notebook, by service."""
    services = {"binder": "https://mybinder.org", "colab": "https://colab.example"} | services
    return dict(Address(url, **services).launchers("book/01_data.ipynb"))


def test_each_service_is_asked_in_its_own_way():
    assert links(URL, hub=HUB) == {
        "Binder": "https://mybinder.org/v2/gh/ada/glass-course/main?urlpath=lab/tree/book/01_data.ipynb",
        "Colab": "https://colab.example/github/ada/glass-course/blob/main/book/01_data.ipynb",
        "JupyterHub": f"{HUB}/hub/user-redirect/git-pull?repo=https%3A//github.com/ada/glass-course"
        "&branch=main&urlpath=lab/tree/glass-course/book/01_data.ipynb",
    }
    assert links(URL, binder="", colab="") == {}


def test_colab_opens_what_is_on_github_and_binder_what_is_anywhere():
    lab = "main?urlpath=lab/tree/book/01_data.ipynb"
    assert links("https://gitlab.com/ada/glass") == {
        "Binder": f"https://mybinder.org/v2/gl/ada%2Fglass/{lab}"
    }
    assert links("https://git.school.example/ada/glass") == {
        "Binder": f"https://mybinder.org/v2/git/https%3A%2F%2Fgit.school.example%2Fada%2Fglass/{lab}"
    }


# In one place, and everywhere --------------------------------------------------------------------


def test_all_places_of_the_course_agree():
    assert disagreements(ROOT) == []


def test_the_address_is_set_everywhere_and_only_once(course):
    before = files(course)
    changed = set_address(course, URL)
    assert {*PLACES, "_config.yml"} <= set(changed) and disagreements(course) == []
    after = files(course)
    assert {name for name in after if after[name] != before.get(name)} == set(changed)
    assert set_address(course, f"{URL}.git/".removesuffix("/")) == [] == set_address(course)
    assert files(course) == after
    assert address_of(course) == Address(
        URL, "main", "https://mybinder.org", "https://colab.research.google.com"
    )
    for name in PLACES:
        assert URL in (course / name).read_text("utf-8"), name
    for chapter in chapters():
        assert is_current(course / "exercises" / f"{chapter.notebook}.ipynb", chapter)


def test_taking_it_back_leaves_the_course_as_it_was(course):
    before = files(course)
    set_address(course, URL)
    (course / "_config.yml").write_bytes(before["_config.yml"])
    set_address(course)
    assert files(course) == before


def test_the_settings_change_in_one_line(course):
    set_address(course, URL)
    lines = (course / "_config.yml").read_text("utf-8").splitlines()
    assert lines == SETTINGS.replace('  url: ""', f"  url: {URL}").splitlines()
    assert yaml.safe_load("\n".join(lines))["repository"] == {"url": URL, "branch": "main"}
    commented = 'repository:\n  # where\n  url: ""  # soon\n  branch: main\n'
    assert with_address(commented, URL) == commented.replace('""', URL)


@pytest.mark.parametrize(
    "text", ["", "repository:\n  branch: main\n", 'x:\n  url: ""\n  branch: m\n']
)
def test_settings_without_a_place_are_refused(text):
    with refused("_config.yml", "place"):
        with_address(text, URL)


def test_outputs_and_all_other_cells_stay(course):
    set_address(course, URL)
    for name in ("book/02_model.ipynb", "exercises/04_attention.ipynb"):
        before, after = read(ROOT / name), read(course / name)
        first = next(i for i, cell in enumerate(before.cells) if cell.cell_type == "code")
        own = before.cells[first].source.removeprefix(setup_lines(address_of(ROOT)))
        assert after.cells[first].source == setup_lines(address_of(course)) + own
        for cells in (before.cells, after.cells):
            cells[first].source = cells[first].id = ""
        assert before == after


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_says_otherwise_is_found_and_mended(course, name):
    set_address(course, URL)
    right = (course / name).read_text("utf-8")
    wrong = right.replace(URL, "https://github.com/eve/glass-course")
    assert wrong != right
    (course / name).write_text(wrong, encoding="utf-8")
    assert disagreements(course) == [name]
    assert set_address(course) == [name] and (course / name).read_text("utf-8") == right


def test_another_address_in_the_settings_alone_is_found(course):
    config = (course / "_config.yml").read_text("utf-8")
    (course / "_config.yml").write_text(with_address(config, URL), encoding="utf-8")
    notebooks = [p.relative_to(course).as_posix() for p in course.glob("*/[0-9]*.ipynb")]
    assert set(disagreements(course)) == {*notebooks, *repository.READMES}


def test_what_cannot_be_rewritten_is_named_and_nothing_is_written(course):
    notebook = read(course / "exercises/09_m1_config.ipynb")
    notebook.cells[1].source = "import torch"
    nbformat.write(notebook, course / "exercises/09_m1_config.ipynb")
    before = files(course)
    with refused("exercises/09_m1_config.ipynb", "setup lines"):
        set_address(course, URL)
    assert files(course) == before
    (course / "README.md").write_text("# No place\n")
    shutil.copy(ROOT / "exercises/09_m1_config.ipynb", course / "exercises")
    with refused("README.md", "place"):
        set_address(course, URL)


def test_a_write_that_fails_leaves_the_old_file(course, monkeypatch):
    before = files(course)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
    with refused("cannot be written: disk full"):
        set_address(course, URL)
    assert files(course) == before
    monkeypatch.undo()
    script = course / "README.md"
    script.chmod(0o640)
    set_address(course, URL)
    assert stat.S_IMODE(script.stat().st_mode) == 0o640


def test_setup_lines_replace_each_other_whatever_follows():
    addresses = (None, Address(URL), Address("https://gitlab.com/eve/x", "v2"))
    for rest in ("", "\n\nimport torch\n\nif True:\n    x = 1"):
        for one in addresses:
            for other in addresses:
                cell = nbformat.v4.new_code_cell(setup_lines(one) + rest)
                text = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
                cells = json.loads(with_setup(text, other))["cells"]
                assert "".join(cells[0]["source"]) == setup_lines(other) + rest
    for lines in map(setup_lines, addresses):
        compile(lines, "setup", "exec")


def test_the_readme_links_every_notebook_or_says_why_not():
    section = launch_section(Address(URL, binder="https://mybinder.org"), ["book/01_data.ipynb"])
    assert section.splitlines()[0] == f"From [github.com/ada/glass-course]({URL}):"
    assert "- `book/01_data.ipynb`: [Binder](https://mybinder.org/v2/gh/" in section
    assert "make repository URL=" in launch_section(None, ["book/01_data.ipynb"])


# Nothing is fetched from an address that a stranger could claim ----------------------------------

FETCHED = re.compile(r"git\+(?:https?|ssh)://[\w.-]+/\S*", re.I)


def fetched_from(course) -> set[str]:
    """Return the addresses from which anything in the course's folder would install code."""
    kept = [p for p in course.rglob("*") if p.is_file() and "tests" not in p.parts]
    texts = (path.read_text("utf-8", errors="ignore") for path in kept)
    return {found for text in texts for found in FETCHED.findall(text)}


def test_without_an_address_nothing_is_installed_from_anywhere(course):
    if address_of(course):
        set_address(course, URL)
    allowed = {f'git+{URL}@main\\"],\\n",'} if address_of(course) else set()
    assert fetched_from(course) == allowed


def test_an_installation_from_a_strangers_address_is_found(course):
    (course / "book" / "index.md").write_text("pip install git+https://github.com/course/name\n")
    assert "git+https://github.com/course/name" in fetched_from(course)


# The command -------------------------------------------------------------------------------------


def make(course, *arguments) -> subprocess.CompletedProcess:
    """Run `make repository` there, with this Python."""
    python = course / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    command = ["make", "--old-file=.venv/installed", "repository", *arguments]
    # Also within `make test`: a make that another one has started tells where it is, too.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, cwd=course, capture_output=True, text=True, env=env)


def test_make_repository_sets_the_address_and_says_what_it_did(course):
    done = make(course, f"URL={URL}")
    assert done.returncode == 0, done.stderr
    told, rewritten = done.stdout.splitlines()
    assert told == f"The course's address is {URL}, branch main."
    assert rewritten.startswith("Rewritten: _config.yml, book/01_data.ipynb, ")
    assert disagreements(course) == [] and address_of(course).url == URL
    assert make(course).stdout.splitlines()[1] == "All places agree with it already."


@pytest.mark.parametrize(
    "url", ["$(shell touch evil)", "$$(touch evil)", "`touch evil`", "';touch evil;'"]
)
def test_make_repository_runs_nothing_that_an_address_holds(course, url):
    before = files(course)
    done = make(course, f"URL=https://github.com/ada/{url}")
    assert done.returncode != 0 and not (course / "evil").exists()
    sentence = done.stderr.splitlines()[0]
    assert sentence.startswith("The repository's address cannot be") and "touch evil" in sentence
    after = files(course)
    assert {name: after[name] for name in before} == before
