"""A small book with the course's own settings, built in seconds, to try what needs an address."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from chapters import ROOT

TOC = "format: jb-book\nroot: book/start\nchapters:\n- file: book/demo\n"
INDEX = "# The small book\n\nIt asks **how** one small book says what it is.\n"
DEMO = """# Demo

:::{admonition} What is in a "box" & where?
:class: opening

**You will be able to** tell what is in it: a question, and what follows from asking it.

**Takes** 5 minutes
:::

## Inside

The answer, and [the start](start.md).
"""


def small_site(folder: Path, **settings: str) -> subprocess.CompletedProcess:
    """Build the small book strictly; `url` is its repository's address, `baseurl` its own."""
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config, repository = re.subn(r"(?m)^  url:.*$", f'  url: "{settings.get("url", "")}"', config)
    baseurl = settings.get("baseurl", "")
    config, own = re.subn(r"(?m)^html:$", f'html:\n  baseurl: "{baseurl}"', config)
    assert (repository, own) == (1, 1)
    shutil.copytree(ROOT / "book/_static", folder / "book/_static")
    shutil.copytree(ROOT / "book/_templates", folder / "book/_templates")
    texts = {"_config.yml": config, "_toc.yml": TOC, "book/start.md": INDEX}
    texts |= {"book/demo.md": DEMO, "book/references.bib": ""}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    start = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", "-W", "--keep-going", "."]
    return subprocess.run(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
