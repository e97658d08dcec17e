"""Grade a class: every submission apart from the others, in parallel, and never twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .apart import Apart, CannotGrade
from .handed import Handed, pick_up
from .records import Records, named
from .roster import Student, read_roster
from .worker import graded

Graded = tuple[Student, Handed, dict]


@dataclass
class Run:
    """What grading a class has come to."""

    results: list[dict]
    remarks: list[str]  # on what lies beside the students' folders
    taken_over: int  # results that were there before


def grade_class(
    submissions: Path,
    out: Path,
    seed: int,
    jobs: int,
    scheduler: str | None = None,
    progress: Callable[[str, int, int], None] = lambda name, done, of: None,
) -> Run:
    """Grade what has not been graded yet; return all results, in the order of the names."""
    students, remarks = _class(submissions, out)
    records = Records(out, seed)
    with records.alone():
        results = {s: _twin(s) for s in students if s.twins}
        read, run = [], []
        for student in students:
            if student in results:
                continue
            handed = pick_up(student.folder)
            if record := records.find(student, handed):
                results[student] = record
            else:
                (run if handed.has_notebooks else read).append(student)
        taken_over = len(results) - sum(1 for s in results if s.twins)
        begun = records.interrupted()
        run.sort(key=lambda student: student.slug in begun)  # stable: what ended a run comes last
        for student, handed, told in _graded(read, run, records, jobs, scheduler):
            results[student] = records.keep(student, handed, told)
            progress(student.name, len(results), len(students))
    return Run([results[student] for student in students], remarks, taken_over)


def _class(submissions: Path, out: Path) -> tuple[list[Student], list[str]]:
    """Return the students, and remarks on what is none; `CannotGrade` if there is no class."""
    if not submissions.is_dir():
        raise CannotGrade(f"There is no folder {submissions}; give one with a folder per student.")
    if out.resolve().is_relative_to(submissions.resolve()):
        raise CannotGrade(f"{out} lies in {submissions}: put the results elsewhere.")
    try:
        students, remarks = read_roster(submissions)
    except OSError as error:
        raise CannotGrade(f"{submissions} cannot be read: {error.strerror}.") from None
    if not students:
        raise CannotGrade(f"{submissions} holds no submissions: each is a student's folder.")
    return students, remarks


def _twin(student: Student) -> dict:
    """Return the result of a student who has handed in more than once."""
    others = " and ".join(student.twins)
    note = f"There are several submissions of this student, {student.name} and {others}: keep one."
    return named(student, {"results": [], "note": note})


def _graded(
    read: list[Student], run: list[Student], records: Records, jobs: int, scheduler: str | None
) -> Iterator[Graded]:
    """Yield results as they come: designs are read here, notebooks run elsewhere."""
    if scheduler is None:
        begun = _here(run, records, jobs)
    else:
        from .cluster import on_cluster

        begun = on_cluster(scheduler, run, records)
    with begun as coming:
        for student in read:
            handed = pick_up(student.folder)
            yield student, handed, _read(handed, records.seed)
        yield from coming


def _read(handed: Handed, seed: int) -> dict:
    """Return the results of a submission of which nothing is run."""
    if handed.fault:
        return {"results": [], "note": handed.fault}
    with handed.laid_out() as folder:
        *results, end = graded(str(folder), handed.faults, seed)
    return {"results": results, "note": end["end"]}


@contextmanager
def _here(run: list[Student], records: Records, jobs: int) -> Iterator[Iterator[Graded]]:
    """Begin to grade submissions on this machine, several at a time; give the results to come."""
    own, all_of_them = threading.local(), []

    def process() -> Apart:
        """Return this thread's process."""
        if not hasattr(own, "apart"):
            own.apart = Apart()
            all_of_them.append(own.apart)
        return own.apart

    def grade(student: Student) -> Graded:
        handed = pick_up(student.folder)
        records.say(f"begun {student.slug}")
        return student, handed, process().grade(handed, records.seed)

    pool = ThreadPoolExecutor(jobs)
    try:
        yield (future.result() for future in as_completed([pool.submit(grade, s) for s in run]))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for apart in all_of_them:
            apart.shut()
