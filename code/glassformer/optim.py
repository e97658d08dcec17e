"""AdamW from scratch (Loshchilov and Hutter, 2019): the whole optimiser on half a page."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


class AdamW:
    """Adam with decoupled weight decay; the same steps as torch.optim.AdamW."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.momentum = [torch.zeros_like(p) for p in self.parameters]  # mean gradient
        self.square = [torch.zeros_like(p) for p in self.parameters]  # mean squared gradient
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient once."""
        self.steps += 1
        for p, m, s in zip(self.parameters, self.momentum, self.square, strict=True):
            if p.grad is not None:
                self._move(p, m, s)

    def _move(self, p: Tensor, m: Tensor, s: Tensor) -> None:
        """Update one parameter and its two running means in place."""
        beta1, beta2 = self.betas
        p.mul_(1 - self.lr * self.weight_decay)  # decay, decoupled from the gradient
        m.mul_(beta1).add_(p.grad, alpha=1 - beta1)  # momentum
        s.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)  # second moment
        m_scale = 1 - beta1**self.steps  # both means start at 0: correct the bias
        s_scale = math.sqrt(1 - beta2**self.steps)
        p.addcdiv_(m, s.sqrt() / s_scale + self.eps, value=-self.lr / m_scale)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.parameters:
            p.grad = None
