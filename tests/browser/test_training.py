"""The explorer of chapter 2: BabyGroot trains in the page as in PyTorch, several times faster."""

from __future__ import annotations

import re
import time

import pytest
import torch
import torch.nn.functional as F
from browsing import axe, no_sideways_scroll
from instrument import (
    SITES,
    cell,
    cells,
    copied,
    formula,
    matrix,
    numbers,
    opener,
    query,
    sentence,
    texts,
    to_number,
    told,
    twin,
)
from playwright.sync_api import expect

from glassformer.checkpoints import initial_baby_groot
from glassformer.data import GROOT_SENTENCES, entropy_floor, groot_vocabulary, prefix_pairs
from glassformer.explorers.parts import part as shipped
from glassformer.trace import trace
from glassformer.training import last_token_logits, one_thread, train_baby_groot

VOCABULARY = groot_vocabulary()
X, Y = prefix_pairs(GROOT_SENTENCES, VOCABULARY)
PUBLISHED = {line["epoch"]: line["loss"] for line in shipped("corpus")["published"]}
GOAL = 5  # times faster than PyTorch
LOG, STANDING = "Losses as logged", "The loss over all examples"


@pytest.fixture
def training(request, visit):
    return opener(request, visit, "book/02_model.html", "training")


@pytest.fixture(scope="module")
def pytorch():
    """The published run in PyTorch, with every epoch's weights."""
    return train_baby_groot(snapshot_every=1)[1]


def at(history, epoch: int):
    model = initial_baby_groot()
    model.load_state_dict(history.snapshots[epoch])
    return model


def loss_of(model) -> tuple[float, int]:
    with torch.no_grad(), one_thread():
        logits = last_token_logits(model, X)
    return F.cross_entropy(logits, Y).item(), int((logits.argmax(dim=-1) == Y).sum())


def reaches(part, epoch: int) -> None:
    """Wait until the run has come to an epoch and rests there."""
    expect(sentence(part)).to_contain_text(f"After {epoch} epoch", timeout=60_000)


def slider(part):
    return part.get_by_label("After epoch")


def go(part, epoch: int) -> None:
    slider(part).fill(str(epoch))
    reaches(part, epoch)


def fast(part) -> None:
    part.get_by_label("as fast as it goes").check()


def press(part, name: str) -> None:
    part.get_by_role("button", name=name, exact=True).click()


def weights_shown(part) -> dict[str, torch.Tensor]:
    """Return all weights of the epoch shown, from the tables behind “As a table”."""
    names = initial_baby_groot().state_dict()
    return {
        name: numbers(rows).reshape(names[name].shape)
        for name, rows in twin(part).items()
        if name in names
    }


def largest_difference(ours: dict, theirs: dict) -> float:
    assert ours.keys() == theirs.keys()
    return max((ours[name] - theirs[name]).abs().max().item() for name in theirs)


# The published run -------------------------------------------------------------------------------


@pytest.mark.parametrize("over", SITES)
def test_play_trains_to_pytorchs_weights_and_the_published_log(training, pytorch, over):
    part = training(over)
    assert told(part).startswith("After 0 epochs")
    fast(part)
    press(part, "Play")
    reaches(part, 500)
    shown = weights_shown(part)
    assert sum(weight.numel() for weight in shown.values()) == 968
    assert largest_difference(shown, pytorch.snapshots[500]) <= 1e-7
    (state,) = copied(part, "Copy all 968 weights as Python").values()
    assert largest_difference(state, pytorch.snapshots[500]) <= 1e-7
    initial_baby_groot().load_state_dict(state)
    here, published = cells(part, LOG)
    assert here == published == [f"{loss:.4f}" for loss in PUBLISHED.values()] and len(here) == 10
    logged = {int(row[0]): to_number(row[1]) for row in twin(part)["Logged loss of each epoch"]}
    for epoch, loss in enumerate(pytorch.losses):
        assert abs(logged[epoch] - loss) <= 1e-7, epoch


PLAY = """async (part) => {
  const start = performance.now();
  [...part.querySelectorAll("button")].find((b) => b.textContent === "Play").click();
  while (!part.querySelector("p[role=status]").textContent.startsWith("After 500"))
    await new Promise(requestAnimationFrame);
  return (performance.now() - start) / 1000;
}"""


def test_500_epochs_in_the_page_are_several_times_faster(training):
    """From the click to the 500th epoch on the screen, drawing included; the better of two tries.

    PyTorch, with one thread, trains right before on the same machine.
    """
    train_baby_groot(epochs=5)
    theirs, ours = [], []
    for _ in range(2):
        start = time.perf_counter()
        train_baby_groot()
        theirs.append(time.perf_counter() - start)
        part = training()
        fast(part)
        ours.append(part.evaluate(PLAY))
        times = min(theirs) / min(ours)
        print(f"PyTorch {min(theirs):.2f} s, page {min(ours):.2f} s: {times:.1f} times")
        if times >= GOAL:
            return
    pytest.fail(f"PyTorch took {min(theirs):.2f} s, the page {min(ours):.2f} s")


def test_any_epoch_can_be_looked_at_again(training, pytorch):
    part, floor = training(epoch=500), entropy_floor(X, Y)
    reaches(part, 500)
    ids = VOCABULARY.encode("<START> i am groot")
    for epoch in (499, 0, 7, 50, 250, 500):
        go(part, epoch)
        model = at(pytorch, epoch)
        loss, right = loss_of(model)
        line = cells(part, STANDING)[0]
        assert line == [str(epoch), f"{loss:.4f}", f"{loss - floor:.4f}", str(right), "968"]
        assert f"{loss:.4f}" in told(part) and f"with {right} next tokens right" in told(part)
        seen = trace(model, ids)
        torch.testing.assert_close(
            matrix(part, "attention"), seen["attention"], atol=0.00501, rtol=0
        )
        bars = part.get_by_role("list", name="What follows groot").get_by_role("listitem")
        assert bars.count() == 6
        for word, share in texts(bars, ".gfx-bar-label, .gfx-number"):
            p = seen["probabilities"][-1, VOCABULARY.encode(word)[0]].item()
            assert abs(to_number(share) - p) <= 0.000501, word
        shown = numbers(twin(part)["Probability of the next token"])[:, 0]
        torch.testing.assert_close(shown, seen["probabilities"][-1], atol=5.01e-5, rtol=0)
        assert largest_difference(weights_shown(part), pytorch.snapshots[epoch]) <= 1e-7


def test_the_epoch_after_the_published_end_and_beyond(training):
    """The burst in which the published run ends passes, if one plays on."""
    part = training(epoch=500)
    reaches(part, 500)
    high = to_number(cells(part, STANDING)[0][1])
    go(part, 520)
    assert to_number(cells(part, STANDING)[0][1]) < 0.75 < high
    fast(part)
    press(part, "Play on")
    reaches(part, 600)
    expect(part.get_by_role("button", name="Play on")).to_be_disabled()
    expect(part.get_by_role("button", name="One epoch")).to_be_disabled()


# Playing -----------------------------------------------------------------------------------------


def test_one_epoch_pause_and_play_on(training, pytorch):
    part = training()
    part.page.emulate_media(reduced_motion="no-preference")
    for epoch in (1, 2):
        press(part, "One epoch")
        reaches(part, epoch)
    assert cells(part, LOG)[0][0] == f"{pytorch.losses[0]:.4f}"
    part.get_by_label("20", exact=True).check()
    press(part, "Play on")
    expect(slider(part)).not_to_have_value("2")
    press(part, "Pause")
    epoch = int(slider(part).input_value())
    assert 2 < epoch < 400
    reaches(part, epoch)
    part.page.wait_for_timeout(300)
    assert slider(part).input_value() == str(epoch)
    fast(part)
    press(part, "Play on")
    reaches(part, 500)
    press(part, "Back to the start")
    reaches(part, 0)
    assert "500 epochs trained" in part.inner_text()


@pytest.mark.parametrize(
    ("motion", "least", "most"), [("reduce", 2, 12), ("no-preference", 20, 502)]
)
def test_who_wants_little_motion_sees_larger_jumps(training, motion, least, most):
    part = training()
    part.page.emulate_media(reduced_motion=motion)
    values = part.evaluate(
        """async (part) => {
          const seen = new Set(), slider = part.querySelector("input[type=range]");
          [...part.querySelectorAll("button")].find((b) => b.textContent === "Play").click();
          while (!part.querySelector("p[role=status]").textContent.startsWith("After 500")) {
            seen.add(slider.value);
            await new Promise(requestAnimationFrame);
          }
          return [...seen].map(Number);
        }"""
    )
    assert least <= len(values) <= most, values
    assert values == sorted(values)


def test_nothing_goes_on_after_a_reset(training):
    """No frame is asked for any more: the run that was playing is gone."""
    part = training()
    press(part, "Play")
    expect(slider(part)).not_to_have_value("0")
    press(part, "Reset")
    reaches(part, 0)
    frames = part.evaluate(
        """async () => {
          const wait = (ms) => new Promise((done) => setTimeout(done, ms));
          const ask = window.requestAnimationFrame;
          let asked = 0;
          await wait(300);
          window.requestAnimationFrame = (step) => { asked += 1; return ask(step); };
          await wait(500);
          window.requestAnimationFrame = ask;
          return asked;
        }"""
    )
    assert frames == 0
    assert slider(part).input_value() == "0" and "trained in" not in part.inner_text()
    assert query(part.page) == ""


# Other runs --------------------------------------------------------------------------------------


def test_another_seed_and_rate_train_as_in_pytorch(training):
    """Drawn weights differ from one kind of processor to another in float32's last digit."""
    part = training(epoch=20, seed=7, learning_rate=0.03)
    reaches(part, 20)
    model, history = train_baby_groot(epochs=20, seed=7, learning_rate=0.03)
    assert largest_difference(weights_shown(part), model.state_dict()) < 1e-3
    line = cells(part, STANDING)[0]
    assert abs(to_number(line[1]) - loss_of(model)[0]) < 1e-3
    assert abs(to_number(cells(part, LOG)[0][0]) - history.losses[0]) < 1e-3


def test_a_change_starts_a_new_run_beside_the_old_one(training):
    part = training(epoch=100)
    reaches(part, 100)
    before = cells(part, STANDING)[0]
    part.get_by_label("residuals").uncheck()
    expect(sentence(part)).to_contain_text("no residuals) the loss", timeout=60_000)
    now, old = cells(part, STANDING)
    assert old == before and now[0] == "100" and now[1] != before[1]
    legend = part.locator(".gfx-training-legend")
    expect(legend).to_contain_text("width 8, no residuals")
    assert part.locator(".gfx-plot polyline").count() == 2
    assert "what it read" in part.locator("fieldset", has_text="Another run").inner_text()
    part.get_by_label("Seed").fill("7")
    expect(sentence(part)).to_contain_text("After 100 epochs (seed 7", timeout=60_000)
    assert cells(part, STANDING)[1] == now
    part.get_by_label("Width d of the model").fill("16")
    expect(sentence(part)).to_contain_text("width 16", timeout=60_000)
    assert cells(part, STANDING)[0][4] == "2,808"
    assert "seed=7" in query(part.page) and "dim=16" in query(part.page)


def test_without_the_mask_tokens_see_what_comes_later(training):
    part = training(epoch=3)
    reaches(part, 3)
    assert matrix(part, "attention").triu(1).abs().max() == 0
    part.get_by_label("mask").uncheck()
    expect(sentence(part)).to_contain_text("no mask) the loss", timeout=60_000)
    assert matrix(part, "attention").triu(1).max() > 0
    part.get_by_label("mask").check()
    part.get_by_label("positions").uncheck()
    part.get_by_label("normalisation").uncheck()
    expect(sentence(part)).to_contain_text("no positions, no normalisation) the loss")


def test_a_rate_that_is_far_too_large_breaks_the_run_and_not_the_page(training):
    part = training(epoch=60, learning_rate=1)
    reaches(part, 60)
    assert to_number(cells(part, STANDING)[0][1]) > 0.8
    part.get_by_label("0.001", exact=True).check()
    expect(sentence(part)).to_contain_text("rate 0.001", timeout=60_000)


# Pointing, words, links --------------------------------------------------------------------------


def test_numbers_are_explained_and_followed(training, pytorch):
    part = training(epoch=500)
    reaches(part, 500)
    loss, _ = loss_of(at(pytorch, 500))
    key, value, line = formula(part)
    assert key == "loss" and abs(value - loss) < 1e-6 and line.rstrip().endswith("after 500 epochs")
    cell(part, LOG, 0, 9).hover()
    key, value, line = formula(part)
    assert key == "logged[450]" and abs(value - pytorch.losses[450]) < 1e-6 and ") / 5" in line
    means = part.locator(".gfx-formula-filled .gfx-ref").all_inner_texts()
    assert abs(sum(map(to_number, means)) / 5 - value) < 1e-3 and len(means) == 5
    part.locator(".gfx-formula-filled .gfx-ref").nth(4).click()
    assert formula(part)[0] == "batch_mean[450,4]" and "12 examples" in formula(part)[2]
    cell(part, LOG, 1, 9).hover()
    assert formula(part)[0] == "published[450]" and "published training log" in formula(part)[2]
    cell(part, STANDING, 0, 2).click()
    assert formula(part)[0] == "gap"
    part.locator(".gfx-formula-filled .gfx-ref").nth(1).click()
    assert formula(part)[0] == "floor" and abs(formula(part)[1] - entropy_floor(X, Y)) < 1e-6
    cell(part, STANDING, 0, 4).focus()
    assert formula(part)[:2] == ("weights", 968)
    cell(part, "attention", 2, 1).hover()
    assert formula(part)[0] == "attention[2,1]"


def test_an_unknown_word_is_named_and_nothing_else_changes(training):
    part = training()
    before = matrix(part, "attention"), told(part)
    part.get_by_label("Prompt").fill("<START> i am root")
    alert = part.locator(".gfx-error")
    expect(alert).to_contain_text("'root' is not in the vocabulary; the nearest known: groot")
    assert torch.equal(matrix(part, "attention"), before[0]) and told(part) == before[1]
    part.get_by_label("Prompt").fill("<START> groot likes")
    expect(alert).to_be_empty()
    assert matrix(part, "attention").shape == (3, 3)


@pytest.mark.parametrize(
    "state",
    [
        {"epoch": "NaN", "dim": "-3", "seed": "1e99", "learning_rate": "infinity"},
        {"prompt": "<img src=x onerror=alert(1)>", "mask": "maybe", "unknown": "1"},
        {"prompt": "🌳" * 300, "epoch": "2.6"},
    ],
)
def test_whatever_stands_in_the_link_the_explorer_starts(training, state):
    part = training(**state)
    expect(sentence(part)).to_contain_text("the loss over all 76 examples")
    assert part.locator("img").count() == 0


def test_keyboard_alone(training):
    part = training()
    page = part.page
    part.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Tab")
    assert part.locator(":focus").inner_text() == "Play"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    reaches(part, 1)
    slider(part).focus()
    page.keyboard.press("ArrowRight")
    reaches(part, 2)
    page.keyboard.press("End")
    reaches(part, 600)
    page.keyboard.press("Home")
    reaches(part, 0)
    part.get_by_label("mask").focus()
    page.keyboard.press("Space")
    expect(sentence(part)).to_contain_text("no mask")
    cell(part, LOG, 0, 0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert formula(part)[0] == "published[50]"


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 1440), ("dark", 1440), ("light", 360), ("dark", 360)]
)
def test_everyone_can_read_it(training, theme, width):
    part = training(theme=theme, width=width, epoch=40, residuals="false")
    reaches(part, 40)
    part.get_by_label("positions").uncheck()
    expect(sentence(part)).to_contain_text("no positions, no residuals) the loss")
    assert axe(part.page, "#explorer-training") == []
    no_sideways_scroll(part.page)
    assert re.search(r"seed 42, rate 0.01, width 8", part.inner_text())
