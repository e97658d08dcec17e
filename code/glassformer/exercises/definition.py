"""What an exercise is: one module that holds its statement, code in every form, and its tests."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

Function = Callable[..., object]


@dataclass(frozen=True)
class Variant:
    """One way to write an exercise's function; a mutant's message says what it gets wrong."""

    name: str
    function: Function
    message: str = ""

    @property
    def source(self) -> str:
        """The function as a learner would write it, without its decorator."""
        text = textwrap.dedent(inspect.getsource(self.function))
        definition = ast.parse(text).body[0]
        return "\n".join(text.splitlines()[definition.lineno - 1 :])


@dataclass(eq=False, repr=False)  # one object for each exercise
class Exercise:
    """An exercise; its module registers the functions by decorators and holds the tests.

    `forbidden` maps the name of a library's function to what to say when it is used.
    """

    name: str
    title: str
    minutes: int
    statement: str
    hints: tuple[str, str, str]
    explanation: str
    forbidden: dict[str, str] = field(default_factory=dict)
    seconds: float = 5.0
    start: Variant | None = field(default=None, init=False)
    solved: Variant | None = field(default=None, init=False)
    styles: list[Variant] = field(default_factory=list, init=False)
    mutants: list[Variant] = field(default_factory=list, init=False)
    prepared: Function | None = field(default=None, init=False)

    def starter(self, function: Function) -> Function:
        """Register the function as the learner finds it: signature, shapes, not attempted."""
        self.start = Variant("starter", function)
        return function

    def solution(self, function: Function) -> Function:
        """Register the explained solution."""
        self.solved = Variant("solution", function)
        return function

    def style(self, name: str) -> Callable[[Function], Function]:
        """Register another correct way to write it."""
        return lambda function: self.styles.append(Variant(name, function)) or function

    def mutant(self, name: str, message: str) -> Callable[[Function], Function]:
        """Register a plausible wrong answer and what it shows, in words of the chapter."""
        return lambda function: self.mutants.append(Variant(name, function, message)) or function

    def harness(self, function: Function) -> Function:
        """Register what makes objects of the data, a model say, and calls the function."""
        self.prepared = function
        return function

    @property
    def function_name(self) -> str:
        """Name of the function that the learner writes."""
        return self.start.function.__name__

    @property
    def module(self) -> ModuleType:
        """The module that defines the exercise."""
        return sys.modules[self.start.function.__module__]

    @property
    def tests(self) -> dict[str, int]:
        """The tests by name, and the points that each is worth."""
        found = {n: f for n, f in vars(self.module).items() if n.startswith("test_")}
        return {name: points_of(test) for name, test in found.items()}

    @property
    def points(self) -> int:
        """The most points that the exercise gives."""
        return sum(self.tests.values())

    def signature(self) -> str:
        """The function's name and parameters, as a call."""
        return f"{self.function_name}{inspect.signature(self.start.function)}"

    @property
    def parameters(self) -> list[str]:
        """Names of what the tests hand over, in order."""
        function = self.prepared or self.start.function
        names = list(inspect.signature(function).parameters)
        return names[1:] if self.prepared else names


def worth(points: int) -> Callable[[Function], Function]:
    """Give a test more points than 1."""
    return lambda test: setattr(test, "worth", points) or test


def points_of(test: Function) -> int:
    """Return the points that a test is worth."""
    return getattr(test, "worth", 1)


@dataclass(frozen=True)
class Chapter:
    """The exercises of one chapter: what its notebook opens with, and their order."""

    number: int
    name: str  # that of its package in the bank, and the first part of its exercises' names
    notebook: str  # the chapter's file name, without .ipynb
    title: str
    opening: str
    setup: str
    order: tuple[str, ...]
    closing: str = ""  # what the notebook ends with, after the list of what is done
