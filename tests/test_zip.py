"""The site as one file: complete, the same each time, and readable from where it is unpacked."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

from glassformer.site_zip import FOLDER, README, zip_site


def small_site(folder):
    """A site of two pages; the second is written first, and some files nobody reads."""
    (folder / "book").mkdir(parents=True)
    unread = (".buildinfo", "objects.inv", "404.html", "book/fontawesome.js", "book/a.css.map")
    for name in ("index.html", "book/b.html", "book/a.html", *unread):
        (folder / name).write_text(f"{name} " * 50, encoding="utf-8")
    return folder


def test_the_file_holds_the_site_in_one_folder(tmp_path):
    zip_site(small_site(tmp_path / "site"), tmp_path / "site.zip")
    with zipfile.ZipFile(tmp_path / "site.zip") as archive:
        assert archive.testzip() is None
        names = ["README.txt", "book/a.html", "book/b.html", "index.html"]
        assert archive.namelist() == [f"{FOLDER}/{name}" for name in names]
        assert archive.read(f"{FOLDER}/README.txt").decode() == README
        assert archive.read(f"{FOLDER}/book/a.html") == b"book/a.html " * 50
    assert README.count(".") == 2 and README.count("\n") == 1  # of index.html, and the sentence's


def test_the_same_site_gives_the_same_file(tmp_path):
    for name, day in (("one", 1e9), ("two", 1.2e9)):
        site = small_site(tmp_path / name)
        for path in site.rglob("*"):
            os.utime(path, (day, day))
        zip_site(site, tmp_path / f"{name}.zip")
    one, two = (tmp_path / "one.zip").read_bytes(), (tmp_path / "two.zip").read_bytes()
    assert one == two
    (tmp_path / "two/index.html").write_text("changed")
    zip_site(tmp_path / "two", tmp_path / "two.zip")
    assert (tmp_path / "two.zip").read_bytes() != one


def test_a_place_that_cannot_be_written_is_told_in_a_sentence(tmp_path):
    site = small_site(tmp_path / "site")
    target = site / "index.html" / "site.zip"  # below a file
    command = [sys.executable, "-m", "glassformer.site_zip", str(site), str(target)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr.startswith(f"{target} cannot be written: ")
    assert run.stderr.count("\n") == 1


def test_without_a_site_it_says_what_to_do(tmp_path):
    command = [sys.executable, "-m", "glassformer.site_zip", str(tmp_path), str(tmp_path / "x.zip")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr == f"There is no built site in {tmp_path}: run `make book`.\n"
    assert not list(tmp_path.iterdir())
