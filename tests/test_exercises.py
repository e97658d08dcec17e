"""Every exercise: solutions pass, mutants fail with their own message, texts are complete."""

from __future__ import annotations

import copy
import time
from collections import Counter
from itertools import pairwise

import pytest
import torch

from glassformer.exercises import judging
from glassformer.exercises.bank import all_exercises, chapter_exercises, chapters, exercise
from glassformer.exercises.judging import calling, judge

EXERCISES = all_exercises()
MUTANTS = [(e, mutant) for e in EXERCISES for mutant in e.mutants]
CORRECT = [(e, variant) for e in EXERCISES for variant in (e.solved, *e.styles)]
HUNDRED = range(100)

every_exercise = pytest.mark.parametrize("e", EXERCISES, ids=lambda e: e.name)


def named(pairs):
    """Parametrise a test by exercises and variants, with readable names."""
    ids = [f"{e.name}-{variant.name.replace(' ', '_')}" for e, variant in pairs]
    return pytest.mark.parametrize(("e", "variant"), pairs, ids=ids)


@named(CORRECT)
def test_what_is_right_passes_under_a_hundred_seeds(e, variant):
    verdict = judge(e, calling(e, variant.function), HUNDRED)
    assert verdict.status == "passed" and verdict.earned == e.points, verdict.lines()


@named(MUTANTS)
def test_a_mutant_fails_and_is_told_its_own_mistake(e, variant):
    for seed in (0, 1, 12345):
        verdict = judge(e, calling(e, variant.function), (seed,))
        assert verdict.status == "failed" and verdict.earned < e.points
        assert verdict.looks_like is variant
        assert dict(verdict.lines())["looks like"] == variant.message


@every_exercise
def test_the_starter_is_not_attempted(e):
    verdict = judge(e, calling(e, e.start.function))
    assert verdict.status == "not attempted" and verdict.earned == 0 and not verdict.lines()


@pytest.mark.parametrize("value", [None, 0, [], "", 1.5, torch.zeros(2, 3), (torch.ones(2),), {}])
@every_exercise
def test_a_constant_earns_nothing_and_is_no_misconception(e, value):
    verdict = judge(e, lambda request: calling(e, lambda *_: value)(request))
    assert verdict.status == "failed" and verdict.earned == 0 and verdict.lines()


def test_of_several_mistakes_the_one_that_is_shown_is_told():
    e = exercise("attention.softmax")

    def over_the_queries_and_overflowing(scores):
        return scores.exp() / scores.exp().sum(dim=-2, keepdim=True)

    verdict = judge(e, calling(e, over_the_queries_and_overflowing))
    assert verdict.looks_like.name == "over the queries"
    by_hand = torch.tensor([[1.0, 2.0, 5.0], [3.0, 9.0, 4.0]], dtype=torch.float64).log()
    always = verdict.looks_like.function(by_hand)  # what is shown, but the same in every call
    verdict = judge(e, calling(e, lambda scores: always.clone()))
    assert verdict.status == "failed" and verdict.looks_like is None


def with_tensors(function):
    """Return a function that returns tensors of one number in the place of numbers."""

    def turned(value):
        if isinstance(value, tuple):
            return tuple(map(turned, value))
        return torch.tensor(value, dtype=torch.float64)

    return lambda *given: turned(function(*given))


@pytest.mark.parametrize(
    "name", ["data.entropy", "logits.perplexity", "model.epoch_figures", "train.bits"]
)
def test_a_tensor_of_one_number_is_told_apart_from_what_else_is_wrong(name):
    e = exercise(name)
    for variant in (e.solved, *e.mutants):
        verdict = judge(e, calling(e, with_tensors(variant.function)))
        forbidden = verdict.wrong.reason in e.forbidden.values()
        assert verdict.earned == 0 and ("`.item()` gives it" in verdict.wrong.reason or forbidden)
        assert verdict.looks_like is (None if variant is e.solved else variant)
    assert "Python number" in e.start.source


def with_words_of_ones_own(function):
    """Return a function whose own errors say something else."""

    def reworded(*given):
        try:
            return function(*given)
        except Exception as error:
            raise type(error)("words of one's own") from None

    return reworded


COMMON = (TypeError, RuntimeError, ValueError, IndexError, KeyError, AttributeError, NameError)


@every_exercise
def test_an_error_with_a_text_of_its_own_is_no_misconception(e):
    for error in COMMON:

        def failing(*_, error=error):
            raise error("words of one's own")

        verdict = judge(e, calling(e, failing))
        assert verdict.status == "failed" and verdict.looks_like is None, error


def test_the_text_tells_errors_apart_unless_the_exercise_asks_for_one():
    names = ("data.encode", "interludes.h0", "logits.top_k", "attention.scores")
    not_told = []
    for e, mutant in MUTANTS:
        if e.name in names:
            verdict = judge(e, calling(e, with_words_of_ones_own(mutant.function)))
            if verdict.looks_like is not mutant:
                not_told.append(f"{e.name}: {mutant.name}")
    assert not_told == [
        "data.encode: dictionary's own error",  # not the kind that is asked for
        "interludes.h0: torch's own error",
        "attention.scores: all axes turned",
        "logits.top_k: k beyond the vocabulary",
    ]


def of_parts(make):
    """Return an answer to train.resume that makes what it returns of weights, means and step."""
    return lambda model, optimiser, step: make(
        copy.deepcopy(model.state_dict()), copy.deepcopy(optimiser.state_dict()), step
    )


RESUMED = {
    "a tuple": (lambda *parts: parts, "It returned a tuple, where a dictionary is expected."),
    "a list": (lambda *parts: [*parts], "It returned a list, where a dictionary is expected."),
    "a number": (lambda *parts: 3, "It returned a whole number, where a dictionary is expected."),
    "another spelling": (
        lambda w, o, step: {"weights": w, "optimizer": o, "step": step},
        "It has no key 'optimiser'; its keys are ['weights', 'optimizer', 'step'].",
    ),
    "the weights themselves": (
        lambda w, *_: w,
        "It has no key 'weights'; its keys are ['weight', 'bias'].",
    ),
    "keys that are no texts": (
        lambda w, o, step: {1: w, (2, 3): o},
        "It has no key 'weights'; its keys are ['1', '(2, 3)'].",
    ),
}


@pytest.mark.parametrize(("make", "reason"), RESUMED.values(), ids=RESUMED)
def test_what_cannot_be_gone_on_from_is_named(make, reason):
    e = exercise("train.resume")
    verdict = judge(e, calling(e, of_parts(make)))
    assert verdict.wrong.reason == reason and verdict.looks_like is None and verdict.earned == 0


def test_a_key_more_is_no_mistake_where_none_is_missing():
    e = exercise("train.resume")
    more = of_parts(lambda w, o, step: {"weights": w, "optimiser": o, "step": step, "note": "so"})
    assert judge(e, calling(e, more)).status == "passed"


TIES = {  # what is smallest of those that occur equally often, and the misconception told
    "the sum": (lambda a, b: a + b, "ages added up"),
    "the sum, then the second": (lambda a, b: (a + b, b), "ages added up"),
    "the second": (lambda a, b: (b, a), None),
    "the first alone": (lambda a, b: a, None),
}


@pytest.mark.parametrize(("key", "told"), TIES.values(), ids=TIES)
def test_ties_broken_by_another_rule_are_not_taken_for_the_alphabet(key, told):
    e = exercise("train.pair")

    def next_pair(words, vocabulary):
        counts = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                counts[pair] += count
        return min(counts, key=lambda p: (-counts[p], key(*map(vocabulary.index, p))))

    verdict = judge(e, calling(e, next_pair))
    assert verdict.status == "failed" and "('s', 't')" in verdict.wrong.expected
    assert (verdict.looks_like.name if verdict.looks_like else None) == told


def test_a_tuple_of_one_is_shown_as_one():
    e = exercise("train.cut")
    verdict = judge(e, calling(e, lambda word, merges: (word,)))
    told = dict(verdict.lines())
    assert told["came out"] == "('eeexee',)" and told["wrong"] == "Its length is 1; 4 is expected."


@every_exercise
def test_an_exercise_is_complete(e):
    assert exercise(e.name) is e
    assert len(e.mutants) >= 4 and len(e.styles) >= 2 and len(e.hints) == 3
    messages = [mutant.message for mutant in e.mutants]
    assert len(set(messages)) == len(messages) and all(len(m.split()) >= 6 for m in messages)
    for variant in (e.start, e.solved, *e.styles, *e.mutants):
        assert variant.function.__name__ == e.function_name
        assert variant.source.startswith(f"def {e.function_name}(")
    parameters = e.start.source.partition(":\n")[0]
    assert all(v.source.startswith(parameters) for v in (e.solved, *e.styles, *e.mutants))
    assert e.start.source.endswith('raise NotImplementedError("not attempted")')
    assert '"""' in e.start.source and e.points >= 1 and 5 <= e.minutes <= 30


@every_exercise
def test_a_check_answers_at_once(e):
    def seconds(function) -> float:
        start = time.process_time()  # what else the machine does is not the check's
        judge(e, calling(e, function))
        return time.process_time() - start

    for variant in (e.solved, e.mutants[-1]):
        seconds(variant.function)
        assert min(seconds(variant.function) for _ in range(3)) < 0.2


def test_slugs_are_unique_and_in_their_chapter():
    names = [e.name for e in EXERCISES]
    assert len(set(names)) == len(names)
    for chapter in chapters():
        assert all(e.name.split(".")[0] == chapter.name for e in chapter_exercises(chapter))


def counts() -> dict[str, int]:
    """Return how much is proven here; the run's summary shows it."""
    return {
        "exercises": len(EXERCISES),
        "points": sum(e.points for e in EXERCISES),
        "mutants": len(MUTANTS),
        "other correct styles": len(CORRECT) - len(EXERCISES),
        "seeds for each": len(HUNDRED),
    }


def test_there_are_as_many_as_the_course_promises():
    assert counts()["exercises"] >= 30 and counts()["seeds for each"] == 100
    assert counts()["mutants"] >= 4 * len(EXERCISES)
    assert counts()["other correct styles"] >= 2 * len(EXERCISES)


def test_tests_that_cannot_be_run_are_no_verdict(monkeypatch):
    monkeypatch.setattr(judging, "Draw", None)
    with pytest.raises(RuntimeError, match=r"data\.encode cannot be run"):
        judge(e := exercise("data.encode"), calling(e, e.solved.function))
