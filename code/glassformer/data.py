"""The two corpora, the vocabulary, and how sentences become examples."""

from __future__ import annotations

import difflib
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .refusals import need_kind, need_whole, shown

PAD, START, END = "<PAD>", "<START>", "<END>"
SPECIALS = (PAD, START, END)
_LONGEST = 100_000  # tokens in one context

GROOT_SENTENCES = (
    "i am groot",
    "you are groot",
    "we are groot",
    "groot is happy",
    "groot is sad",
    "groot is angry",
    "happy groot smiles",
    "sad groot cries",
    "angry groot shouts",
    "groot likes tree",
    "groot likes leaf",
    "tree needs water",
    "leaf needs water",
    "water helps tree",
    "tree helps groot",
    "groot helps rocket",
    "rocket helps groot",
    "groot likes friend",
    "friend likes groot",
)

CAT_SENTENCES = (
    "the cat sat on the mat",
    "the dog ran on the mat",
    "the cat ran on the mat",
    "the dog sat on the mat",
)

# The tiny Transformer's vocabulary in its published order, not sorted.
CAT_WORDS = ("<pad>", "the", "cat", "dog", "sat", "ran", "on", "mat")


@dataclass(frozen=True)
class Vocabulary:
    """A list of words; the id of a word is its place in the list."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        words = tuple(_texts(self.words, "A vocabulary", "words"))
        for word in words:
            if word.split() != [word]:
                raise ValueError(
                    f"{shown(word)} is no word: a vocabulary's words are texts without blanks, "
                    "at least one letter long."
                )
        twice = [word for word, n in Counter(words).items() if n > 1]
        if twice:
            raise ValueError(
                f"The word {twice[0][:60]!r} stands twice in the vocabulary; keep one."
            )
        object.__setattr__(self, "words", words)

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[str], specials: Sequence[str] = SPECIALS
    ) -> Vocabulary:
        """Return the specials, in their order, followed by the sorted words of the sentences."""
        texts = _texts(sentences, "The corpus", "sentences")
        specials = _texts(specials, "The specials", "words")
        found = {word for sentence in texts for word in sentence.split()}
        return cls((*specials, *sorted(found - set(specials))))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def encode(self, text: str) -> list[int]:
        """Return the ids of the words of a text; ValueError names an unknown word."""
        if not isinstance(text, str):
            raise ValueError(f"encode needs a text, such as 'i am'; it got {shown(text)}.")
        return [self._id(word) for word in text.split()]

    def _id(self, word: str) -> int:
        if word in self.words:
            return self.words.index(word)
        near = difflib.get_close_matches(word, self.words, n=3, cutoff=0.5)
        hint = f"the nearest known: {', '.join(near)}" if near else "nothing known is near it"
        known = ", ".join(self.words[:24]) + (", …" if len(self) > 24 else "")
        raise ValueError(
            f"The word {word[:60]!r} is not in the vocabulary; {hint}. Known: {known}."
        )

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """Return the words of a sequence of ids, [T] or a list, joined by blanks."""
        if isinstance(ids, Tensor):
            ids = ids.tolist()
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise ValueError(
                f"decode needs a list of token ids, such as [1, 2]; it got {shown(ids)}."
            )
        return " ".join(self._word(i) for i in ids)

    def _word(self, i: object) -> str:
        try:
            place = -1 if isinstance(i, bool) else operator.index(i)  # type: ignore[arg-type]
        except TypeError:
            place = -1
        if not 0 <= place < len(self):
            raise ValueError(
                f"{shown(i)} is not a token id; ids are whole numbers from 0 to {len(self) - 1}."
            )
        return self.words[place]


def _texts(texts: Iterable[str], whose: str, kind: str) -> list[str]:
    """Return texts as a list; a ValueError explains when one text, or something else, is given."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise ValueError(
            f"{whose} must be a list of {kind}, such as [{kind[:-1]!r}]; got {shown(texts)}."
        )
    found = list(texts)
    for text in found:
        if not isinstance(text, str):
            raise ValueError(f"{whose} must be a list of {kind}; {shown(text)} is not a text.")
    return found


def cat_vocabulary() -> Vocabulary:
    """Return the eight-word vocabulary of the tiny Transformer, in its published order."""
    return Vocabulary(CAT_WORDS)


def groot_vocabulary() -> Vocabulary:
    """Return BabyGroot's 24-token vocabulary."""
    return Vocabulary.from_sentences(GROOT_SENTENCES, SPECIALS)


def prefix_pairs(
    sentences: Iterable[str], vocabulary: Vocabulary, max_len: int = 4
) -> tuple[Tensor, Tensor]:
    """Return contexts X [N, max_len], padded on the right with 0, and next tokens Y [N].

    Each sentence, between <START> and <END>, gives one example for every token after the first.
    """
    need_kind(vocabulary, Vocabulary, "prefix_pairs needs a Vocabulary, such as groot_vocabulary()")
    need_whole("max_len", max_len, most=_LONGEST)
    contexts, targets = [], []
    for sentence in _texts(sentences, "The corpus", "sentences"):
        ids = vocabulary.encode(f"{START} {sentence} {END}")
        if len(ids) - 1 > max_len:
            raise ValueError(
                f"{shown(sentence)} needs contexts of {len(ids) - 1} tokens, "
                f"but max_len is {max_len}."
            )
        if 0 in ids:
            raise ValueError(
                f"{shown(sentence)} holds {vocabulary.words[0]!r}, whose id 0 is what pads "
                f"contexts; give the vocabulary {PAD} as its first word."
            )
        for end in range(1, len(ids)):
            contexts.append(ids[:end] + [0] * (max_len - end))
            targets.append(ids[end])
    if not targets:
        raise ValueError("The corpus is empty; give at least one sentence.")
    return torch.tensor(contexts), torch.tensor(targets)


def next_token_counts(X: Tensor, Y: Tensor) -> dict[tuple[int, ...], Counter[int]]:
    """Return, for every context in X [N, T], how often each next token of Y [N] follows it."""
    for tensor in (X, Y):
        need_kind(tensor, Tensor, "Contexts and targets are tensors, such as prefix_pairs returns")
    if X.dim() != 2 or Y.dim() != 1 or len(X) != len(Y) or len(Y) == 0:
        raise ValueError(
            f"Contexts [N, T] and targets [N] are needed, N at least 1; these have shapes "
            f"{list(X.shape)} and {list(Y.shape)}."
        )
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for context, target in zip(X.tolist(), Y.tolist(), strict=True):
        counts[tuple(context)][target] += 1
    return dict(counts)


def entropy_floor(X: Tensor, Y: Tensor) -> float:
    """Return the lowest mean cross-entropy, in nats, that any model can reach on X [N, T], Y [N].

    It is the conditional entropy of the next token given its context: what the corpus leaves open.
    """
    floor = 0.0
    for followers in next_token_counts(X, Y).values():
        total = sum(followers.values())
        floor -= sum(n * math.log(n / total) for n in followers.values())
    return floor / len(Y)


def accuracy_ceiling(X: Tensor, Y: Tensor) -> float:
    """Return the highest share of next tokens that any model can pick right on X [N, T], Y [N]."""
    best = sum(max(followers.values()) for followers in next_token_counts(X, Y).values())
    return best / len(Y)


def next_token_pairs(sequences: Tensor) -> tuple[Tensor, Tensor]:
    """Return every prefix of sequences [N, T] as X [N·(T−1), T−1], padded with −1, and its Y."""
    need_kind(sequences, Tensor, "Sequences are a tensor [N, T] of token ids")
    if sequences.dim() != 2:
        raise ValueError(f"Sequences have shape [N, T], not {list(sequences.shape)}.")
    N, T = sequences.shape
    X = torch.full((N, T - 1, T - 1), -1)  # [N, T-1, T-1]
    for t in range(T - 1):
        X[:, t, : t + 1] = sequences[:, : t + 1]
    return X.flatten(0, 1), sequences[:, 1:].flatten()  # [N·(T-1), T-1], [N·(T-1)]
