"""The graders' reports in a real browser: both themes, a phone, and names that mean harm."""

from __future__ import annotations

import pytest
from browsing import DESK, PHONE, THEMES, axe, no_sideways_scroll

from glassformer.exercises.bank import all_exercises
from glassformer.grading.reports import write_reports

HARMFUL = "<img src=x onerror=alert(1)>" + "M" * 120


def result(exercise, status: str) -> dict:
    """Return a result as it is kept, with a value that is too wide for any phone."""
    wrong = status == "failed"
    return {
        "part": "01_data.ipynb",
        "name": exercise.name,
        "earned": 0 if wrong else exercise.points,
        "points": exercise.points,
        "status": status,
        "remarks": [["came out", "0123456789" * 40], ["wrong", HARMFUL]] if wrong else [],
        "misconception": exercise.mutants[0].name if wrong else "",
    }


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of a class's reports."""
    out = tmp_path_factory.mktemp("reports")
    asked = all_exercises()[:4]
    statuses = ("failed", "passed", "not attempted", "failed")
    results = [
        {
            "student": name,
            "slug": f"s{number}",
            "note": note,
            "results": [result(e, s) for e, s in zip(asked, statuses, strict=True)],
        }
        for number, (name, note) in enumerate([("Ada", ""), (HARMFUL, ""), ("Ben", "A note.")])
    ]
    write_reports(out, results, ["notes.txt is not a student's folder."])
    return out


@pytest.mark.parametrize("name", ["index.html", "students/s0.html", "students/s1.html"])
def test_a_report_suits_every_reader(visit, reports, name):
    page = visit((reports / name).as_uri())
    grounds, found = set(), []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for width in (PHONE, DESK):
            page.set_viewport_size({"width": width, "height": 900})
            no_sideways_scroll(page)
            found += [f"{theme}, {width} pixels: {line}" for line in axe(page)]
    assert found == [] and len(grounds) == 2
    assert page.locator("img, script").count() == 0


def test_the_class_report_leads_to_each_student(visit, reports):
    page = visit((reports / "index.html").as_uri())
    page.get_by_role("link", name="Ben").click()
    page.get_by_role("heading", name="Ben", level=1).wait_for()
    assert page.get_by_text("A note.").count() == 1
