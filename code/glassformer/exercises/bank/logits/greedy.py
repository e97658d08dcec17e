"""Exercise logits.greedy."""

import torch

from glassformer.checkpoints import load_baby_groot
from glassformer.data import groot_vocabulary
from glassformer.generation import generate
from glassformer.models import BabyGrootGPT

from ...definition import Exercise, worth

exercise = Exercise(
    "logits.greedy",
    title="The loop that writes",
    minutes=20,
    statement=r"""
Write text greedily: show the model what is there, append the most likely next token, and repeat.

- `model(ids)` takes a list of ids and gives their logits, `(T, V)`. It has only `window` positions and refuses
  a longer list: show it the last `window` tokens.
- Stop when `stop` has been written (it belongs to the text), or after `limit` new tokens.

Return all ids, those of the prompt and the new ones, as a list.
""",
    hints=(
        "Which of the $T$ rows of logits answers the question that is open: what follows the last token?",
        "In each turn: `model(text[-window:])`, its last row, the place of the largest logit, append.",
        "`text.append(model(text[-window:])[-1].argmax().item())`, and `break` if that was `stop`; all of it in "
        "`for _ in range(limit)`.",
    ),
    explanation=r"""
Row $t$ answers what follows token $t$; the answers of all rows but the last are known already. `text[-window:]`
of a shorter text is the whole text, so no case is needed for the beginning. The loop asks the model about
the text *as it is now*: that is why `text`, and not the prompt, goes in. Copying the prompt first (`list(ids)`)
leaves the caller's list alone.
""",
)


@exercise.starter
def write_greedily(model, ids, limit, stop, window):
    """Return the prompt and what the model writes after it, a list of ids.

    model: function from a list of T ≤ window ids to logits [T, V]; ids: list; limit, stop: numbers.
    """
    raise NotImplementedError("not attempted")


@exercise.harness
def prepare(write_greedily, state, ids, limit, stop):
    """Make a BabyGroot of the weights and let the function write with it."""
    import torch

    from glassformer.models import BabyGrootGPT

    (V, d), window = state["token_embedding.weight"].shape, len(state["position_embedding.weight"])
    network = BabyGrootGPT(V, window, d).double()
    network.load_state_dict(state)

    def model(ids):
        with torch.no_grad():
            return network(torch.as_tensor(ids)[None])[0][0]

    return write_greedily(model, list(ids), limit, stop, window)


@exercise.solution
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        z = model(text[-window:])[-1]  # [V]
        text.append(z.argmax().item())
        if text[-1] == stop:
            break
    return text


@exercise.style("while")
def write_greedily(model, ids, limit, stop, window):
    new = []
    while len(new) < limit and stop not in new:
        p = model((ids + new)[-window:]).softmax(dim=-1)[-1].tolist()
        new = new + [p.index(max(p))]
    return ids + new


@exercise.style("window kept apart")
def write_greedily(model, ids, limit, stop, window):
    text, seen = torch.tensor(ids), list(ids)
    for _ in range(limit):
        seen = seen[-window:]
        best = model(seen).argmax(dim=-1)[-1:]  # [1]
        text = torch.cat([text, best])
        seen.append(best.item())
        if best == stop:
            return text.tolist()
    return text.tolist()


@exercise.mutant(
    "first row",
    "The first row of the logits was read, which answers what follows the first token; the question is what "
    "follows the last: row −1.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        text.append(model(text[-window:])[0].argmax().item())
        if text[-1] == stop:
            break
    return text


@exercise.mutant(
    "text does not grow",
    "Each token was predicted from the prompt alone, so it is the same every time: the model must read what it "
    "has written.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        text.append(model(ids[-window:])[-1].argmax().item())
        if text[-1] == stop:
            break
    return text


@exercise.mutant(
    "no window",
    "Once the text is longer than the window, the model refuses it: it has no position vector for more tokens. "
    "Show it the last `window` only.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        text.append(model(text)[-1].argmax().item())
        if text[-1] == stop:
            break
    return text


@exercise.mutant(
    "beginning of the text",
    "The model was shown the first `window` tokens, so it no longer sees what it writes; the last ones are "
    "`text[-window:]`.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        text.append(model(text[:window])[-1].argmax().item())
        if text[-1] == stop:
            break
    return text


@exercise.mutant(
    "last token only",
    "The model was shown the last token alone; what comes next depends on all that the window holds.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        text.append(model(text[-1:])[-1].argmax().item())
        if text[-1] == stop:
            break
    return text


@exercise.mutant(
    "no stop",
    "It writes on after `stop`. A model has learned nothing about what follows the end, so leave the loop there.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        text.append(model(text[-window:])[-1].argmax().item())
    return text


@exercise.mutant(
    "stop left out",
    "The stop token is missing at the end: the model wrote it, so it belongs to the text. Append first, then ask "
    "whether to stop.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        best = model(text[-window:])[-1].argmax().item()
        if best == stop:
            break
        text.append(best)
    return text


@exercise.mutant(
    "prompt missing",
    "Only the new tokens were returned; the text begins with the prompt.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        text.append(model(text[-window:])[-1].argmax().item())
        if text[-1] == stop:
            break
    return text[len(ids) :]


@exercise.mutant(
    "limit of the whole text",
    "The limit was taken for the length of the whole text; it counts the new tokens alone.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    while len(text) < limit:
        text.append(model(text[-window:])[-1].argmax().item())
        if text[-1] == stop:
            break
    return text


@exercise.mutant(
    "drawn",
    "The tokens were drawn by lot, each with its probability; greedy has no dice and takes the largest logit.",
)
def write_greedily(model, ids, limit, stop, window):
    text = list(ids)
    for _ in range(limit):
        p = model(text[-window:])[-1].softmax(dim=-1)
        text.append(torch.multinomial(p, 1).item())
        if text[-1] == stop:
            break
    return text


def test_i_am(answer):
    state = dict(load_baby_groot().state_dict())
    prompt, sentence = map(groot_vocabulary().encode, ("<START> i am", "<START> i am groot <END>"))
    answer(state, prompt, 10, sentence[-1]).equals(sentence)


@worth(3)
def test_any_model(answer, draw):
    V, T, d, limit = 11, 4, 8, 7
    model, prompt = BabyGrootGPT(V, T, d).double(), draw.ids(V, 3).tolist()
    state, seen = dict(model.state_dict()), []
    state |= {name: 0 * w for name, w in state.items() if name.endswith("bias")}
    while len(seen) < 4:  # until a model writes four different tokens
        state |= {name: 3 * draw.normal(*w.shape) for name, w in state.items() if w.dim() == 2}
        state["head.weight"] /= 20  # so that a draw is not always the best
        model.load_state_dict(state)
        text = generate(model, prompt, limit).tolist()
        seen = list(dict.fromkeys(text[3:]))
    never = next(token for token in range(V + 1) if token not in seen)
    answer(state, prompt, limit, never).equals(text)
    end = text.index(seen[2], 3) + 1
    answer(state, prompt, limit, seen[2]).equals(text[:end])
