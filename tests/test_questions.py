"""Predictions: answers are computed, and each question has its box, choices and feedback."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter

import nbformat
import pytest
import torch

from chapters import CHAPTERS, read
from glassformer import questions as ask
from glassformer.questions import QUESTION_MIME
from one_sentence import refused
from test_prose import numbers_in

KINDS = ("choice", "number", "token", "shape")
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def asked(notebook: nbformat.NotebookNode) -> list[tuple[nbformat.NotebookNode, ast.Call]]:
    """Return the cells that ask a question, each with the call that does."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "code" or "ask." not in cell.source:
            continue
        last = ast.parse(cell.source).body[-1]
        assert isinstance(last, ast.Expr) and is_question(last.value), cell.source
        found.append((cell, last.value))
    return found


def is_question(node: ast.AST) -> bool:
    """Whether a piece of code is a call of `ask.choice` or of another kind."""
    name = getattr(node, "func", None)
    return isinstance(name, ast.Attribute) and getattr(name.value, "id", "") == "ask"


def stored(notebook: nbformat.NotebookNode) -> list[dict]:
    """Return the questions' data that a notebook stores."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    return [o.data[QUESTION_MIME] for o in outputs if QUESTION_MIME in o.get("data", {})]


# Computed, not typed in -------------------------------------------------------------------------


def is_computed(node: ast.AST) -> bool:
    """Whether an expression depends on something that was computed before."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return bool(names - set(dir(builtins)))


def typed_in(call: ast.Call) -> list[str]:
    """Return the answers of a question that do not depend on anything computed."""
    answer = call.args[1]
    if isinstance(answer, ast.Dict):  # a choice: each claim is an answer
        parts = answer.values
    elif isinstance(answer, ast.DictComp):
        parts = [answer.value]
    else:
        parts = [answer]
    return [ast.unparse(part) for part in parts if not is_computed(part)]


@every_chapter
def test_no_answer_is_typed_in(path):
    calls = [call for _, call in asked(read(path))]
    assert calls and [line for call in calls for line in typed_in(call)] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("ask.number('a-b', 24, likely={})", 1),
        ("ask.number('a-b', 3 + 21, likely={})", 1),
        ("ask.token('a-b', 'groot', words, likely={})", 1),
        ("ask.shape('a-b', (4, 8), likely={})", 1),
        ("ask.shape('a-b', tuple([4, 8]), likely={})", 1),
        ("ask.choice('a-b', {'3': n == 3, '4': True}, likely={})", 1),
        ("ask.choice('a-b', {'3': False, '4': 4 == 4}, likely={})", 2),
        ("ask.choice('a-b', {k: n == 3 for k, n in sizes.items()}, likely={})", 0),
        ("ask.number('a-b', len(vocabulary), likely={})", 0),
        ("ask.shape('a-b', X.shape, likely={})", 0),
    ],
)
def test_an_answer_that_is_typed_in_is_found(source, count):
    assert len(typed_in(ast.parse(source).body[0].value)) == count


# Complete ---------------------------------------------------------------------------------------


def names_of_boxes(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the names of a chapter's `predict` boxes; a box without one gives its options."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    boxes = re.findall(r"(?m)^:+\{admonition\} .*\n((?::[\w-]+: .*\n)+)", text)
    boxes = [options for options in boxes if re.search(r":class:.*\bpredict\b", options)]
    return [(re.findall(r":name: (\S+)", options) or [options])[0] for options in boxes]


@every_chapter
def test_each_box_has_its_question_and_each_question_its_box(path):
    chapter = read(path)
    names = [call.args[0].value for _, call in asked(chapter)]
    assert sorted(names) == sorted(names_of_boxes(chapter))
    assert sorted(data["name"] for data in stored(chapter)) == sorted(names)
    for cell, _ in asked(chapter):
        assert cell.metadata.tags == ["remove-input"], "the question shows, its code does not"


def test_a_box_without_a_name_is_found():
    box = "::::{admonition} Predict: it\n:class: predict\n\n:::{dropdown} Answer\n:::\n::::\n"
    other = box.replace(":class:", ":name: a-b\n:class:")
    cells = [nbformat.v4.new_markdown_cell(text) for text in (box, other)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert names_of_boxes(notebook) == [":class: predict\n", "a-b"]


def test_names_are_the_books_own():
    names = Counter(data["name"] for path in CHAPTERS for data in stored(read(path)))
    assert names.most_common(1)[0][1] == 1


@every_chapter
def test_a_chapter_asks_for_more_than_choices(path):
    kinds = Counter(data["kind"] for data in stored(read(path)))
    assert set(kinds) <= set(KINDS) and set(kinds) - {"choice"}, kinds


def test_all_kinds_are_asked():
    assert {data["kind"] for path in CHAPTERS for data in stored(read(path))} == set(KINDS)


@every_chapter
def test_feedback_states_no_number(path):
    told = [sentence for data in stored(read(path)) for _, sentence in data["likely"]]
    assert told and [(s, numbers_in(s)) for s in told if numbers_in(s)] == []


@every_chapter
def test_each_question_tells_something_of_a_likely_wrong_answer(path):
    assert all(data["likely"] for data in stored(read(path)))


# The makers -------------------------------------------------------------------------------------


def test_a_choice_knows_which_one_holds():
    n = len("four")
    made = ask.choice("a-b", {"3": n == 3, "4": n == 4}, likely={"3": "One is missing."})
    assert made.data["right"] == "4" and made.data["choices"] == ["3", "4"]
    assert made.words == "The computed answer: “4”\nNot “3”: One is missing."
    assert made._repr_mimebundle_() == {QUESTION_MIME: made.data, "text/plain": made.words}


@pytest.mark.parametrize("n", [2, 5])
def test_one_choice_must_hold(n):
    with refused("'a-b'", "none" if n == 2 else "3, 4"):
        ask.choice("a-b", {"3": n >= 3, "4": n >= 4}, likely={"3": "One."})


def test_a_claim_is_true_or_false():
    with refused("claim", "'3'"):
        ask.choice("a-b", {"3": 1, "4": False}, likely={"4": "One."})
    claim = torch.ones(1).sum() == 1  # a tensor's truth is one
    assert ask.choice("a-b", {"3": claim, "4": False}, likely={"4": "No."}).data["right"] == "3"


@pytest.mark.parametrize("likely", [{}, {"3": "Right."}, {"4": "A.", "5": "B."}])
def test_each_wrong_choice_has_its_sentence(likely):
    with refused("wrong choice"):
        ask.choice("a-b", {"3": True, "4": False}, likely=likely)


def test_a_number_is_rounded_for_every_processor():
    made = ask.number("a-b", torch.tensor(1 / 3).double(), likely={2 / 3: "Half."}, within=0.01)
    assert made.data["right"] == 0.333333 and made.data["likely"] == [[0.666667, "Half."]]
    assert ask.number("a-b", 19104, likely={}, unit="B").words == "The computed answer: 19,104 B"


@pytest.mark.parametrize("value", [True, float("nan"), "4", None])
def test_a_number_is_a_number(value):
    with refused("value"):
        ask.number("a-b", value, likely={})


def test_a_likely_answer_is_wrong():
    with refused("likely", "0.5"):
        ask.number("a-b", 2, likely={2.3: "Near."}, within=0.5)
    with refused("likely", "(2, 3)"):
        ask.shape("a-b", torch.zeros(2, 3).shape, likely={(2, 3): "So it is."})
    with refused("likely", "'a'"):
        ask.token("a-b", "a", ["a"], likely={"a": "So it is."})


def test_a_token_is_of_the_vocabulary():
    with refused("token", "'c'"):
        ask.token("a-b", "a", ["a", "b"], likely={"c": "No."})


@pytest.mark.parametrize("sentence", ["", "no full stop", "Two\nlines."])
def test_feedback_is_one_sentence(sentence):
    with refused("sentence"):
        ask.number("a-b", 2, likely={3: sentence})


@pytest.mark.parametrize("name", ["tokens", "A-b", "a b", "a-", ""])
def test_a_name_is_chapter_and_word(name):
    with refused("name"):
        ask.number(name, 2, likely={})


# On the page ------------------------------------------------------------------------------------

BOX = """::::{{admonition}} Predict: how many?
:name: {name}
:class: predict

How many?

- [ ] 3, I think
- [ ] 4

:::{{dropdown}} Answer
Four.
:::
::::
"""


def asking(made) -> nbformat.NotebookNode:
    """Return the cell that asks a question."""
    output = nbformat.v4.new_output("execute_result", made._repr_mimebundle_())
    cell = nbformat.v4.new_code_cell("ask", outputs=[output], execution_count=1)
    cell.metadata["tags"] = ["remove-input"]
    return cell


def printing(words: str) -> nbformat.NotebookNode:
    """Return a cell that prints words."""
    output = nbformat.v4.new_output("stream", name="stdout", text=words)
    return nbformat.v4.new_code_cell("print()", outputs=[output], execution_count=1)


def page(tmp_path, boxes, questions) -> tuple[str, str]:
    """Build one page of boxes and cells that ask; return its HTML and the warnings."""
    return built(tmp_path, ["\n".join(boxes), *map(asking, questions)])


def built(tmp_path, cells) -> tuple[str, str]:
    """Build one page, of texts and cells, as the book is; return its HTML and the warnings."""
    from io import StringIO

    from sphinx.application import Sphinx

    text = nbformat.v4.new_markdown_cell
    cells = [text("# Page"), *(text(cell) if isinstance(cell, str) else cell for cell in cells)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "index.ipynb")
    warnings = StringIO()
    settings = {
        "extensions": ["myst_nb", "sphinx_design", "glassformer.site"],
        "nb_execution_mode": "off",
        "myst_enable_extensions": ["colon_fence", "tasklist"],
        "myst_enable_checkboxes": True,
    }
    out = tmp_path / "out"
    app = Sphinx(tmp_path, None, out, out, "html", settings, status=None, warning=warnings)
    app.build()
    told = [line for line in warnings.getvalue().splitlines() if "book.css" not in line]
    return (out / "index.html").read_text(encoding="utf-8"), "\n".join(told)


def three_or_four(name="a-b"):
    n = len("four")
    return ask.choice(name, {"3": n == 3, "4": n == 4}, likely={"3": "</script> One."})


def test_a_question_goes_into_its_box(tmp_path):
    text, warnings = page(tmp_path, [BOX.format(name="a-b")], [three_or_four()])
    assert warnings == ""
    assert text.count('type="radio" name="a-b"') == 2 and "cell_output" not in text
    assert text.count("The computed answer") == 0
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', text)
    assert "\\u003c/script> One." in data


@pytest.mark.parametrize(
    ("boxes", "questions", "warning"),
    [
        (["a-b"], [], "no cell asks the question 'a-b'"),
        ([], ["a-b"], "no box for the question 'a-b'"),
        (["a-b"], ["other"], "choices of 'a-b' are not those"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, boxes, questions, warning):
    made = []
    for name in questions:
        if name == "other":
            claims = {"4": len("four") == 4, "3": len("four") == 3}
            made.append(ask.choice("a-b", claims, likely={"3": "One."}))
        else:
            made.append(three_or_four(name))
    assert warning in page(tmp_path, [BOX.format(name=name) for name in boxes], made)[1]


# What tells the answer ---------------------------------------------------------------------------


def waiting(html: str) -> dict[str, list[str]]:
    """Return what cells printed, each with the questions whose answers it waits for."""
    outputs = html.split('<div class="cell_output ')[1:]
    texts = [re.search(r"<pre><span></span>(\w+)", output)[1] for output in outputs]
    return {
        text: re.findall(r"gf-tells-([\w-]+)", output[: output.index(">")])
        for text, output in zip(texts, outputs, strict=True)
    }


def test_what_tells_the_answer_waits_for_it(tmp_path):
    box, other = BOX.format(name="a-b"), BOX.format(name="c-d")
    cells = [printing("before"), box, printing("told"), "Text.\n\n## Part\n", printing("told_too")]
    cells += [other, printing("both"), asking(three_or_four()), printing("one")]
    cells += [asking(three_or_four("c-d")), printing("later")]
    assert waiting(built(tmp_path, cells)[0]) == {
        "before": [],
        "told": ["a-b"],
        "told_too": ["a-b"],
        "both": ["a-b", "c-d"],
        "one": ["c-d"],
        "later": [],
    }


def test_nothing_waits_for_a_question_that_does_not_come(tmp_path):
    box = BOX.format(name="a-b")
    early = [asking(three_or_four()), box, printing("after")]
    assert waiting(built(tmp_path, early)[0]) == {"after": []}
    assert waiting(built(tmp_path, [box, printing("alone")])[0]) == {"alone": []}
    assert waiting(built(tmp_path, [printing("plain")])[0]) == {"plain": []}


def test_no_explorer_waits():
    from docutils import nodes

    from glassformer.site_explorers import explorer
    from glassformer.site_questions import mark_telling, question_node

    def output(*children):
        return nodes.container("", *children, classes=["cell_output"])

    printed, live = output(nodes.paragraph("", "4")), output(explorer({"explorer": "x"}, "It."))
    box = nodes.admonition("", classes=["predict"], ids=["a-b"])
    mark_telling(nodes.section("", box, printed, live, output(question_node(data={"name": "a-b"}))))
    assert [each["classes"][1:] for each in (printed, live)] == [["gf-tells-a-b"], []]
