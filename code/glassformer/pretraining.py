"""A design of one's own, trained: from config.json to a model that writes.

A run lives in one folder. `training.safetensors` holds all that going on needs: the weights, the
optimiser's memory, how far it is, what it has seen. It is replaced in one move, so that whatever
stops a run, a whole one is there; and since the batch of a step depends on nothing but its number,
a run that was stopped ends with the very weights of one that was not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from .bpe import BytePairTokenizer
from .checkpoints import load_model, own_tensors
from .config import TransformerConfig, alone, write_atomically
from .generation import generate
from .models import Transformer
from .models.fused import fuse
from .novel import load_novel, split_novel
from .refusals import LARGEST, need_regular, need_whole, within_memory

CONFIG, MODEL, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
STATE, HISTORY = "training.safetensors", "history.json"
PROMPT = "The whale"  # what a sample begins with
SAMPLE_TOKENS = 60


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; steps of about `tokens` tokens each."""

    steps: int = 1000
    tokens: int = 4096
    peak: float = 3e-3  # learning rate
    warmup: float = 0.05  # share of the steps in which it rises
    floor: float = 0.1  # share of the peak at which it ends
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1
    clip: float = 1.0  # norm of the gradient at most
    seed: int = 0

    def __post_init__(self) -> None:
        need_whole("steps", self.steps, most=LARGEST)
        need_whole("tokens", self.tokens, most=2**14)
        need_whole("seed", self.seed, least=0, most=2**31)

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step, from 0: a straight line up, then half a cosine down."""
        rising = max(1, round(self.warmup * self.steps))
        if step < rising:
            return self.peak * (step + 1) / rising
        done = (step - rising) / max(1, self.steps - rising)
        return self.peak * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2)

    def batch(self, window: int) -> tuple[int, int]:
        """Return the sequences B and their tokens T of a step, for a model with this window."""
        T = min(window, self.tokens)
        return self.tokens // T, T

    @property
    def evaluate_every(self) -> int:
        """Steps from one look at the text held out to the next."""
        return max(1, self.steps // 10)

    @property
    def save_every(self) -> int:
        """Steps from one checkpoint to the next."""
        return max(1, min(50, self.steps // 20))


@dataclass
class Corpus:
    """The novel as a tokenizer's ids: what is trained on [N], and what is held out [M]."""

    tokenizer: BytePairTokenizer
    train: Tensor
    held_out: Tensor
    letters: int  # in the text held out

    @classmethod
    def of(cls, vocab_size: int) -> Corpus:
        """Return the novel with a tokenizer of at most vocab_size pieces, made from it."""
        text, held_out = split_novel(load_novel())
        tokenizer = BytePairTokenizer.train(text, vocab_size)
        ids = (torch.tensor(tokenizer.encode(part)) for part in (text, held_out))
        return cls(tokenizer, *ids, letters=len(held_out))

    def batch(self, recipe: Recipe, step: int, window: int) -> tuple[Tensor, Tensor]:
        """Return inputs and targets [B, T] of a step: places in the text drawn from its number."""
        B, T = recipe.batch(window)
        generator = torch.Generator().manual_seed(recipe.seed * 2**31 + step)
        starts = torch.randint(len(self.train) - T, (B,), generator=generator)
        windows = torch.stack([self.train[i : i + T + 1] for i in starts.tolist()])  # [B, T + 1]
        return windows[:, :-1], windows[:, 1:]


@dataclass
class Progress:
    """Where a run is; `history` has an entry for each look at the text held out."""

    step: int = 0
    summed: float = 0.0  # losses since the last look
    history: list[dict] = field(default_factory=list)


class Run:
    """A model being trained in a folder."""

    def __init__(
        self, config: TransformerConfig, folder: Path, recipe: Recipe, corpus: Corpus
    ) -> None:
        self.config, self.folder, self.recipe, self.corpus = config, folder, recipe, corpus
        self.progress = Progress()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            self.model = fuse(Transformer(config)).to(self.device)
        matrices = [p for p in self.model.parameters() if p.dim() > 1]
        gains = [p for p in self.model.parameters() if p.dim() == 1]  # of the norms: not decayed
        groups = [{"params": matrices}, {"params": gains, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(
            groups, lr=0.0, betas=recipe.betas, weight_decay=recipe.weight_decay, fused=True
        )

    @cached_property
    def identity(self) -> dict:
        """What makes this run this run, as JSON gives it back."""
        text = hashlib.sha256(load_novel().encode()).hexdigest()
        about = {"config": _design(self.config), "recipe": asdict(self.recipe), "text": text}
        return json.loads(json.dumps(about))

    @property
    def tokens_per_step(self) -> int:
        """Tokens that each step predicts, B · T."""
        return math.prod(self.recipe.batch(self.config.max_seq_len))

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.progress.step >= self.recipe.steps

    @within_memory
    def advance(self) -> float:
        """Take one step and return its loss, in nats per token."""
        x, y = self.corpus.batch(self.recipe, self.progress.step, self.config.max_seq_len)
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.learning_rate(self.progress.step)
        loss = self._loss(x, y)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimiser.step()
        self.progress.step += 1
        self.progress.summed += loss.item()
        return loss.item()

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        logits = self.model(x.to(self.device))  # [B, T, V]
        return F.cross_entropy(logits.flatten(0, 1), y.to(self.device).flatten())

    @within_memory
    def look(self) -> dict:
        """Evaluate, write a sample, and add both to the history."""
        every = (self.progress.step - 1) % self.recipe.evaluate_every + 1
        nats = self.held_out_loss()
        entry = {
            "step": self.progress.step,
            "train_loss": self.progress.summed / every,
            "held_out_loss": nats,
            "bits_per_letter": nats * len(self.corpus.held_out) / self.corpus.letters / math.log(2),
            "sample": self.sample(),
        }
        self.progress.history.append(entry)
        self.progress.summed = 0.0
        return entry

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """Return the mean loss over the text held out, window by window, in nats per token."""
        ids = self.corpus.held_out
        _, T = self.recipe.batch(min(self.config.max_seq_len, len(ids) - 1))
        summed, count = 0.0, 0
        for rows in _windows(ids, T).split(max(1, self.recipe.tokens // T)):  # [B, T + 1]
            summed += self._loss(rows[:, :-1], rows[:, 1:]).item() * len(rows)
            count += len(rows)
        return summed / count

    def sample(self) -> str:
        """Return what the model writes after the prompt, drawn the same way each time."""
        ids = self.corpus.tokenizer.encode(PROMPT)[-self.config.max_seq_len :]
        room = self.config.max_seq_len - len(ids) + 1
        generator = torch.Generator(self.device).manual_seed(self.recipe.seed)
        ids = torch.tensor(ids, device=self.device)
        new = min(SAMPLE_TOKENS, room)
        text = generate(self.model, ids, new, temperature=0.8, top_k=50, generator=generator)
        return self.corpus.tokenizer.decode(text.tolist())

    def save(self) -> None:
        """Write the whole state in one move; ValueError if the disk is full."""
        tensors = {f"weights.{k}": v for k, v in own_tensors(self.model).items()}
        for i, memory in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{i}.{k}": v for k, v in memory.items()}
        tensors = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
        about = {**self.identity, "progress": asdict(self.progress)}
        about |= {"threads": torch.get_num_threads()}
        about |= {"digest": _digest(tensors, about)}
        content = save(tensors, metadata={"run": json.dumps(about)})
        write_atomically(self.folder / STATE, content)

    def finish(self) -> None:
        """Write model.safetensors, tokenizer.json and history.json, and config.json if it lacks."""
        tokenizer = self.folder / TOKENIZER
        self.corpus.tokenizer.save(tokenizer)
        if not (self.folder / CONFIG).exists():
            self.config.to_json(self.folder / CONFIG)
        about = {"config": _design(self.config), "tokenizer": _hash(tokenizer)}
        content = save(own_tensors(self.model), metadata={"run": json.dumps(about)})
        write_atomically(self.folder / MODEL, content)
        history = json.dumps(self.progress.history, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.folder / HISTORY, history.encode())

    def resume(self) -> None:
        """Go on from what the folder holds; ValueError if it is damaged or another run's."""
        path = self.folder / STATE
        tensors, about = _read_state(path)
        if other := _difference(about, self.identity):
            raise ValueError(
                f"{path} belongs to a run with {other}: change it back, begin anew with --fresh, "
                "or train in another folder."
            )
        self._fill(tensors)
        self.progress = Progress(**about["progress"])
        torch.set_num_threads(about["threads"])  # another number would round differently

    def _fill(self, tensors: dict[str, Tensor]) -> None:
        """Copy weights and the optimiser's memory into memory of their own."""
        weights = {k.removeprefix("weights."): v for k, v in tensors.items() if k[:8] == "weights."}
        self.model.load_state_dict(weights, strict=False)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            kind, *place = name.split(".", 2)
            if kind == "optimiser":
                state.setdefault(int(place[0]), {})[place[1]] = tensor.clone()
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})


def _windows(ids: Tensor, T: int) -> Tensor:
    """Return ids [M] as rows [R, T + 1] that share their ends; what fills no row is left out."""
    return ids.unfold(0, T + 1, T)


def _difference(other: dict, mine: dict) -> str:
    """Return in words the first thing in which another run differs from mine; empty if in none."""
    for part in ("config", "recipe"):
        if changed := _changed(other.get(part, {}), mine[part]):
            return changed
    return "" if other.get("text") == mine["text"] else "another text"


def _changed(one: dict, other: dict) -> str:
    """Return in words the first value in which one differs from the other; empty if in none."""
    for name in (*other, *one):
        if one.get(name) != other.get(name):
            return f"{name} = {one.get(name)}, not {other.get(name)}"
    return ""


def _design(config: TransformerConfig) -> dict:
    """Return what a config says of its model, and nothing else that its file may hold."""
    said = {name: value for name, value in asdict(config).items() if name != "extra"}
    return said | {"n_kv_heads": config.kv_heads}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(tensors: dict[str, Tensor], about: dict) -> str:
    """Return the hash of what is said of a run, and of its tensors' names and bytes."""
    told = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        told.update(name.encode())
        told.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return told.hexdigest()


def _read_state(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Return a checkpoint's tensors and what it says of itself; ValueError if it is damaged."""
    need_regular(path, "read")
    try:
        path.open("rb").close()  # whatever forbids that, safetensors calls the file missing
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {})["run"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except (SafetensorError, ValueError, KeyError):
        about, tensors = {}, {}
    if not isinstance(about, dict) or about.pop("digest", None) != _digest(tensors, about):
        raise ValueError(
            f"{path} is damaged: its contents do not match what was written. "
            "Begin anew with --fresh, or put a copy of the file in its place."
        )
    return tensors, about


def open_run(config: TransformerConfig, folder: Path, recipe: Recipe, fresh: bool = False) -> Run:
    """Return the run that a folder holds, or a new one where it holds none."""
    run = Run(config, folder, recipe, Corpus.of(config.vocab_size))
    if not fresh and (folder / STATE).exists():
        run.resume()
    return run


def train(run: Run, looked: Callable[[dict], None] = lambda entry: None) -> Iterator[float]:
    """Take a run's remaining steps and give each loss; `looked` is told each entry of the history.

    A caller that stops early, between two steps, leaves a checkpoint of just where it stopped.
    """
    recipe, progress = run.recipe, run.progress
    busy = ValueError(f"Another training is at work in {run.folder}; wait for it to end.")
    with alone(run.folder, busy):
        for unfinished in run.folder.glob(f".{STATE}.????????"):  # of a run that was killed
            unfinished.unlink()
        try:
            while not run.finished:
                loss = run.advance()
                if progress.step % recipe.evaluate_every == 0 or run.finished:
                    looked(run.look())
                if progress.step % recipe.save_every == 0 or run.finished:
                    run.save()
                yield loss
        except GeneratorExit:
            run.save()
            raise
        run.finish()


def load_trained(folder: Path) -> tuple[Transformer, BytePairTokenizer]:
    """Return the model and the tokenizer that a finished run has left; ValueError if it has not."""
    tokenizer = BytePairTokenizer.load(folder / TOKENIZER)
    model = load_model(folder)
    mine = {"config": _design(model.config), "tokenizer": _hash(folder / TOKENIZER)}
    trained = mine | _said_beside(folder / MODEL)
    if changed := _changed(mine["config"], trained["config"]):
        raise ValueError(
            f"{folder / CONFIG} was changed after training: {changed}; change it back, "
            "or train again."
        )
    if trained["tokenizer"] != mine["tokenizer"] or len(tokenizer) > model.vocab_size:
        raise ValueError(f"{folder} holds a tokenizer and a model of different runs; train again.")
    return model, tokenizer


def _said_beside(path: Path) -> dict:
    """Return what a run wrote of itself beside its weights; nothing if none did."""
    with safe_open(path, framework="pt") as file:
        told = file.metadata() or {}
    try:
        about = json.loads(told.get("run", ""))
        return about if isinstance(about["config"], dict) else {}
    except (ValueError, TypeError, KeyError):
        return {}
