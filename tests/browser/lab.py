"""A real JupyterLab on this machine, and its notebooks as a reader uses them in a browser."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from playwright.sync_api import Locator, Page

OPTIONS = [
    "--no-browser",
    "--allow-root",
    "--expose-app-in-browser",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port_retries=0",
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
]
DISABLED = (
    "@jupyterlab/apputils-extension:announcements",
    "@jupyterlab/extensionmanager-extension",
)
SETTINGS = {"notebook-extension/tracker": {"windowingMode": "none"}}  # every cell is in the page
START = 60  # seconds that a busy machine may take


@dataclass
class Lab:
    """A running server: its address, its secret, the folder whose notebooks it shows."""

    address: str
    token: str
    folder: Path

    def url(self, name: str) -> str:
        """Return where a notebook of the folder is opened, alone in the window."""
        return f"{self.address}/doc/tree/{name}?token={self.token}"

    def answers(self) -> bool:
        """Whether the server is up."""
        try:
            return urllib.request.urlopen(f"{self.address}/api", timeout=5).status == 200
        except (urllib.error.URLError, OSError):
            return False


def configure(folder: Path) -> dict[str, str]:
    """Write the settings into a folder; return the variables by which these are used, no others."""
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "IPYTHONDIR": "ipython"}
    places |= {"JUPYTER_RUNTIME_DIR": "runtime", "JUPYTERLAB_SETTINGS_DIR": "settings"}
    places |= {"JUPYTERLAB_WORKSPACES_DIR": "workspaces"}
    files = {
        "config/labconfig/page_config.json": {"disabledExtensions": dict.fromkeys(DISABLED, True)}
    }
    for name, setting in SETTINGS.items():
        files[f"settings/@jupyterlab/{name}.jupyterlab-settings"] = setting
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return {name: str(folder / place) for name, place in places.items()}


@contextmanager
def running_lab(
    folder: Path,
    notebooks: Path | None = None,
    python: str | Path = sys.executable,
    variables: Mapping[str, str] = os.environ,
) -> Iterator[Lab]:
    """Start JupyterLab with this Python as its kernel, or another; yield it once it answers."""
    environment = {**variables, **configure(folder)}
    notebooks = notebooks or folder / "notebooks"
    notebooks.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lab = Lab(f"http://127.0.0.1:{port}", secrets.token_hex(16), notebooks)
    command = [str(python), "-m", "jupyterlab", *OPTIONS, f"--ServerApp.port={port}"]
    command += [f"--IdentityProvider.token={lab.token}", f"--ServerApp.root_dir={lab.folder}"]
    log = folder / "server.log"
    with log.open("w") as told:
        server = subprocess.Popen(command, env=environment, stdout=told, stderr=subprocess.STDOUT)
    try:
        limit = time.monotonic() + START
        while not lab.answers():
            if server.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"JupyterLab does not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        yield lab
    finally:
        server.terminate()  # it ends its kernels
        server.wait(30)


# Runs one cell of the notebook in view, and waits for its last output.
RUN = """async (source) => {
  const { commands, shell } = jupyterapp, { content } = shell.currentWidget;
  const index = content.model.cells.length;
  content.model.sharedModel.insertCell(index, { cell_type: "code", source });
  content.activeCellIndex = index;
  await commands.execute("notebook:run-cell");
  return [index, content.model.sharedModel.getCell(index).getOutputs()];
}"""
READY = """() => {
  const panel = globalThis.jupyterapp?.shell.currentWidget;
  const status = panel?.sessionContext?.session?.kernel?.status;
  return panel?.content?.model?.sharedModel && status === "idle";
}"""


EMPTY = """() => {
  const { content } = jupyterapp.shell.currentWidget;
  content.model.sharedModel.deleteCellRange(0, content.model.cells.length);
}"""


class Notebook:
    """An open notebook: cells are added, run and looked at."""

    def __init__(self, page: Page):
        """Wait for the notebook and its kernel."""
        self.page = page
        page.wait_for_function(READY, timeout=1000 * START)

    def empty(self) -> None:
        """Remove all cells, and with them what they show; the kernel goes on."""
        self.page.evaluate(EMPTY)

    def run(self, source: str) -> tuple[Locator, str]:
        """Run a new last cell; return its output area in the page and the text that it printed.

        A cell that raises fails the test with its error.
        """
        index, outputs = self.page.evaluate(RUN, source)
        for output in outputs:
            error = f"{output.get('ename')}: {output.get('evalue')}"
            assert output["output_type"] != "error", f"the cell raised {error}\n{source}"
        printed = (output["text"] for output in outputs if output.get("name") == "stdout")
        text = "".join("".join(part) for part in printed)
        area = self.page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".jp-Cell-outputArea")
        area.scroll_into_view_if_needed()
        return area, text

    def theme(self, name: str) -> None:
        """Turn JupyterLab light or dark."""
        theme = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}[name]
        self.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
        )
        light = "true" if name == "light" else "false"
        self.page.locator(f"body[data-jp-theme-light={light}]").wait_for(state="attached")


def write_notebook(path: Path) -> None:
    """Write an empty notebook that this Python's kernel runs."""
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(metadata={"kernelspec": spec}), path)
