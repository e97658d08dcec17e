"""The graders' reports in a real browser: both themes, a phone, and names that mean harm."""

from __future__ import annotations

import pytest
from browsing import DESK, PHONE, THEMES, axe, no_sideways_scroll

from glassformer.config import TransformerConfig
from glassformer.exercises.bank import all_exercises
from glassformer.grading.reports import write_reports
from glassformer.grading.worker import graded

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


def of_a_design(folder, n_kv_heads: int | None) -> list[dict]:
    """Return what a design comes to that has not the memory for its cache."""
    TransformerConfig(256, 96, 10, 4, n_kv_heads, 512).to_json(folder / "config.json")
    *results, _ = graded(str(folder), {}, 0)
    return results


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of a class's reports."""
    out = tmp_path_factory.mktemp("reports")
    folder = tmp_path_factory.mktemp("design")
    designs = [of_a_design(folder, 2), of_a_design(folder, None), []]
    asked = all_exercises()[:4]
    statuses = ("failed", "passed", "not attempted", "failed")
    results = [
        {
            "student": name,
            "slug": f"s{number}",
            "note": note,
            "results": [result(e, s) for e, s in zip(asked, statuses, strict=True)]
            + designs[number],
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


def test_a_student_reads_what_became_of_both_milestones(visit, reports):
    page = visit((reports / "students/s0.html").as_uri())
    rows = page.get_by_role("region", name="Points for config.json").get_by_role("row")
    assert rows.nth(1).inner_text().split("\t") == ["m1.design", "✓ passed", "10 of 10"]
    assert rows.nth(2).inner_text().split("\t") == ["m2.cache", "✗ failed", "0 of 5"]
    assert page.get_by_text("with all else as it is, take n_kv_heads at most 1").is_visible()
    page.goto((reports / "students/s1.html").as_uri())
    assert rows.nth(2).inner_text().split("\t") == ["m2.cache", "· not attempted", "0 of 5"]
    assert page.get_by_text("n_kv_heads is left open").is_visible()
