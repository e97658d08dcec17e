"""The course's public address: it stands in `_config.yml`, and what needs it follows from there.

`make repository URL=https://…` checks it, writes it there and rewrites the notebooks' setup cells
and the links of the READMEs; the site's buttons are made from it when the site is built. Without an
address nothing is installed from anywhere, and no launch button is shown.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .config import write_atomically

CONFIG = "_config.yml"
READMES = ("README.md", "exercises/README.md")
COMMAND = "make repository URL=https://…"

_HOST = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_REPOSITORY = re.compile(rf"https://({_HOST})/({_NAME})/({_NAME})")
_SERVICE = re.compile(rf"https://{_HOST}(?::[0-9]+)?(?:/{_NAME})*")

# In `_config.yml`: the address, and the branch below it.
_WRITTEN = re.compile(r"(?m)^(repository:\n(?:  #.*\n)*  url:)[^#\n]*?( *#.*)?$(?=\n  branch:)")
# In a README: what stands between the marks is written from the address.
_PLACE = re.compile(
    r"(?s)(<!-- launch: written by `make repository` -->\n).*?(<!-- launch ends -->)"
)
# At the start of a notebook's setup cell: the lines of any address, or of none.
_SETUP = re.compile(
    r"import importlib\.util\n(?:import \w+\n)*\n"
    r'if importlib\.util\.find_spec\("glassformer"\) is None:\n(?: {4}[^\n]*(?:\n|\Z))+'
)

_MISSING = """\
import importlib.util

if importlib.util.find_spec("glassformer") is None:
    raise SystemExit(
        "The course's package is missing here: in the course's folder run `pip install -e .`, "
        "then restart this kernel."
    )"""
_INSTALL = """\
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("glassformer") is None:
    print("Installing the course's package from {url} …")
    pip = [sys.executable, "-m", "pip", "install", "-q", "git+{url}@{branch}"]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{{done.stderr}}That did not work: see above, then run this cell again.")
    importlib.invalidate_caches()"""


@dataclass(frozen=True)
class Address:
    """A repository, its branch, and the services that open its notebooks ("" for none)."""

    url: str
    branch: str = "main"
    binder: str = ""
    colab: str = ""
    hub: str = ""

    def __post_init__(self):
        """Refuse what is no plain address: it goes into code, links and commands."""
        if not _REPOSITORY.fullmatch(self.url) or self.url.endswith(".git") or len(self.url) > 200:
            raise ValueError(
                f"The repository's address cannot be {_shown(self.url)}: give it as "
                "https://host/owner/repository, in letters, digits, dots, hyphens and underscores."
            )
        if not re.fullmatch(_NAME, self.branch) or ".." in self.branch or len(self.branch) > 100:
            raise ValueError(
                f"The branch cannot be {_shown(self.branch)}: name one of letters, digits, dots, "
                "hyphens and underscores in `repository: branch` of _config.yml."
            )
        for name in ("binder", "colab", "hub"):
            service = getattr(self, name)
            if service and not _SERVICE.fullmatch(service):
                key = {"binder": "binderhub", "hub": "jupyterhub"}.get(name, name)
                raise ValueError(
                    f"`launch_buttons: {key}_url` of _config.yml cannot be {_shown(service)}: give "
                    'the address of the service, as https://host, or "" for none.'
                )

    def launchers(self, path: str) -> list[tuple[str, str]]:
        """Return the name of each service that can open a notebook, and the link that does."""
        host, owner, name = _REPOSITORY.fullmatch(self.url).groups()
        kind = {"github.com": f"gh/{owner}/{name}", "gitlab.com": f"gl/{owner}%2F{name}"}
        where = kind.get(host, f"git/{quote(self.url, safe='')}")
        pulled = {"repo": self.url, "branch": self.branch, "urlpath": f"lab/tree/{name}/{path}"}
        links = []
        if self.binder:
            link = f"{self.binder}/v2/{where}/{self.branch}?urlpath=lab/tree/{path}"
            links.append(("Binder", link))
        if self.colab and host == "github.com":  # Colab opens no others
            link = f"{self.colab}/github/{owner}/{name}/blob/{self.branch}/{path}"
            links.append(("Colab", link))
        if self.hub:
            link = f"{self.hub}/hub/user-redirect/git-pull?{urlencode(pulled, safe='/')}"
            links.append(("JupyterHub", link))
        return links


def _shown(text: str) -> str:
    """Return a text in quotes and in one line, however odd it is."""
    shown = ascii(text)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"


# Read --------------------------------------------------------------------------------------------


def address_in(settings: dict[str, Any]) -> Address | None:
    """Return the address that the book's settings hold, if they hold one."""
    given, launch = (_below(settings, key) for key in ("repository", "launch_buttons"))
    if not given.get("url"):
        return None
    services = {key: str(launch.get(f"{name}_url") or "").rstrip("/") for key, name in _KEYS}
    return Address(str(given["url"]), str(given.get("branch") or "main"), **services)


_KEYS = (("binder", "binderhub"), ("colab", "colab"), ("hub", "jupyterhub"))


def _below(settings: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the settings that stand below one of the book's settings."""
    held = settings.get(key) or {}
    if not isinstance(held, dict):
        raise ValueError(
            f"`{key}` of {CONFIG} holds no settings but {_shown(str(held))}: put each in a line "
            "of its own below it, as `  name: value`."
        )
    return held


def address_of(course: Path) -> Address | None:
    """Return the address that a course's folder has in its settings, if it has any."""
    config = course / CONFIG
    return address_in(_settings(config.read_text(encoding="utf-8"))) if config.is_file() else None


def _settings(text: str) -> dict[str, Any]:
    import yaml

    try:
        settings = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        raise ValueError(f"{CONFIG} is no YAML from line {line} on: mend it there.") from None
    except yaml.YAMLError:
        raise ValueError(f"{CONFIG} holds a character that YAML forbids: take it out.") from None
    if not isinstance(settings, dict):
        raise ValueError(f"{CONFIG} holds no settings: put them there, as `name: value`.")
    return settings


# Write -------------------------------------------------------------------------------------------


def setup_lines(address: Address | None) -> str:
    """Return the lines with which every notebook begins: is the package there, and if not?"""
    return _INSTALL.format(url=address.url, branch=address.branch) if address else _MISSING


def launch_section(address: Address | None, notebooks: Iterable[str]) -> str:
    """Return what a README says of launching: a line for each notebook."""
    if address is None:
        return f"Nothing is launched until the course has a public address: `{COMMAND}` sets it.\n"
    rows = []
    for path in notebooks:
        links = " · ".join(f"[{name}]({link})" for name, link in address.launchers(path))
        rows.append(f"- `{path}`: {links}\n")
    return f"From [{address.url.removeprefix('https://')}]({address.url}):\n\n{''.join(rows)}"


def with_setup(notebook: str, address: Address | None) -> str:
    """Return a notebook's text with the setup lines of an address; all else stays as it is."""
    import nbformat

    from .notebooks import normalise

    read = nbformat.reads(notebook, as_version=4)
    cell = next((cell for cell in read.cells if cell.cell_type == "code"), None)
    found = cell and _SETUP.match(cell.source)
    if not found:
        raise ValueError("its first code cell does not begin with the setup lines.")
    lines = setup_lines(address)
    cell.source = lines + ("\n" if found[0].endswith("\n") else "") + cell.source[found.end() :]
    return nbformat.writes(normalise(read)) + "\n"


def derived(course: Path, config: str) -> dict[Path, str]:
    """Return what each file should hold, given the text of the settings."""
    address = address_in(_settings(config))
    texts = {course / CONFIG: config}
    for folder in ("book", "exercises"):
        for path in sorted((course / folder).glob("[0-9]*.ipynb")):
            try:
                texts[path] = with_setup(path.read_text(encoding="utf-8"), address)
            except ValueError as error:
                raise ValueError(f"{folder}/{path.name} cannot be rewritten: {error}") from None
    notebooks = [path.relative_to(course).as_posix() for path in texts if path.suffix == ".ipynb"]
    for name, folder in zip(READMES, ("book", "exercises"), strict=True):
        section = launch_section(address, [p for p in notebooks if p.startswith(folder)])
        text = (course / name).read_text(encoding="utf-8")
        texts[course / name], count = _PLACE.subn(lambda m, s=section: m[1] + s + m[2], text)
        if count != 1:
            raise ValueError(f"{name} has no place for the links: put the two marks there again.")
    return texts


def with_address(config: str, url: str) -> str:
    """Return the text of the settings with another address; comments stay."""
    url = Address(url.strip().removesuffix("/").removesuffix(".git")).url
    config, count = _WRITTEN.subn(lambda m: f"{m[1]} {url}{m[2] or ''}", config)
    if count != 1:
        raise ValueError(
            f"{CONFIG} has no place for the address: below `repository:` put a line `  url:` "
            "and a line `  branch: main`."
        )
    return config


def disagreements(course: Path) -> list[str]:
    """Return the files that do not hold what follows from the address in the settings."""
    texts = derived(course, (course / CONFIG).read_text(encoding="utf-8"))
    return [
        path.relative_to(course).as_posix()
        for path, text in texts.items()
        if path.read_text(encoding="utf-8") != text
    ]


def set_address(course: Path, url: str = "") -> list[str]:
    """Write an address, or the one that is set, wherever it belongs; return what was changed.

    All is worked out before anything is written, and the settings are written last, so that a run
    that was stopped is finished by the next.
    """
    config = (course / CONFIG).read_text(encoding="utf-8")
    texts = derived(course, with_address(config, url) if url else config)
    changed = [p for p, text in texts.items() if p.read_text(encoding="utf-8") != text]
    for path in reversed(changed):
        write_atomically(path, texts[path].encode())
    return [path.relative_to(course).as_posix() for path in changed]


def main() -> None:
    """Command line: `python -m glassformer.repository . https://…`, or without for the one set."""
    parser = argparse.ArgumentParser(prog="python -m glassformer.repository", description=__doc__)
    parser.add_argument("course", type=Path)
    parser.add_argument("url", nargs="?", default="")
    given = parser.parse_args()
    try:
        changed = set_address(given.course, given.url)
        address = address_of(given.course)
    except (ValueError, OSError) as error:
        parser.exit(1, f"{error}\n")
    if address is None:
        print(f"No address is set: `{COMMAND}` sets it.")
    else:
        print(f"The course's address is {address.url}, branch {address.branch}.")
    print(f"Rewritten: {', '.join(changed)}." if changed else "All places agree with it already.")


if __name__ == "__main__":
    main()
