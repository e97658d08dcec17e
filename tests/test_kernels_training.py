"""Training ends at the same weights under every CPU kernel, and whatever number of threads is set.

Each setting needs a process of its own, because PyTorch chooses its kernels when it starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from glassformer.checkpoints import load_baby_groot, load_tiny
from glassformer.draw_weights import _KERNELS
from glassformer.records import NOVELIST

WEIGHTS = Path(load_baby_groot.__code__.co_filename).parent / "weights"
PUBLISHED = json.loads((WEIGHTS.parent / "published.json").read_text())
ORDER = ["DEFAULT", "AVX2", "AVX512"]
SETTINGS = [(kernels, threads) for kernels in ("default", "avx2", "avx512") for threads in (1, 2)]

TRAIN = """
import json, sys, torch
from safetensors.torch import save_file
from glassformer.training import train_baby_groot, train_tiny

threads = {"asked": int(sys.argv[1])}
torch.set_num_threads(threads["asked"])
groot, history = train_baby_groot(
    progress=lambda epoch, loss: threads.setdefault("while training", torch.get_num_threads())
)
threads["afterwards"] = torch.get_num_threads()
save_file(groot.state_dict(), sys.argv[2])
tiny, steps = train_tiny()
print(json.dumps({
    "kernels": torch.backends.cpu.get_cpu_capability(),
    "threads": threads,
    "epoch_loss": history.losses,
    "step_loss": steps.losses,
    "tiny": sum(p.double().sum().item() for p in tiny.parameters()),
}))
"""


def supported(kernels: str) -> bool:
    native = torch.backends.cpu.get_cpu_capability()
    return native in ORDER and ORDER.index(kernels.upper()) <= ORDER.index(native)


def run(kernels: str, threads: int, *command: str) -> str:
    environment = os.environ | {
        "ATEN_CPU_CAPABILITY": kernels,
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
    }
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict:
    """Train under every setting that this processor has, two processes at a time."""
    folder = tmp_path_factory.mktemp("trained")

    def train(setting):
        kernels, threads = setting
        path = folder / f"{kernels}_{threads}.safetensors"
        told = json.loads(run(kernels, threads, "-c", TRAIN, str(threads), str(path)))
        return setting, told | {"weights": load_file(path)}

    with ThreadPoolExecutor(2) as two:
        return dict(two.map(train, [s for s in SETTINGS if supported(s[0])]))


@pytest.fixture(params=SETTINGS, ids=lambda s: f"{s[0]}-{s[1]}")
def trained(request, runs) -> dict:
    if request.param not in runs:
        pytest.skip(f"this processor has no {request.param[0]} kernels")
    return runs[request.param]


def distance(found: dict, expected: dict) -> float:
    """Return the largest difference between weights of the same names."""
    assert found.keys() == expected.keys()
    return max((found[name] - expected[name]).abs().max().item() for name in expected)


def test_kernels_and_threads_were_those_asked_for(runs):
    for (kernels, threads), told in runs.items():
        assert told["kernels"] == kernels.upper()
        expected = {"asked": threads, "while training": 1, "afterwards": threads}
        assert told["threads"] == expected, "training takes one thread and gives back the caller's"


def test_baby_groot_ends_at_the_shipped_weights(trained):
    assert distance(trained["weights"], load_baby_groot().state_dict()) < 1e-8


def test_baby_groot_ends_at_the_weights_found(trained):
    head = trained["weights"]["head.weight"]
    assert head[2, :3].tolist() == pytest.approx(
        [-0.80331188727, 0.19970009161, 0.10863977126], abs=1e-8
    )
    total = sum(tensor.sum().item() for tensor in trained["weights"].values())
    assert total == pytest.approx(22.6319829222, abs=1e-8)


def test_both_logs_are_the_published_ones(trained):
    for log, losses in (("babygroot", "epoch_loss"), ("tiny_llama", "step_loss")):
        for step, loss in PUBLISHED[log][losses].items():
            assert round(trained[losses][int(step)], 4) == loss, f"{losses} {step}"


def test_the_tiny_model_ends_near_the_shipped_weights(trained):
    shipped = sum(p.double().sum().item() for p in load_tiny().parameters())
    assert trained["tiny"] == pytest.approx(shipped, abs=1e-2)  # 19,104 weights in float32


def test_weights_that_differ_are_seen():
    shipped = load_baby_groot().state_dict()
    nudged = {name: tensor.clone() for name, tensor in shipped.items()}
    nudged["head.bias"][5] += 2e-8
    assert distance(nudged, shipped) > 1e-8


# The shipped files can be made again


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    """Make all four files again, as a maintainer does."""
    if not supported("avx2"):
        pytest.skip("this processor has no avx2 kernels, which the first weights need")
    folder = tmp_path_factory.mktemp("weights")
    run("default", 1, "-m", "glassformer.draw_weights", str(folder))
    return folder


def test_draw_weights_gives_the_shipped_files(drawn):
    shipped = {path.name for path in WEIGHTS.iterdir()} - {NOVELIST.name}  # trained by records.py
    assert {path.name for path in drawn.iterdir()} == shipped
    for name in ("baby_groot_initial.safetensors", "tiny_initial.safetensors"):
        assert (drawn / name).read_bytes() == (WEIGHTS / name).read_bytes(), name
    for name, near in (("baby_groot.safetensors", 1e-8), ("tiny.safetensors", 1e-4)):
        assert distance(load_file(drawn / name), load_file(WEIGHTS / name)) < near, name


@pytest.mark.parametrize("name", _KERNELS)
def test_other_kernels_draw_other_first_weights(tmp_path, name):
    other = {"avx2": "default", "default": "avx2"}[_KERNELS[name]]
    if not supported(other):
        pytest.skip(f"this processor has no {other} kernels")
    run(other, 1, "-m", "glassformer.draw_weights", str(tmp_path), name)
    (file,) = tmp_path.iterdir()
    assert file.read_bytes() != (WEIGHTS / file.name).read_bytes()
    assert distance(load_file(file), load_file(WEIGHTS / file.name)) < 1e-5


def test_draw_weights_tells_how_it_is_called():
    done = subprocess.run(
        [sys.executable, "-m", "glassformer.draw_weights", "a", "folder"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr == (
        "Usage: python -m glassformer.draw_weights FOLDER\n"
    )
