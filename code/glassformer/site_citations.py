"""What a cited work is called, in the chapters and in the bibliography: "Press and Wolf, 2017".

Where two works would be called the same, letters follow the year.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pybtex.database import Entry, Person
from pybtex.plugin import register_plugin
from pybtex.style.formatting.alpha import Style
from pybtex.style.labels import BaseLabelStyle

NAME = "author_year"


def surname(person: Person) -> str:
    """Return a person's last name without TeX."""
    return " ".join(str(part) for part in person.rich_prelast_names + person.rich_last_names)


def called(entry: Entry) -> str:
    """Return the authors of a work, of many the first, and its year."""
    names = [surname(person) for person in entry.persons["author"]]
    authors = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{authors}, {entry.fields['year']}"


class AuthorYearLabels(BaseLabelStyle):
    """The labels of a bibliography."""

    def format_labels(self, sorted_entries: Iterable[Entry]) -> Iterator[str]:
        """Yield the label of each work; those of one label get a, b, c in their order."""
        labels = [called(entry) for entry in sorted_entries]
        count, seen = Counter(labels), Counter()
        for label in labels:
            yield f"{label}{chr(ord('a') + seen[label])}" if count[label] > 1 else label
            seen[label] += 1


class AuthorYearStyle(Style):
    """Works in the order of their authors, under their labels."""

    default_label_style = NAME


def setup(app) -> None:
    """Register both with what makes the bibliography."""
    register_plugin("pybtex.style.labels", NAME, AuthorYearLabels)
    register_plugin("pybtex.style.formatting", NAME, AuthorYearStyle)
