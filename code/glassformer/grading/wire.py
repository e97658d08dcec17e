"""Values as data: what an answer gives is carried as JSON, which cannot run code.

Whatever is not plain data arrives as `Foreign`, a description in words, so that an object with
behaviour of its own (equal to everything, printing gigabytes) never reaches a comparison.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

LARGEST_TENSOR = 8 * 2**20  # bytes
_MOST_PARTS, _DEEPEST = 20_000, 24
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
        *(torch.complex128, torch.complex64),
    )
}


@dataclass(frozen=True)
class Foreign:
    """Something that is not plain data, in words."""

    what: str


def pack(value: object) -> str:
    """Return a value as JSON text; what is not data is described in its place."""
    return json.dumps(_pack(value, _DEEPEST, [_MOST_PARTS]))


def unpack(text: str | bytes) -> object:
    """Return the value of JSON text; text that `pack` did not write gives a `Foreign`."""
    try:
        return _unpack(json.loads(text))
    except Exception:
        return Foreign("data that cannot be read")


def _pack(value: object, depth: int, room: list[int]) -> object:
    kind = type(value)
    room[0] -= 1
    if depth == 0 or room[0] < 0:
        return {
            "foreign": "data nested too deep" if depth == 0 else "more data than can be looked at"
        }
    if value is None or kind in (bool, float):
        return value
    if kind is int:
        return (
            value
            if value.bit_length() <= 512
            else {"foreign": "a whole number of hundreds of digits"}
        )
    if kind is str:
        return (
            value
            if len(value) <= 10**6
            else {"foreign": "a text of more than a million characters"}
        )
    if kind in (list, tuple):
        parts = [_pack(part, depth - 1, room) for part in list(value)[: _MOST_PARTS + 1]]
        return parts if kind is list else {"tuple": parts}
    if kind is dict:
        pairs = list(value.items())[: _MOST_PARTS + 1]
        return {"dict": [[_pack(part, depth - 1, room) for part in pair] for pair in pairs]}
    if kind in (Tensor, nn.Parameter):
        return _pack_tensor(value.detach())
    return {"foreign": described(value)}


def _pack_tensor(x: Tensor) -> dict[str, object]:
    dtype = str(x.dtype).removeprefix("torch.")
    if dtype not in _DTYPES or x.layout is not torch.strided or x.device.type != "cpu":
        kind = f"{dtype}, {x.layout}, {x.device.type}"
        return {"foreign": f"a tensor ({kind}) that is not an ordinary one"}
    if x.numel() * x.itemsize > LARGEST_TENSOR:
        return {"foreign": f"a tensor of shape {list(x.shape)}, far larger than asked for"}
    flat = x.resolve_conj().resolve_neg().contiguous().reshape(-1)
    raw = flat.view(torch.uint8).numpy().tobytes() if x.numel() else b""
    return {"tensor": dtype, "shape": list(x.shape), "bytes": base64.b64encode(raw).decode()}


def _unpack(data: object) -> object:
    if isinstance(data, list):
        return [_unpack(part) for part in data]
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(_unpack(part) for part in data["tuple"])
    if "dict" in data:
        return {_unpack(key): _unpack(value) for key, value in data["dict"]}
    if "tensor" in data:
        return _unpack_tensor(_DTYPES[data["tensor"]], data["shape"], data["bytes"])
    return Foreign(str(data["foreign"])[:200])


def _unpack_tensor(dtype: torch.dtype, shape: list[int], text: str) -> Tensor:
    raw = bytearray(base64.b64decode(text, validate=True))
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise ValueError("The bytes of a tensor do not fill its shape.")
    return (
        torch.frombuffer(raw, dtype=dtype).reshape(shape)
        if raw
        else torch.empty(shape, dtype=dtype)
    )


def described(value: object) -> str:
    """Return what kind of thing a value is, in words, without asking the value itself."""
    kind = type(value)
    name = str(type.__dict__["__name__"].__get__(kind))[:60]
    module = str(type.__dict__["__module__"].__get__(kind))[:60].split(".")[0]
    known = {
        "ndarray": "a NumPy array, where a torch tensor is asked for",
        "function": "a function, not its result",
        "method": "a method, not its result: are its brackets missing?",
        "generator": "a generator: make a list of it",
    }
    if issubclass(kind, Tensor):
        return f"a {name}, which is not a plain torch.Tensor"
    if module == "numpy" and name != "ndarray":
        return f"a NumPy number ({name}): make a Python number of it with .item()"
    return known.get(name, f"an object of type {name}")
