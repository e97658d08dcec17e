"""Terms on the site: in each chapter the first of every kind leads to its entry in the notation.

Terms, symbols and names in the code are those of `book/notation.md`, the one place that says what
they mean, in its tables and its glossary. A glossary entry may end in fields: `also` gives other
names; `code` the names in the code, by which it takes symbol, shape and colour from the tables; and
`counts` what counts as a use, where an everyday word would be taken for the term: phrases between
semicolons, each of which may emphasise the part that is to be the link.

Each link has a card with its entry, which the page's script, `terms.js`, shows; without it the link
leads to the entry.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from .site_explorers import explorer_node, pass_by

NOTATION = "book/notation"
CHAPTER = re.compile(r"book/(index|\d\d_\w+)")
COLUMNS = {"trace name": "code", "in the code": "code"}  # what else a column may be called

logger = logging.getLogger(__name__)


class term_node(nodes.General, nodes.Inline, nodes.TextElement):  # noqa: N801 – as docutils does
    """A link to an entry: `refuri` is its address, `card` the id of its card."""


class cards_node(nodes.comment):  # noqa: N801
    """The cards of a page; a comment to the search, which finds their words in the notation."""


class card_node(nodes.General, nodes.Element):  # noqa: N801
    """One card: `card` is its id, `colour` the role of the palette that marks it, if one does."""


@dataclass
class Entry:
    """What the notation says of one term or symbol, and what counts as a use of it."""

    id: str
    title: list[nodes.Node]
    meaning: list[nodes.Node]
    shape: str = ""
    code: list[str] = field(default_factory=list)
    colour: str = ""
    symbols: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)


# What the notation says ---------------------------------------------------------------------------


def rows_of(document: nodes.Element) -> Iterator[tuple[nodes.row, dict[str, nodes.entry]]]:
    """Yield each row of the notation's tables, with its cells by the names of their columns."""
    for table in document.findall(nodes.table):
        heads = [cell.astext() for cell in next(table.findall(nodes.thead)).findall(nodes.entry)]
        heads = [COLUMNS.get(head, head) for head in heads]
        for row in next(table.findall(nodes.tbody)).findall(nodes.row):
            yield row, dict(zip(heads, row.children, strict=True))


def names_in(node: nodes.Element | None) -> list[str]:
    """Return what stands in a node as code."""
    return [part.astext() for part in node.findall(nodes.literal)] if node else []


def name_rows(app, doctree: nodes.document) -> None:
    """Give each row of the notation an id of its own, made of its first name in the code."""
    if app.env.docname != NOTATION:
        return
    taken = set()
    for row, cells in rows_of(doctree):
        name = re.sub(r"[^A-Za-z0-9]+", "-", names_in(cells["code"])[0]).strip("-")
        kind = "trace" if "colour" in cells else "code"
        row["ids"] = [f"{kind}-{name}"]
        if row["ids"][0] in taken:
            logger.warning("two rows begin with the name %r", name, location=row)
        taken.add(row["ids"][0])


def entries_of(document: nodes.Element) -> list[Entry]:
    """Return all entries of the notation: those of its tables, then those of its glossary."""
    rows = [row_entry(row, cells) for row, cells in rows_of(document)]
    named = {name: row for row in reversed(rows) for name in row.code}
    found = document.findall(nodes.definition_list_item)
    return rows + [glossary_entry(item, named) for item in found]


def row_entry(row: nodes.row, cells: dict[str, nodes.entry]) -> Entry:
    """Return the entry of one row."""
    symbols = [symbol.astext() for symbol in cells["symbol"].findall(nodes.math)]
    swatches = [c for part in row.findall(nodes.inline) for c in part["classes"]]
    colours = [c.removeprefix("sw-") for c in swatches if c.startswith("sw-")]
    title = cells["symbol"] if symbols else cells["code"]
    return Entry(
        id=row["ids"][0],
        title=plain_copy(title[0]),
        meaning=plain_copy(cells["meaning"][0]),
        shape=cells["shape"].astext() if "shape" in cells else "",
        code=names_in(cells["code"]),
        colour=colours[0] if colours else "",
        symbols=symbols,
    )


def glossary_entry(item: nodes.definition_list_item, named: dict[str, Entry]) -> Entry:
    """Return the entry of a term, with what the tables say of its names in the code."""
    term, definition = item[0], item[-1]
    fields = fields_of(definition)
    code = names_in(fields.get("code"))
    rows = list({named[name].id: named[name] for name in code if name in named}.values())
    phrases = listed(term.astext(), ",")
    entry = Entry(
        id=term["ids"][0],
        title=[nodes.Text(term.astext())],
        meaning=plain_copy(next(definition.findall(nodes.paragraph))),
        code=code,
        phrases=counted(phrases, fields),
    )
    if rows:
        entry.shape, entry.colour = rows[0].shape, rows[0].colour
    if len(rows) == 1:  # what several symbols stand for has none of its own
        shown = [nodes.math("", symbol) for symbol in rows[0].symbols[:1]]
        entry.title += [part for symbol in shown for part in (nodes.Text("  "), symbol)]
    return entry


def fields_of(definition: nodes.definition) -> dict[str, nodes.field_body]:
    """Return the fields that end a glossary entry."""
    return {item[0].astext(): item[1] for item in definition.findall(nodes.field)}


def counted(terms: list[str], fields: dict[str, nodes.field_body]) -> list[str]:
    """Return the phrases that count as a use; the linked part of each stands between asterisks."""
    if "counts" in fields:
        inner = fields["counts"][0]
        parts = [f"*{p.astext()}*" if isinstance(p, nodes.emphasis) else p.astext() for p in inner]
        phrases = listed("".join(parts), ";")
        return [phrase if "*" in phrase else f"*{phrase}*" for phrase in phrases]
    if "also" in fields:
        terms = terms + listed(fields["also"].astext(), ",")
    return [f"*{form}*" for term in terms for form in (term, plural(term))]


def listed(text: str, mark: str) -> list[str]:
    """Return the parts of a list whose parts a mark separates."""
    return [" ".join(part.split()) for part in text.split(mark)]


def plural(word: str) -> str:
    """Return the regular plural of a word or of a phrase's last word."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    return re.sub(r"(?<=[^aeiou])y$", "ie", word) + "s"


def plain_copy(node: nodes.Element) -> list[nodes.Node]:
    """Return copies of a node's children as a card can show them: no links, no citations."""
    kept: list[nodes.Node] = []
    for child in node:
        if isinstance(child, addnodes.pending_xref):
            if child["refdomain"] != "cite":
                kept.append(nodes.Text(child.astext()))
            elif kept:  # with the blank before it
                kept[-1] = nodes.Text(kept[-1].astext().rstrip())
        else:
            kept.append(child.deepcopy())
    return kept


# What counts as a use -----------------------------------------------------------------------------


def unset(latex: str) -> str:
    """Return a formula without the commands that only choose type, spaces or bars."""
    latex = re.sub(r"\\(text|mathrm|operatorname)\b|\\[,;!: ]", "", latex)
    return re.sub(r"\\[lr]vert\b", "|", latex)


def plain_symbol(latex: str) -> str:
    """Return a formula without what only spaces or groups it, so that spellings compare."""
    return re.sub(r"[{}\s]", "", unset(latex))


def in_letters(latex: str) -> str:
    """Return a formula in plain letters: a link's name, since its drawing has none."""
    latex = re.sub(r"\\(?:var)?([A-Za-z]+)", r" \1 ", unset(latex))
    return " ".join(re.sub(r"[{}]", "", latex).split())


class Uses:
    """Finds uses of the entries in words, in formulas and among names of the code."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        entries = list(entries)
        phrases = [(phrase, entry.id) for entry in entries for phrase in entry.phrases]
        phrases.sort(key=lambda pair: -len(pair[0].split("*")[1]))  # the longest first
        self.ids = [id_ for _, id_ in phrases]
        choices = [self._pattern(phrase, n) for n, (phrase, _) in enumerate(phrases)]
        self.pattern = re.compile("|".join(choices) or r"(?!)", re.IGNORECASE)
        self.symbols = {plain_symbol(s): e.id for e in reversed(entries) for s in e.symbols}
        rows = [entry for entry in entries if not entry.phrases]
        names = [name for entry in rows for name in entry.code]
        self.names = {n: e.id for e in rows for n in e.code if names.count(n) == 1}

    @staticmethod
    def _pattern(phrase: str, number: int) -> str:
        """Return the pattern of a phrase: what stands around the linked part is only looked at."""
        before, linked, after = (
            r"\s".join(map(re.escape, part.split(" "))) for part in phrase.split("*")
        )
        before = f"(?<={before})" if before else ""
        after = f"(?={after})" if after else ""
        return rf"(?<![\w-]){before}(?P<n{number}>{linked}){after}(?![\w-])"

    def in_text(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and entry of each use in a text, from the left; none overlap."""
        for match in self.pattern.finditer(text):
            yield *match.span(), self.ids[int(match.lastgroup[1:])]

    def in_formula(self, latex: str) -> str | None:
        """Return the entry of the symbol that a formula is, or that it says what it equals."""
        symbol = re.split(r"=|>|\\approx", plain_symbol(latex))[0]
        return self.symbols.get(symbol)


SKIPPED = (
    nodes.title,
    nodes.subtitle,
    nodes.rubric,
    nodes.caption,
    nodes.thead,
    nodes.reference,
    nodes.literal_block,
    nodes.math_block,
    nodes.raw,
    nodes.comment,  # what was missed in the chapter before is one, too
    nodes.field_list,
    addnodes.pending_xref,
    addnodes.download_reference,
    explorer_node,
)


def is_put_away(node: nodes.Element) -> bool:
    """Whether a part is closed until the reader opens it."""
    return node.get("design_component") == "dropdown" or "dropdown" in node.get("classes", ())


def is_skipped(node: nodes.Node) -> bool:
    """Whether a part is no prose: headings, links, code with its output, choices to tick."""
    if isinstance(node, SKIPPED):
        return True
    return isinstance(node, nodes.Element) and (
        "nb_element" in node or "task-list-item" in node.get("classes", ())
    )


def join_texts(node: nodes.Element) -> None:
    """Make one text of those that stand side by side: each line of a source is one of its own."""
    for index in reversed(range(1, len(node))):
        one, other = node[index - 1], node[index]
        if isinstance(one, nodes.Text) and isinstance(other, nodes.Text):
            node[index - 1 : index + 1] = [nodes.Text(one + other)]


def prose(node: nodes.Element, put_away: list[nodes.Element]) -> Iterator[nodes.Node]:
    """Yield the texts, formulas and names of running prose; keep closed parts for later."""
    join_texts(node)
    for child in node.children:
        if isinstance(child, nodes.Text | nodes.literal | nodes.math):
            yield child
        elif is_skipped(child):
            continue
        elif is_put_away(child):
            put_away.append(child)
        else:
            yield from prose(child, put_away)


class LinkTerms(SphinxPostTransform):
    """Link the first use of each entry in a chapter, and put the cards at the chapter's end.

    It runs after the boxes of the chapter before were put in, and before references are resolved.
    """

    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Link what open parts use first; closed parts, what they alone use."""
        if not CHAPTER.fullmatch(self.env.docname):
            return
        notation = self.env.get_doctree(NOTATION)
        self.entries = {entry.id: entry for entry in entries_of(notation)}
        self.uses, self.linked = Uses(self.entries.values()), {}
        self.address = self.app.builder.get_relative_uri(self.env.docname, NOTATION)
        put_away: list[nodes.Element] = []
        self.link(prose(self.document, put_away))
        for part in put_away:  # those inside it come after it
            self.link(prose(part, put_away))
        cards = [self.card(entry) for entry in self.linked.values()]
        next(self.document.findall(nodes.section)).append(cards_node("", "", *cards))

    def link(self, parts: Iterable[nodes.Node]) -> None:
        """Link what is used for the first time in some parts."""
        for part in list(parts):
            if isinstance(part, nodes.Text):
                self.link_text(part)
                continue
            if isinstance(part, nodes.math):
                found = self.uses.in_formula(part.astext())
            else:
                found = self.uses.names.get(part.astext())
            if found and found not in self.linked:
                parent, index = part.parent, part.parent.index(part)
                parent[index] = self.linking(found, part)

    def link_text(self, text: nodes.Text) -> None:
        """Link the terms of a text that are met for the first time."""
        done, pieces = 0, []
        for start, end, found in self.uses.in_text(text):
            if found not in self.linked:
                pieces.append(nodes.Text(text[done:start]))
                pieces.append(self.linking(found, nodes.Text(text[start:end])))
                done = end
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[done:])])

    def linking(self, found: str, part: nodes.Node) -> term_node:
        """Return a part as a link to its entry."""
        self.linked[found] = self.entries[found]
        return term_node("", "", part, refuri=f"{self.address}#{found}", card=f"card-{found}")

    def card(self, entry: Entry) -> card_node:
        """Return the card of an entry: its name, meaning, shape and names in the code."""
        card = card_node(card=f"card-{entry.id}", colour=entry.colour)
        card += nodes.paragraph("", "", *entry.title, classes=["gf-card-title"])
        card += nodes.paragraph("", "", *entry.meaning)
        if entry.shape:
            card += fact("shape", [nodes.Text(entry.shape)])
        if entry.code:
            card += fact("in the code", joined(entry.code))
        return card


def fact(label: str, parts: list[nodes.Node]) -> nodes.paragraph:
    """Return one line of facts."""
    said = nodes.inline("", label, classes=["gf-fact"])
    return nodes.paragraph("", "", said, nodes.Text(" "), *parts, classes=["gf-facts"])


def joined(names: list[str]) -> list[nodes.Node]:
    """Return names of the code with commas between them."""
    parts = [part for name in names for part in (nodes.Text(", "), nodes.literal("", name))]
    return parts[1:]


class GlossaryFacts(SphinxPostTransform):
    """Show the fields of a glossary entry as one quiet line; what counts as a use is not shown."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Replace the fields on the notation's page."""
        if self.env.docname != NOTATION:
            return
        rows = {n: row["ids"][0] for row, c in rows_of(self.document) for n in names_in(c["code"])}
        for definition in self.document.findall(nodes.definition):
            fields = fields_of(definition)
            lines = []
            if "also" in fields:
                lines.append(fact("also", [nodes.Text(fields["also"].astext())]))
            if "code" in fields:
                lines.append(fact("in the code", leading(names_in(fields["code"]), rows)))
            for shown in list(definition.findall(nodes.field_list)):
                index = definition.index(shown)
                definition[index : index + 1] = lines


def leading(names: list[str], rows: dict[str, str]) -> list[nodes.Node]:
    """Return names of the code, each as a link to its row if it has one."""
    parts = joined(names)
    for index, part in enumerate(parts):
        if part.astext() in rows:
            parts[index] = nodes.reference("", "", part, refid=rows[part.astext()], internal=True)
    return parts


# Written as HTML ----------------------------------------------------------------------------------


def visit_term(translator, node: term_node) -> None:
    """Open a link that is described by its card."""
    kind = "" if isinstance(node[0], nodes.Text) else f" gf-term-{node[0].tagname}"
    href = html.escape(node["refuri"])
    name = (
        f' aria-label="{html.escape(in_letters(node.astext()))}"' if kind.endswith("math") else ""
    )
    translator.body.append(
        f'<a class="gf-term{kind}" href="{href}"{name} aria-describedby="{node["card"]}">'
    )


def depart_term(translator, node: term_node) -> None:
    """Close the link."""
    translator.body.append("</a>")


def visit_cards(translator, node: cards_node) -> None:
    """Open the part of the page that holds its cards."""
    translator.body.append('<div class="gf-cards gf-on-screen">')


def visit_card(translator, node: card_node) -> None:
    """Open a card: it lies on top of the page when it is shown."""
    colour = f' style="--gf-mark: var(--gf-{node["colour"]})"' if node["colour"] else ""
    translator.body.append(
        f'<div class="gf-card" id="{node["card"]}" role="tooltip" popover="manual"{colour}>'
    )


def depart_div(translator, node: nodes.Element) -> None:
    """Close a card, or the part that holds all."""
    translator.body.append("</div>")


# Registered with Sphinx ---------------------------------------------------------------------------


def followers(app, env, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Name the pages that show entries of the notation, when it has changed."""
    if NOTATION not in added | changed:
        return []
    return [name for name in env.all_docs if CHAPTER.fullmatch(name)]


def setup(app) -> None:
    """Register nodes, transforms and the script."""
    others = {kind: (pass_by, pass_by) for kind in ("latex", "text", "man", "texinfo")}
    app.add_node(term_node, html=(visit_term, depart_term), **others)
    app.add_node(cards_node, html=(visit_cards, depart_div), **others)
    app.add_node(card_node, html=(visit_card, depart_div), **others)
    app.add_post_transform(LinkTerms)
    app.add_post_transform(GlossaryFacts)
    app.connect("doctree-read", name_rows)
    app.connect("env-get-outdated", followers)
    app.add_css_file("terms.css", priority=715)
    app.add_js_file("terms.js", loading_method="defer")
