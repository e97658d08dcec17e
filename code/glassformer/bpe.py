"""Byte-pair encoding: a text in the pieces that recur in it (Gage, 1994; Sennrich et al., 2016).

The same thing twice. `learn` and `cut` say in a few lines what happens; `BytePairTokenizer` leaves
it to the `tokenizers` library, which is hundreds of times faster and serves training and writing.
Both find the same merges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from .config import write_atomically
from .refusals import need_regular

Word = tuple[str, ...]  # a word in the pieces it is made of so far
Pair = tuple[str, str]

# Splits a text into words, each with the blank before it, and writes a byte as one letter.
_BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
_LEAST = 2  # times a pair must occur: what occurs once recurs nowhere


def words_of(text: str) -> Counter[Word]:
    """Return how often each word occurs, in single letters; `Ġ` stands for the blank before it."""
    words = Counter(word for word, _ in _BYTE_LEVEL.pre_tokenize_str(text))
    return Counter({tuple(word): count for word, count in words.items()})


def learn(words: Counter[Word], vocab_size: int) -> tuple[list[str], list[Pair]]:
    """Return a vocabulary of at most vocab_size pieces, and the merges that made it, in order.

    Again and again the pair of neighbours that occurs most often becomes one piece; of pairs that
    occur equally often, the one whose pieces are older.
    """
    ids = {letter: i for i, letter in enumerate(sorted(set().union(*words)))}
    merges: list[Pair] = []
    while len(ids) < vocab_size:
        pairs: Counter[Pair] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        best = max(pairs, key=lambda p: (pairs[p], -ids[p[0]], -ids[p[1]]), default=None)
        if best is None or pairs[best] < _LEAST:
            break
        ids.setdefault("".join(best), len(ids))
        merges.append(best)
        words = Counter({merge(word, best): count for word, count in words.items()})
    return list(ids), merges


def merge(word: Word, pair: Pair) -> Word:
    """Return a word in which each occurrence of the pair, from the left, is one piece."""
    merged: list[str] = []
    for piece in word:
        if merged and (merged[-1], piece) == pair:
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)


def cut(word: str, merges: list[Pair]) -> Word:
    """Return the pieces of a word: the merges, applied in the order in which they were learnt."""
    pieces: Word = tuple(word)
    for pair in merges:
        pieces = merge(pieces, pair)
    return pieces


class BytePairTokenizer:
    """A tokenizer of the `tokenizers` library that refuses what it would leave out."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.library = tokenizer
        self._known = set(tokenizer.get_vocab())

    @classmethod
    def train(cls, text: str, vocab_size: int) -> BytePairTokenizer:
        """Return a tokenizer of at most vocab_size pieces; ValueError if its letters are more."""
        letters = len(set(text.encode()))
        if vocab_size < letters:
            raise ValueError(
                f"vocab_size = {vocab_size} is too small: the text has {letters} different letters "
                f"and signs, each a piece of its own; set it to {letters} or more."
            )
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer, tokenizer.decoder = _BYTE_LEVEL, decoders.ByteLevel()
        most = min(vocab_size, len(text.encode()))  # the library makes room for all it is asked for
        trainer = trainers.BpeTrainer(vocab_size=most, min_frequency=_LEAST, show_progress=False)
        tokenizer.train_from_iterator([text], trainer)
        return cls(tokenizer)

    @classmethod
    def load(cls, path: Path) -> BytePairTokenizer:
        """Return the tokenizer that a tokenizer.json holds; ValueError if it cannot be read."""
        need_regular(path, "read")
        try:
            return cls(Tokenizer.from_str(path.read_text("utf-8")))
        except FileNotFoundError:
            raise ValueError(f"There is no {path}: `glassformer train` writes it.") from None
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
        except Exception:  # the library raises nothing more exact
            raise ValueError(f"{path} is not a tokenizer; train the model again.") from None

    def save(self, path: Path) -> None:
        """Write tokenizer.json, as Hugging Face reads it too."""
        write_atomically(path, self.library.to_str(pretty=True).encode())

    def __len__(self) -> int:
        return self.library.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; ValueError names a letter that never occurred in training.

        The library would leave such a letter out without a word.
        """
        if any("\ud800" <= letter <= "\udfff" for letter in text):  # bytes that are no UTF-8
            raise ValueError("The prompt has bytes that are no text; write it in UTF-8.")
        for letter in dict.fromkeys(text):
            written = "".join(piece for piece, _ in _BYTE_LEVEL.pre_tokenize_str(letter))
            if not self._known.issuperset(written):
                raise ValueError(
                    f"The letter {letter!r} does not occur in the text the model was trained on; "
                    "write the prompt without it."
                )
        return self.library.encode(text).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids."""
        return self.library.decode(list(ids))

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Give the text of ids as they come; a letter of several bytes waits until it is whole."""
        stream = decoders.DecodeStream()
        for i in ids:
            text = stream.step(self.library, i)
            if text:
                yield text
