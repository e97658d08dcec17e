"""Measure speed on this machine, next to peers and next to the goals.

    python tests/bench.py              everything
    python tests/bench.py decode       some, by name

`decode` compares `generate` with Hugging Face's on the same weights; `length` compares writing with
and without a cache; `train` compares training a design with Hugging Face's model; `check` takes how
long the exercises' checks need to answer; `page` compares training in JavaScript with the same in
PyTorch, and times a design of two million parameters there, alone and in its explorer; `events`
takes how long an explorer needs to answer its reader; `weight` compares a page's bytes, and when it
can be read, with the same chapter under Jupyter Book's own settings; `book` times `make book` on a
copy, cold and after a change to one chapter; `suite` times `make test`.
Repetitions take turns, so that a busy moment meets both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOAL_DECODE, GOAL_COLD, GOAL_CHAPTER, GOAL_SUITE = 2.5, 90, 20, 8 * 60  # times faster; seconds
GOAL_WEIGHT, GOAL_READABLE = 1_000_000, 1.0  # bytes; seconds
GOAL_TRAIN = 1  # times Hugging Face's tokens per second
GOAL_EVENT, GOAL_CHECK = 16, 200  # milliseconds: one frame; a check after the first
GOAL_OWN = 10  # milliseconds in which a page chooses and reads a token with a reader's own model


def in_turns(runs: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Return the median seconds of each run; they take turns, after one round of warming up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repetition in range(repetitions + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if repetition:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def sizes():
    """Return the two configs that are measured: the course's tiny one, and one of 2.2 million."""
    from glassformer.models import TransformerConfig

    tiny = TransformerConfig(8, 32, 2, 4, 2, max_seq_len=264, ffn_dim_multiplier=2.0)
    larger = TransformerConfig(4096, 128, 6, 4, 2, max_seq_len=264)
    return tiny, larger


def decode(repetitions: int, new: int = 128) -> None:
    """Compare `generate` with Hugging Face's, same weights, one sequence, greedy."""
    import torch
    from transformers.utils import logging

    from glassformer.generation import generate
    from glassformer.huggingface import to_huggingface
    from glassformer.models import Transformer

    logging.set_verbosity_error()
    prompt = torch.tensor([[1, 2, 3, 4]])
    print(f"\nDecoding {new} tokens with a cache, one thread, median of {repetitions} repetitions")
    print(f"{'parameters':>12} {'ours ms/token':>15} {'Hugging Face':>14} {'ratio':>8}   goal")
    for config in sizes():
        torch.manual_seed(0)
        model = Transformer(config).eval()
        llama = to_huggingface(model)
        runs = {
            "ours": lambda model=model: generate(model, prompt, new),
            "theirs": lambda llama=llama: llama.generate(
                prompt, max_new_tokens=new, do_sample=False
            ),
        }
        if not torch.equal(runs["ours"](), runs["theirs"]()):
            sys.exit("The two write different tokens: tests/test_parity.py says where they part.")
        took = in_turns(runs, repetitions)
        ours, theirs = took["ours"] / new * 1e3, took["theirs"] / new * 1e3
        print(
            f"{config.num_params():>12,} {ours:>15.3f} {theirs:>14.3f} {theirs / ours:>7.2f}x"
            f"   {GOAL_DECODE}x {verdict(theirs / ours >= GOAL_DECODE)}"
        )


def length(repetitions: int) -> None:
    """Compare writing with and without a cache as the text grows."""
    import torch

    from glassformer.generation import generate
    from glassformer.models import Transformer

    prompt = torch.tensor([[1, 2, 3, 4]])
    repetitions = max(1, repetitions // 4)
    print(f"\nWith and without a cache, ms per token, median of {repetitions} repetitions")
    print(f"{'parameters':>12} {'new tokens':>12} {'cached':>9} {'uncached':>10} {'ratio':>8}")
    for config in sizes():
        torch.manual_seed(0)
        model = Transformer(config).eval()
        for new in (16, 32, 64, 128, 256):
            runs = {
                use_cache: lambda new=new, use_cache=use_cache, model=model: generate(
                    model, prompt, new, use_cache=use_cache
                )
                for use_cache in (True, False)
            }
            took = {name: s / new * 1e3 for name, s in in_turns(runs, repetitions).items()}
            print(
                f"{config.num_params():>12,} {new:>12} {took[True]:>9.3f} {took[False]:>10.3f}"
                f" {took[False] / took[True]:>7.2f}x"
            )


def train(repetitions: int) -> None:
    """Compare training steps with Hugging Face's model: same weights, batches and optimiser."""
    import torch

    from glassformer.huggingface import to_huggingface
    from glassformer.models import Transformer, TransformerConfig
    from glassformer.models.fused import fuse
    from glassformer.pretraining import Recipe

    config = TransformerConfig(2048, 160, 6, 4, 1, max_seq_len=256, tie_word_embeddings=True)
    B, T = Recipe().batch(config.max_seq_len)
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Transformer(config)
    llama = to_huggingface(model).train()
    runs = {
        "ours": training_step(model.parameters(), fuse(model), B, T),
        "theirs": training_step(
            llama.parameters(), lambda ids: llama(input_ids=ids, use_cache=False).logits, B, T
        ),
    }
    took = in_turns(runs, repetitions)
    peak, flops = matrix_peak(), 3 * 2 * B * config.multiplications(T)  # back costs twice forward
    torch.set_num_threads(1)
    print(
        f"\nTraining {config.num_params():,} parameters, {B} x {T} tokens a step, {threads} threads"
    )
    for name, seconds in took.items():
        share = flops / seconds / peak
        print(
            f"{name:>8} {B * T / seconds:>8,.0f} tokens/s, {share:.0%} of {peak / 1e9:,.0f} GFLOP/s"
        )
    ratio = took["theirs"] / took["ours"]
    print(f"{ratio:>8.2f} times theirs   goal {GOAL_TRAIN} {verdict(ratio >= GOAL_TRAIN)}")


def training_step(parameters, logits_of: Callable, B: int, T: int) -> Callable[[], float]:
    """Return a function that takes one step of AdamW on random tokens, as `glassformer train`."""
    import torch
    import torch.nn.functional as F

    weights = list(parameters)
    adamw = torch.optim.AdamW(weights, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    generator = torch.Generator().manual_seed(0)

    def step() -> float:
        ids = torch.randint(2048, (B, T + 1), generator=generator)
        logits = logits_of(ids[:, :-1])  # [B, T, V]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        adamw.step()
        return loss.item()

    return step


def matrix_peak(size: int = 1024) -> float:
    """Return the most operations per second that multiplying large matrices reaches here."""
    import torch

    a, b = torch.randn(size, size), torch.randn(size, size)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        torch.mm(a, b)
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds)


def check(repetitions: int) -> None:
    """Check every exercise's solution and its last mutant; the very first check stands apart."""
    from glassformer.exercises import check as checked
    from glassformer.exercises.bank import all_exercises

    def ms(exercise, variant) -> float:
        start = time.perf_counter()
        checked(exercise.name, variant.function)
        return 1e3 * (time.perf_counter() - start)

    exercises = all_exercises()
    print(f"\nA check of each of {len(exercises)} exercises, right and wrong")
    first = ms(exercises[0], exercises[0].solved)
    took = {}
    for e in exercises:
        for variant in (e.solved, e.mutants[-1]):
            ms(e, variant)
            each = [ms(e, variant) for _ in range(max(1, repetitions // 4))]
            took[f"{e.name}, {variant.name}"] = statistics.median(each)
    slowest = max(took, key=took.get)
    print(
        f"{'check':>12} {statistics.median(took.values()):>7.1f} ms, the first {first:.0f} ms, the "
        f"slowest {took[slowest]:.0f} ms ({slowest})   < {GOAL_CHECK} ms "
        f"{verdict(took[slowest] < GOAL_CHECK)}"
    )


def make(label: str, folder: Path, target: str, goal: float | None = None) -> None:
    """Print the seconds that `make target` takes in a folder, in the existing environment."""
    venv = Path(sys.prefix)
    command = ["make", "-o", str(venv / "installed"), f"VENV={venv}", target]
    start = time.perf_counter()
    run = subprocess.run(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    seconds = time.perf_counter() - start
    judged = "" if goal is None else f"   < {goal} s {verdict(seconds < goal)}"
    if run.returncode:
        lines = run.stdout.splitlines()
        told = [line for line in lines if re.search(r"WARNING|ERROR|rror:", line)] or lines
        print("\n".join(told[-20:]))
        judged = f"   it FAILED, see above; run `make {target}`"
    print(f"{label:>40} {seconds:>7.1f} s{judged}", flush=True)


def copy_sources(to: Path) -> None:
    """Copy what git knows or would know into a folder: no build, no environment."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def execution_seconds(folder: Path) -> dict[str, float]:
    """Return how long each chapter of a built book took to execute, the slowest first."""
    from jupyter_cache import get_cache

    records = get_cache(folder / "_build" / ".jupyter_cache").list_cache_records()
    seconds = {Path(r.uri).name: (r.data or {}).get("execution_seconds", 0.0) for r in records}
    chapters = {name: s for name, s in seconds.items() if name.endswith(".ipynb")}
    return dict(sorted(chapters.items(), key=lambda item: -item[1]))


def change(chapter: Path) -> None:
    """Add a comment to a chapter's first code cell, so that it must be executed again."""
    notebook = json.loads(chapter.read_text(encoding="utf-8"))
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    cell["source"] = [*cell["source"], "\n# changed"]
    chapter.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def book(repetitions: int) -> None:
    """Time `make book` on a copy of the sources: cold, after one chapter changed, unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy_sources(copy)
        print("\nBuilding the book, in the existing environment")
        make("cold", copy, "book", GOAL_COLD)
        took = execution_seconds(copy)
        print("of which executing: " + ", ".join(f"{name} {s:.1f}" for name, s in took.items()))
        slowest = next(iter(took))
        change(copy / "book" / slowest)
        make(f"{slowest} changed", copy, "book", GOAL_CHAPTER)
        make("nothing changed", copy, "book")


def page(repetitions: int) -> None:
    """Compare BabyGroot's published training in JavaScript and in PyTorch; time a traced pass."""
    from test_engine import EXPLORERS, GOAL, Fixtures, node, write_training

    repetitions = max(1, repetitions // 5)
    print(f"\nThe engine of the explorers, in Node, median of {repetitions} repetitions")
    pytorch, page, forward = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repetitions):
            write_training(Fixtures(Path(folder)))
            pytorch.append(json.loads((Path(folder) / "training.json").read_text())["seconds"])
            took = json.loads(node(EXPLORERS / "test" / "bench.js", fixtures=Path(folder)).stdout)
            page.append(took["training"] / 1e3)
            forward.append(took["forward"])
    theirs, ours, ms = map(statistics.median, (pytorch, page, forward))
    print(
        f"{'500 epochs':>12} {ours:>7.2f} s, PyTorch {theirs:.2f} s: {theirs / ours:.1f}x"
        f"   {GOAL}x {verdict(theirs / ours >= GOAL)}"
    )
    print(
        f"{'traced pass':>12} {ms:>7.3f} ms of the tiny model, 16 tokens   < 1 ms {verdict(ms < 1)}"
    )
    own_model()


def own_model() -> None:
    """Time a design of two million parameters: in JavaScript alone, then shown in Chromium."""
    from test_engine import EXPLORERS, LARGEST, Fixtures, node, write_trained

    with tempfile.TemporaryDirectory() as folder:
        write_trained(Fixtures(Path(folder)))
        run = node(EXPLORERS / "test" / "bench_own.js", fixtures=Path(folder))
        pace, steps = shown_steps(Path(folder))
    took, ms = json.loads(run.stdout), statistics.median(steps)
    print(
        f"{'own model':>12} {took['decode']:>7.2f} ms a token, {LARGEST.num_params():,} parameters"
        f", fastest {took['fastest']:.2f}; files {took['opening']:.0f}, 64 tokens read in "
        f"{took['prefill']:.0f} ms"
    )
    met = verdict(pace < GOAL_OWN)
    print(f"{'in Chromium':>12} {pace:>7.2f} ms a token   < {GOAL_OWN} ms {met}")
    print(
        f"{'shown':>12} {ms:>7.2f} ms a token with all that its explorer shows of it, fastest "
        f"{min(steps):.2f}   < {GOAL_EVENT} ms {verdict(ms < GOAL_EVENT)}"
    )


STEPS = """async (part, steps) => {
  const step = [...part.querySelectorAll("button")].find((b) => b.textContent === "Step");
  for (let n = 0; n < steps; n++) {
    step.click();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
}"""


def shown_steps(folder: Path, rounds: int = 12, steps: int = 15) -> tuple[float, list[float]]:
    """Return the milliseconds of a token in a page: of the model alone, and with all shown."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]
    from browsing import FLAGS, served
    from instrument import write_page
    from playwright.sync_api import sync_playwright
    from test_reader import FILES, SCRIPTS

    from glassformer.chromium import find_chromium
    from glassformer.explorers import Reader

    write_page(folder / "reader.html", Reader(), SCRIPTS, 760)
    files = [folder / "trained_0" / FILES[0], folder / "trained_0" / FILES[1], folder / FILES[2]]
    took = []
    with sync_playwright() as playwright, served(folder) as address:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        page = browser.new_page()
        page.goto(f"{address}/reader.html")
        part, session = page.locator("#explorer-reader"), page.context.new_cdp_session(page)
        part.locator("input[type=file]").set_input_files(files)
        part.get_by_text("Your model", exact=True).wait_for()
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        for _ in range(rounds):
            before = spent(session)
            part.evaluate(STEPS, steps)
            took.append((spent(session) - before) / steps)
        pace = float(part.locator(".gfx-rd-pace").inner_text().partition(" ms")[0])
        browser.close()
    return pace, took[2:]  # the first ones warm up


def spent(session) -> float:
    """Return the milliseconds that a page's thread has worked, whatever else the machine does."""
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return 1e3 * sum(metrics[f"{work}Duration"] for work in ("Script", "Layout", "RecalcStyle"))


FRAMES = """(() => {
  const ask = requestAnimationFrame, wanted = new Set();
  let held = false, last = 0;
  requestAnimationFrame = (work) => {
    const id = ++last;
    const next = (time) => {
      if (!wanted.has(id)) return;
      if (held) return void ask(next);
      wanted.delete(id);
      work(time);
    };
    wanted.add(id);
    ask(next);
    return id;
  };
  cancelAnimationFrame = (id) => wanted.delete(id);
  holdFrames = (on) => (held = on);
})()"""


def events(repetitions: int) -> None:
    """Use each explorer at random; print how long its page works from an event to the repaint.

    What a page does by itself between two frames, such as training, goes on in the frame of an
    event alone: it counts there, and not by how long the measuring takes.
    """
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]
    from browsing import FLAGS, served, watched
    from playwright.sync_api import sync_playwright
    from test_explorers_together import MONKEY, PLACES, explorer, monkey

    from conftest import built_site
    from glassformer.chromium import find_chromium

    steps = 5 * repetitions
    answer = f"holdFrames(false); await ({MONKEY})(part, given); holdFrames(true);"
    print(f"\nFrom an event to the repainted explorer, {steps} events each, in Chromium")
    with sync_playwright() as playwright, served(built_site()) as address:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        for page_name, name in PLACES:
            with watched(browser, f"{address}/", mathematics=False) as page:
                page.add_init_script(FRAMES)
                page.goto(f"{address}/{page_name}")
                part, session = explorer(page, name), page.context.new_cdp_session(page)
                session.send("Performance.enable", {"timeDomain": "threadTicks"})
                monkey(part, 20)
                took = []
                for seed in range(steps):
                    before = spent(session)
                    part.evaluate(f"async (part, given) => {{ {answer} }}", [1, seed])
                    took.append(spent(session) - before)
                page.evaluate("holdFrames(false)")
            p50, p95 = statistics.median(took), sorted(took)[int(0.95 * len(took))]
            print(
                f"{name:>12} {p50:>7.1f} ms, 95th percentile {p95:>5.1f} ms   "
                f"< {GOAL_EVENT} ms {verdict(p95 < GOAL_EVENT)}",
                flush=True,
            )
        browser.close()


def weight(repetitions: int) -> None:
    """Weigh the heaviest chapter and one in the middle, and time them from disk, beside stock."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]
    from playwright.sync_api import sync_playwright

    from conftest import built_site
    from weighing import Packages, stock_site, widgets_weight

    site, repetitions = built_site(), max(3, repetitions // 3)
    by_size = sorted(site.glob("book/[0-9]*.html"), key=lambda page: page.stat().st_size)
    chosen = [by_size[-1].stem, by_size[len(by_size) // 2].stem]
    print("\nA page's bytes as they travel, compressed, its mathematics drawn and explorers alive,")
    print(f"and its first words from disk, browser just started, median of {repetitions} loads.")
    print("Stock: Jupyter Book's own settings, what it asks of CDNs from npm, answered at once.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        stock = stock_site(Path(folder), [ROOT / f"book/{name}.ipynb" for name in chosen])
        packages = Packages(Path(folder))
        for name in chosen:
            sites = {"ours": site, "stock": stock}
            compare_pages(playwright, f"book/{name}.html", sites, packages, repetitions)
        more = widgets_weight(packages)
    print(
        f"Stock shows explorers as words; require.js and widgets' manager would add {more:,} bytes."
    )


def compare_pages(
    playwright, name: str, sites: dict[str, Path], packages, repetitions: int
) -> None:
    """Print what one page weighs on each site, and when it can be read; the sites take turns."""
    from weighing import seconds_until_readable, weigh

    weighed = {label: weigh(playwright, site, name, packages) for label, site in sites.items()}
    took = {label: [] for label in sites}
    for _ in range(repetitions):
        for label, site in sites.items():
            took[label].append(seconds_until_readable(playwright, site / name, packages))
    print(f"{name:>26} {'bytes':>11} {'of CDNs':>11} {'files':>6} {'readable':>9}")
    for label, found in weighed.items():
        seconds = statistics.median(took[label])
        goals = f"   < {GOAL_WEIGHT / 1e6:.0f} MB {verdict(found.total < GOAL_WEIGHT)}"
        goals += f", < {GOAL_READABLE:.0f} s {verdict(seconds < GOAL_READABLE)}"
        print(
            f"{label:>26} {found.total:>11,} {sum(found.foreign.values()):>11,} "
            f"{len(found.own) + len(found.foreign):>6} {seconds:>7.2f} s"
            f"{goals if label == 'ours' else ''}"
        )
        largest = sorted((found.own | found.foreign).items(), key=lambda item: -item[1])[:4]
        shown = ", ".join(f"{url.rpartition('/')[2]} {size:,}" for url, size in largest)
        print(f"{'':>26}   of which {shown}")
        for url in found.unknown:
            print(f"{'':>26}   not counted: {url}")


def suite(repetitions: int) -> None:
    """Time the whole test suite."""
    print("\nThe whole test suite")
    make("make test", ROOT, "test", GOAL_SUITE)


def main() -> None:
    """Run the benchmarks that the command line names, or all."""
    benchmarks = {"decode": decode, "length": length, "train": train, "check": check, "page": page}
    benchmarks |= {"events": events, "weight": weight, "book": book, "suite": suite}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark", nargs="*", help=", ".join(benchmarks) + "; default: all")
    parser.add_argument("--repetitions", type=int, default=20, metavar="N")
    chosen = parser.parse_args()
    unknown = set(chosen.benchmark) - set(benchmarks)
    if unknown:
        names = ", ".join(sorted(unknown))
        parser.error(f"no benchmark is called {names}; take {', '.join(benchmarks)}")
    if chosen.repetitions < 1:
        parser.error("--repetitions must be 1 or more")
    import torch

    torch.set_num_threads(1)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(f"torch {torch.__version__}, {os.cpu_count()} processors, load {load:.1f}")
    if load > 1:
        print("Other work is running: it slows memory for all, and brings ratios closer to 1.")
    for name in chosen.benchmark or benchmarks:
        benchmarks[name](chosen.repetitions)


if __name__ == "__main__":
    main()
