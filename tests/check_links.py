"""Ask for every link out of the built site and of the READMEs: `python tests/check_links.py`.

It needs a network, so no test runs it; `make links` does, and continuous integration once a week.
Sphinx's own link check does the asking, from a page of all links.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from chapters import ROOT
from site_links import malformed, outside_links

TEXTS = ("README.md", "CONTRIBUTING.md", "exercises/README.md")
WRITTEN = re.compile(r"https://[^\s<>()\"'`]+")

SETTINGS = """\
linkcheck_retries, linkcheck_timeout, linkcheck_anchors = 2, 20, False
linkcheck_report_timeouts_as_broken = True
"""


def asked(link: str) -> str:
    """Return what is asked: of a DOI, whether it exists, since publishers turn robots away."""
    return link.replace("https://doi.org/", "https://doi.org/api/handles/")


def links_to_check(site: Path) -> list[str]:
    """Return every link out of the built site, and those that the texts around it name."""
    found = set(outside_links(site))
    for name in TEXTS:
        links = (link.rstrip(".,:;") for link in WRITTEN.findall((ROOT / name).read_text("utf-8")))
        found |= {link for link in links if not malformed(link)}  # https://… is none
    return sorted(found)


def linkcheck(links: list[str], folder: Path) -> subprocess.CompletedProcess:
    """Let Sphinx ask for links, two times each; it fails if one is dead."""
    folder.mkdir(exist_ok=True)
    (folder / "conf.py").write_text(SETTINGS, encoding="utf-8")
    listed = "\n".join(f"- `{number} <{asked(link)}>`__" for number, link in enumerate(links))
    (folder / "index.rst").write_text(f"Links\n=====\n\n{listed}\n", encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-b", "linkcheck", "-q", str(folder)]
    return subprocess.run(
        [*command, str(folder / "out")], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def main() -> None:
    """Command line: ask for the links of `_build/html`."""
    site = ROOT / "_build/html"
    if not (site / "index.html").is_file():
        sys.exit("There is no built site in _build/html: run `make book`.")
    links = links_to_check(site)
    with tempfile.TemporaryDirectory() as folder:
        run = linkcheck(links, Path(folder))
    print(run.stdout, end="")
    print(
        f"{len(links)} links: " + ("some are dead, see above." if run.returncode else "all answer.")
    )
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
