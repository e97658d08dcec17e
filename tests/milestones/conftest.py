"""What the milestones share: the reader's own config, and how a judgement is told."""

from pathlib import Path

import pytest

from glassformer.milestones import WORKSPACE, design_started

ROOT = Path(__file__).resolve().parents[2]


def pytest_terminal_summary(terminalreporter):
    """Print the hint of a milestone that is not started: pytest alone prints a single letter."""
    for report in terminalreporter.stats.get("skipped", []):
        if "milestones/" in report.nodeid:
            terminalreporter.write_line(f"{report.nodeid}: {report.longrepr[2]}")


@pytest.fixture
def own_config(request) -> Path:
    """Return the path of the reader's config.json; skip with a hint where none was begun."""
    path = ROOT / WORKSPACE / "config.json"
    if not design_started(path):
        pytest.skip(
            f"not started: write your design to {WORKSPACE}/config.json; "
            f"{request.module.SHOWN}, `config.to_json(path)` does it"
        )
    return path


@pytest.fixture
def accept():
    """Return a function that fails with what to change, or does nothing where that is nothing."""

    def accept(findings: list[str]) -> None:
        if findings:
            pytest.fail("\n".join(["To change:", *(f"- {f}" for f in findings)]), pytrace=False)

    return accept
