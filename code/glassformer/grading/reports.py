"""What a class has come to, for people and programs: results.csv, results.json, HTML pages."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from importlib import resources
from pathlib import Path

import jinja2

from .. import __version__
from ..config import write_atomically
from ..exercises.bank import all_exercises, exercise
from ..milestones import MILESTONES
from .records import as_json

_MARKS = {"passed": "✓", "failed": "✗", "not attempted": "·"}
_CLASSES = {"passed": "passed", "failed": "failed", "not attempted": "muted"}
_ROLES = ("ink", "paper", "line", "muted", "loss", "query", "attention")  # colours of the palette


def write_reports(out: Path, results: list[dict], remarks: list[str]) -> dict:
    """Write everything that is made of a class's results; return what results.json holds."""
    students = [_summed(result) for result in results]
    told = {
        "glassformer": __version__,
        "remarks": remarks,
        "students": students,
        "exercises": _exercises(students),
        "misconceptions": _misconceptions(students),
    }
    pages = _Pages()
    for student in students:
        page = pages.render("student.html", title=student["student"], student=student)
        write_atomically(out / "students" / f"{student['slug']}.html", page)
    files = {
        "results.csv": _csv(students, [e["name"] for e in told["exercises"]]),
        "results.json": as_json(told),
        "index.html": pages.render("class.html", title="Class report", **told),
    }
    for name, content in files.items():
        write_atomically(out / name, content)
    return told


def _summed(result: dict) -> dict:
    """Return a student's result with its points, without what only resuming needs."""
    kept = {k: result[k] for k in ("student", "slug", "note", "results")}
    return kept | {k: sum(r[k] for r in result["results"]) for k in ("earned", "points")}


def _exercises(students: list[dict]) -> list[dict]:
    """Return how each exercise that was handed in went, in the book's order."""
    found = defaultdict(list)
    for student in students:
        for result in student["results"]:
            found[result["name"]].append(result)
    told = []
    for name in (asked.name for asked in (*all_exercises(), *MILESTONES)):
        results = found.get(name)
        if results:
            counts = {s: sum(r["status"] == s for r in results) for s in _MARKS}
            mean = sum(r["earned"] for r in results) / len(results)
            told.append({"name": name, "points": results[0]["points"], "mean": mean, **counts})
    return told


def _misconceptions(students: list[dict]) -> list[dict]:
    """Return which misconceptions were seen, the most frequent first."""
    seen = defaultdict(list)
    for student in students:
        for result in student["results"]:
            if result["misconception"]:
                seen[result["name"], result["misconception"]].append(student["student"])
    told = [
        {
            "exercise": name,
            "misconception": misconception,
            "message": _message(name, misconception),
            "students": names,
            "count": len(names),
        }
        for (name, misconception), names in seen.items()
    ]
    return sorted(told, key=lambda m: (-m["count"], m["exercise"], m["misconception"]))


def _message(name: str, misconception: str) -> str:
    return next((m.message for m in exercise(name).mutants if m.name == misconception), "")


def _csv(students: list[dict], names: list[str]) -> bytes:
    """Return a table with a line for each student and a column for each exercise."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(["student", "points", "of", "note", *names])
    for s in students:
        earned = {r["name"]: r["earned"] for r in s["results"]}
        row = [_cell(s["student"]), s["earned"], s["points"], _cell(s["note"])]
        table.writerow([*row, *(earned.get(name, "") for name in names)])
    return file.getvalue().encode()


def _cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@", "＝", "＋", "－", "＠") else text


class _Pages:
    """The templates, in which every text is escaped."""

    def __init__(self) -> None:
        palette = resources.files("glassformer").joinpath("palette.json").read_text("utf-8")
        self._environment = jinja2.Environment(
            autoescape=True,
            loader=jinja2.PackageLoader("glassformer.grading"),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.globals.update(
            marks=_MARKS, classes=_CLASSES, roles=_ROLES, palette=json.loads(palette)
        )

    def render(self, template: str, **values: object) -> bytes:
        """Return a page."""
        return self._environment.get_template(template).render(values).encode()
