"""The same model with less around it, for writing one token at a time.

One token through a tiny model is so little arithmetic that most of the time goes elsewhere: PyTorch
looks for hooks at every call, searches for every weight by name, and makes a tensor of every
number. A bare twin has all that behind it. Its weights are the model's own, and so is `forward`.
"""

from __future__ import annotations

from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .transformer import Attention, RMSNorm


def bare(model: nn.Module) -> nn.Module:
    """Return a twin that gives what the model gives, sooner, as long as no weight is replaced.

    A model with hooks is returned as it is, so that they see every call.
    """
    return model if any(map(_has_hooks, model.modules())) else _twin(model)


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _twin(module: nn.Module) -> nn.Module:
    """Return an object of the same kind that holds weights and inner twins as plain attributes."""
    twin = object.__new__(_called_at_once(type(module)))
    inner = {name: _twin(child) for name, child in module._modules.items()}
    vars(twin).update(vars(module), _modules=inner, **module._parameters, **inner)
    if isinstance(module, RMSNorm):
        twin.dim, twin.eps = _number(module.dim, module.weight), _number(module.eps, module.weight)
    if isinstance(module, Attention):
        _prepare(twin, module)
    return twin


@cache
def _called_at_once(kind: type[nn.Module]) -> type[nn.Module]:
    """Return a subclass whose call is `forward` and nothing else."""
    return type(kind.__name__, (kind,), {"__call__": lambda self, *inputs: self.forward(*inputs)})


def _prepare(twin: Attention, attention: Attention) -> None:
    """Lay the three weights of q, k and v one below the other: one product instead of three."""
    projections = (attention.wq, attention.wk, attention.wv)
    if all(type(linear) is nn.Linear and linear.bias is None for linear in projections):
        with torch.no_grad():
            joined = torch.cat([linear.weight for linear in projections])  # [(H + 2K)·D, C]
        twin.qkv = partial(F.linear, weight=joined)
        twin.root_D = _number(attention.root_D, joined)


def _number(value: float, like: Tensor) -> Tensor:
    """Return a number as a tensor without dimensions, as exact as arithmetic with `like` needs."""
    return like.new_tensor(value, dtype=torch.promote_types(like.dtype, torch.float32))
