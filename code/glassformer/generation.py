"""Writing on: from a model's logits to the next token, and the next."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from .models import BabyGrootGPT, KVCache, Transformer
from .models.bare import bare
from .models.checking import check_ids
from .refusals import LARGEST, as_ids, bad, is_number, is_whole, need_kind, need_whole

MOST_NEW_TOKENS = 100_000  # of a model whose window slides, and so never fills


def next_token_probabilities(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Return the distribution [..., V] to draw from, given logits [..., V].

    Logits are divided by the temperature; then only the top_k most likely tokens stay; then only
    the fewest most likely tokens whose probabilities reach top_p; what stays is scaled to sum 1.
    """
    _check_choices(temperature, top_k, top_p)
    if temperature == 0:
        raise ValueError("Temperature 0 has no distribution: it takes the most likely token.")
    _check_logits(logits)
    tiny = torch.finfo(logits.dtype).tiny  # what is below would round to 0
    logits = (logits - logits.amax(dim=-1, keepdim=True)) / max(temperature, tiny)
    if top_k is not None and top_k < logits.shape[-1]:
        logits = _keep(logits, logits.topk(top_k, dim=-1).indices)
    if top_p is not None and top_p < 1:
        order = logits.argsort(dim=-1, descending=True, stable=True)
        sorted_p = logits.gather(-1, order).softmax(dim=-1)
        before = sorted_p.cumsum(dim=-1) - sorted_p  # probability of all more likely tokens
        ranked = logits.gather(-1, order).masked_fill(before >= max(top_p, tiny), float("-inf"))
        logits = torch.empty_like(logits).scatter(-1, order, ranked)
    return logits.softmax(dim=-1)


def _keep(logits: Tensor, indices: Tensor) -> Tensor:
    """Return logits [..., V] with all but the given indices [..., k] at −∞."""
    kept = torch.full_like(logits, float("-inf"))
    return kept.scatter(-1, indices, logits.gather(-1, indices))


def _check_choices(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not is_number(temperature) or not 0 <= temperature <= sys.float_info.max:
        raise bad("temperature", temperature, "it must be 0 (greedy) or more, and finite")
    if top_k is not None:
        need_whole("top_k", top_k)
    if top_p is not None and (not is_number(top_p) or not 0 < top_p <= 1):
        raise bad("top_p", top_p, "it must be above 0 and at most 1")


def _check_logits(logits: Tensor) -> None:
    """Refuse logits [..., V] without a finite largest one; −∞ beside it rules a token out."""
    need_kind(logits, Tensor, "Logits are a tensor [..., vocabulary]")
    if not logits.is_floating_point() or logits.dim() == 0 or logits.numel() == 0:
        raise ValueError(
            "Logits are floating-point numbers [..., vocabulary], at least one; "
            f"these are {logits.dtype} of shape {list(logits.shape)}."
        )
    wrong = [x for x in logits.amax(dim=-1).flatten().tolist() if not math.isfinite(x)]
    if wrong:
        raise ValueError(
            f"The largest logit is {wrong[0]}, not a finite number, so no token can be chosen: "
            "the model's weights are broken; load them again, or train with smaller steps."
        )


def choose(
    logits: Tensor,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator | None,
) -> Tensor:
    """Return one token id [B] for each row of logits [B, V]; temperature 0 takes the largest."""
    if temperature == 0:
        _check_logits(logits)
        return logits.argmax(dim=-1)
    probabilities = next_token_probabilities(logits, temperature, top_k, top_p)
    return torch.multinomial(probabilities, 1, generator=generator)[:, 0]  # [B, 1] → [B]


def generate(
    model: BabyGrootGPT | Transformer,
    ids: Sequence[int] | Tensor,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_id: int | None = None,
    use_cache: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return the prompt ids [T] or [B, T] followed by up to max_new_tokens tokens the model writes.

    A row that has written stop_id repeats it until all rows have. BabyGrootGPT has no cache and
    sees its last max_len tokens; a Transformer's prompt and new tokens must fit its window.
    """
    pick = _picker(temperature, top_k, top_p, generator)
    prompt, batched = _as_batch(ids)  # [B, T]
    new = _write(model, prompt, max_new_tokens, pick, stop_id, use_cache)
    text = torch.cat((prompt, *(token[:, None] for token in new)), dim=1)  # [B, T + new]
    return text if batched else text[0]


def stream(
    model: Transformer,
    ids: Sequence[int],
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Iterator[int]:
    """Give the ids that a Transformer writes after ids [T], each as soon as it is chosen.

    Of a longer prompt the last max_seq_len ids count; a window that is full is begun anew with its
    later half, so that the text may be of any length.
    """
    need_kind(model, Transformer, "stream needs a Transformer")
    pick = _picker(temperature, top_k, top_p, generator)
    window = model.config.max_seq_len
    text = list(ids)[-window:]
    while max_new_tokens > 0:
        new = min(max_new_tokens, window - len(text) + 1)
        for token in _write(model, _as_batch(text)[0], new, pick, None, use_cache=True):
            text.append(token.item())
            yield text[-1]
        max_new_tokens -= new
        text = text[-max(1, window // 2) :]


def _picker(
    temperature: float, top_k: int | None, top_p: float | None, generator: torch.Generator | None
) -> Callable[[Tensor], Tensor]:
    """Return the function from logits [B, V] to tokens [B] that these choices make."""
    _check_choices(temperature, top_k, top_p)
    need_kind(generator, (torch.Generator, type(None)), "Chance comes from a torch.Generator")
    return partial(choose, temperature=temperature, top_k=top_k, top_p=top_p, generator=generator)


def _write(
    model, prompt: Tensor, max_new_tokens: int, pick, stop_id: int | None, use_cache: bool
) -> Iterator[Tensor]:
    """Give the tokens [B] that continue a prompt [B, T], each picked from logits [B, V]."""
    need_kind(model, (BabyGrootGPT, Transformer), "generate needs a BabyGrootGPT or a Transformer")
    check_ids(prompt, model.vocab_size, room=prompt.shape[1], window=prompt.shape[1])
    _check_lengths(model, max_new_tokens, stop_id)
    step = _next_logits(model, prompt, max_new_tokens, use_cache)
    new = prompt
    done = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)  # [B]
    for _ in range(max_new_tokens):
        with torch.inference_mode():
            token = pick(step(new))  # [B]
            if stop_id is not None:
                token = token.masked_fill(done, stop_id)
                done = done | (token == stop_id)
            new = token[:, None]  # [B, 1]
        yield token
        if stop_id is not None and bool(done.all()):
            return


def _as_batch(ids: Sequence[int] | Tensor) -> tuple[Tensor, bool]:
    """Return ids as [B, T], and whether they came with a batch dimension."""
    ids = as_ids(ids)
    if ids.numel() == 0:
        raise ValueError("The prompt is empty; give at least one token.")
    if ids.dim() not in (1, 2):
        raise ValueError(f"A prompt has shape [seq] or [batch, seq], not {list(ids.shape)}.")
    return (ids, True) if ids.dim() == 2 else (ids[None], False)


def _check_lengths(model, max_new_tokens: int, stop_id: int | None) -> None:
    slides = isinstance(model, BabyGrootGPT)
    need_whole("max_new_tokens", max_new_tokens, 0, MOST_NEW_TOKENS if slides else LARGEST)
    last = model.vocab_size - 1
    if stop_id is not None and (not is_whole(stop_id) or not 0 <= stop_id <= last):
        rule = f"it must be a token id, a whole number from 0 to {last}"
        raise bad("stop_id", stop_id, rule)


def _next_logits(model, prompt: Tensor, max_new_tokens: int, use_cache: bool):
    """Return a function from new tokens [B, n] to the logits [B, V] of the token that follows."""
    if isinstance(model, BabyGrootGPT):
        twin = bare(model)
        return _sliding(lambda ids: twin(ids)[0], model.max_len)
    model.config.check()
    B, T = prompt.shape
    window = model.config.max_seq_len
    if T + max_new_tokens - 1 > window:
        raise ValueError(
            f"{T} prompt tokens and {max_new_tokens} new ones do not fit: the model's window has "
            f"{window} places; ask for at most {max(0, window - T + 1)} new tokens."
        )
    if not use_cache:
        return _sliding(bare(model), window)
    weight = model.tok_embeddings.weight
    cache = KVCache(model.config, B, weight.dtype, weight.device)
    twin = bare(model)
    return lambda new: twin(new, cache)[:, -1]  # [B, n, V] → [B, V]


def _sliding(forward, window: int):
    """Return a function that keeps the last `window` tokens and runs them all each time."""
    seen: list[Tensor] = []

    def step(new: Tensor) -> Tensor:
        seen[:] = [torch.cat((*seen, new), dim=1)[:, -window:]]
        return forward(seen[0])[:, -1]  # [B, T, V] → [B, V]

    return step
