"""The book: stored as executed, complete, and asking nothing of any other host when read."""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from chapters import CHAPTERS, ROOT, demo, read
from glassformer.notebooks import normalise

every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


# Stored as executed ---------------------------------------------------------------------------


def displays(source: str) -> bool:
    """Whether a cell certainly shows something: it prints, shows, or ends in a value."""
    body = ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", source)).body
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    waiting = [statement for statement in body if not isinstance(statement, inner)]
    while waiting:
        node = waiting.pop()
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if name in {"print", "show", "display"}:
            return True
        waiting += [part for part in ast.iter_child_nodes(node) if not isinstance(part, inner)]
    last = body[-1] if body else None
    return isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call | ast.Constant)


UNCHECKED = {"nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution"}


def switches(cell: nbformat.NotebookNode) -> list[str]:
    """Return the tags and comments of a cell by which it would not be run and compared."""
    comments = re.findall(r"(?m)^\s*#+\s*(\w+)\s*$", cell.source)
    found = [*cell.metadata.get("tags", []), *comments]
    return [word for word in found if word.lower().replace("_", "-") in UNCHECKED]


def storage_faults(notebook: nbformat.NotebookNode) -> list[str]:
    """Return a line for each way in which the notebook is not stored as a clean run leaves it."""
    faults = []
    if "widgets" in notebook.metadata:
        faults.append("widget state is stored in the notebook's metadata")
    code = [(i, c) for i, c in enumerate(notebook.cells, start=1) if c.cell_type == "code"]
    for order, (index, cell) in enumerate(code, start=1):
        where = f"cell {index}: "
        faults += [f"{where}{switch} keeps it from being checked" for switch in switches(cell)]
        if cell.execution_count != order:
            faults.append(f"{where}execution count is {cell.execution_count}, not {order}")
        if not cell.outputs and displays(cell.source):
            faults.append(f"{where}shows something, but no output is stored")
        for output in cell.outputs:
            if output.output_type == "error":
                faults.append(f"{where}an error is stored: {output.ename}")
            if output.get("name") == "stderr":
                faults.append(f"{where}writes to stderr: {output.text.strip()[:60]}")
            found = re.search(
                r"(?<![\w./])/(?:home|root|Users|tmp|work|opt|usr|content|var)/\S+|\b[A-Z]:\\\S+",
                str({k: v for k, v in output.get("data", {}).items() if "image" not in k})
                + output.get("text", ""),
            )
            if found:
                faults.append(f"{where}an output holds a path of one machine: {found[0]}")
            alt = " ".join(output.get("data", {}).get("text/plain", "").split())
            is_figure = any(kind.startswith("image/") for kind in output.get("data", {}))
            if is_figure and (len(alt) <= 20 or alt.startswith(("<Figure", "<glassformer"))):
                faults.append(f"{where}a figure's text alternative is {alt!r}")
    return faults


@every_chapter
def test_chapter_is_stored_as_executed(path):
    faults = storage_faults(read(path))
    assert not faults, f"{path.name}: run `make chapters`\n" + "\n".join(faults)


@every_chapter
def test_chapter_is_stored_in_normal_form(path):
    stored = path.read_text(encoding="utf-8")
    clean = nbformat.writes(normalise(copy.deepcopy(read(path)))) + "\n"
    assert stored == clean, f"{path.name} holds what differs from run to run: run `make chapters`"


# Complete -------------------------------------------------------------------------------------


def missing_parts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the parts of a chapter that are not there."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")

    def boxes(kind: str) -> int:
        return len(re.findall(rf"(?m)^ *:class:.*\b{kind}\b", text))

    missing = []
    if boxes("opening") != 1:
        missing.append(f"{boxes('opening')} opening boxes, not one")
    if boxes("predict") < 2:
        missing.append(f"{boxes('predict')} predictions, fewer than two")
    if boxes("summary") != 1:
        missing.append(f"{boxes('summary')} summary boxes, not one")
    return missing


@every_chapter
def test_chapter_is_complete(path):
    assert missing_parts(read(path)) == []


def test_the_contents_list_names_the_chapters_that_exist():
    named = re.findall(r"book/(\d\d_\w+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert named == [path.stem for path in CHAPTERS]


def test_the_reference_lists_every_public_module():
    listed = re.findall(
        r"automodule:: glassformer\.([\w.]+)", (ROOT / "book/reference.md").read_text("utf-8")
    )
    package = ROOT / "code/glassformer"
    modules = {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")
        for path in package.rglob("*.py")
    }
    described = {m for m in modules if m != "__init__" and not m.startswith("figures.")}
    internal = {"notebooks", "draw_weights", "refusals", "repository", "chromium"}
    internal |= {"models.bare", "models.checking", "explorers.base", "explorers.instruments"}
    internal |= {"explorers.parts", "explorers.words", "cli", "cli_models", "site"}
    internal |= {m for m in modules if m.startswith(("exercises.", "grading", "site_"))}
    assert described - internal <= set(listed) <= modules


# Nothing from elsewhere -----------------------------------------------------------------------

LOADING = {  # what a browser fetches by itself when it opens a page
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "input": ("src",),
    "form": ("action",),
}
LINKS = "stylesheet icon preload prefetch modulepreload preconnect dns-prefetch manifest"
ELSEWHERE = re.compile(r"^\s*(?:https?:)?//", re.I)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')\s;]+)""", re.I)
IN_SCRIPTS = re.compile(r"""["'`]((?:https?:)?//[\w.-]+\.\w+[^"'`]*)""", re.I)


class Requests(HTMLParser):
    """Collect what a page would request from another host."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag, attributes):
        """Look at the attributes that make a browser fetch."""
        given = {name: value or "" for name, value in attributes}
        watched = [given.get(name, "") for name in LOADING.get(tag, ())]
        if tag == "link" and set(given.get("rel", "").lower().split()) & set(LINKS.split()):
            watched.append(given.get("href", ""))
        self.found += [f"<{tag}> {value}" for value in watched if ELSEWHERE.match(value)]
        self.found += [f"style {url}" for url in IN_STYLES.findall(given.get("style", ""))]
        if tag in ("script", "style"):
            self.inside = tag if "json" not in given.get("type", "") else ""

    def handle_endtag(self, tag):
        """Leave a script or a style."""
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data):
        """Look into scripts and styles written in the page."""
        if self.inside == "style":
            self.found += [f"style {url}" for url in IN_STYLES.findall(data)]
        elif self.inside == "script":
            self.found += [f"script {url}" for url in IN_SCRIPTS.findall(data)]


def requests_elsewhere(folder: Path) -> list[str]:
    """Return what the built pages and style sheets would request from another host."""
    found = []
    for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.css")]):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".css":
            urls = IN_STYLES.findall(text)
        else:
            parser = Requests()
            parser.feed(text)
            urls = parser.found
        found += [f"{path.relative_to(folder)}: {url}" for url in urls]
    return found


def test_the_strict_build_passes(site):
    assert (site / "index.html").is_file()
    for path in CHAPTERS:
        assert (site / "book" / f"{path.stem}.html").is_file()


def test_the_built_site_requests_nothing_from_elsewhere(site):
    assert requests_elsewhere(site) == []


def test_pages_are_in_british_english_and_figures_have_names(site):
    for page in (site / "book").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert '<html lang="en-GB"' in text, page.name
        figures = re.findall(r'<figure class="gf-figure">.*?</figure>', text, flags=re.S)
        for figure in figures:
            role = "group" if "<a " in figure else "img"  # what is inside an image goes unread
            assert re.search(rf'<svg[^>]* role="{role}" aria-label="[^"]{{20,}}"', figure), (
                page.name
            )
        ids = re.findall(r'\sid="([^"]+)"', "".join(figures))
        assert len(ids) == len(set(ids)), f"{page.name}: two figures share an id"


# Each check fails on what it is for -------------------------------------------------------------


def test_the_demo_passes_every_check():
    assert storage_faults(demo()) == []
    assert missing_parts(demo()) == []


def test_a_cell_that_was_not_executed_is_found():
    broken = demo()
    broken.cells[1].execution_count, broken.cells[1].outputs = None, []
    faults = storage_faults(broken)
    assert any("execution count" in fault for fault in faults)
    assert any("no output is stored" in fault for fault in faults)


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        (nbformat.v4.new_output("error", ename="NameError"), "NameError"),
        (nbformat.v4.new_output("stream", name="stderr", text="Warning"), "stderr"),
        (nbformat.v4.new_output("stream", text="saved /home/me/x.json"), "/home/me"),
        (
            nbformat.v4.new_output(
                "display_data", {"image/png": "", "text/plain": "<Figure size 640x480 with 1 Axes>"}
            ),
            "alternative",
        ),
    ],
)
def test_a_bad_output_is_found(output, fault):
    broken = demo()
    broken.cells[1].outputs.append(output)
    assert [line for line in storage_faults(broken) if fault in line]


@pytest.mark.parametrize("tag", sorted(UNCHECKED))
def test_a_cell_that_is_tagged_to_be_skipped_is_found(tag):
    broken = demo()
    broken.cells[1].metadata["tags"] = ["hide-input", tag]
    assert storage_faults(broken) == [f"cell 2: {tag} keeps it from being checked"]


def test_a_cell_that_a_comment_skips_is_found():
    broken = demo()
    broken.cells[1].source += "\n# NBVAL_SKIP"
    assert storage_faults(broken) == ["cell 2: NBVAL_SKIP keeps it from being checked"]


def test_widget_state_is_found():
    broken = demo()
    broken.metadata["widgets"] = {}
    assert storage_faults(broken) == ["widget state is stored in the notebook's metadata"]


@pytest.mark.parametrize("kind", ["opening", "predict", "summary"])
def test_a_missing_part_is_found(kind):
    broken = demo()
    for cell in broken.cells:
        cell.source = cell.source.replace(f":class: {kind}", ":class: note", 1)
    assert missing_parts(broken)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//cdn.example/x.css">'),
        ("a.html", '<style>body { background: url("https://cdn.example/x.png") }</style>'),
        ("a.html", '<script>const at = "https://cdn.example/x.js";</script>'),
        ("a.html", '<img src="https://cdn.example/x.png">'),
        ("a.css", "@import url(https://cdn.example/x.css);"),
    ],
)
def test_a_request_elsewhere_is_found(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert len(requests_elsewhere(tmp_path)) == 1


def test_an_ordinary_link_is_no_request(tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://example.org">read on</a>')
    assert requests_elsewhere(tmp_path) == []


def run_nbval(notebook: nbformat.NotebookNode, folder: Path) -> str:
    """Store the notebook and return what `pytest --nbval` says of it."""
    path = folder / "demo.ipynb"
    nbformat.write(normalise(notebook), path)
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", str(path)]
    command += ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", "/dev/null"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


def test_one_changed_digit_in_a_stored_output_fails_nbval(tmp_path):
    assert "2 passed" in run_nbval(demo(), tmp_path)
    broken = demo()
    output = broken.cells[1].outputs[0]
    output.text = output.text.replace("3.1781", "3.1782")
    assert "1 failed" in run_nbval(broken, tmp_path)


def test_nbval_alone_would_pass_a_cell_without_its_output(tmp_path):
    """Why `storage_faults` exists."""
    broken = demo()
    broken.cells[1].execution_count, broken.cells[1].outputs = None, []
    assert "2 passed" in run_nbval(broken, tmp_path)
    assert storage_faults(broken)


def test_nbval_alone_would_pass_a_skipped_cell_with_a_wrong_output(tmp_path):
    """Why `storage_faults` looks at tags."""
    broken = demo()
    broken.cells[1].metadata["tags"] = ["nbval-skip"]
    broken.cells[1].outputs[0].text = "25 tokens"
    broken.cells[2].source = ""
    assert "1 skipped" in run_nbval(broken, tmp_path)
    assert storage_faults(broken)
