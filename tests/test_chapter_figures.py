"""Every figure that a chapter stores: drawn our way, and told in words of its own that hold."""

from __future__ import annotations

import ast
import base64
import io
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from chapters import CHAPTERS, ROOT, demo, read
from glassformer import figures
from glassformer.figures.style import picture
from glassformer.notebooks import normalise
from test_figures import raw_colours, texts

FORMS = {"image/svg+xml", "image/png", "text/plain"}
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?")
WORD = re.compile(r"<\w+>|[^\W\d_]\w+")


def numbers(text: str) -> set[str]:
    """Return the numbers of a text, written one way."""
    return {found.replace("−", "-").replace(",", "") for found in NUMBER.findall(text)}


def stated(number: str, among: set[str]) -> bool:
    """Whether a number is among others, as it is or rounded."""

    def digits(text: str) -> int:
        return len(text.partition(".")[2])

    near = 0.5 * 10 ** -digits(number) + 1e-9
    finer = {other for other in among if digits(other) > digits(number)}
    return number in among or any(abs(float(number) - float(other)) <= near for other in finer)


def typed(source: str) -> set[str]:
    """Return the numbers that stand in a cell's texts as they were typed, not computed."""
    strings = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return set().union(*(numbers(text) for text in strings if isinstance(text, str)))


def said(notebook: nbformat.NotebookNode) -> str:
    """Return what a chapter says: its prose, and what its cells print and tabulate."""
    parts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        parts += [output.get("text", ""), output.get("data", {}).get("text/html", "")]
    return "\n".join(parts)


def form_faults(bundle: dict) -> list[str]:
    """Say how an output is not a figure as `glassformer.figures.show` leaves it."""
    if set(bundle) != FORMS:
        return [f"shown another way than by show(): {', '.join(sorted(bundle))}"]
    svg, alternative = bundle["image/svg+xml"], bundle["text/plain"]
    faults = [f"{colour} does not follow the theme" for colour in raw_colours(svg)[:1]]
    if f'aria-label="{alternative}"' not in svg.replace("&lt;", "<").replace("&gt;", ">"):
        faults.append("the SVG has another alternative")
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
    size = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).size
    off = (abs(size[0] - width * 110 / 72), abs(size[1] - height * 110 / 72))
    if max(off) > 1:
        faults.append(f"the PNG is of another figure: {size}")
    return faults


def alternative_faults(bundle: dict, source: str, chapter: str) -> list[str]:
    """Say in what an alternative fails its figure."""
    alternative, labels = bundle["text/plain"], " ".join(texts(bundle["image/svg+xml"]))
    faults = []
    if len(alternative) < 90 or len(alternative.split()) < 15:
        faults.append("is too short to say what is seen and what it shows")
    if alternative in chapter or alternative.rstrip(".") in labels:
        faults.append("repeats what stands beside the figure")
    shared = numbers(alternative) & numbers(labels)
    shared |= set(WORD.findall(alternative.lower())) & set(WORD.findall(labels.lower()))
    if len(shared) < 3:
        faults.append(f"names nothing of what the figure holds, but {sorted(shared)}")
    known = numbers(labels) | numbers(chapter)
    invented = [n for n in numbers(alternative) & typed(source) if not stated(n, known)]
    return faults + [f"states {n}, which nothing shows" for n in sorted(invented)]


def figure_faults(notebook: nbformat.NotebookNode) -> list[str]:
    """Return a line for each fault of each figure in a chapter."""
    faults, chapter = [], said(notebook)
    for index, cell in enumerate(notebook.cells, start=1):
        for bundle in (output.get("data", {}) for output in cell.get("outputs", [])):
            image = any(kind.startswith("image/") for kind in bundle)
            if bundle.get("text/plain", "").startswith("<Figure") or image:
                found = form_faults(bundle)
                found += [] if found else alternative_faults(bundle, cell.source, chapter)
                faults += [f"cell {index}: the figure {fault}" for fault in found]
    return faults


def alternatives() -> list[str]:
    """Return the alternatives of all figures in the book."""
    outputs = (o for path in CHAPTERS for c in read(path).cells for o in c.get("outputs", []))
    bundles = [output.get("data", {}) for output in outputs]
    return [bundle["text/plain"] for bundle in bundles if "image/svg+xml" in bundle]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_figure_is_ours_and_told(path):
    assert figure_faults(read(path)) == []


def test_no_two_figures_share_an_alternative():
    told = alternatives()
    assert len(told) > 90
    assert sorted(told) == sorted(set(told))


# Each check sees the fault it is there for -------------------------------------------------------

ALTERNATIVE = (
    "Three cells in a row: the loss of training falls from 3.00 to 1.00, and its floor is at 0.74."
)


def drawn(alternative: str = ALTERNATIVE, values=(3.0, 2.0, 1.0)) -> dict:
    """Return the bundle of a small figure."""
    figure = figures.heatmap([values], "loss of training", "loss", rows=["falls from"])
    return picture(figure, alternative)._repr_mimebundle_()


def chapter(bundle: dict, source: str = "show(figure, alternative)") -> nbformat.NotebookNode:
    """Return a chapter that shows a bundle, and says that the floor is 0.736."""
    notebook = demo()
    output = nbformat.v4.new_output("display_data", bundle)
    cells = [nbformat.v4.new_code_cell(source, outputs=[output])]
    notebook.cells += [nbformat.v4.new_markdown_cell("The floor is 0.736."), *cells]
    return notebook


def fault_of(bundle: dict, source: str = f"show(figure, {ALTERNATIVE!r})") -> str:
    """Return the one fault that is found."""
    (fault,) = figure_faults(chapter(bundle, source))
    return fault.partition("the figure ")[2]


def test_a_good_figure_has_no_fault():
    assert figure_faults(chapter(drawn(), f"show(figure, {ALTERNATIVE!r})")) == []


def test_a_figure_shown_another_way_is_found():
    plain = plt.figure()
    plain.savefig(buffer := io.BytesIO(), format="png")
    plt.close(plain)
    png = base64.b64encode(buffer.getvalue()).decode()
    assert fault_of({"image/png": png, "text/plain": ALTERNATIVE}).startswith("shown another way")
    assert fault_of({"text/plain": "<Figure size 640x480 with 1 Axes>"}).startswith("shown another")
    assert fault_of({"image/svg+xml": "<svg/>", "text/plain": ""}).startswith("shown another way")


def test_a_form_that_is_of_another_figure_is_found():
    good, other = drawn(), drawn(values=(3.0, 2.0, 1.0, 0.5, 0.2))
    assert fault_of(good | {"image/png": other["image/png"]}).startswith("the PNG is of another")
    assert fault_of(good | {"text/plain": ALTERNATIVE[:-1]}) == "the SVG has another alternative"
    painted = good["image/svg+xml"].replace("var(--gf-paper,#ffffff)", "#ffffff", 1)
    assert fault_of(good | {"image/svg+xml": painted}) == "#ffffff does not follow the theme"


@pytest.mark.parametrize(
    ("alternative", "fault"),
    [
        ("The loss of training falls from 3.00 to 1.00.", "is too short"),
        (ALTERNATIVE.replace("1.00", "0.99"), "states 0.99, which nothing shows"),
        (
            "A picture with which somebody who sees it can find quite a lot of what this section "
            "speaks about, in many colours and sizes.",
            "names nothing of what the figure holds",
        ),
    ],
)
def test_a_poor_alternative_is_found(alternative, fault):
    assert fault_of(drawn(alternative), f"show(figure, {alternative!r})").startswith(fault)


def test_an_alternative_that_repeats_the_text_is_found():
    notebook = chapter(drawn())
    notebook.cells[-2].source += f" {ALTERNATIVE}"
    assert "repeats what stands beside" in "".join(figure_faults(notebook))


def test_a_number_that_is_computed_may_be_new():
    other = ALTERNATIVE.replace("1.00", "0.99")
    computed = 'show(figure, f"Falls from 3.00 to {loss:.2f}, and its floor is at 0.74.")'
    assert figure_faults(chapter(drawn(other), computed)) == []


# A stored PNG is what a fresh run draws ----------------------------------------------------------


def shifted(png: str, by: int) -> str:
    """Return a PNG whose every colour is a little lighter or darker."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    moved = np.clip(np.asarray(image).astype(int) + by, 0, 255).astype("uint8")
    Image.fromarray(moved).save(buffer := io.BytesIO(), format="png")
    return base64.b64encode(buffer.getvalue()).decode()


def test_pictures_are_compared_as_pictures(different_pictures):
    """Not byte by byte: how a PNG is packed, and the edge of a line, differ between machines."""
    one, digit = drawn()["image/png"], drawn(values=(3.0, 2.0, 1.1))["image/png"]
    small = drawn(values=(3.0, 2.0))["image/png"]
    assert not different_pictures(one, one)
    assert not different_pictures(one, shifted(one, -2))
    assert different_pictures(one, digit) and different_pictures(one, small)


def test_nbval_sees_a_png_of_another_figure(tmp_path):
    source = (
        "from glassformer import figures\n"
        'figures.show(figures.heatmap([[3.0, 2.0, 1.0]], "loss", "loss"), "three numbers in a row")'
    )
    three, other = (
        picture(figures.heatmap([row], "loss", "loss"), "three numbers in a row")
        for row in ([3.0, 2.0, 1.0], [3.0, 2.0, 1.1])
    )
    for name, png in (("good", three.png), ("broken", other.png)):
        bundle = three._repr_mimebundle_() | {"image/png": base64.b64encode(png).decode()}
        output = nbformat.v4.new_output("display_data", bundle)
        notebook = demo()
        notebook.cells = [nbformat.v4.new_code_cell(source, outputs=[output], execution_count=1)]
        nbformat.write(normalise(notebook), tmp_path / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "conftest", "-p", "no:xdist", "-c", "/dev/null", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "1 failed, 1 passed" in run.stdout and "a stored PNG is not" in run.stdout, run.stdout
