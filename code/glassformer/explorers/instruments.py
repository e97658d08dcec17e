"""The explorers: the state of each, and what it says where it cannot run."""

from __future__ import annotations

import math
import sys
import unicodedata
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from traitlets import Dict, Int, List, validate

from ..bpe import BytePairTokenizer
from ..config import TransformerConfig
from ..data import (
    END,
    START,
    Vocabulary,
    entropy_floor,
    next_token_counts,
    prefix_pairs,
)
from ..generation import choose, generate, next_token_probabilities
from ..milestones import M1, M1_BUDGET, M2
from ..models import rotary_table, rotate
from ..trace import trace
from ..training import last_token_logits
from .base import Explorer, choice, flag, named, real, text, whole
from .parts import tokenizer_of
from .words import grid, listed, ranked, share, table, told

GROOT_PROMPT = f"{START} i am groot"
CAT_PROMPT = "the cat sat on the mat"
MOST_TERMS = 16  # of one sum, in a table


def _numbered(count: int) -> list[str]:
    return [str(place) for place in range(count)]


class Tokens(Explorer):
    """Chapter 1: a sentence becomes tokens, ids, contexts and targets."""

    title = "From a sentence to examples"
    invites = "you type a sentence and see its tokens, ids, contexts and targets."
    needs = ("corpus",)

    explorer = named("tokens")
    sentence = text("i am groot")
    example = whole(0, 0, 63)

    @validate("sentence")
    def _check_sentence(self, proposal: dict) -> str:
        return self._refusing(self._examples, proposal["value"])

    def _examples(self, sentence: str) -> tuple[Tensor, Tensor]:
        return prefix_pairs(
            [sentence], self._vocabulary_of("corpus"), self.data["corpus"]["max_len"]
        )

    def _told(self) -> list[str]:
        corpus, vocabulary = self.data["corpus"], self._vocabulary_of("corpus")
        X, Y = prefix_pairs(corpus["sentences"], vocabulary, corpus["max_len"])
        counts, rows = next_token_counts(X, Y), []
        for context, target in zip(
            *(t.tolist() for t in self._examples(self.sentence)), strict=True
        ):
            followers = counts.get(tuple(context), {})
            total = sum(followers.values())
            lost = -sum(n * math.log(n / total) for n in followers.values()) / len(Y)
            ids = " ".join(map(str, context))
            rows.append([ids, vocabulary.words[target], str(target), str(total), told(lost, 4)])
        words = [*f"{START} {self.sentence} {END}".split()]
        named = [
            f"{word} {i}" for word, i in zip(words, vocabulary.encode(" ".join(words)), strict=True)
        ]
        return [
            f"Read as {len(words)} tokens, each with its id: {listed(named)}.",
            f"That gives {len(rows)} examples: a context, padded with 0, and the token to predict. "
            "Beside them: how often the context is in the corpus, and what it adds to the floor.",
            table(["context", "target", "id", "in corpus", "adds"], rows),
            self._goes_on(counts),
            f"The whole corpus has {len(Y)} examples; the floor under every loss on them is "
            f"{told(entropy_floor(X, Y), 4)}.",
        ]

    def _goes_on(self, counts: dict) -> str:
        """Return what follows the chosen example's context in the corpus."""
        contexts = self._examples(self.sentence)[0].tolist()
        context, vocabulary = (
            contexts[min(self.example, len(contexts) - 1)],
            self._vocabulary_of("corpus"),
        )
        said = f"“{vocabulary.decode(i for i in context if i)}”"
        followers = counts.get(tuple(context), {})
        if not followers:
            return f"No sentence of the corpus begins with {said}."
        total = sum(followers.values())
        order = sorted(followers, key=lambda i: -followers[i])
        goes_on = [f"{vocabulary.words[i]} ({followers[i]} of {total})" for i in order]
        return f"After {said} the corpus goes on with {listed(goes_on)}."


class Training(Explorer):
    """Chapter 2: BabyGroot trains in the page, and a prompt is read at the epoch shown.

    Each run draws its own model. One that you give has the words to train on, and the plane on
    which the token vectors are mapped.
    """

    title = "Training, as it happens"
    invites = (
        "you press play and watch the loss, the embeddings and the predictions move, go to any "
        "epoch, and train with another seed, rate or width, or without one of the model's parts."
    )
    needs = ("corpus", "groot", "initial")
    reads = "groot"

    explorer = named("training")
    seed = whole(42, 0, 2**31 - 1)
    learning_rate = real(0.01, 0.0, 1.0)
    dim = whole(8, 1, 32)
    epoch = whole(0, 0, 600)
    mask = flag(True)
    positions = flag(True)
    residuals = flag(True)
    normalisation = flag(True)
    prompt = text(GROOT_PROMPT)

    def _told(self) -> list[str]:
        corpus, vocabulary = self.data["corpus"], self._vocabulary_of("corpus")
        X, Y = prefix_pairs(corpus["sentences"], vocabulary, corpus["max_len"])
        off = [p for p in ("mask", "positions", "residuals", "normalisation") if not self.state[p]]
        without = f"without {listed(off)}" if off else "with all its parts"
        points = [[str(point["epoch"]), told(point["loss"], 4)] for point in corpus["published"]]
        return [
            f"BabyGroot, {self.dim} numbers a token, learns from {len(Y)} examples, {without}: "
            f"seed {self.seed}, learning rate {self.learning_rate:g}, shown at epoch {self.epoch}, "
            f"where it reads “{self._said}”.",
            f"{self._before(X, Y)}Guessing evenly gives a loss of "
            f"{told(math.log(len(vocabulary)), 4)}, and no model gets below the floor of "
            f"{told(entropy_floor(X, Y), 4)}. The published run went like this.",
            table(["epoch", "loss"], points),
            "The token vectors are mapped on the plane in which those of the trained model spread "
            f"most: {share(self._kept())} of their variance.",
        ]

    def _kept(self) -> float:
        """Return the part of the trained token vectors' variance that their map keeps."""
        vectors = self._model_of("groot").token_embedding.weight.detach()
        spread = torch.linalg.svdvals(vectors - vectors.mean(dim=0)) ** 2
        return (spread[:2].sum() / spread.sum()).item()

    def _before(self, X: Tensor, Y: Tensor) -> str:
        """Return the loss of the weights that the course keeps, if they fit the examples."""
        initial = self._model_of("initial")
        if (initial.vocab_size, initial.max_len) != (len(self.vocabulary), X.shape[1]):
            return ""
        with torch.no_grad():
            before = F.cross_entropy(last_token_logits(initial, X), Y).item()
        return f"As it is drawn with seed 42, its loss on them is {told(before, 4)}. "


class Embedding(Explorer):
    """Chapter 3: token and position become one vector; which vectors are alike."""

    title = "From ids to vectors"
    invites = "you pick tokens and positions, and compare vectors before and after training."
    needs = ("corpus", "groot", "initial")
    reads = "groot"

    explorer = named("embedding")
    prompt = text(GROOT_PROMPT)
    position = whole(2, 0, 63)
    token = text("we")
    other = text("you")
    trained = flag(True)

    @validate("token", "other")
    def _check_word(self, proposal: dict) -> str:
        return self._refusing(self._id, proposal["value"])

    def _id(self, word: str) -> int:
        ids = self.vocabulary.encode(word)
        if len(ids) != 1:
            raise ValueError(f"One word is compared with another; {word!r} is {len(ids)}.")
        return ids[0]

    def _check_fit(self) -> None:
        super()._check_fit()
        self._id(self.token), self._id(self.other)

    def _can_compare(self) -> bool:
        """Whether the weights before training belong to the model shown."""
        groot, initial = self._model_of("groot"), self._model_of("initial")
        tables = [m.token_embedding.weight.shape for m in (groot, initial)]
        return tables[0] == tables[1] and groot.max_len == initial.max_len

    def _alike(self, part: str) -> str:
        """Return the cosine of the two tokens' vectors."""
        vectors = self._model_of(part).token_embedding.weight.detach()
        one, other = (vectors[self._id(word)] for word in (self.token, self.other))
        return told(F.cosine_similarity(one, other, dim=0).item())

    def _told(self) -> list[str]:
        trained, words = self.trained or not self._can_compare(), self.prompt.split()
        seen = trace(self._model_of("groot" if trained else "initial"), self._ids(self.prompt))
        columns, at = _numbered(seen["h0"].shape[-1]), min(self.position, len(words) - 1)
        e, p, h = (told(x[at, 0].item()) for x in list(seen.values())[1:4])
        before = f" and was {self._alike('initial')} before training" if self._can_compare() else ""
        return [
            "Each row of H₀ is a token's vector plus its position's, "
            f"{'after' if trained else 'before'} training. The token vectors:",
            grid(seen["token_embedding"], words, columns),
            "The position vectors:",
            grid(seen["position_embedding"], _numbered(len(words)), columns),
            "Their sums, H₀:",
            grid(seen["h0"], words, columns),
            f"The row of {words[at]}, at position {at}, begins with {e} plus {p}, which is {h}.",
            f"The cosine between the token vectors of {self.token} and {self.other} is "
            f"{self._alike('groot')}{before}.",
        ]


class Attention(Explorer):
    """Chapter 4: from queries, keys and values to contexts, step by step."""

    title = "Attention, step by step"
    invites = (
        "you walk from Q Kᵀ through scale, mask and softmax to A V for a prompt of your own, pick "
        "the token that asks, and switch the scale and the mask off."
    )
    needs = ("corpus", "groot")
    reads = "groot"

    explorer = named("attention")
    prompt = text(GROOT_PROMPT)
    query = whole(2, 0, 63)
    STEPS = {  # what each step makes
        "qkv": ("q", "k", "v"),
        "products": ("products",),
        "scores": ("scores",),
        "masked_scores": ("masked_scores",),
        "attention": ("attention",),
        "context": ("context",),
    }
    step = choice("attention", tuple(STEPS))
    scale = flag(True)
    mask = flag(True)

    def _seen(self) -> dict[str, Tensor]:
        """Return the trace and Q Kᵀ; where scale or mask is off, what follows without them."""
        seen = trace(self._model_of("groot"), self._ids(self.prompt))
        seen["products"] = seen["q"] @ seen["k"].T
        if self.scale and self.mask:
            return seen
        scores = seen["scores"] if self.scale else seen["products"]
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        masked = scores.masked_fill(future, -1e9) if self.mask else scores
        attention = masked.softmax(dim=-1)
        changed = {"scores": scores, "masked_scores": masked, "attention": attention}
        return seen | changed | {"context": attention @ seen["v"]}

    def _told(self) -> list[str]:
        words, seen = self.prompt.split(), self._seen()
        asks = min(self.query, len(words) - 1)
        shown, square = self.STEPS[self.step], self.step not in ("qkv", "context")
        weights = [
            f"{share(a)} {w}" for a, w in zip(seen["attention"][asks].tolist(), words, strict=True)
        ]
        off = [switch for switch in ("scale", "mask") if not self.state[switch]]
        return [
            f"One head of attention reads “{self._said}”"
            + (f", without {listed(off)}." if off else ".")
            + f" Shown is {listed(shown)}, one row for each token"
            + (" that asks, one column for each that is asked." if square else "."),
            *(self._grid(seen[name], words, square) for name in shown),
            f"The token {words[asks]} attends to {listed(weights)}.",
        ]

    def _grid(self, tensor: Tensor, words: list[str], square: bool) -> str:
        """Return a step's numbers; what the mask hides is called hidden."""
        lines = grid(tensor, words, words if square else _numbered(tensor.shape[-1]))
        return lines.replace(told(-1e9), "hidden".rjust(len(told(-1e9))))


class Block(Explorer):
    """Chapter 5: one token through residual, norm, feed-forward network, residual and norm."""

    title = "One token through the block"
    invites = "you step a token through the block and see which hidden units fire."
    needs = ("corpus", "groot")
    reads = "groot"

    STAGES = ("h0", "context", "r1", "n1", "ffn_hidden", "ffn_activation", "ffn_out", "r2", "h_out")

    explorer = named("block")
    prompt = text(GROOT_PROMPT)
    position = whole(2, 0, 63)
    step = choice("h0", STAGES)
    unit = whole(13, 0, 9_999)

    def _told(self) -> list[str]:
        words = self.prompt.split()
        seen = trace(self._model_of("groot"), self._ids(self.prompt))
        at = min(self.position, len(words) - 1)
        rows = []
        for stage in self.STAGES:
            x = seen[stage][at]
            numbers = (x.mean(), x.var(correction=0), x.norm())
            rows.append([stage, str(len(x)), *(told(n.item()) for n in numbers)])
        active = seen["ffn_activation"][at]
        fires = [str(unit) for unit in range(len(active)) if active[unit] > 0]
        return [
            f"The token {words[at]}, at position {at} of “{self._said}”, goes through the block.",
            table(["stage", "numbers", "mean", "variance", "norm"], rows),
            f"{self.step} is {', '.join(told(x) for x in seen[self.step][at].tolist())}.",
            f"{len(fires)} of {len(active)} hidden units fire"
            + (f": {listed(fires)}. " if fires else ". ")
            + self._unit(seen, at),
        ]

    def _unit(self, seen: dict[str, Tensor], at: int) -> str:
        """Return what one hidden unit makes of the token, and what it adds to F."""
        before, behind = seen["ffn_hidden"][at], seen["ffn_activation"][at]
        unit = min(self.unit, len(before) - 1)
        pattern = self._model_of("groot").transformer.ffn[2].weight.detach()[:, unit]
        adds = behind[unit] * pattern
        return f"Unit {unit} makes {told(before[unit].item())} and adds " + (
            f"{', '.join(told(x) for x in adds.tolist())} to the network's output."
            if behind[unit] > 0
            else "nothing."
        )


class Sampling(Explorer):
    """Chapter 6: what the model could write next, and what is drawn."""

    title = "The next token"
    invites = (
        "you turn temperature, top-k and top-p on the distribution, let the model write token by "
        "token, or choose another token yourself and see what follows."
    )
    needs = ("corpus", "groot")
    reads = "groot"

    explorer = named("sampling")
    prompt = text(f"{START} groot likes")
    temperature = real(1.0, 0.0, 5.0)
    top_k = whole(0, 0, 10_000)  # 0: all
    top_p = real(1.0, 0.01, 1.0)
    seed = whole(0, 0, 2**31 - 1)
    written = text("")
    back = whole(0, 0, 40)  # 0: the next token; 1: the last one written, …

    MOST = 40  # tokens that are written

    @validate("written")
    def _check_written(self, proposal: dict) -> str:
        return self._refusing(self.vocabulary.encode, proposal["value"])

    def _check_fit(self) -> None:
        super()._check_fit()
        self.vocabulary.encode(self.written)

    def _text(self) -> tuple[list[int], list[int], bool]:
        """Return the ids of the prompt, those written after it up to an end, and if it is over."""
        prompt, written = self._ids(self.prompt), self.vocabulary.encode(self.written)[: self.MOST]
        if self._stop in written:
            return prompt, written[: written.index(self._stop) + 1], True
        return prompt, written, False

    @property
    def _stop(self) -> int | None:
        return self.vocabulary.encode(END)[0] if END in self.vocabulary else None

    def _told(self) -> list[str]:
        model, words = self._model_of("groot"), self.vocabulary.words
        prompt, written, over = self._text()
        back = max(self.back, 1) if over or len(written) == self.MOST else self.back
        place = max(len(written) - back, 0)
        ids = prompt + written[:place]
        logits = trace(model, ids[-model.max_len :])["logits"][-1]
        plain = logits.softmax(dim=-1)
        drawn = self._distribution(logits)
        best = ranked(plain)[:5]
        rows = [[words[i], told(logits[i].item()), share(plain[i]), share(drawn[i])] for i in best]
        longer = generate(model, ids, 8, stop_id=self._stop)[len(ids) :]
        whole_text = self.vocabulary.decode(prompt + written)
        return [
            (f"“{whole_text}” is written and over. " if over else "")
            + f"After “{self.vocabulary.decode(ids)}” the five likeliest tokens are these; “drawn” "
            f"is what is left at {self._choices()}.",
            table(["token", "logit", "probability", "drawn"], rows),
            f"{self._drawn(drawn, place)}Always taking the likeliest, the model goes on: "
            f"{self.vocabulary.decode(longer)}.",
        ]

    def _drawn(self, shares: Tensor, place: int) -> str:
        """Return which token the seed draws: where its number falls, shares laid end to end."""
        if self.temperature == 0:
            return ""
        generator = torch.Generator().manual_seed(self.seed)
        number = [
            torch.rand((), generator=generator, dtype=torch.float64) for _ in range(place + 1)
        ][-1]
        order = shares.argsort(descending=True, stable=True)
        reach = shares[order].cumsum(dim=-1)
        rank = int((reach <= number).sum().clamp(max=len(reach) - 1))
        before = reach[rank] - shares[order[rank]]
        return (
            f"Seed {self.seed} gives {told(number.item(), 4)}, which falls between "
            f"{told(before.item(), 4)} and {told(reach[rank].item(), 4)}: "
            f"{self.vocabulary.words[order[rank]]} is drawn. "
        )

    def _distribution(self, logits: Tensor) -> Tensor:
        """Return what the next token is drawn from [V]; at temperature 0 one token has it all."""
        if self.temperature == 0:
            best = choose(logits[None], 0, None, None, None)
            return F.one_hot(best, len(logits))[0].double()
        return next_token_probabilities(logits, self.temperature, self.top_k or None, self.top_p)

    def _choices(self) -> str:
        top_k = f"top-k {self.top_k}" if self.top_k else "no top-k"
        return f"temperature {self.temperature:g}, {top_k} and top-p {self.top_p:g}"


class Everything(Explorer):
    """Every number of one forward pass; change any weight and watch what moves.

    `name` and `index` say which number is pointed at. `changes` is a list of weights that are not
    what they were, such as ["head.bias", [2], 0.5]; NaN and infinities, which JSON cannot hold, are
    kept as texts. With `difference`, each number shows how far the changes moved it.
    """

    title = "Every number of one pass"
    invites = (
        "you follow any number back through the numbers that made it, to the embedding, and change "
        "any weight to watch what moves."
    )
    needs = ("corpus", "groot")
    reads = "groot"

    explorer = named("everything")
    prompt = text(GROOT_PROMPT)
    name = text("probabilities")
    index = List(Int(min=0), [3, 2], maxlen=4).tag(sync=True, state=True)
    changes = List(List(), [], maxlen=64).tag(sync=True, state=True)
    difference = flag(False)

    @validate("name")
    def _check_name(self, proposal: dict) -> str:
        return self._refusing(self._known, proposal["value"])

    def _known(self, name: str) -> None:
        _find(self._numbers(self._model_of("groot")), name)

    @validate("changes")
    def _check_changes(self, proposal: dict) -> list:
        changes = self._refusing(self._changed, proposal["value"])
        return [[name, index, _writable(value)] for name, index, value in changes]

    def _changed(self, changes: list) -> nn.Module:
        """Return the model with some weights changed; ValueError names what is no weight."""
        model = self._model_of("groot")
        for change in changes:
            if len(change) != 3 or not isinstance(change[0], str) or not _is_number(change[2]):
                raise ValueError(
                    f'A change is a weight, a place in it and a number, such as ["head.bias", [2], '
                    f"0.5]; {change!r} is none."
                )
            weight = _find(model.state_dict(), change[0])
            _check_place(change[0], weight, change[1])
            weight[tuple(change[1])] = float(change[2])
        return model

    def _check_fit(self) -> None:
        super()._check_fit()
        self._changed(self.changes)

    def _numbers(self, model: nn.Module) -> dict[str, Tensor]:
        """Return all there is to point at: the pass over the prompt, then the weights."""
        return {**trace(model, self._ids(self.prompt)), **model.state_dict()}

    def _told(self) -> list[str]:
        model = self._changed(self.changes)
        numbers = self._numbers(model)
        made = {n: t for n, t in numbers.items() if n not in model.state_dict()}
        shapes = [[n, " × ".join(map(str, t.shape)), str(t.numel())] for n, t in made.items()]
        total = sum(t.numel() for t in made.values())
        pointed = numbers[self.name]
        place = [min(i, n - 1) for i, n in zip([*self.index, 0, 0], pointed.shape, strict=False)]
        value = told(pointed[tuple(place)].item(), 4)
        changed = [f"{weight}{where} = {told(float(new))}" for weight, where, new in self.changes]
        return [
            f"One pass over “{self._said}” makes {total} numbers, from ids to probabilities:",
            table(["name", "shape", "numbers"], shapes),
            f"Pointed at is {self.name}{place} = {value}."
            + (f" Changed by hand: {listed(changed)}." if changed else ""),
        ]


_NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # as JavaScript writes them


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value in _NOT_FINITE
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, float)


def _writable(value: float | str) -> float | str:
    """Return a number as JSON can hold it."""
    if isinstance(value, str) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _find(tensors: dict[str, Tensor], name: str) -> Tensor:
    """Return a tensor by name; ValueError says which there are."""
    if name not in tensors:
        raise ValueError(f"There is no {name[:60]!r}; there are {', '.join(tensors)}.")
    return tensors[name]


def _check_place(name: str, tensor: Tensor, index: object) -> None:
    inside = isinstance(index, list) and len(index) == tensor.dim()
    inside = inside and all(
        type(i) is int and 0 <= i < n for i, n in zip(index, tensor.shape, strict=True)
    )
    if not inside:
        raise ValueError(f"{name} has shape {list(tensor.shape)}; {index!r} is no place in it.")


class Modern(Explorer):
    """Chapter 7: BabyGroot and the LLaMA-style model side by side, part by part."""

    title = "Then and now, part by part"
    invites = (
        "you exchange one part at a time, norm, positions, feed-forward network and heads, and see "
        "what it does to the numbers, the parameters and the cache."
    )
    family = "llama"
    needs = ("corpus", "groot", "tiny")
    reads = "groot"

    explorer = named("modern")
    prompt = text(GROOT_PROMPT)
    tiny_prompt = text(CAT_PROMPT)
    part = choice("norm", ("norm", "positions", "ffn", "heads"))
    rmsnorm = flag(False)
    rotary = flag(False)
    swiglu = flag(False)
    grouped = flag(False)

    @validate("tiny_prompt")
    def _check_tiny_prompt(self, proposal: dict) -> str:
        return self._refusing(lambda prompt: self._ids(prompt, "tiny"), proposal["value"])

    PARTS = (  # what it is, and the words by which each model's weights of it are known
        ("token embedding", "a table", "token_embedding", "a table", "tok_embeddings"),
        ("positions", "learned", "position_embedding", "rotary", ""),
        ("attention", "1 head", "attn", "grouped heads", "attention"),
        ("feed-forward", "ReLU", "ffn", "SwiGLU", "feed_forward"),
        ("norms", "LayerNorm", "norm1 norm2", "RMSNorm", "attention_norm ffn_norm norm"),
        ("output head", "with bias", "head", "no bias", "output"),
    )

    def _told(self) -> list[str]:
        groot, tiny = self._model_of("groot"), self._model_of("tiny")
        config, d = tiny.config, groot.token_embedding.embedding_dim
        rows = [
            [label, old, _count(groot, inside), new, _count(tiny, inside_now)]
            for label, old, inside, new, inside_now in self.PARTS
        ]
        rows.append(["all", "", groot.num_params(), "", tiny.num_params()])
        return [
            "The parts of both models, each with its parameters.",
            table(["part", "BabyGroot", "", "LLaMA-style", ""], rows),
            f"For each token a cache would hold {2 * d} numbers of BabyGroot's; of the other's it "
            f"holds {config.kv_cache_values()}, keys and values of {config.head_dim} numbers for "
            f"{config.kv_heads} heads that {config.n_heads} queries share, in {config.n_layers} "
            "blocks.",
        ]


def _count(model: nn.Module, part: str) -> int:
    """Return how many parameters have one of a part's words in their name."""
    words = set(part.split())
    named = {name: p for name, p in model.named_parameters() if words & set(name.split("."))}
    return sum(p.numel() for p in named.values())


TURNED = {"none": "no pair is turned", "one": "one pair is turned", "all": "all pairs are turned"}


class Rope(Explorer):
    """Chapter 7: rotary positions turn pairs of numbers; only the distance counts."""

    title = "Rotary positions"
    invites = (
        "you turn one pair, then all, and move two positions: their score follows the distance."
    )
    family = "llama"
    needs = ("tiny",)
    reads = "tiny"

    explorer = named("rope")
    prompt = text(CAT_PROMPT)
    layer = whole(0, 0, 63)
    head = whole(0, 0, 63)
    query = whole(5, 0, 63)
    key = whole(1, 0, 63)
    query_at = whole(5, 0, 63)
    key_at = whole(1, 0, 63)
    turned = choice("all", ("none", "one", "all"))
    pair = whole(0, 0, 63)

    def _told(self) -> list[str]:
        model, words = self._model_of("tiny"), self.prompt.split()
        c, seen = model.config, trace(model, self._ids(self.prompt))
        layer, head = min(self.layer, c.n_layers - 1), min(self.head, c.n_heads - 1)
        query, key = (min(place, len(words) - 1) for place in (self.query, self.key))
        q = seen[f"layers.{layer}.q"][head, query]
        k = seen[f"layers.{layer}.k"][head * c.kv_heads // c.n_heads, key]
        rows = [
            [str(at), str(key_at), told(self._score(q, k, at, key_at, c.rope_theta), 4)]
            for at, key_at in ((self.query_at + n, self.key_at + n) for n in (0, 1, 10))
        ]
        pair = min(self.pair, c.head_dim // 2 - 1)
        speed = c.rope_theta ** (-2 * pair / c.head_dim)
        return [
            f"Layer {layer}, head {head}: query of {words[query]} and key of {words[key]} in "
            f"“{self._said}”, turned to places {self.query_at} and {self.key_at} "
            f"({TURNED[self.turned]}), and both moved on together.",
            table(["query at", "key at", "q′ · k′ / √d"], rows),
            f"Each of the {c.head_dim // 2} pairs turns at its own speed; pair {pair} by "
            f"{told(speed, 4)} radians a position.",
        ]

    def _score(self, q: Tensor, k: Tensor, at: int, key_at: int, theta: float) -> float:
        """Return the score of a query and a key, turned to two places as the state says."""
        turns = rotary_table(len(q), max(at, key_at) + 1, theta)
        chosen = torch.arange(len(q) // 2) == min(self.pair, len(q) // 2 - 1)
        still = {"none": torch.ones_like(chosen), "one": ~chosen, "all": torch.zeros_like(chosen)}
        turns = torch.where(still[self.turned], torch.ones_like(turns), turns)
        turned = (rotate(x[None], turns[n : n + 1])[0] for x, n in ((q, at), (k, key_at)))
        return (next(turned) @ next(turned)).item() / math.sqrt(len(q))


class Matmul(Explorer):
    """Chapter 7: any product in a model, cell by cell."""

    title = "A product, cell by cell"
    invites = "you pick any cell of a product: its row and column light up and the sum builds."
    family = "llama"
    needs = ("corpus", "groot", "tiny")

    ALL = ("q", "k", "v", "scores", "context")  # of both models
    PRODUCTS = {
        "groot": (*ALL, "ffn_hidden", "ffn_out", "logits"),
        "tiny": (*ALL, "attention_out", "ffn_gate", "ffn_up", "ffn_out", "logits"),
    }

    explorer = named("matmul")
    which = choice("groot", ("groot", "tiny"))
    prompt = text(GROOT_PROMPT)
    product = choice("scores", tuple(dict.fromkeys(PRODUCTS["groot"] + PRODUCTS["tiny"])))
    layer = whole(0, 0, 63)
    head = whole(0, 0, 63)
    row = whole(2, 0, 10_000)
    column = whole(1, 0, 10_000)
    terms = whole(3, 0, 10_000)  # how many of a cell's are added

    def __init__(self, model=None, vocabulary: Vocabulary | None = None, **state) -> None:
        if state.get("which") == "tiny":
            state.setdefault("prompt", CAT_PROMPT)
        super().__init__(model, vocabulary, **state)

    @property
    def reads(self) -> str:
        """The part whose model reads the prompt."""
        return self.which

    @property
    def _product(self) -> str:
        """The product shown: the scores, where the model has none of the name that was chosen."""
        return self.product if self.product in self.PRODUCTS[self.which] else "scores"

    def _factors(self) -> tuple[Tensor, Tensor, Tensor | None, float]:
        """Return left and right factor, what is added to each row, and what all is divided by."""
        model = self._model_of(self.which)
        seen = trace(model, self._ids(self.prompt))
        return (self._of_groot if self.which == "groot" else self._of_tiny)(model, seen)

    def _of_groot(self, model, seen: dict[str, Tensor]):
        block, attn = model.transformer, model.transformer.attn
        if self._product == "scores":
            return seen["q"], seen["k"].T, None, math.sqrt(seen["q"].shape[-1])
        if self._product == "context":
            return seen["attention"], seen["v"], None, 1
        left, linear = {
            "q": ("h0", attn.q),
            "k": ("h0", attn.k),
            "v": ("h0", attn.v),
            "ffn_hidden": ("n1", block.ffn[0]),
            "ffn_out": ("ffn_activation", block.ffn[2]),
            "logits": ("h_out", model.head),
        }[self._product]
        return seen[left], linear.weight.detach().T, linear.bias.detach(), 1

    def _of_tiny(self, model, seen: dict[str, Tensor]):
        c = model.config
        layer, head = min(self.layer, c.n_layers - 1), min(self.head, c.n_heads - 1)
        shared = head * c.kv_heads // c.n_heads  # the key/value head that this head reads
        at, block = f"layers.{layer}.", model.layers[layer]
        attention, ffn = block.attention, block.feed_forward
        if self._product == "scores":
            keys = seen[f"{at}k_rotated"][shared].T
            return seen[f"{at}q_rotated"][head], keys, None, math.sqrt(c.head_dim)
        if self._product == "context":
            return seen[f"{at}attention"][head], seen[f"{at}v"][shared], None, 1
        left, linear = {
            "q": (f"{at}attention_norm", attention.wq),
            "k": (f"{at}attention_norm", attention.wk),
            "v": (f"{at}attention_norm", attention.wv),
            "attention_out": (f"{at}context", attention.wo),
            "ffn_gate": (f"{at}ffn_norm", ffn.w_gate),
            "ffn_up": (f"{at}ffn_norm", ffn.w_up),
            "ffn_out": (f"{at}ffn_hidden", ffn.w_down),
            "logits": ("h_out", model.output),
        }[self._product]
        return seen[left], linear.weight.detach().T, None, 1

    def _told(self) -> list[str]:
        left, right, added, divided = self._factors()
        row, column = min(self.row, len(left) - 1), min(self.column, right.shape[1] - 1)
        terms = list(zip(left[row].tolist(), right[:, column].tolist(), strict=True))
        total = sum(a * b for a, b in terms)
        rest = f"; the first {MOST_TERMS} are shown" if len(terms) > MOST_TERMS else ""
        result = f"The sum is {told(total, 4)}"
        if added is not None:
            total += added[column].item()
            result += f", with the bias {told(added[column].item(), 4)} it is {told(total, 4)}"
        if divided != 1:
            result += f", divided by {told(divided, 4)} it is {told(total / divided, 4)}"
        return [
            f"{self._product} of “{self._said}” is a product: {list(left.shape)} times "
            f"{list(right.shape)}. Row {row} meets column {column} in {len(terms)} terms{rest}.",
            table(
                ["", "row", "column", "product"],
                [
                    [str(i), told(a), told(b), told(a * b)]
                    for i, (a, b) in enumerate(terms[:MOST_TERMS])
                ],
            ),
            f"{result}.",
        ]


class KvCache(Explorer):
    """Chapter 8: two lanes write the same text, one anew each time, one with a cache."""

    title = "With a cache and without"
    invites = (
        "you let both lanes write, count and time them on your machine, feed the prompt in chunks, "
        "and switch on a classic fault to see the lanes part."
    )
    family = "llama"
    needs = ("tiny",)
    reads = "tiny"

    explorer = named("kv-cache")
    prompt = text("the cat sat")
    new_tokens = whole(6, 1, 64)
    step = whole(0, 0, 128)
    chunk = whole(0, 0, 64)  # 0: the whole prompt at once
    fault = choice("none", ("none", "position 0", "first rows", "no mask"))

    def _told(self) -> list[str]:
        model, ids = self._model_of("tiny"), self._ids(self.prompt)
        c = model.config
        count = min(self.new_tokens, c.max_seq_len - len(ids) + 1)
        cached, plain = (generate(model, ids, count, use_cache=use) for use in (True, False))
        rows = []
        for n, token in enumerate(plain.tolist()[len(ids) :]):
            length = len(ids) + n
            step = self._prefill(c, len(ids)) if n == 0 else c.multiplications(1, past=length - 1)
            cost = [c.multiplications(length), step, c.kv_cache_values(length)]
            rows.append([self.vocabulary.words[token], *(f"{number:,}" for number in cost)])
        same = "the same" if torch.equal(cached, plain) else "another text"
        fed = f"in chunks of {self.chunk}" if self.chunk else "at once"
        fault = (
            f" The fault “{self.fault}” is on in the live one only." if self.fault != "none" else ""
        )
        return [
            f"The model reads “{self._said}” {fed} and writes {count} tokens. The lane that "
            f"computes all anew and the lane that keeps keys and values write {same}.{fault}",
            table(["written", "multiplications", "with cache", "numbers in cache"], rows),
        ]

    def _prefill(self, config: TransformerConfig, tokens: int) -> int:
        """Return the multiplications for reading the prompt into the cache, chunk by chunk."""
        starts = range(0, tokens, self.chunk or tokens)
        pieces = [(min(self.chunk or tokens, tokens - start), start) for start in starts]
        return sum(config.multiplications(piece, past=start) for piece, start in pieces)


class Designer(Explorer):
    """Chapter 9: a design of your own, field by field as in `config.json`."""

    title = "Design a model"
    invites = (
        "you change any field, see where the parameters go and which rule is broken, load a "
        "config.json and save one that milestones M1 and M2 accept."
    )
    family = "own"

    explorer = named("designer")
    vocab_size = whole(2_048, 0, 10**12)
    dim = whole(128, 0, 10**12)
    n_layers = whole(4, 0, 10**12)
    n_heads = whole(4, 0, 10**12)
    n_kv_heads = Int(2, min=0, max=10**12, allow_none=True).tag(sync=True, state=True)
    max_seq_len = whole(256, 0, 10**12)
    ffn_dim_multiplier = real(4.0, 0.0, 1e30)
    norm_eps = real(1e-5, 0.0, 1e30)
    rope_theta = real(10_000.0, 0.0, 1e30)
    tie_word_embeddings = flag(False)
    extra = Dict().tag(sync=True, state=True)  # further keys of the file, which are kept
    budget = whole(M1_BUDGET, 1, 10**12)  # parameters, as milestone M1 allows unless set

    @validate("n_kv_heads")
    def _check_kv_heads(self, proposal: dict) -> int:
        """Return a number: no number means as many as there are query heads."""
        return self.n_heads if proposal["value"] is None else proposal["value"]

    @property
    def config(self) -> TransformerConfig:
        """The design as a config; ValueError names the rule that it breaks."""
        return TransformerConfig(**self._fields())

    def _fields(self) -> dict[str, Any]:
        """Return the state that is part of the design."""
        return {key: value for key, value in self.state.items() if key != "budget"}

    def _told(self) -> list[str]:
        fields = [
            [field, f"{value:,}" if type(value) is int else str(value)]
            for field, value in self._fields().items()
            if field != "extra" or value
        ]
        design = ["The design, field by field:", table(["field", "value"], fields)]
        try:
            c = self.config
        except ValueError as error:
            return [*design, f"It cannot be built: {error}"]
        parts = [[part, f"{n:,}", share(n / c.num_params())] for part, n in self._ledger(c).items()]
        left = self.budget - c.num_params()
        budget = f"{left:,} below" if left >= 0 else f"{-left:,} above"
        return [
            *design,
            f"It has {c.num_params():,} parameters, {budget} the budget of {self.budget:,}:",
            table(["part", "parameters", "share"], parts),
            f"With a full window its cache takes {c.kv_cache_bytes():,} bytes, and a token "
            f"{c.flops_per_token():,} operations.",
            *self._verdicts(c),
        ]

    @staticmethod
    def _verdicts(c: TransformerConfig) -> list[str]:
        """Say whether each milestone accepts a design, in the words of its judge."""
        first, second = M1.short_of(c), M2.short_of(c)
        as_m1 = "It allows no more parameters than M1."  # for a sentence that M1 has said
        found = {"M1": first, "M2": [as_m1 if said in first else said for said in second]}
        return [
            f"Milestone {name} does not accept it yet: {' '.join(said)}"
            if said
            else f"Milestone {name} accepts this design."
            for name, said in found.items()
        ]

    @staticmethod
    def _ledger(c: TransformerConfig) -> dict[str, int]:
        """Return where the parameters of a design are."""
        keys_values = 2 * c.dim * c.kv_heads * c.head_dim
        return {
            "token embedding": c.vocab_size * c.dim,
            "attention": c.n_layers * (2 * c.dim**2 + keys_values),
            "feed-forward": c.n_layers * 3 * c.dim * c.ffn_hidden_dim,
            "norms": (2 * c.n_layers + 1) * c.dim,
            "output head": 0 if c.tie_word_embeddings else c.vocab_size * c.dim,
        }


class Reader(Explorer):
    """Chapter 10: a trained model at work, the novelist or one whose files are dropped on it."""

    title = "A trained model, at work"
    invites = (
        "you let the novelist write token by token, or a model of your own once you drop its "
        "files, and see what may come next, where every head looks and how the cache fills."
    )
    family = "own"
    needs = ("novelist",)

    LONGEST = 512  # tokens of a text
    FIRST = 10  # of the next tokens, that are told
    LOOKS = 16  # positions that attention is told for

    explorer = named("reader")
    prompt = text("The whale")
    written = whole(0, 0, LONGEST)
    temperature = real(0.8, 0.0, 2.0)
    seed = whole(0, 0, 2**31 - 1)
    layer = whole(0, 0, 63)
    query = whole(LONGEST, 0, LONGEST)  # LONGEST: the last token, whichever that is

    @property
    def _tokenizer(self) -> BytePairTokenizer:
        return tokenizer_of(self.data["novelist"])

    def _ids(self, prompt: str, reads: str | None = None) -> list[int]:
        window = self.data["novelist"]["config"]["max_seq_len"]
        return self._fitting(prompt, self._tokenizer, window)

    def _part_for(self, model) -> str:
        raise ValueError("Reader takes no model from Python: drop the model's three files on it.")

    def _told(self) -> list[str]:
        model, tokenizer, ids = self._model_of("novelist"), self._tokenizer, self._ids(self.prompt)
        seen, config = trace(model, ids), model.config
        t, layer = min(self.query, len(ids) - 1), min(self.layer, config.n_layers - 1)
        words = [_visible(tokenizer.decode([i])) for i in ids[: t + 1]]
        shares, near = self._shares(seen["logits"][t]), max(0, t + 1 - self.LOOKS)
        first = ranked(shares)[: self.FIRST]
        rows = [[_visible(tokenizer.decode([i])), share(shares[i])] for i in first]
        attention = seen[f"layers.{layer}.attention"][:, t, near : t + 1]
        heads = [f"head {head}" for head in range(len(attention))]
        held = config.kv_cache_values(len(ids))
        return [
            f"The novelist, {model.num_params():,} parameters, trained on Moby-Dick, reads "
            f"“{self._said}”. At temperature {self.temperature:g} the token after “{words[t]}”, "
            f"position {t}, is drawn from {len(shares):,}, these before all:",
            table(["next", "share"], rows),
            f"From there the heads of block {layer} look"
            f"{f', of {t + 1} tokens at the last {self.LOOKS}' if near else ' at'}:",
            grid(attention, heads, words[near:]),
            f"Its cache holds {len(ids)} of {config.max_seq_len} tokens, {held:,} numbers.",
        ]

    def _shares(self, logits: Tensor) -> Tensor:
        """Return what the next token is drawn from; at temperature 0 the likeliest has it all."""
        if self.temperature == 0:
            return F.one_hot(logits.argmax(), len(logits)).to(logits)
        return next_token_probabilities(logits, self.temperature)


def _visible(piece: str) -> str:
    """Return a piece of text with what cannot be seen made visible."""
    shown = piece.replace(" ", "␣").replace("\n", "↵")
    return "".join("�" if unicodedata.category(letter) == "Cc" else letter for letter in shown)
