"""The shape of a Transformer as data: exact arithmetic, validation, and config.json."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .refusals import LARGEST, as_path, bad, is_number, need_regular, need_whole

_WHOLE = ("vocab_size", "dim", "n_layers", "n_heads", "max_seq_len")
_POSITIVE = ("ffn_dim_multiplier", "norm_eps", "rope_theta")
_RANGE = (1e-30, 1e30)  # of a positive number: float32 can hold it
_DEEPEST = 20  # nesting in unknown keys
_MAX_BYTES = 64 * 1024


@dataclass
class TransformerConfig:
    """Every choice that fixes a LLaMA-style Transformer's shape; ValueError names a bad field."""

    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int | None = None  # None: as many as n_heads
    max_seq_len: int = 128
    ffn_dim_multiplier: float = 4.0
    norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    tie_word_embeddings: bool = False
    extra: dict[str, Any] = field(default_factory=dict, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise a ValueError that names a bad field; a field may have been changed since."""
        for name in _WHOLE:
            need_whole(name, getattr(self, name), most=LARGEST)
        if self.n_kv_heads is not None:
            need_whole("n_kv_heads", self.n_kv_heads, most=LARGEST)
        for name in _POSITIVE:
            self._need_positive(name)
        if not isinstance(self.tie_word_embeddings, bool):
            raise bad("tie_word_embeddings", self.tie_word_embeddings, "it must be true or false")
        self._need_divisible()
        if not isinstance(self.extra, dict):
            raise bad("extra", self.extra, "it must be a dictionary of further keys")
        for key, value in self.extra.items():
            if not isinstance(key, str) or not _is_plain(value):
                rule = f"further keys hold plain JSON data, at most {_DEEPEST} deep, without NaN"
                raise bad(repr(key)[:40], value, rule)

    def _need_positive(self, name: str) -> None:
        value = getattr(self, name)
        if not is_number(value) or not _RANGE[0] <= value <= _RANGE[1]:  # NaN is outside too
            raise bad(name, value, "it must be a positive number from 1e-30 to 1e+30")
        setattr(self, name, float(value))

    def _need_divisible(self) -> None:
        if self.dim % self.n_heads:
            raise bad("n_heads", self.n_heads, f"it must divide dim = {self.dim}")
        if self.head_dim % 2:
            raise bad(
                "dim",
                self.dim,
                f"dim / n_heads = {self.head_dim} must be even, because RoPE turns pairs; "
                f"with n_heads = {self.n_heads} take dim = {self.n_heads * (self.head_dim + 1)}",
            )
        if self.n_heads % self.kv_heads:
            raise bad("n_kv_heads", self.n_kv_heads, f"it must divide n_heads = {self.n_heads}")

    @property
    def head_dim(self) -> int:
        """Size of one attention head."""
        return self.dim // self.n_heads

    @property
    def kv_heads(self) -> int:
        """Number of key and value heads; equals n_heads when n_kv_heads is None."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def ffn_hidden_dim(self) -> int:
        """Hidden size of SwiGLU: 2/3 · multiplier · dim, rounded up to a multiple of 64."""
        hidden = int(self.ffn_dim_multiplier * self.dim * 2 / 3)
        return 64 * max(1, math.ceil(hidden / 64))

    def num_params(self) -> int:
        """Return the exact number of trainable parameters, without building the model."""
        self.check()
        embeddings = self.vocab_size * self.dim * (1 if self.tie_word_embeddings else 2)
        norms = (2 * self.n_layers + 1) * self.dim
        return embeddings + norms + self.n_layers * self._block_matrix_weights()

    def _block_matrix_weights(self) -> int:
        """Return the number of weights in one block's seven matrices."""
        attention = 2 * self.dim * self.dim + 2 * self.dim * self.kv_heads * self.head_dim
        return attention + 3 * self.dim * self.ffn_hidden_dim

    def kv_cache_values(self, tokens: int = 1, batch_size: int = 1) -> int:
        """Return how many numbers the KV cache holds: keys and values, all layers."""
        self.check()
        need_whole("tokens", tokens, least=0)
        need_whole("batch_size", batch_size)
        return 2 * self.n_layers * self.kv_heads * self.head_dim * tokens * batch_size

    def kv_cache_bytes(
        self, tokens: int | None = None, batch_size: int = 1, bytes_per_value: int = 4
    ) -> int:
        """Return the bytes of a KV cache; tokens=None means a full window of max_seq_len."""
        need_whole("bytes_per_value", bytes_per_value)
        tokens = self.max_seq_len if tokens is None else tokens
        return self.kv_cache_values(tokens, batch_size) * bytes_per_value

    def multiplications(self, tokens: int, past: int = 0) -> int:
        """Return the multiplications in all matrix products of one pass over new tokens.

        `past` tokens are already in the cache; every new token is scored against every key.
        """
        self.check()
        need_whole("tokens", tokens, least=0)
        need_whole("past", past, least=0)
        matrices = self.n_layers * self._block_matrix_weights() + self.vocab_size * self.dim
        scores_and_sums = 2 * self.n_layers * self.dim * (past + tokens)
        return tokens * (matrices + scores_and_sums)

    def flops_per_token(self, context: int | None = None) -> int:
        """Return floating-point operations to decode one token that sees `context` tokens.

        Each multiplication of a matrix product counts with its addition: 2 operations.
        """
        context = self.max_seq_len if context is None else context
        need_whole("context", context)
        return 2 * self.multiplications(1, past=context - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, and the unknown keys that were read, as plain data."""
        self.check()
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "extra"}
        return {**self.extra, **known}

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write config.json; whoever reads it meanwhile sees the old file or the new, whole."""
        write_atomically(as_path(path), (json.dumps(self.to_dict(), indent=2) + "\n").encode())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TransformerConfig:
        """Return a config from plain data; unknown keys are kept in `extra`."""
        if not isinstance(data, dict):
            raise ValueError(
                f'A config is an object such as {{"dim": 32, …}}; this is a {type(data).__name__}.'
            )
        names = {f.name for f in fields(cls)} - {"extra"}
        missing = [n for n in ("vocab_size", "dim", "n_layers", "n_heads") if n not in data]
        if missing:
            raise ValueError(
                f'The config lacks {", ".join(missing)}; add it, for example "dim": 32.'
            )
        known = {k: v for k, v in data.items() if k in names}
        return cls(**known, extra={k: v for k, v in data.items() if k not in names})

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> TransformerConfig:
        """Read config.json; ValueError says in one line what is wrong with the file."""
        return cls.from_dict(_read_json(as_path(path)))


def _is_plain(value: object) -> bool:
    """Return whether JSON can hold a value, so that a config that was read can be written."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        inner: list[object] = []
        for v in level:
            if isinstance(v, dict) and all(isinstance(key, str) for key in v):
                inner += v.values()
            elif isinstance(v, list):
                inner += v
            elif not (v is None or isinstance(v, str) or _is_json_number(v)):
                return False
        level = inner
    return not level


def _is_json_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and value.bit_length() <= 10_000  # Python prints 4,300 digits


def _read_json(path: Path) -> Any:
    """Return the data of a small JSON file; ValueError says in one line what is wrong."""
    try:
        need_regular(path, "read")
        raw = path.read_bytes() if path.stat().st_size <= _MAX_BYTES else None
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}; write one with config.to_json(path).") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    if raw is None:
        raise ValueError(f"{path} is larger than 64 KiB; a config needs less than 1 KiB.")
    if not raw.strip():
        raise ValueError(f"{path} is empty; write a config with config.to_json(path).")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise ValueError(f"{path} starts with a byte-order mark; save it as UTF-8 without one.")
    if b"\0" in raw:
        raise ValueError(f"{path} is not UTF-8 text: it has zero bytes; save it as UTF-8.")
    try:
        return json.loads(raw.decode(), object_pairs_hook=_without_repeats)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{path} is not JSON ({where}): {error.msg}.") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deep; a config is one flat object.") from None
    except ValueError as error:
        raise ValueError(f"{path} is not a config: {error}") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError(f"the key {key[:40]!r} stands twice; keep one.")
        seen[key] = value
    return seen


@contextmanager
def alone(folder: Path, busy: Exception) -> Iterator[None]:
    """Hold a folder, made where there is none; raise `busy` where another process holds it.

    ValueError if it cannot be written. Where there are no such locks, on Windows, nothing is held.
    """
    try:
        import fcntl
    except ImportError:
        fcntl = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise ValueError(f"{folder} cannot be written: {error.strerror}.") from None
    with lock:
        try:
            if fcntl:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, then rename it; ValueError if it cannot be written.

    A file that was there keeps its permissions.
    """
    temporary = None
    try:
        need_regular(path, "written")
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        if temporary is not None:
            os.unlink(temporary)
