"""Terms and symbols: the notation is true, and the first use of each in a chapter leads to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapters import CHAPTERS, ROOT
from glassformer.checkpoints import load_baby_groot, load_tiny
from glassformer.site_terms import CHAPTER, Entry, Uses, in_letters, listed, plain_symbol, plural
from glassformer.trace import trace

PAGES = ["index", *(path.stem for path in CHAPTERS)]
every_page = pytest.mark.parametrize("page", PAGES)


# The notation, read as plain text ----------------------------------------------------------------


@dataclass
class Said:
    """What `book/notation.md` says of one row or term, in the words of its source."""

    meaning: str
    shape: str = ""
    names: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)


def in_code(text: str) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


@cache
def notation() -> dict[str, Said]:
    """Return all that the notation says, by the ids of the site."""
    text = (ROOT / "book/notation.md").read_text(encoding="utf-8")
    tables, _, glossary = text.partition("```{glossary}\n")
    rows = {id_: said for table in tables.split("\n\n") for id_, said in rows_of(table)}
    by_name = {name: said for said in reversed(rows.values()) for name in said.names}
    entries = re.split(r"\n\n(?=\S)", glossary.partition("\n```")[0])
    return rows | dict(term_of(entry, by_name) for entry in entries)


def rows_of(table: str) -> list[tuple[str, Said]]:
    """Return the rows of a Markdown table of symbols, with their ids."""
    lines = [line.strip("| ") for line in table.splitlines() if line.startswith("|")]
    cells = [re.split(r" ?\| ", "| " * (line[:1] == "`") + line) for line in lines]
    if not cells or "symbol" not in cells[0]:
        return []
    found = []
    for row in cells[2:]:
        got = dict(zip(cells[0], row, strict=True))
        names = in_code(got.get("trace name") or got["in the code"])
        id_ = ("trace-" if "trace name" in got else "code-") + names[0]
        symbols = re.findall(r"\$([^$]+)\$", got["symbol"])
        said = Said(got["meaning"], got.get("shape", ""), names, symbols)
        found.append((re.sub(r"[^A-Za-z0-9]+", "-", id_).strip("-"), said))
    return found


def term_of(entry: str, by_name: dict[str, Said]) -> tuple[str, Said]:
    """Return one term of the glossary, with its id."""
    title, _, body = entry.partition("\n")
    fields = dict(re.findall(r"(?m)^  :(\w+): (.*)$", body))
    names = in_code(fields.get("code", ""))
    row = next((by_name[name] for name in names if name in by_name), None)
    phrases = listed(fields.get("counts", ""), ";")
    if "counts" not in fields:
        forms = title.split(", ") + listed(fields.get("also", ""), ",") * ("also" in fields)
        phrases = [form for word in forms for form in (word, plural(word))]
    said = Said(body.partition("\n\n")[0], row.shape if row else "", names, [], phrases)
    return "term-" + re.sub(r"[^A-Za-z0-9]+", "-", title), said


def test_the_notation_is_read_as_it_is_written():
    said = notation()
    assert said["trace-q"].names == ["q", "q_rotated"] and said["trace-q"].symbols == ["Q"]
    assert said["trace-ids"].symbols == [] and said["code-B"].shape == ""
    assert said["term-KV-cache"].phrases == ["KV cache", "KV caches", "cache", "caches"]
    assert said["term-logit"].shape == said["trace-logits"].shape == "[T, V]"
    assert len(said) > 150


# The notation is true ----------------------------------------------------------------------------

SIZES = {
    "BabyGroot": {"T": 4, "d": 8, "V": 24, "max_len": 4},
    "tiny": {"T": 6, "S": 6, "d": 32, "V": 8, "H": 4, "K": 2, "d_h": 8, "h": 64},
}


def sized(shapes: str, sizes: dict[str, int]) -> list[tuple[int, ...]]:
    """Return the shapes that a cell of the notation names, as numbers, where a model has them."""
    found = []
    for shape in re.findall(r"\[(.*?)\]", shapes):
        parts = [
            re.sub(r"(?<=\d)(?=[a-z])", "*", part.replace("·", "*")) for part in shape.split(",")
        ]
        if all(name in sizes for part in parts for name in re.findall(r"[A-Za-z_]+", part)):
            found.append(tuple(eval(part, {}, dict(sizes)) for part in parts))
    return found


def wrong_shapes(said: dict[str, Said], seen: dict[str, tuple[int, ...]], sizes) -> list[str]:
    """Return a line for every tensor without a row, or with one that gives it no such shape."""
    faults = []
    for name, shape in seen.items():
        rows = [row for id_, row in said.items() if id_.startswith("trace-") and name in row.names]
        if not any(shape in sized(row.shape, sizes) for row in rows):
            faults.append(
                f"{name} is {list(shape)}; the notation has {[row.shape for row in rows]}"
            )
    return faults


def traced(kind: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all that a trace of one model names."""
    model = load_baby_groot() if kind == "BabyGroot" else load_tiny()
    seen = trace(model, list(range(SIZES[kind]["T"])))
    return {name.split(".")[-1]: tuple(tensor.shape) for name, tensor in seen.items()}


@pytest.mark.parametrize("kind", SIZES)
def test_every_traced_tensor_has_a_row_with_its_shape(kind):
    assert wrong_shapes(notation(), traced(kind), SIZES[kind]) == []


def test_the_trace_has_every_name_of_its_table():
    names = {
        name for id_, row in notation().items() if id_.startswith("trace-") for name in row.names
    }
    assert names == set(traced("BabyGroot")) | set(traced("tiny"))


def test_a_wrong_shape_is_found():
    seen = traced("tiny")
    wrong = notation() | {"trace-q": Said("", "[T, d]", ["q", "q_rotated"])}
    assert len(wrong_shapes(wrong, seen, SIZES["tiny"])) == 2
    assert len(wrong_shapes(notation(), seen | {"q": (2, 6, 8)}, SIZES["tiny"])) == 1
    assert len(wrong_shapes(notation(), seen | {"nameless": (6, 32)}, SIZES["tiny"])) == 1


def parameters() -> dict[str, list[tuple[int, ...]]]:
    """Return every parameter of both models, with the shapes that the notation may give it."""
    models = {"BabyGroot": load_baby_groot(), "tiny": load_tiny()}
    return {
        f"{kind}: .{name}.": tuple(weight.shape)
        for kind, model in models.items()
        for name, weight in model.named_parameters()
    }


def test_every_learned_thing_is_named_and_shaped_as_in_the_models():
    learned = [said for id_, said in notation().items() if id_.startswith("code-") and said.shape]
    named = set()
    for said in learned:
        for name in said.names:
            hits = {full: shape for full, shape in parameters().items() if f".{name}." in full}
            assert hits, f"no parameter has {name} in its name"
            for full, shape in hits.items():
                if len(shape) == len(said.shape.split("]")[0].split(",")):
                    assert shape in sized(said.shape, SIZES[full.partition(":")[0]]), full
                    named.add(full)
    left = [full for full in parameters() if full not in named]
    assert [full for full in left if not full.endswith(".bias.")] == []


# What counts as a use ----------------------------------------------------------------------------


def uses_of(*phrases: str) -> Uses:
    """Return what finds phrases, each an entry by its own name."""
    return Uses([Entry(phrase, [], [], phrases=[phrase]) for phrase in phrases])


def found(uses: Uses, text: str) -> list[tuple[str, str]]:
    """Return the uses in a text: what is linked, and to which entry."""
    return [(text[start:end], id_) for start, end, id_ in uses.in_text(text)]


def test_words_count_whole_and_in_any_case():
    uses = uses_of("*logit*", "*key*", "*KV cache*")
    assert found(uses, "Logit, monkey, keyed, key-word, key’s, kv\ncache") == [
        ("Logit", "*logit*"),
        ("key", "*key*"),
        ("kv\ncache", "*KV cache*"),
    ]


def test_the_longer_term_takes_the_shorter_ones_place():
    uses = uses_of("*attention*", "*weight*", "*attention weight*")
    assert [id_ for _, id_ in found(uses, "an attention weight, a weight, attention")] == [
        "*attention weight*",
        "*weight*",
        "*attention*",
    ]


def test_what_stands_around_a_phrase_is_asked_for_and_left_free():
    uses = uses_of("*keys*", "keys and *values*", "*value* of")
    assert found(uses, "keys and values; values; the value of it; any value") == [
        ("keys", "*keys*"),
        ("values", "keys and *values*"),
        ("value", "*value* of"),
    ]


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("logit", "logits"),
        ("query", "queries"),
        ("key", "keys"),
        ("batch", "batches"),
        ("loss", "losses"),
        ("KV cache", "KV caches"),
        ("feed-forward network", "feed-forward networks"),
    ],
)
def test_plurals_are_regular(one, many):
    assert plural(one) == many


def test_symbols_compare_however_they_are_spelt():
    assert plain_symbol(r"H_{\text{out}}") == plain_symbol("H_{out}") == "H_out"
    assert plain_symbol(r"\lvert V \rvert") == plain_symbol("|V|") == "|V|"
    assert plain_symbol(r"A\,V") == plain_symbol("A V") == plain_symbol("AV")


def test_a_formula_is_a_use_if_it_is_the_symbol_or_defines_it():
    rows = [Entry("a", [], [], symbols=["A"]), Entry("v", [], [], symbols=[r"\lvert V \rvert"])]
    uses = Uses(rows)
    used = {
        latex: uses.in_formula(latex)
        for latex in ("A", "A = B", r"\tau A", "AV", "|V| = 24", r"A \approx 2", "A_1", "B = A")
    }
    expected = {"A": "a", "A = B": "a", "|V| = 24": "v", r"A \approx 2": "a"}
    assert used == dict.fromkeys(used) | expected


def test_a_name_of_two_rows_says_nothing_by_itself():
    rows = [Entry("one", [], [], code=["x", "q"]), Entry("two", [], [], code=["x"])]
    assert Uses(rows).names == {"q": "one"}
    term = Entry("term", [], [], code=["q", "r"], phrases=["*query*"])
    assert Uses([*rows, term]).names == {"q": "one"}


WORDS = ["token", "attention", "attention weight", "key", "KV cache", "cache", "top-k"]
FILLERS = ["the", "and so on", "monkey", "tokenise", "caches2", "a-key", "weights", "of 24 (or 8)"]


@given(st.lists(st.sampled_from(WORDS + FILLERS), max_size=12), st.sampled_from([" ", "\n", ", "]))
def test_what_is_planted_is_found_and_nothing_else(parts, between):
    text = between.join(parts)
    planted = [part for part in parts if part in WORDS]
    uses = uses_of(*(f"*{word}*" for word in WORDS))
    ran_together = [re.sub(r"\s", " ", linked) for linked, _ in found(uses, text)]
    if between == ", ":  # otherwise two neighbours may make a longer term
        assert ran_together == planted
    assert "".join(ran_together).replace(" ", "") == "".join(planted).replace(" ", "")


@given(st.text(alphabet="akey -\ntoken’,.", max_size=40))
def test_uses_stand_in_order_and_apart(text):
    spans = list(uses_of("*key*", "*token*", "a *key*", "*key token*").in_text(text))
    ends = [0, *(end for _, end, _ in spans)]
    assert all(end <= start for end, (start, *_) in zip(ends, spans, strict=False))
    assert all(not text[a - 1 : a].isalnum() and not text[b : b + 1].isalnum() for a, b, _ in spans)


# The built site ----------------------------------------------------------------------------------

VOID = {"br", "hr", "img", "input", "link", "meta", "source", "col", "wbr"}
NO_PROSE = {
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "thead",
    "pre",
    "script",
    "summary",
    "label",
    "figure",
}
NO_PROSE_CLASSES = {
    "admonition-title", "cell", "gf-cards", "gf-explorer", "gf-explorer-text", "gf-recall",
    "task-list-item", "math", "rubric", "sd-summary-title",
}  # fmt: skip


@dataclass
class Piece:
    """A run of words, a formula or a name, as a reader meets it; links in it, by their places."""

    kind: str
    closed: int  # how many parts have to be opened to see it
    text: str = ""
    links: list[tuple[int, int, str]] = field(default_factory=list)


class Prose(HTMLParser):
    """Reads the running prose of a chapter's page, piece by piece, and the words of its cards."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []  # elements, and what each means for what is in it
        self.pieces, self.cards, self.misplaced = [Piece("words", 0)], {}, []
        self.link: tuple[Piece, int, str] | None = None
        self.feed(page[page.index("<article") : page.index("</article>")])
        self.pieces = [piece for piece in self.pieces if piece.text.strip()]
        self.pieces.sort(key=lambda piece: piece.closed)  # those of one kind stay in order

    def inside(self, *meanings: str) -> bool:
        """Whether an element of some meaning is open."""
        return any(meaning in meanings for _, meaning in self.open)

    def handle_starttag(self, tag, attributes):
        got = dict(attributes)
        classes = set((got.get("class") or "").split())
        means = self.meaning_of(tag, classes)
        if "gf-term" in classes:
            self.misplaced += [got["href"]] * self.inside("none", "formula", "name")
            self.link = (self.pieces[-1], len(self.pieces[-1].text), got["href"].split("#")[1])
        elif "gf-card" in classes:
            self.cards[got["id"]] = ""
        if tag not in VOID:
            self.open.append((tag, means))
        if "gf-term" not in classes and not (self.inside("formula", "name") and not means):
            self.begin(means if means in ("formula", "name") else "words")

    @staticmethod
    def meaning_of(tag: str, classes: set[str]) -> str:
        if tag == "code" or (tag == "span" and "math" in classes):
            return "name" if tag == "code" else "formula"
        if "gf-card" in classes:
            return "card"
        if (
            tag in NO_PROSE
            or classes & NO_PROSE_CLASSES
            or (tag == "a" and "gf-term" not in classes)
        ):
            return "none"
        return "closed" if tag == "details" or "dropdown" in classes else ""

    def begin(self, kind: str) -> None:
        closed = sum(meaning == "closed" for _, meaning in self.open)
        self.pieces.append(Piece(kind, closed))
        if kind != "words" and self.link:
            self.link = (self.pieces[-1], 0, self.link[2])

    def handle_endtag(self, tag):
        while tag not in VOID and self.open.pop()[0] != tag:
            pass
        if tag == "a" and self.link:
            piece, start, id_ = self.link
            piece.links.append((start, len(piece.text), id_))
            self.link = None
        elif not self.inside("formula", "name"):
            self.begin("words")

    def handle_data(self, data):
        if self.inside("card"):
            self.cards[next(reversed(self.cards))] += data
        elif not self.inside("none"):
            self.pieces[-1].text += data


def spots(phrase: str, flat: str) -> list[tuple[int, int]]:
    """Return where the linked part of a phrase stands in a text of small letters."""
    before, linked, after = (phrase if "*" in phrase else f"*{phrase}*").lower().split("*")
    whole, places, at = before + linked + after, [], -1
    while (at := flat.find(whole, at + 1)) >= 0:
        start = at + len(before)
        end = start + len(linked)
        around = (flat[at - 1 : at] if at else "", flat[end : end + 1], flat[at + len(whole) :][:1])
        if not any(re.match(r"[\w-]", letter) for letter in around):
            places.append((start, end))
    return places


def first_uses(pieces: list[Piece], said: dict[str, Said]) -> dict[str, tuple[int, int, int]]:
    """Return where each entry is used first: which piece, and from where to where."""
    rows = [row for row in said.values() if not row.phrases]
    names = [name for row in rows for name in row.names]
    first = {}
    for n, piece in enumerate(pieces):
        if piece.kind == "words":
            flat = re.sub(r"\s", " ", piece.text).lower()
            spans = [
                (*span, id_)
                for id_, entry in said.items()
                for phrase in entry.phrases
                for span in spots(phrase, flat)
            ]
            uses = [span for span in spans if not any(hides(other, span) for other in spans)]
        else:
            uses = [(0, len(piece.text), i) for i, s in said.items() if is_used(piece, s, names)]
        for start, end, id_ in sorted(uses):
            first.setdefault(id_, (n, start, end))
    return first


def hides(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Whether a use lies inside a longer one, or begins inside one further left."""
    longer = one[1] - one[0] > other[1] - other[0]
    return longer and one[0] <= other[0] < one[1]


def is_used(piece: Piece, said: Said, names: list[str]) -> bool:
    """Whether a formula or a name of the code is one of an entry."""
    if said.phrases:
        return False
    if piece.kind == "name":
        return piece.text in said.names and names.count(piece.text) == 1
    latex = plain_symbol(piece.text.strip().removeprefix(r"\(").removesuffix(r"\)"))
    return any(
        re.fullmatch(re.escape(plain_symbol(s)) + r"((=|>|\\approx).*)?", latex)
        for s in said.symbols
    )


def linking_faults(page: str, said: dict[str, Said]) -> list[str]:
    """Return a line for each entry that is not linked once, where it is used first."""
    prose = Prose(page)
    links: dict[str, list] = {}
    for n, piece in enumerate(prose.pieces):
        for start, end, id_ in piece.links:
            links.setdefault(id_, []).append((n, start, end))
    faults = [f"{href} is linked where nothing may be" for href in prose.misplaced]
    first = first_uses(prose.pieces, said)
    for id_ in sorted(set(links) | set(first)):
        wanted = [first[id_]] if id_ in first else []
        if links.get(id_, []) != wanted:
            where = [prose.pieces[n].text[a - 20 : b + 20] for n, a, b in links.get(id_, [])]
            faults.append(f"{id_} is linked in {where}, not in {wanted}")
    return faults


def card_faults(page: str, said: dict[str, Said]) -> list[str]:
    """Return a line for each link without a card, and each card without what the notation has."""
    prose = Prose(page)
    faults = []
    for id_ in {id_ for piece in prose.pieces for *_, id_ in piece.links}:
        words = " ".join(prose.cards.get(f"card-{id_}", "").split())
        meaning = re.sub(r"\{\w+\}`[^`]*`|[$`\\*]", "", said[id_].meaning).split()
        missing = [
            part
            for part in (*said[id_].names, said[id_].shape, meaning[-1][:4])
            if part not in words
        ]
        faults += [f"the card of {id_} lacks {part!r}: {words!r}" for part in missing]
    return faults


def html_of(site, page: str) -> str:
    return (site / f"book/{page}.html").read_text(encoding="utf-8")


@every_page
def test_every_term_and_symbol_is_linked_once_at_its_first_use(site, page):
    assert CHAPTER.fullmatch(f"book/{page}")
    text = html_of(site, page)
    assert linking_faults(text, notation()) == []
    assert text.count('class="gf-term') > 25


@every_page
def test_every_card_says_what_the_notation_says(site, page):
    text = html_of(site, page)
    assert card_faults(text, notation()) == []
    described = re.findall(r'aria-describedby="(card-[^"]+)"', text)
    assert sorted(described) == sorted(re.findall(r'class="gf-card" id="([^"]+)"', text))


def test_every_entry_is_used_and_every_link_arrives(site):
    targets = set(re.findall(r'id="((?:term|trace|code)-[^"]+)"', html_of(site, "notation")))
    linked = {
        id_
        for page in PAGES
        for id_ in re.findall(r'href="notation.html#([^"]+)"', html_of(site, page))
    }
    assert targets == set(notation()) and linked <= targets | {"ch-notation"}
    assert {id_ for id_ in targets if id_.startswith("term-")} - linked == set()


@every_page
def test_a_formula_that_is_a_link_has_a_name_in_letters(site, page):
    links = re.findall(r'<a class="gf-term gf-term-math"[^>]*>', html_of(site, page))
    assert all(re.search(r' aria-label="[^"{}\\]+"', link) for link in links)
    assert links or page in ("index",)


def test_a_formula_is_said_in_letters():
    assert in_letters(r"\lvert V \rvert = 24") == "| V | = 24"
    assert in_letters(r"H_{\text{out}} = \operatorname{LayerNorm}(R_2)") == "H_out = LayerNorm(R_2)"
    assert in_letters(r"\hat{m}\,\tau") == "hat m tau"


def test_what_counts_is_not_shown_in_the_glossary(site):
    page = html_of(site, "notation")
    assert (
        "steps of the optimiser" not in page
        and 'class="gf-facts"' in page
        and "field-list" not in page
    )


PAGE = """<article><h2>Logits</h2><p>Each <a class="gf-term" href="n.html#term-logit">logit</a> of
<span class="math">\\(B\\)</span>, <a class="gf-term" href="n.html#trace-h0"><span class="math">
\\(H_0\\)</span></a>: more logits and <code>h0</code>.</p><details><summary>Batch</summary><p>A
<a class="gf-term" href="n.html#term-batch">batch</a>.</p></details></article>"""
FEW = {
    "term-logit": Said("", phrases=["logit", "logits"]),
    "term-batch": Said("", phrases=["batch"]),
    "trace-h0": Said("", names=["h0"], symbols=["H_0"]),
}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("Each", "Each logit,"),
        ("more logits", "more batches and a batch"),
        ("more logits", 'more <a class="gf-term" href="n.html#term-logit">logits</a>'),
        (">logit<", ">gradient<"),
        ("B\\", "H_0 = 2\\"),
        ("<h2>Logits</h2>", '<h2><a class="gf-term" href="n.html#term-logit">Logits</a></h2>'),
        ("<code>h0</code>", '<code><a class="gf-term" href="n.html#trace-h0">h0</a></code>'),
        ('<a class="gf-term" href="n.html#term-batch">batch</a>', "batch"),
    ],
)
def test_a_wrong_or_missing_link_is_found(here, there):
    assert linking_faults(PAGE, FEW) == []
    assert here in PAGE and linking_faults(PAGE.replace(here, there, 1), FEW)


def test_a_card_that_lacks_something_is_found():
    card = '<div class="gf-card" id="card-term-logit"><p>A score: [T, V] z</p></div></article>'
    said = {"term-logit": Said("A score", "[T, V]", ["z"])}
    link = '<article><p><a class="gf-term" href="n#term-logit">logit</a></p>'
    assert card_faults(link + card, said) == []
    for part in ("score", "[T, V]", "z"):
        assert len(card_faults(link + card.replace(part, ""), said)) == 1
    assert len(card_faults(link + "</article>", said)) == 3
