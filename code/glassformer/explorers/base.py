"""What all explorers have in common: their state, their models, and how they are shown."""

from __future__ import annotations

import base64
import difflib
import math
import sys
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import torch
from torch import nn
from traitlets import Bool, Dict, Enum, Float, Int, TraitError, Unicode, validate

from ..bpe import BytePairTokenizer
from ..data import Vocabulary
from ..models import BabyGrootGPT, Transformer
from ..models.checking import check_ids
from ..site import EXPLORER_MIME, notebook_palette_css
from .parts import corpus_part, groot_part, model_of, part, tiny_part
from .words import LIVE

STATIC = Path(__file__).with_name("static")
LONGEST = 400  # letters of a text that the front end keeps

_KINDS = {"groot": BabyGrootGPT, "tiny": Transformer}
_EXAMPLES = {"groot": "load_baby_groot()", "tiny": "load_tiny()"}


def static(name: str) -> str:
    """Return one of the built files; FileNotFoundError says how to build it."""
    path = STATIC / name
    if not path.is_file():
        raise FileNotFoundError(
            f"The explorers' front end is not built ({name} is missing): run `make bundle`."
        )
    return path.read_text(encoding="utf-8")


class Real(Float):
    """A number within bounds, and never NaN."""

    def validate(self, obj, value):
        """Return the value if it is a number within the bounds."""
        value = super().validate(obj, value)
        return value if not math.isnan(value) else self.error(obj, value)


def text(default: str) -> Unicode:
    """Return a trait that holds a text."""
    return Unicode(default).tag(sync=True, state=True)


def whole(default: int, least: int, most: int) -> Int:
    """Return a trait that holds a whole number within bounds."""
    return Int(default, min=least, max=most).tag(sync=True, state=True)


def real(default: float, least: float, most: float) -> Real:
    """Return a trait that holds a number within bounds."""
    return Real(default, min=least, max=most).tag(sync=True, state=True)


def flag(default: bool) -> Bool:
    """Return a trait that is on or off."""
    return Bool(default).tag(sync=True, state=True)


def choice(default: str, options: tuple[str, ...]) -> Enum:
    """Return a trait that is one of a few texts."""
    return Enum(options, default).tag(sync=True, state=True)


def named(text: str) -> Unicode:
    """Return the trait that names an explorer to its front end."""
    return Unicode(text, read_only=True).tag(sync=True)


class Explorer(anywidget.AnyWidget):
    """One explorer: set and read its state as attributes; `model` takes a model of your own.

    A cell that ends in an explorer shows it, live in a notebook, in words where nothing can run.
    """

    title: ClassVar[str]
    invites: ClassVar[str]  # what the live explorer lets its reader do
    family: ClassVar[str] = "groot"  # which of the site's scripts holds it
    needs: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[str | None] = None  # the part whose model reads the prompt

    explorer = named("")
    data = Dict().tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give an explorer the signature that editors and the reference show: its state."""
        super().__init_subclass__(**kwargs)
        if "explorer" in vars(cls):
            mine = {
                key: t for key, t in vars(cls).items() if getattr(t, "metadata", {}).get("state")
            }
            taken = {"model": None, "vocabulary": None} if set(cls.needs) & set(_KINDS) else {}
            given = taken | {key: trait.default() for key, trait in mine.items()}
            cls.__signature__ = Signature(
                [
                    Parameter(key, Parameter.KEYWORD_ONLY, default=value)
                    for key, value in given.items()
                ]
            )

    def __init__(
        self, model: nn.Module | None = None, vocabulary: Vocabulary | None = None, **state: Any
    ) -> None:
        self._check_names(state)
        self._models: dict[str, nn.Module] = {}
        parts = {needed: part(needed) for needed in self.needs}
        if model is not None:
            parts |= self._parts_with(model, vocabulary, parts)
        elif vocabulary is not None:
            raise ValueError("A vocabulary comes with the model that was trained on it: give both.")
        super().__init__(data=parts, **state)
        self._check_fit()

    def _check_names(self, given: dict[str, Any]) -> None:
        """Raise a TypeError that names the state there is, unless it has all names given."""
        known = self.state_names()
        for unknown in given.keys() - set(known):
            near = difflib.get_close_matches(unknown, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(
                f"{type(self).__name__} has no {unknown!r}; it has {', '.join(known)}.{hint}"
            )

    @classmethod
    def state_names(cls) -> list[str]:
        """Return the names of the explorer's state, in the order in which they are defined."""
        order = [key for base in reversed(cls.__mro__) for key in vars(base)]
        return sorted(cls.class_trait_names(state=True), key=order.index)

    @property
    def state(self) -> dict[str, Any]:
        """The explorer's state: what the reader can change, by name."""
        return {key: getattr(self, key) for key in self.state_names()}

    # The models ---------------------------------------------------------------------------------

    @property
    def model(self) -> nn.Module | None:
        """The model shown: yours, if you gave one, else the trained one of the course."""
        if self._models:
            return list(self._models.values())[-1]
        kinds = [needed for needed in self.needs if needed in _KINDS]
        return self._model_of(self.reads or kinds[0]) if kinds else None

    @model.setter
    def model(self, model: nn.Module | None) -> None:
        before = self.data, dict(self._models)
        if model is None:
            self._models.clear()
            self.data = {needed: part(needed) for needed in self.needs}
        else:
            self.data = self.data | self._parts_with(model, None, self.data)
        try:
            self._check_fit()
        except ValueError:
            self.data, self._models = before
            raise

    def _parts_with(self, model, vocabulary: Vocabulary | None, parts: dict) -> dict:
        """Return the parts that a model replaces; ValueError says why it cannot be shown."""
        name = self._part_for(model)
        vocabulary = vocabulary or Vocabulary(parts["corpus" if name == "groot" else name]["words"])
        if model.vocab_size != len(vocabulary):
            raise ValueError(
                f"The model knows {model.vocab_size} tokens, but the vocabulary has "
                f"{len(vocabulary)} words: give the vocabulary that it was trained with, as in "
                f"{type(self).__name__}(model=…, vocabulary=…)."
            )
        self._models.pop(name, None)
        self._models[name] = model
        if name == "tiny":
            return {"tiny": tiny_part(model, vocabulary)}
        return {"groot": groot_part(model), "corpus": corpus_part(vocabulary, model.max_len)}

    def _part_for(self, model) -> str:
        takes = [needed for needed in self.needs if needed in _KINDS]
        for needed in takes:
            if isinstance(model, _KINDS[needed]):
                return needed
        if not takes:
            raise ValueError(f"{type(self).__name__} takes no model: it shows none of its own.")
        kinds = " or ".join(f"a {_KINDS[needed].__name__}" for needed in takes)
        raise ValueError(
            f"{type(self).__name__} shows {kinds}, and this is a {type(model).__name__}; "
            f"give one such as {_EXAMPLES[takes[0]]} returns."
        )

    def _model_of(self, name: str) -> nn.Module:
        """Return the model that a part holds, in float64."""
        return model_of(self.data[name])

    def _vocabulary_of(self, name: str) -> Vocabulary:
        return Vocabulary(self.data["tiny" if name == "tiny" else "corpus"]["words"])

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words of the model that reads the prompt."""
        return self._vocabulary_of(self.reads) if self.reads else None

    def _ids(self, prompt: str, reads: str | None = None) -> list[int]:
        """Return a prompt's ids, for the part that reads it; ValueError says why not."""
        reads = reads or self.reads
        held = self.data[reads]
        window = (
            held["config"]["max_seq_len"] if "config" in held else self.data["corpus"]["max_len"]
        )
        return self._fitting(prompt, self._vocabulary_of(reads), window)

    @staticmethod
    def _fitting(prompt: str, reader: Vocabulary | BytePairTokenizer, window: int) -> list[int]:
        """Return a prompt's ids, if it can be read and fits a window; ValueError says why not."""
        if len(prompt) > LONGEST:
            raise ValueError(f"The prompt has {len(prompt)} letters; {LONGEST} is the most.")
        ids = reader.encode(prompt)
        check_ids(torch.tensor([ids], dtype=torch.long), len(reader), window, window)
        return ids

    @property
    def _said(self) -> str:
        """The prompt as it is put into a sentence."""
        return " ".join(self.prompt.split())

    def _check_fit(self) -> None:
        """Raise a ValueError unless what is shown fits the model that shows it."""
        if self.has_trait("prompt"):
            self._ids(self.prompt)

    @validate("prompt")
    def _check_prompt(self, proposal: dict) -> str:
        return self._refusing(self._ids, proposal["value"])

    @staticmethod
    def _refusing(check: Callable[[Any], object], value: Any) -> Any:
        """Return a value that passes a check; TraitError, by which traits refuse, says why not."""
        try:
            check(value)
        except ValueError as error:
            raise TraitError(str(error)) from None
        return value

    # How it is shown ----------------------------------------------------------------------------

    @property
    def _esm(self) -> str:
        return static("notebook.js")

    @property
    def _css(self) -> str:
        return notebook_palette_css("google.colab" in sys.modules) + static("explorers.css")

    def text(self) -> str:
        """Return the text alternative: what the explorer shows, in words and numbers."""
        return "\n\n".join(
            [f"{self.title} (an explorer)", *self._told(), f"Live, {self.invites} {LIVE}"]
        )

    def _told(self) -> list[str]:
        """Return what the explorer shows now: paragraphs of one line, tables of several."""
        raise NotImplementedError

    def page(self) -> dict[str, Any]:
        """Return what a page needs to show the explorer, as JSON data."""
        data = {
            key: None if held == part(key) else jsonable(held) for key, held in self.data.items()
        }
        return {"explorer": self.explorer, "state": self.state, "data": data}

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return data | {"text/plain": self.text(), EXPLORER_MIME: self.page()}, metadata

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.state.items())})"


def jsonable(value: Any) -> Any:
    """Return data with its bytes written as {"$bytes": base64}."""
    if isinstance(value, dict):
        return {key: jsonable(inner) for key, inner in value.items()}
    return {"$bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
