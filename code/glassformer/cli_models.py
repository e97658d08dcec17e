"""The command line's part for models of one's own: `train`, `generate` and `export`."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from .milestones import WORKSPACE

if TYPE_CHECKING:
    from .pretraining import Run

Folder = Annotated[Path, typer.Argument(help="The model's folder, which holds its config.json.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**31, help="Whatever is drawn comes from this number.")
]


def refuse(reason: object) -> NoReturn:
    """Say in one line why there is nothing to do, and end."""
    Console(stderr=True).print(Text(str(reason)), soft_wrap=True)
    raise typer.Exit(2)


def train(
    folder: Folder = WORKSPACE,
    steps: Annotated[int, typer.Option(min=1, help="Steps of about 4,096 tokens each.")] = 1000,
    seed: Seed = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew: what was trained before is lost.")
    ] = False,
) -> None:
    """Train the design in a folder's config.json on the novel that comes with the course.

    Run it again after whatever stopped it: it goes on, and ends with the same weights. A thousand
    steps of two million parameters take some ten minutes on two cores.
    """
    from . import pretraining
    from .config import TransformerConfig

    _print_any_letter()
    console, path = Console(), folder / "config.json"
    if not os.path.lexists(path):
        refuse(f"There is no file {path}; chapter 9 shows how to write one.")
    try:
        config = TransformerConfig.from_json(path)
        run = pretraining.open_run(config, folder, pretraining.Recipe(steps, seed=seed), fresh)
        already = run.finished
        _say(console, _introduction(run))
        with (
            _stoppable() as stopped,
            _shown(console, run) as (told, looked),
            closing(pretraining.train(run, looked)) as losses,  # closed, it saves
        ):
            for loss in losses:
                told(loss)
                if stopped() and not run.finished:
                    break
    except ValueError as cannot:
        refuse(cannot)
    if not run.finished:
        _say(console, "Stopped; the same command goes on from here.")
        raise typer.Exit(130)
    told = "" if already else "Trained. "
    _say(console, f"{told}Let it write: {_writing(folder)}")


def generate(
    prompt: Annotated[str, typer.Argument(help="What the text begins with.")],
    folder: Annotated[Path, typer.Option(help="The folder of a trained model.")] = WORKSPACE,
    tokens: Annotated[int, typer.Option(min=1, help="How many tokens to write.")] = 200,
    temperature: Annotated[
        float, typer.Option(min=0, help="0 takes the likeliest token; larger is bolder.")
    ] = 0.8,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw from the likeliest k alone.")] = 50,
    top_p: Annotated[
        float | None, typer.Option(help="Draw from the fewest that reach this probability.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Let a trained model go on from a prompt, token by token."""
    import torch

    from .generation import stream
    from .pretraining import load_trained

    _print_any_letter()
    try:
        model, tokenizer = load_trained(folder)
        chance = torch.Generator().manual_seed(seed)
        ids = stream(model, tokenizer.encode(prompt), tokens, temperature, top_k, top_p, chance)
        pieces = tokenizer.decode_stream(ids)
        print(prompt + next(pieces, ""), end="", flush=True)
        for piece in pieces:
            print(piece, end="", flush=True)
    except ValueError as cannot:
        refuse(cannot)
    print()


def export(
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    folder: Annotated[Path, typer.Option(help="The folder of a trained model.")] = WORKSPACE,
) -> None:
    """Write a trained model and its tokenizer as a folder that transformers loads."""
    from .huggingface import export_trained

    try:
        export_trained(folder, out)
    except ValueError as cannot:
        refuse(cannot)
    _say(
        Console(), f"{out} is written: AutoModelForCausalLM.from_pretrained({str(out)!r}) loads it."
    )


def _print_any_letter() -> None:
    """Let a terminal or file of few letters, as Windows has, show `?` for those it lacks."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")


def _say(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def _introduction(run: Run) -> str:
    """Return what is trained, on what, from where."""
    corpus, done = run.corpus, run.progress.step
    pieces = len(corpus.tokenizer)
    told = f"{run.config.num_params():,} parameters, {len(corpus.train):,} tokens of Moby-Dick"
    told += f" in {pieces:,} pieces"
    if pieces < run.config.vocab_size:
        told += f"; the text has no use for the other {run.config.vocab_size - pieces:,} ids"
    if run.finished:
        return f"{told}. All {done:,} steps are done already."
    return f"{told}. Going on from step {done:,}." if done else f"{told}."


def _writing(folder: Path) -> str:
    """Return the command that lets the model in a folder write."""
    where = "" if folder == WORKSPACE else f" --folder {shlex.quote(str(folder))}"
    return f'glassformer generate "Call me"{where}'


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed: once is noted, twice ends at once."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def note(number, frame) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _shown(console: Console, run: Run) -> Iterator[tuple[Callable, Callable]]:
    """Give functions that show a loss and a look: a bar on a terminal, plain lines elsewhere."""
    start, first = time.monotonic(), run.progress.step
    columns = (
        TextColumn("step {task.completed:,}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.3f} · {task.fields[speed]:,.0f} tokens/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=run.recipe.steps, completed=first, loss=0.0, speed=0.0)

        def told(loss: float) -> None:
            step = run.progress.step
            speed = (step - first) * run.tokens_per_step / (time.monotonic() - start)
            bar.update(task, completed=step, loss=loss, speed=speed)

        yield told, lambda entry: _say(console, _line(entry, run, time.monotonic() - start))


def _line(entry: dict, run: Run, seconds: float) -> str:
    """Return a look at the text held out in words."""
    return (
        f"step {entry['step']:,} of {run.recipe.steps:,} · after {seconds:,.0f} s · "
        f"loss {entry['train_loss']:.3f}, held out {entry['held_out_loss']:.3f} nats per token, "
        f"{entry['bits_per_letter']:.3f} bits per letter\n  {entry['sample']!r}"
    )
