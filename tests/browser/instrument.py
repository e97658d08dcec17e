"""How a reader, and a test, reads an explorer: its numbers, its tables, the formula in view."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import torch
from playwright.sync_api import Locator, Page, expect

from glassformer.explorers import Explorer
from glassformer.site import palette_css
from glassformer.site_explorers import explorer_html, write_explorers

SITES = ("http_site", "file_site")
PAGE = """<!doctype html><html lang="en-GB"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="palette.css">
<link rel="stylesheet" href="glassformer-explorers.css">
<style>body {{ margin: 0 auto; padding: 0 16px; max-width: {width}px; background: var(--gf-paper);
color: var(--gf-ink); font-family: sans-serif }}</style>
<script>document.documentElement.dataset.theme =
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";</script>
{above}<main><h1>{title}</h1>{explorer}</main>{below}
{scripts}</html>"""


def write_page(path: Path, shown: Explorer, scripts: str, width: int, above="", below="") -> None:
    """Write a page of an explorer alone, in the reader's theme, and beside it what it loads."""
    write_explorers(path.parent)
    (path.parent / "palette.css").write_text(palette_css(), encoding="utf-8")
    around = {"title": shown.title, "above": above, "below": below, "width": width}
    explorer = explorer_html(shown.page(), shown.text())
    path.write_text(PAGE.format(explorer=explorer, scripts=scripts, **around), encoding="utf-8")


def opener(request, visit, page: str, name: str) -> Callable[..., Locator]:
    """Return a function that opens an explorer in a state and returns its part of the page."""

    def open_explorer(over: str = "http_site", theme: str = "light", width: int = 1440, **state):
        address = f"{request.getfixturevalue(over)}/{page}"
        query = f"#explorer-{name}?{urlencode(state)}" if state else ""
        part = visit(f"{address}{query}", theme, width).locator(f"#explorer-{name}")
        expect(part.locator(".gfx")).to_be_visible()
        return part

    return open_explorer


def to_number(text: str) -> float:
    """Return a number as it is written: with a true minus sign, perhaps in groups or as a share."""
    text = text.strip().replace("−", "-").replace(",", "").replace("∞", "inf")
    return float(text.removesuffix("%").strip()) / 100 if text.endswith("%") else float(text)


def sentence(part: Locator) -> Locator:
    """Return the sentence that says what is shown, and is read aloud when it changes."""
    return part.locator("p[role=status]")


def told(part: Locator) -> str:
    """Return the words of that sentence."""
    return sentence(part).inner_text()


def texts(rows: Locator, of: str = "td") -> list[list[str]]:
    """Return the texts of rows' cells, or of other parts of theirs, all read at once."""
    return rows.evaluate_all(
        "(rows, of) => rows.map((row) => [...row.querySelectorAll(of)].map((e) => e.innerText))", of
    )


def cells(part: Locator, name: str) -> list[list[str]]:
    """Return the texts of the cells of a matrix or a table of figures, by its name."""
    return texts(part.get_by_role("grid", name=name).locator("tbody tr"))


def matrix(part: Locator, name: str) -> torch.Tensor:
    """Return the numbers of a matrix as they are printed."""
    return torch.tensor([[to_number(cell) for cell in row] for row in cells(part, name)]).double()


def cell(part: Locator, name: str, row: int, column: int) -> Locator:
    """Return one cell of a matrix or of a table of figures."""
    grid = part.get_by_role("grid", name=name)
    return grid.locator("tbody tr").nth(row).locator("td").nth(column)


def twin(part: Locator) -> dict[str, list[list[str]]]:
    """Return the tables behind “As a table” by caption, each a list of rows with their heads."""
    if part.locator(".gfx-twin[open]").count() == 0:
        part.get_by_text("As a table").click()
    return part.locator(".gfx-twin").evaluate(
        """(twin) => Object.fromEntries([...twin.querySelectorAll("table")].map((table) => [
          table.caption.textContent,
          [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
        ]))"""
    )


def numbers(rows: list[list[str]]) -> torch.Tensor:
    """Return a table's numbers, the heads of its rows left out."""
    return torch.tensor(
        [[to_number(text) for text in row[1:]] for row in rows], dtype=torch.float64
    )


def formula(part: Locator) -> tuple[str, float, str]:
    """Return the address of the number pointed at, its value, and the whole line of its formula."""
    panel = part.locator(".gfx-formula")
    key = panel.locator(".gfx-formula-rule .gfx-mono").first.inner_text()
    filled = panel.locator(".gfx-formula-filled")
    return key, to_number(filled.locator(".gfx-value").inner_text()), filled.inner_text()


def copied(part: Locator, button: str) -> dict:
    """Return what a copy button puts on the clipboard: Python, which is run."""
    part.page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    part.get_by_role("button", name=button).click()
    made: dict = {}
    exec(part.page.evaluate("window.copied"), {"torch": torch}, made)
    return made


def query(page: Page) -> str:
    """Return the state in the address, once it has been written there."""
    page.wait_for_timeout(350)
    found = re.search(r"\?(.*)$", page.url)
    return found.group(1) if found else ""
