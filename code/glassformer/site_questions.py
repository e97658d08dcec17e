"""Predictions on the site: each question goes into its box; the missed ones come back.

A box is a `predict` admonition with a `:name:`; the question of that name is the stored output of
a cell of the same chapter. The page's script, `questions.js`, makes a form of the two, and covers
what cells print between the box and the cell that asks until there is an answer. Without it the
box reads as it is written: question, choices, and an answer to open, and nothing is covered.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .questions import QUESTION_MIME
from .site_explorers import explorer_node, pass_by, safe_json

logger = logging.getLogger(__name__)


class question_node(nodes.General, nodes.Element):  # noqa: N801 – docutils names nodes this way
    """A question on its way into its box: `data` is its JSON data."""


class recall_node(nodes.comment):  # noqa: N801
    """The boxes of the chapter before; a comment to the search, which finds them there."""


class predictions_node(nodes.General, nodes.Element):  # noqa: N801
    """The place of the list of all predictions."""


class QuestionRenderer:
    """Take the stored output of a question's cell for the question's box."""

    mime_priority_overrides = ()

    @staticmethod
    def handle_mime(renderer, data, inline: bool):
        """Render a question's own output; leave every other output to MyST-NB."""
        if inline or data.mime_type != QUESTION_MIME or data.cell_index is None:
            return None
        return [question_node(data=data.content)]


def boxes_in(tree: nodes.Element) -> list[nodes.Element]:
    """Return the `predict` boxes of a page."""
    return [n for n in tree.findall(nodes.Element) if "predict" in n.get("classes", ())]


def place_questions(app, doctree) -> None:
    """Put each question into the box of its name, and make the choices radio buttons."""
    mark_telling(doctree)
    questions = {
        node["data"]["name"]: take_out(node) for node in list(doctree.findall(question_node))
    }
    kept = questions_of(app.env)[app.env.docname] = []
    for box in boxes_in(doctree):
        name = next(iter(box.get("ids", ())), "")
        data = questions.pop(name, None)
        labels = label_choices(box, name)
        if data is None:
            logger.warning("no cell asks the question %r of this box", name, location=box)
            continue
        if not fits(data, labels):
            logger.warning("the choices of %r are not those of its cell", name, location=box)
        written = f'<script type="application/json">{safe_json(data)}</script>'
        box.insert(1, nodes.raw(text=written, format="html"))
        title = box[0].astext().removeprefix("Predict: ")
        kept.append((name, title[:1].upper() + title[1:]))
    for name in questions:
        logger.warning("there is no box for the question %r", name, location=doctree)


def mark_telling(doctree: nodes.Element) -> None:
    """Mark what tells an answer: outputs between a box and the cell that asks, but no explorer."""
    to_come = [node["data"]["name"] for node in doctree.findall(question_node)]
    waiting: list[str] = []
    for node in doctree.findall(nodes.Element):
        classes = node.get("classes", ())
        if isinstance(node, question_node):
            to_come.remove(node["data"]["name"])
            waiting = [name for name in waiting if name in to_come]
        elif "predict" in classes:
            waiting += [name for name in node["ids"] if name in to_come]
        elif "cell_output" in classes and not any(node.findall(explorer_node)):
            node["classes"] += [f"gf-tells-{name}" for name in waiting]


def take_out(node: question_node) -> dict[str, Any]:
    """Remove a question's output, with all that is empty then, and return the question."""
    bundle = node.parent.parent  # all forms of the output, of which a page would show one
    while len(bundle.parent) == 1:
        bundle = bundle.parent
    bundle.parent.remove(bundle)
    return node["data"]


def label_choices(box: nodes.Element, name: str) -> list[str]:
    """Turn a box's task list into labelled radio buttons; return what the labels say."""
    labels = []
    for item in box.findall(nodes.list_item):
        paragraph = next(item.findall(nodes.paragraph), None)
        tick = paragraph[0] if paragraph else None
        if not (isinstance(tick, nodes.raw) and "task-list-item-checkbox" in tick.astext()):
            continue
        paragraph.remove(tick)
        labels.append(" ".join(paragraph.astext().split()))
        radio = f'<input type="radio" name="{html.escape(name)}" value="{len(labels) - 1}" '
        radio = f'<label>{radio}autocomplete="off"> <span>'
        paragraph.insert(0, nodes.raw(text=radio, format="html"))
        paragraph.append(nodes.raw(text="</span></label>", format="html"))
    return labels


def fits(data: dict[str, Any], labels: list[str]) -> bool:
    """Return whether a box's choices are, those of its cell, named by their beginnings."""
    choices = data.get("choices", [])
    labels = [label.replace("’", "'") for label in labels]  # as it was written
    return len(choices) == len(labels) and all(map(str.startswith, labels, choices))


# What was missed comes back in the next chapter --------------------------------------------------


def questions_of(env) -> dict[str, list[tuple[str, str]]]:
    """Return the names and titles of all questions, page by page."""
    return env.__dict__.setdefault("glassformer_questions", {})


def chapters_of(env) -> list[str]:
    """Return the pages that ask questions, in order."""
    return sorted(name for name, asked in questions_of(env).items() if asked)


class Recall(SphinxPostTransform):
    """Put the boxes of the chapter before into a page, hidden until one was missed.

    It runs before references and dropdowns are resolved, so that the copies' are too.
    """

    default_priority = 1

    def run(self, **kwargs: Any) -> None:
        """Insert the copies after the opening box."""
        chapters, docname = chapters_of(self.env), self.env.docname
        if docname not in chapters[1:]:
            return
        before = self.env.get_doctree(chapters[chapters.index(docname) - 1])
        boxes = [again(box, docname) for box in boxes_in(before)]
        section = next(self.document.findall(nodes.section))
        opening = [n for n in section if "opening" in n.get("classes", ())]
        section.insert(section.index((opening or section)[0]) + 1, recall_node("", "", *boxes))


def again(box: nodes.Element, docname: str) -> nodes.Element:
    """Return a copy of a box for another page: no ids, and a group of radio buttons of its own."""
    box = box.deepcopy()
    for node in box.findall(nodes.Element):
        node.attributes.update({"ids": [], "names": []})
        if "refdoc" in node:
            node["refdoc"] = docname
        if isinstance(node, nodes.raw):
            text = node.astext().replace('type="radio" name="', 'type="radio" name="again-')
            node[:] = [nodes.Text(text)]
    return box


def visit_recall(translator, node: recall_node) -> None:
    """Open the part of the page that holds what was missed."""
    translator.body.append(
        '<section class="gf-recall" hidden aria-labelledby="gf-recall">'
        '<p class="gf-recall-title" id="gf-recall">Before you go on: '
        "what you missed in the chapter before.</p>"
    )


def depart_recall(translator, node: recall_node) -> None:
    """Close it."""
    translator.body.append("</section>")


# The list of all predictions ----------------------------------------------------------------------


class PredictionsDirective(SphinxDirective):
    """The list of all predictions, which the page's script completes."""

    def run(self) -> list[nodes.Node]:
        """Return the list's place: what it holds is known once every page was read."""
        return [predictions_node()]


class Predictions(SphinxPostTransform):
    """Write the list of all predictions."""

    default_priority = 1

    def run(self, **kwargs: Any) -> None:
        """Replace the list's place by the list."""
        for node in list(self.document.findall(predictions_node)):
            lists = [self.chapter(name) for name in chapters_of(self.env)]
            text = f'<div class="gf-progress">{"".join(lists)}</div>'
            node.replace_self(nodes.raw(text=text, format="html"))

    def chapter(self, name: str) -> str:
        """Return a chapter's questions as links to them."""
        page = self.app.builder.get_relative_uri(self.env.docname, name)
        title = html.escape(self.env.titles[name].astext())
        items = "".join(
            f'<li data-question="{asked}"><a href="{page}#{asked}">{html.escape(said)}</a> '
            '<span class="gf-progress-state"></span></li>'
            for asked, said in questions_of(self.env)[name]
        )
        return f'<h2><a href="{page}">{title}</a></h2><ul>{items}</ul>'


# Registered with Sphinx ---------------------------------------------------------------------------


def forget(app, env, docname: str) -> None:
    """Forget a page that is read again."""
    questions_of(env).pop(docname, None)


def merge(app, env, docnames: set[str], other) -> None:
    """Take over what another process has read."""
    found = questions_of(other)
    questions_of(env).update({name: found[name] for name in docnames if name in found})


def followers(app, env, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Name the pages that show a changed page's questions."""
    chapters, touched = chapters_of(env), added | changed
    later = [
        name for before, name in zip(chapters, chapters[1:], strict=False) if before in touched
    ]
    return later + [name for name in env.all_docs if touched and name.endswith("/progress")]


def setup(app) -> None:
    """Register nodes, directive, transforms and the script."""
    others = {kind: (pass_by, pass_by) for kind in ("latex", "text", "man", "texinfo")}
    app.add_node(recall_node, html=(visit_recall, depart_recall), **others)
    app.add_directive("predictions", PredictionsDirective)
    app.add_post_transform(Recall)
    app.add_post_transform(Predictions)
    app.connect("env-get-outdated", followers)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-read", place_questions)
    app.add_js_file("questions.js", loading_method="defer")
