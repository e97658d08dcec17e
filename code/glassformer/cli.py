"""The command line: grading, and what `cli_models` adds, training and writing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .cli_models import export, generate, refuse, train

app = typer.Typer(
    help="The Glass Transformer: grade exercises; train a design, let it write, export it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

for command in (train, generate, export):
    app.command()(command)

_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "not attempted": ("·", "dim")}
_MOST_SHOWN = 5  # misconceptions, after a class is graded

Seed = Annotated[
    int,
    typer.Option(help="Draw the tests' random inputs from this number: your own is secret."),
]


class Format(str, Enum):
    """How results are told."""

    table = "table"
    gradescope = "gradescope"
    classroom = "classroom"


@app.command()
def grade(
    submission: Annotated[
        Path, typer.Argument(help="A notebook of exercises, a config.json, or a folder with both.")
    ],
    seed: Seed = 0,
    how: Annotated[
        Format, typer.Option("--format", help="A table, or the JSON that a platform reads.")
    ] = Format.table,
) -> None:
    """Grade one submission: a table of points, and what is wrong.

    The exit status is 0 if all points were earned, 1 if not, 2 if there is nothing to grade.
    """
    _need_fork()
    from .grading.submission import NothingToGrade, grade_submission

    results = []
    try:
        for title, part in grade_submission(submission, seed):
            part = list(part)
            results += part
            if how is Format.table:
                _show(title, part)
    except NothingToGrade as nothing:
        if how is not Format.table:
            _print_json(how, [], str(nothing))
        refuse(nothing)
    earned, most = sum(r.earned for r in results), sum(r.points for r in results)
    if how is Format.table:
        Console().print(Text(f"{earned} of {most} points"))
    else:
        _print_json(how, results)
    raise typer.Exit(0 if earned == most else 1)


@app.command("grade-class")
def grade_class(
    submissions: Annotated[
        Path, typer.Argument(help="A folder that holds one folder for each student.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for the results.")],
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="How many submissions at a time.", show_default="one per core"),
    ] = None,
    seed: Seed = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="Grade on a dask cluster: its scheduler's address.")
    ] = None,
) -> None:
    """Grade a class: every submission apart from the others, then reports for all.

    Run it again after whatever stopped it: what is graded already stays. The exit status is 0 when
    all submissions are graded, whatever they earned, and 2 if they cannot be.
    """
    _need_fork()
    from .grading.apart import CannotGrade
    from .grading.batch import grade_class
    from .grading.reports import write_reports

    try:
        with _progress() as progress:
            run = grade_class(submissions, out, seed, jobs or _cores(), scheduler, progress)
        told = write_reports(out, run.results, run.remarks)
    except (CannotGrade, ValueError) as cannot:
        refuse(cannot)
    except OSError as error:
        refuse(f"{error.filename or out} cannot be used: {error.strerror}.")
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped; the same command goes on from here.")
        raise typer.Exit(130) from None
    _sum_up(told, run.taken_over, out / "index.html")


@app.command()
def gradescope(
    archive: Annotated[Path, typer.Argument(help="Where to write the archive, a .zip file.")],
    seed: Seed = 0,
) -> None:
    """Write the autograder archive that Gradescope asks for: this package and two scripts."""
    from .grading.apart import CannotGrade
    from .grading.gradescope import write_archive

    try:
        write_archive(archive, seed)
    except (CannotGrade, ValueError) as cannot:
        refuse(cannot)
    Console().print(Text(f"{archive} is written: upload it as the assignment's autograder."))


def _need_fork() -> None:
    if not hasattr(os, "fork"):
        refuse("Grading needs Linux or macOS; on Windows, use `check` or WSL.")


def _cores() -> int:
    """Return how many cores there are for this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print_json(how: Format, results: list, note: str = "") -> None:
    """Print results in a platform's format."""
    from .grading.formats import for_classroom, for_gradescope

    told = (for_gradescope if how is Format.gradescope else for_classroom)(results, note)
    print(json.dumps(told, indent=1))


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows how far it is: a bar on a terminal, plain lines elsewhere."""
    console = Console()
    if not console.is_terminal:
        yield lambda name, done, of: print(f"{done} of {of}: {name}", flush=True)
        return
    columns = (TextColumn("graded"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("graded", total=None)
        yield lambda name, done, of: bar.update(task, completed=done, total=of)


def _sum_up(told: dict, taken_over: int, index: Path) -> None:
    """Say what a class has come to, and where the reports are."""
    console = Console()
    for remark in told["remarks"]:
        console.print(Text(remark))
    for m in told["misconceptions"][:_MOST_SHOWN]:
        line = f"{m['count']} × {m['exercise']}, {m['misconception']}: {m['message']}"
        console.print(Text(line), soft_wrap=True)
    students = told["students"]
    earned, most = (sum(s[key] for s in students) for key in ("earned", "points"))
    before = f", {taken_over} of them before" if taken_over else ""
    line = f"{len(students)} submissions graded{before}: {earned} of {most} points. Open {index}"
    console.print(Text(line), soft_wrap=True)


def _show(title: str, results: list) -> None:
    """Show the results of a part."""
    table, remarks = _table(title), []
    for result in results:
        _add(table, remarks, result)
    console = Console()
    console.print(table)
    for remark in remarks:
        console.print(remark)


def _table(title: str) -> Table:
    """Return an empty table of results."""
    table = Table(title=Text(title), title_justify="left")
    for column in ("", "exercise", "result"):
        table.add_column(column)
    table.add_column("points", justify="right")
    return table


def _add(table: Table, remarks: list[Text], result) -> None:
    """Add a result to a table, and what is to be said of it to the remarks."""
    mark, style = _MARKS[result.status]
    points = f"{result.earned} of {result.points}"
    table.add_row(Text(mark, style), Text(result.name), Text(result.status), points)
    if result.remarks:
        remarks.append(Text(f"{result.name}", "bold"))
        remarks += [Text(f"  {label}: {text}") for label, text in result.remarks]
