"""The built site as one file: `python -m glassformer.site_zip _build/html site.zip`.

A reader unpacks it and opens it from disk. The same site gives the same file, byte for byte.
"""

from __future__ import annotations

import argparse
import io
import re
import zipfile
from pathlib import Path

from .config import write_atomically

FOLDER = "the-glass-transformer"
README = "Open index.html in a browser: the whole book works from this folder, without a network.\n"
NOT_READ = {".buildinfo", "objects.inv", "404.html"}  # of use to Sphinx and to hosts alone
UNUSED = re.compile(r"\.map$|/fontawesome\.js")  # of use to the theme's makers alone


def zip_site(site: Path, target: Path) -> None:
    """Write the files of a built site, in order and under one date, into a zip file."""
    files = {"README.txt": README.encode()}
    for path in site.rglob("*"):
        name = path.relative_to(site).as_posix()
        if path.is_file() and name not in NOT_READ and not UNUSED.search(name):
            files[name] = path.read_bytes()
    with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(f"{FOLDER}/{name}", (2000, 1, 1, 0, 0, 0))
            member.compress_type, member.create_system = zipfile.ZIP_DEFLATED, 3
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    write_atomically(target, packed.getvalue())


def main() -> None:
    """Command line: the folder of the built site, and the file to write."""
    parser = argparse.ArgumentParser(prog="python -m glassformer.site_zip", description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    if not (given.site / "index.html").is_file():
        parser.exit(1, f"There is no built site in {given.site}: run `make book`.\n")
    try:
        zip_site(given.site, given.target)
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    print(f"{given.target}: {given.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
