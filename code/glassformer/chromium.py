"""Where the browser is that prints the book and drives the tests: one that the machine has."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)
MISSING = (
    "Chromium or Chrome is needed, and none was found: install one (Debian, Ubuntu: "
    "`sudo apt-get install chromium`; macOS: `brew install --cask chromium`), or set "
    "GLASSFORMER_CHROMIUM to the path of its program."
)


def find_chromium() -> str | None:
    """Return the path of a Chromium or Chrome: the one that the environment names, or any found."""
    named = os.environ.get("GLASSFORMER_CHROMIUM")
    if named:
        return shutil.which(named)
    installed = (place for place in PLACES if Path(place).is_file())
    return next(filter(None, map(shutil.which, NAMES)), None) or next(installed, None)


if __name__ == "__main__":  # `make test` and `make pdf` ask before anything else
    found = find_chromium()
    sys.exit(None if found else MISSING)
