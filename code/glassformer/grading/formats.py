"""One submission's results in the formats that Gradescope and GitHub Classroom have published."""

from __future__ import annotations

from collections.abc import Sequence

from .submission import Result


def for_gradescope(results: Sequence[Result], note: str = "") -> dict:
    """Return the content of Gradescope's results.json; all texts are plain ones."""
    earned, points = _sums(results)
    return {
        "score": earned,
        "output": note or f"{earned} of {points} points",
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "tests": [
            {
                "name": result.name,
                "score": result.earned,
                "max_score": result.points,
                "status": "passed" if result.status == "passed" else "failed",
                "output": _told(result),
                "visibility": "visible",
            }
            for result in results
        ],
    }


def for_classroom(results: Sequence[Result], note: str = "") -> dict:
    """Return what GitHub Classroom's reporter reads of a grader, before it is made base64."""
    passed = all(result.status == "passed" for result in results)
    tests = [_classroom_test(r.name, _pass(r), r.earned, _told(r)) for r in results]
    return {
        "version": 1,
        "status": "error" if note else "pass" if passed else "fail",
        "max_score": _sums(results)[1],
        "tests": tests or [_classroom_test("nothing to grade", "error", 0, note)],
    }


def _classroom_test(name: str, status: str, score: int, message: str) -> dict:
    place = {"test_code": "", "filename": "", "line_no": 0, "duration": 0}
    return {"name": name, "status": status, "score": score, "message": message, **place}


def _pass(result: Result) -> str:
    return "pass" if result.status == "passed" else "fail"


def _sums(results: Sequence[Result]) -> tuple[int, int]:
    return sum(result.earned for result in results), sum(result.points for result in results)


def _told(result: Result) -> str:
    """Return what is said of a result, in lines."""
    lines = [f"{label}: {text}" for label, text in result.remarks]
    return "\n".join(lines) or result.status
