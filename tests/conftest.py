"""What the tests here share: property tests that repeat themselves, and the exercises' counts."""

from hypothesis import settings

# The same examples are drawn in every run, and being slow fails nothing.
settings.register_profile(
    "course", derandomize=True, deadline=None, database=None, max_examples=100
)
settings.load_profile("course")


def pytest_terminal_summary(terminalreporter):
    """Say how many exercises, mutants, styles and seeds were gone through, where they were."""
    reports = (r for group in terminalreporter.stats.values() for r in group)
    if any("test_exercises.py" in getattr(report, "nodeid", "") for report in reports):
        from test_exercises import counts

        told = ", ".join(f"{number:,} {what}" for what, number in counts().items())
        terminalreporter.write_line(f"tests/test_exercises.py: {told}")
