"""Every number that a chapter's prose states is asserted in that chapter.

A number in a Markdown cell (text, tables, boxes, mathematics) needs a literal
`states("86.5 %", value)` in one of the chapter's code cells; the value must name something
computed. Free of this rule are:

* numbers written as words, and digits glued to letters: GPT-2, float32, H₀, R_1, W1, top-5;
* references: "chapter 4", "concepts 3, 4 and 6", figure, table, section, equation, exercise, part,
  milestone; list markers; years ("in 2017", "(2017)"); versions ("Python 3.10", "Llama 2");
  "40 minutes", the time a chapter takes;
* roles such as {ref} and {cite}, link targets, HTML tags, comments, labels, directive options and
  file or label arguments;
* inline code that is a name, a call, a path or a command. Inline code that starts with a digit, a
  signed digit or a bracket is a value or a shape, and counts;
* fenced code in a programming language;
* in mathematics: sub- and superscripts, spacing, and 0, 1 or 2 as constants of a formula, unless
  they stand as a result, right after = or \\approx;
* the choices of a `predict` box (`- [ ] 16`): wrong ones cannot be asserted. The answer counts.

A power of ten is one number: 10⁻⁵, $10^{-5}$ and 1e-5 are the same; so are $\\frac{2}{3}$ and 2/3.
"""

from __future__ import annotations

import ast
import re

import nbformat
import pytest

from chapters import CHAPTERS, demo, read
from glassformer.checks import NUMBER, canonical, plain_powers

DIRECTIVES_WITH_TITLES = ("admonition", "dropdown", "note", "tip", "warning", "important", "card")
SUBSTITUTIONS = [  # (pattern, replacement), in this order
    (r"<!--.*?-->", " "),
    (
        r"(?ms)^ *(`{3,}|~{3,}) *"
        r"(?:python|ipython3?|bash|sh|console|json|yaml|toml|javascript)\b.*?^ *\1",
        " ",
    ),
    (r"(?m)^%.*$", " "),  # a MyST comment
    (r"(?m)^\([\w-]+\)=\s*$", " "),
    (r"(?m)^ *:[\w-]+:.*$", " "),  # a directive's option
    (r"(?m)^( *- \[[ xX]\] ).*$", " "),  # a choice of a prediction
    (r"(?m)^( *(?:> *)*)\d+[.)] ", r"\1"),  # a list marker
    (r"\{(?!math\})[\w:-]+\}(`+)(?:(?!\1).)+?\1", " "),  # roles, except {math}
    (r"\[\^[\w-]+\]:?", " "),
    (r"\]\([^)\s]*(?: \"[^\"]*\")?\)", "] "),  # link targets; the text stays
    (r"<https?:[^>]*>|https?://\S+", " "),
    (r"</?[A-Za-z][^<>\n]*/?>(?<!<START>)(?<!<END>)(?<!<PAD>)", " "),
]
REFERENCE = re.compile(
    r"\b(?:chapters?|concepts?|figures?|tables?|sections?|equations?|exercises?|parts?|milestones?)"
    r"[ \u00a0]\d+(?:(?:, | and | or | to |–|-)\d+)*(?!\.\d)",
    re.I,
)
VERSION = re.compile(r"\b(?:Python|PyTorch|torch|Jupyter Book|LLaMA|Llama)[ \u00a0]\d+(?:\.\d+)*\b")
YEAR = re.compile(r"\b(?:in|since|of) (?:19|20)\d\d\b|\((?:19|20)\d\d\)", re.I)
MINUTES = re.compile(r"\b\d+[ \u00a0]minutes?\b")
MATHS = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$(?!\s)((?:[^$\\]|\\.)+?)\$", re.S)
GLUED = re.compile(r"[^\W\d_](?:[\w₀-₉]|[-.](?=\w))*|\d+(?:\.\d+)?[^\W\d_]\w*")


def numbers_in(markdown: str) -> list[str]:
    """Return the numbers that a Markdown cell states, spelled canonically, in order."""
    for pattern, replacement in SUBSTITUTIONS:
        markdown = re.sub(pattern, replacement, markdown, flags=re.S if "-->" in pattern else 0)
    markdown = _directive_arguments(markdown)
    markdown = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", _inline_code, markdown, flags=re.S)
    markdown = re.sub(r"\{math\}", "", markdown)
    markdown = MATHS.sub(lambda m: f" {_maths(m[1] or m[2])} ", markdown)
    for free in (REFERENCE, VERSION, YEAR, MINUTES):
        markdown = free.sub(" ", markdown)
    return _plain_numbers(markdown)


def _directive_arguments(markdown: str) -> str:
    """Keep a box's title; drop the file or label that any other directive takes."""

    def keep_title(match: re.Match) -> str:
        return match[2] if match[1] in DIRECTIVES_WITH_TITLES + ("exercise", "math") else " "

    markdown = re.sub(r"(?m)^ *(?:`{3,}|:{3,})\{([\w:-]+)\}(.*)$", keep_title, markdown)
    return re.sub(r"(?m)^ *(?:`{3,}|:{3,}|~{3,}).*$", " ", markdown)  # the other fence lines


def _inline_code(match: re.Match) -> str:
    code = match[2].strip()
    return f" {code} " if re.match(r"[\d(\[{]|[-−+]\d", code) else " "


def _maths(source: str) -> str:
    source = source.replace("{,}", ",").replace(r"\,", " ").replace(r"\%", " %").replace("−", "-")
    source = re.sub(r"\\[dt]?frac\{(\d+)\}\{(\d+)\}", r" \1/\2 ", source)
    source = re.sub(
        r"\\(?:begin|end|label|tag|operatorname\*?|mathrm|text)\{[^{}\d]*\}(?:\{[clr|]+\})?",
        " ",
        source,
    )
    source = re.sub(r"\\\\(?:\[[^\]]*\])?", " ; ", source)
    source = plain_powers(source)
    braces = r"\{(?:[^{}]|\{[^{}]*\})*\}"
    source = re.sub(rf"[_^]\s*(?:{braces}|\\[A-Za-z]+|\w)", " ", source)
    source = re.sub(r"(=|\\approx|≈)\s*", r" \1", source)
    source = re.sub(r"(?<![\d./=≈])(?<!\d-)([012])(?![./]\d|,\d{3}|\d|e-?\d)", " ", source)
    source = re.sub(r"\\[A-Za-z]+", " ", source)
    return re.sub(r"[=≈]", " ", source)


def _plain_numbers(text: str) -> list[str]:
    text = plain_powers(text)
    text = re.sub(r"(?<!\w)-?\d+(?:\.\d+)?e-?\d+", lambda m: f" {m[0]} ".replace("e", "\0"), text)
    text = GLUED.sub(" ", text)
    # A sign belongs to a number unless something stands before it: 4-5 is a range.
    text = re.sub(r"(?<=[\w)\]])[-−](?=\d)", " ", text).replace("\0", "e")
    return [canonical(number) for number in NUMBER.findall(text)]


def stated_in(notebook: nbformat.NotebookNode) -> set[str]:
    """Return the numbers that the notebook's code cells assert with a literal `states("…", …)`."""
    stated = set()
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", cell.source))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "states"):
                continue
            text, value = (*node.args, None, None)[:2]
            literal = isinstance(text, ast.Constant) and isinstance(text.value, str)
            if literal and any(
                isinstance(part, ast.Name) for part in ast.walk(value or ast.Pass())
            ):
                stated.update(canonical(n) for n in NUMBER.findall(plain_powers(text.value)))
    return stated


def unasserted(notebook: nbformat.NotebookNode) -> list[str]:
    """Return a line for each number of the prose that no `states` asserts."""
    stated = stated_in(notebook)
    return [
        f'cell {index}: {number} is not asserted; add states("{number}", …) to a code cell'
        for index, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "markdown"
        for number in dict.fromkeys(numbers_in(cell.source))
        if number not in stated
    ]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_prose_states_only_asserted_numbers(path):
    missing = unasserted(read(path))
    assert not missing, f"{path.name}\n" + "\n".join(missing)


@pytest.mark.parametrize(
    ("markdown", "numbers"),
    [
        ("There are 968 parameters, or 19,104.", ["968", "19104"]),
        ("It takes 86.5 % of `i`, not −0.80 or -3.", ["86.5", "-0.80", "-3"]),
        ("From 4–5 to 8–16–8, and 24×8, and 2/3.", ["4", "5", "8", "16", "8", "24", "8", "2/3"]),
        (
            "An epsilon of 1e-5, or 10⁻⁵, or $10^{-5}$, or $3 \\times 10^{-3}$.",
            ["1e-5"] * 3 + ["3e-3"],
        ),
        ("GPT-2, float32, H_0, H₀, W1, top-5, x86-64, 3Blue1Brown and two words", []),
        ("An 8-dimensional row, a 16-row table", ["8", "16"]),
        ("chapter 4, concepts 3, 4 and 6, Figure 2, in 2017, (2019), Python 3.10, Llama 2", []),
        ("{ref}`part 7 <ch-7>` {cite}`a2017b` [text 5](page-6.md) <https://a.b/7>", ["5"]),
        (
            "`nn.Linear(8, 16)` `x[0]` `--n 3` `layers.0.wq` but `[4, 8]` `-0.8` `(1, 4)`",
            ["4", "8", "-0.8", "1", "4"],
        ),
        ("1. first\n2. second\n\n> 3) third", []),
        ("```python\nx = 5\n```\n\n```text\n6\n```", ["6"]),
        (":::{admonition} Title of 5\n:class: w-50\n\n6\n:::", ["5", "6"]),
        ("```{figure} a9.png\n:width: 300\nCaption 7\n```", ["7"]),
        ("- [ ] 16\n- [ ] 17\n\n18", ["18"]),
        ("| a | b |\n| --- | ---: |\n| x | 0.25 |", ["0.25"]),
        ("$x_1^2 = \\frac{1}{n}\\sum_{i=1}^{n} x_i$ and $1 + \\epsilon$", []),
        (
            "$\\sqrt{8} \\approx 2.83$, $d = 2$, $\\frac{2}{3} \\cdot 32$",
            ["8", "2.83", "2", "2/3", "32"],
        ),
        ("$$\n19{,}104 = 4 + 2 \\cdot 12\n$$", ["19104", "4", "12"]),
        ("$Q K^\\top / \\sqrt{8}$ of shape $4 \\times 4$", ["8", "4", "4"]),
        ("$(0,1)$, $[0, 1]$, $1/n$ but $1/8$ and $\\frac{1}{8}$", ["1/8", "1/8"]),
        ("$-10^{9}$, 10⁷ and **_968_**", ["-1e9", "1e7", "968"]),
        ("sums to 1. Mean 0, variance 1.", ["1", "0", "1"]),
    ],
)
def test_what_counts_as_a_number(markdown, numbers):
    assert numbers_in(markdown) == numbers


def test_the_demo_is_complete():
    assert unasserted(demo()) == []


def test_a_sentence_with_an_unasserted_number_fails():
    broken = demo()
    broken.cells[-1].source += "\n\nThe model has 969 parameters."
    assert unasserted(broken) == [
        'cell 4: 969 is not asserted; add states("969", …) to a code cell'
    ]


def test_a_number_in_a_table_or_formula_fails():
    for text in ("| a |\n| --- |\n| 77.7 |", "$$x = 77.7$$", "`[77.7, x]`"):
        broken = demo()
        broken.cells[-1].source += f"\n\n{text}"
        assert len(unasserted(broken)) == 1


def test_an_assertion_that_cannot_fail_does_not_count():
    broken = demo()
    broken.cells[2].source = broken.cells[2].source.replace(
        'states("24", tokens)', 'states("24", 24)'
    )
    assert len(unasserted(broken)) == 1


def test_an_assertion_built_at_run_time_does_not_count():
    broken = demo()
    broken.cells[2].source = 'states(str(tokens), tokens)\nstates("3.18", math.log(tokens))'
    assert len(unasserted(broken)) == 1
