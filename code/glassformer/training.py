"""The two published training runs, and others like them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from .checkpoints import TINY_CONFIG, initial_baby_groot, initial_tiny
from .data import CAT_SENTENCES, GROOT_SENTENCES, cat_vocabulary, groot_vocabulary, prefix_pairs
from .models import BabyGrootGPT, SwiGLU, Transformer, TransformerConfig


@dataclass
class History:
    """What a training run left: one loss and accuracy per epoch or step, and some weights.

    `losses` are those that were published: for BabyGroot the mean of the batches' means;
    `weighted_losses` weigh each example alike. `snapshots[n]` are the weights after n epochs
    (BabyGroot) or n steps (tiny); 0 is before training.
    """

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    weighted_losses: list[float] = field(default_factory=list)
    snapshots: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    def keep(self, count: int, model: nn.Module) -> None:
        """Keep a copy of the model's weights as snapshot `count`."""
        self.snapshots[count] = {k: v.detach().clone() for k, v in model.state_dict().items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread: two make models this small up to fifteen times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def last_real(X: Tensor) -> Tensor:
    """Return the index [N] of the last token in each row of X [N, T] that is not padding (0)."""
    return (X != 0).sum(dim=1) - 1


def last_token_logits(model: BabyGrootGPT, X: Tensor) -> Tensor:
    """Return the logits [N, V] at the last real token of each padded row of X [N, T]."""
    logits, _ = model(X)  # [N, T, V]
    return logits[torch.arange(len(X)), last_real(X)]  # [N, V]


def train_baby_groot(
    epochs: int = 500,
    learning_rate: float = 0.01,
    batch_size: int = 16,
    seed: int = 42,
    snapshot_every: int = 50,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[BabyGrootGPT, History]:
    """Train BabyGrootGPT in float64 and return it with its history; no arguments: as published.

    Seed 42 starts from the initial weights kept in the package, because PyTorch draws a normal
    distribution a little differently from one processor to another. `progress(epoch, loss)` is
    called after each epoch.
    """
    X, Y = prefix_pairs(GROOT_SENTENCES, groot_vocabulary(), max_len=4)  # [76, 4], [76]
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = draw_baby_groot()
        if seed == 42:
            model.load_state_dict(initial_baby_groot().state_dict())
        loader = DataLoader(TensorDataset(X, Y), batch_size, shuffle=True)
        adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
        history = History()
        history.keep(0, model)
        for epoch in range(epochs):
            loss = _one_epoch(model, loader, adam, history)
            if (epoch + 1) % snapshot_every == 0 or epoch + 1 in (5, 10, 20, epochs):
                history.keep(epoch + 1, model)
            if progress is not None:
                progress(epoch, loss)
    return model, history


def draw_baby_groot() -> BabyGrootGPT:
    """Return an untrained BabyGrootGPT: drawn in float32, as published, then widened to float64."""
    return BabyGrootGPT(vocab_size=len(groot_vocabulary()), max_len=4).double()


def _one_epoch(
    model: BabyGrootGPT, loader: DataLoader, optimiser: torch.optim.Optimizer, history: History
) -> float:
    """Take one step for each batch; append to the history and return the mean of their losses."""
    losses, sizes, right = [], [], 0
    for x, y in loader:
        logits = last_token_logits(model, x)  # [B, V]
        loss = F.cross_entropy(logits, y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        sizes.append(len(y))
        right += int((logits.argmax(dim=-1) == y).sum())
    history.losses.append(sum(losses) / len(losses))
    history.accuracies.append(right / sum(sizes))
    history.weighted_losses.append(
        sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes)
    )
    return history.losses[-1]


def tiny_sequences() -> Tensor:
    """Return the four cat and dog sentences as token ids [4, 6]."""
    vocabulary = cat_vocabulary()
    return torch.tensor([vocabulary.encode(sentence) for sentence in CAT_SENTENCES])


def train_tiny(
    steps: int = 200,
    learning_rate: float = 3e-3,
    weight_decay: float = 0.01,
    seed: int = 42,
    config: TransformerConfig = TINY_CONFIG,
    make_optimiser: Callable[..., object] = torch.optim.AdamW,
) -> tuple[Transformer, History]:
    """Train the tiny Transformer in float32 and return it with its history; as published.

    All positions learn at once: inputs [4, 5], targets the same sentences one token later.
    """
    sequences = tiny_sequences()  # [4, 6]
    inputs, targets = sequences[:, :-1], sequences[:, 1:]  # [4, 5] each
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = draw_tiny(config)
        if seed == 42 and config == TINY_CONFIG:
            model.load_state_dict(initial_tiny().state_dict())
        optimiser = make_optimiser(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
        history = History()
        for step in range(steps):
            if step in (0, 5, 20, 50, 100, steps - 1) or step % 10 == 0:
                history.keep(step, model)
            logits = model(inputs)  # [4, 5, V]
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # [20, V], [20]
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            history.losses.append(loss.item())
            history.accuracies.append((logits.argmax(dim=-1) == targets).double().mean().item())
        history.keep(steps, model)
    history.weighted_losses = list(history.losses)  # every step sees every example
    return model, history


def draw_tiny(config: TransformerConfig = TINY_CONFIG) -> Transformer:
    """Return an untrained model, drawn where the published notebook draws it.

    Before the model, that notebook shows SwiGLU on random numbers; those draws come first here too.
    """
    SwiGLU(8, 16)
    torch.randn(1, 3, 8)
    return Transformer(config)
