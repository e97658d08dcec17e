"""Exercise kv_cache.write."""

import torch

from glassformer.generation import generate
from glassformer.models import Transformer, TransformerConfig

from ...definition import Exercise, worth

exercise = Exercise(
    "kv_cache.write",
    title="Write with a cache",
    minutes=20,
    statement=r"""
Write `new` tokens greedily behind a prompt, with a cache: the first pass reads the whole prompt (*prefill*), each later
pass the newest token alone (*decode*). No token may be read twice, and none that nobody needs.

- `model(ids, cache)` takes ids `(1, T)` and an empty or partly filled cache, adds their keys and values to it, and gives
  logits `(1, T, V)`.
- `cache` is an empty `KVCache`.

Return the ids of prompt and new tokens, a list. It must be the text that passes without a cache would write.
""",
    hints=(
        "What goes into the model in the first pass, and what in the second? In each, which row of logits is about "
        "what comes next?",
        "Keep two things: the whole text, and what the model has not read yet. At first that is the prompt, then the "
        "newest token.",
        "`z = model(torch.tensor([unread]), cache)[0, -1]`, then `unread = [z.argmax().item()]` and "
        "`text += unread`, `new` times.",
    ),
    explanation=r"""
The cache holds what was read, so only what is unread goes in. The last row of logits belongs to the newest token,
whether $T$ is six or one. `new` passes write `new` tokens: the prompt's pass writes the first of them, and the last
token written is never read. The model itself finds each token's position and mask by `cache.length`, which is
why one and the same cache must go along through all passes.
""",
)


@exercise.starter
def write_cached(model, cache, prompt, new):
    """Return prompt and new tokens, a list of len(prompt) + new ids.

    model: function of ids [1, T] and a cache, gives logits [1, T, V]; prompt: list; new: number ≥ 1.
    """
    raise NotImplementedError("not attempted")


@exercise.harness
def prepare(write_cached, shape, state, prompt, new):
    """Make a Transformer and a cache, let the function write, and tell what was written, read and kept."""
    from glassformer.models import KVCache, Transformer, TransformerConfig

    config = TransformerConfig(*shape)
    network = Transformer(config).double().requires_grad_(False)
    network.load_state_dict(state)
    cache, read = KVCache(config, dtype=network.output.weight.dtype), []

    def model(ids, cache=None):
        read.append(ids.shape[1])
        return network(ids, cache)

    text = write_cached(model, cache, list(prompt), new)
    return {"text": text, "read": read, "held": cache.length}


@exercise.solution
def write_cached(model, cache, prompt, new):
    text, unread = list(prompt), list(prompt)
    for _ in range(new):
        z = model(torch.tensor([unread]), cache)[0, -1]  # [1, T] → [V]
        unread = [z.argmax().item()]
        text += unread
    return text


@exercise.style("prefill apart")
def write_cached(model, cache, prompt, new):
    ids = torch.tensor(prompt)[None]  # [1, T]
    token = model(ids, cache)[:, -1:].argmax(dim=-1)  # [1, 1]
    written = [ids, token]
    while len(written) <= new:
        token = model(token, cache).argmax(dim=-1)
        written.append(token)
    return torch.cat(written, dim=1)[0].tolist()


@exercise.style("by the cache's length")
def write_cached(model, cache, prompt, new):
    text = torch.tensor([prompt])
    for _ in range(new):
        logits = model(text[:, cache.length :], cache)
        text = torch.cat((text, logits.softmax(-1)[:, -1].topk(1).indices), dim=1)
    return [int(token) for token in text[0]]


@exercise.mutant(
    "without the cache",
    "The text is right, but every pass reads it from the beginning: hand the cache over, and only what was not read "
    "yet.",
)
def write_cached(model, cache, prompt, new):
    text = list(prompt)
    for _ in range(new):
        text.append(model(torch.tensor([text]))[0, -1].argmax().item())
    return text


@exercise.mutant(
    "everything again",
    "The whole text goes into a cache that holds most of it already: its keys stand there twice, at wrong positions, "
    "until the window is full. Read the newest token alone.",
)
def write_cached(model, cache, prompt, new):
    text = list(prompt)
    for _ in range(new):
        text.append(model(torch.tensor([text]), cache)[0, -1].argmax().item())
    return text


@exercise.mutant(
    "cache forgotten",
    "After the prompt each token sees nothing but itself: its pass gets no cache, or an emptied one. Hand the same cache over in "
    "every pass; what is kept from one to the next is the whole point.",
)
def write_cached(model, cache, prompt, new):
    text, unread = list(prompt), list(prompt)
    for n in range(new):
        logits = model(torch.tensor([unread]), cache) if n == 0 else model(torch.tensor([unread]))
        unread = [logits[0, -1].argmax().item()]
        text += unread
    return text


@exercise.mutant(
    "prompt token by token",
    "The text is right, but the prompt went in token by token. It is known from the start, so one pass reads it at once: "
    "that is prefill.",
)
def write_cached(model, cache, prompt, new):
    text = list(prompt)
    for token in prompt:
        z = model(torch.tensor([[token]]), cache)[0, -1]
    text.append(z.argmax().item())
    for _ in range(new - 1):
        z = model(torch.tensor([text[-1:]]), cache)[0, -1]
        text.append(z.argmax().item())
    return text


@exercise.mutant(
    "prompt's last token twice",
    "The prompt's last token is read twice, in prefill and again in the first decode step: prefill has written the first "
    "new token already, in its last row.",
)
def write_cached(model, cache, prompt, new):
    text = list(prompt)
    model(torch.tensor([text]), cache)
    for _ in range(new):
        text.append(model(torch.tensor([text[-1:]]), cache)[0, -1].argmax().item())
    return text


@exercise.mutant(
    "last one read",
    "The text is right, but the last token is read, too, for a prediction that nobody asks for.",
)
def write_cached(model, cache, prompt, new):
    text, unread = list(prompt), list(prompt)
    for _ in range(new):
        unread = [model(torch.tensor([unread]), cache)[0, -1].argmax().item()]
        text += unread
    model(torch.tensor([unread]), cache)
    return text


@exercise.mutant(
    "first row",
    "The first row of the logits was read: after the prompt's first token. In a decode step there is one row only, but in "
    "prefill the last one counts.",
)
def write_cached(model, cache, prompt, new):
    text, unread = list(prompt), list(prompt)
    for _ in range(new):
        unread = [model(torch.tensor([unread]), cache)[0, 0].argmax().item()]
        text += unread
    return text


@exercise.mutant(
    "prompt missing",
    "Only the new tokens were returned; the text begins with the prompt.",
)
def write_cached(model, cache, prompt, new):
    text, unread = [], list(prompt)
    for _ in range(new):
        unread = [model(torch.tensor([unread]), cache)[0, -1].argmax().item()]
        text += unread
    return text


@worth(4)
def test_the_text_of_passes_without_a_cache(answer, draw):
    T, new = 4, 4
    shape = [13, 8, 2, 4, 2, 40, 0.5]
    model, prompt = Transformer(TransformerConfig(*shape)).double(), draw.pick(range(13), T)
    first, new_tokens = None, []
    while len(set(new_tokens)) < 3 or first == new_tokens[0]:  # until a model writes many words
        state = {name: draw.normal(*w.shape) for name, w in model.state_dict().items()}
        model.load_state_dict(state)
        text = generate(model, prompt, new, use_cache=False).tolist()
        new_tokens = text[T:]
        first = model(torch.tensor([prompt]))[0, 0].argmax().item()
    outcome = answer(shape, state, prompt, new)
    outcome.part("text").equals(text)
    outcome.part("read").holds(
        lambda read: read == [T] + [1] * (new - 1),
        f"The passes should read {T} tokens, then one in each of the {new - 1} others.",
    )
    outcome.part("held").holds(
        lambda held: held == T + new - 1,
        f"In the end the cache should hold {T + new - 1} tokens, each once.",
    )
