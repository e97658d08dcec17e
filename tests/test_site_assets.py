"""What pages are drawn with: every icon on them, no more of the theme's scripts than they need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from glassformer.site_assets import ICON_NAMES, icons_css

UNDRAWN = {"fa-solid", "fa-lg"}  # classes that name no icon
SCRIPT = 'x={"old-moon":[9,9,[],"f1","M1"],moon:[384,512,[127769,"night"],"f186","M2 3z"],'


def icons_missing(site: Path) -> set[str]:
    """Return the icons that stand on pages, or that their scripts put there, without a drawing."""
    drawn = set(re.findall(r"\.(fa-[\w-]+)[ ,]", (site / "_static/icons.css").read_text("utf-8")))
    named = set()
    for path in [
        *site.glob("*.html"),
        *site.glob("book/*.html"),
        *site.glob("_static/scripts/*.js"),
    ]:
        if path.name != "fontawesome.js":
            text = path.read_text(encoding="utf-8")
            for classes in re.findall(
                r"""["'](fa[sb]? [^"'<>]*|[^"'<>]*fa-solid [^"'<>]*)["']""", text
            ):
                named |= {name for name in classes.split() if name.startswith("fa-")}
    return named - UNDRAWN - drawn


def test_every_icon_on_a_page_is_drawn(site):
    assert icons_missing(site) == set()


def test_an_icon_without_a_drawing_is_found(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/icons.css").write_text(".fa-sun { }")
    (tmp_path / "a.html").write_text('<i class="fa-solid fa-sun"></i><i class="fas fa-comet"></i>')
    assert icons_missing(tmp_path) == {"fa-comet"}


def test_an_icon_is_found_by_its_whole_name_or_another_name_of_it():
    names = [f'"{name}":[1,2,[],"f0","M0"]' for name in ICON_NAMES if name != "moon"]
    css = icons_css(SCRIPT + ",".join(names) + "}")
    assert "M2 3z" in css and "M1" not in css
    with pytest.raises(KeyError):
        icons_css(SCRIPT + "}")


def test_pages_ask_for_no_script_that_only_other_pages_need(site):
    page = (site / "book/01_data.html").read_text(encoding="utf-8")
    asked = re.findall(r'<script[^>]* src="([^"?]+)', page)
    assert asked and not [src for src in asked if re.search("fontawesome|search", src)]
    assert "searchindex.js" in (site / "search.html").read_text(encoding="utf-8")
