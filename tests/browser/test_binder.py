"""Binder's steps in a fresh environment, and a chapter and its exercises in its JupyterLab."""

from __future__ import annotations

import pytest
from lab import READY, START, running_lab

from chapters import ROOT, read
from fresh import Environment, binder_requirements, copy_course

IN_VIEW = "(name) => globalThis.jupyterapp?.shell.currentWidget?.context?.path === name"
# Runs the notebook in view, and returns what its code cells show as text, or an error's name.
RUN_ALL = """async () => {
  const { commands, shell } = jupyterapp;
  await commands.execute("notebook:run-all-cells");
  const cells = [...shell.currentWidget.content.model.sharedModel.cells];
  return cells.filter((c) => c.cell_type === "code").map((c) =>
    c.getOutputs().map((o) => o.ename ?? [o.text ?? ""].flat().join("")).join(""));
}"""


@pytest.fixture(scope="module")
def binder(tmp_path_factory):
    """Return JupyterLab as Binder starts it: in a checkout, installed by the files of `binder/`."""
    folder = tmp_path_factory.mktemp("binder")
    environment = Environment(folder / "venv", [r.name for r in binder_requirements()])
    checkout = copy_course(folder / "checkout")
    assert not environment.has_course(folder)
    done = environment.run(checkout / "binder" / "postBuild", cwd=checkout)
    assert done.returncode == 0, done.stderr
    assert environment.has_course(folder)
    with running_lab(folder, checkout, environment.python, environment.variables) as running:
        yield running


@pytest.mark.parametrize("name", ["book/01_data.ipynb", "exercises/01_data.ipynb"])
def test_a_notebook_opens_and_runs_there(binder, visit, name):
    page = visit(f"{binder.address}/lab/tree/{name}?token={binder.token}")  # Binder's own link
    # What was open before opens again, and may be in view first.
    page.wait_for_function(IN_VIEW, arg=name, timeout=1000 * START)
    page.wait_for_function(READY, timeout=1000 * START)
    shown = page.evaluate(RUN_ALL)
    code = [cell for cell in read(ROOT / name).cells if cell.cell_type == "code"]
    assert shown == ["".join(o.get("text", "") for o in cell.outputs) for cell in code]
    assert any(shown) == name.startswith("book")
    kernel = "import sys, glassformer; print(sys.prefix, glassformer.__file__)"
    told = page.evaluate(ASK, kernel)
    assert told == f"{binder.folder.parent / 'venv'} {binder.folder}/code/glassformer/__init__.py\n"


ASK = """async (code) => {
  const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
  const asked = kernel.requestExecute({ code, store_history: false });
  let told = "";
  asked.onIOPub = ({ content }) => { told += content.text ?? ""; };
  await asked.done;
  return told;
}"""
