"""The command line: `glassformer grade` and what belongs to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

app = typer.Typer(
    help="The Glass Transformer's exercises and milestones, graded.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "not attempted": ("·", "dim")}


@app.callback()
def _commands() -> None:
    """Keep `grade` a command of its own, also while there is only one."""


@app.command()
def grade(
    submission: Annotated[
        Path, typer.Argument(help="A notebook of exercises, a config.json, or a folder with both.")
    ],
    seed: Annotated[
        int,
        typer.Option(help="Draw the tests' random inputs from this number: your own is secret."),
    ] = 0,
) -> None:
    """Grade one submission: a table of points, and what is wrong.

    The exit status is 0 if all points were earned, 1 if not, 2 if there is nothing to grade.
    """
    if not hasattr(os, "fork"):
        Console(stderr=True).print("Grading needs Linux or macOS; on Windows, use `check` or WSL.")
        raise typer.Exit(2)
    from .grading.submission import NothingToGrade, grade_submission

    console = Console()
    earned = most = 0
    try:
        for title, results in grade_submission(submission, seed):
            table, remarks = _table(title), []
            for result in results:
                earned, most = earned + result.earned, most + result.points
                _add(table, remarks, result)
            console.print(table)
            for remark in remarks:
                console.print(remark)
    except NothingToGrade as nothing:
        Console(stderr=True).print(Text(str(nothing)), soft_wrap=True)
        raise typer.Exit(2) from None
    console.print(Text(f"{earned} of {most} points"))
    raise typer.Exit(0 if earned == most else 1)


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
