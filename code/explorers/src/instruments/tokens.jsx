/** A sentence becomes tokens, ids, contexts and targets; and what the corpus knows of each context. */

import { useMemo } from "preact/hooks";
import { END, START, prefixPairs, splitWords } from "../engine/index.js";
import { Floor, contextWords } from "../floor.js";
import { explanation, sum } from "../provenance.js";
import {
  Bars, Choice, Figures, Frame, Matrix, Prompt, Row, Tokens, count, number, percent, text, usePrompt, whole,
} from "../kit/index.js";

const SENTENCE = "i am groot";

export const tokens = {
  name: "tokens",
  title: "From a sentence to examples",
  fields: { sentence: text(SENTENCE), example: whole(0, 0, 63) },
  View,
};

function View({ state, set, data }) {
  const { vocabulary, maxLen } = data;
  const floor = useMemo(() => floorOf(data), [data]);
  const read = (text) => readSentence(text, vocabulary, maxLen);
  const said = usePrompt(state.sentence, vocabulary, maxLen, SENTENCE, read);
  const made = useMemo(() => examplesOf(said.text, data, floor), [said.text, data]);
  const chosen = Math.min(state.example, made.rows.length - 1);
  const explainer = useMemo(() => explainerOf(made, floor, data.sentences), [made]);
  const words = said.ids.map((id) => vocabulary.word(id));
  return (
    <Frame
      explainer={explainer} first={first(made.rows[chosen])} sentence={sentence(said.text, made, floor)}
      twin={() => twin(made, floor, words, said.ids)}
    >
      <Prompt label="A sentence" value={said.text} error={said.error} vocabulary={vocabulary} max={maxLen} read={read} onChange={(text) => set({ sentence: text })} />
      <Tokens label="The tokens and their ids" words={words} ids={said.ids} />
      <Row>
        <Matrix name="contexts" title={<><b>X</b> contexts</>} tensor={made.contexts} role="token" digits={0} scale={vocabulary.size} rows={made.rows.map(({ label }) => label)} lit={LIT[chosen]} />
        <Matrix name="targets" title={<><b>Y</b> next tokens</>} upright tensor={made.targets} role="token" digits={0} scale={vocabulary.size} rows={made.rows.map(({ next }) => next)} />
      </Row>
      <Counts rows={made.rows} explainer={explainer} />
      <Choice label="What the corpus says after" value={chosen} options={made.rows.map(({ label }, r) => [r, label])} onChange={(r) => set({ example: r })} />
      <After row={made.rows[chosen]} floor={floor} />
      <Whole rows={made.rows} floor={floor} />
    </Frame>
  );
}

/** The keys of the cells of each context, for a frame around the chosen one. */
const LIT = Array.from({ length: 64 }, (_, r) => Array.from({ length: 64 }, (_, t) => `contexts[${r},${t}]`));

function floorOf({ sentences, vocabulary, maxLen }) {
  const { contexts, targets } = prefixPairs(sentences, vocabulary, maxLen);
  return new Floor(contexts, targets, vocabulary);
}

/** Return the ids of a sentence between its marks, or what is wrong with it. */
function readSentence(text, vocabulary, maxLen) {
  try {
    prefixPairs([text], vocabulary, maxLen);
    return { ids: vocabulary.encode(`${START} ${text} ${END}`) };
  } catch (error) {
    return { error: error.message };
  }
}

/** Return a sentence's examples as tensors, and a row for each with its place in the corpus. */
function examplesOf(text, { vocabulary, maxLen }, floor) {
  const { contexts, targets } = prefixPairs([text], vocabulary, maxLen);
  const rows = contexts.map((context, r) => ({
    r, c: placeOf(context, r, floor), target: targets[r], next: vocabulary.word(targets[r]), label: contextWords(context, vocabulary),
  }));
  return {
    rows,
    words: splitWords(text).join(" "),
    contexts: { shape: [rows.length, maxLen], data: contexts.flat() },
    targets: { shape: [rows.length, 1], data: targets },
  };
}

/** Return the place of a context in the corpus; below 0, and one of its own, if it is not there. */
function placeOf(context, r, floor) {
  const c = floor.find(context);
  return c < 0 ? -1 - r : c;
}

/** Return the words of a context without the mark with which all begin. */
function short(words) {
  return words.replace(`${START} `, "");
}

// What is shown --------------------------------------------------------------------------------

/** How often each context occurs, and what it costs and adds. */
function Counts({ rows, explainer }) {
  const cell = (name, index, show) => ({ name, index, show, value: explainer({ name, index }).value });
  const line = ({ c, target, label, next }) => [
    `${short(label)} → ${next}`, cell("occurs", [c], count), cell("follows", [c, target], count), cell("best_loss", [c, target]),
    c < 0 ? "–" : cell("entropy", [c]), c < 0 ? "–" : cell("adds", [c]),
  ];
  return (
    <Figures
      label="What the corpus knows of each context"
      columns={["context → next token", "in the corpus", "so followed", "loss at best", "entropy H", "adds"]}
      rows={[...rows.map(line), ["the sentence", "", "", cell("sentence_loss", []), "", ""]]}
    />
  );
}

/** What follows a context in the corpus. */
function After({ row: { c, label, target, next }, floor }) {
  if (c < 0) {
    return <p>No sentence of the corpus begins with “{label}”. It leaves open what follows, and adds nothing to the floor.</p>;
  }
  const { followers, total } = floor.counts[c];
  const order = [...followers].sort((a, b) => b[1] - a[1]);
  const bars = order.map(([w, n]) => ({
    key: w, label: floor.vocabulary.word(w), share: n / total, name: "share", index: [c, w], note: `${n} of ${total}`,
  }));
  return (
    <div>
      <Bars label={`What follows ${label} in the corpus`} role="token" bars={bars} chosen={target} />
      {!followers.has(target) && <p>{next} never follows here.</p>}
    </div>
  );
}

/** The floor, made up of what the open contexts add. */
function Whole({ rows, floor }) {
  const own = new Set(rows.map(({ c }) => c));
  const bars = floor.open.map((c) => ({
    key: c, label: `${own.has(c) ? "✓ " : ""}${short(floor.words(c))}`, share: floor.adds[c] / floor.value,
    name: "part", index: [c], note: number(floor.adds[c], 4),
  }));
  return (
    <div class="gfx-tokens-floor">
      <p>
        The whole floor: after {START}, {floor.open.length} of {floor.counts.length} contexts leave open what follows; ✓ marks
        yours.
      </p>
      <Bars label="What each open context adds to the floor" role="loss" bars={bars} />
    </div>
  );
}

// Explaining -----------------------------------------------------------------------------------

/** Return what explains this sentence's numbers and those of the corpus. */
function explainerOf({ rows, contexts, targets, words }, floor, sentences) {
  const { vocabulary } = floor, width = contexts.shape[1];
  const place = (id) => `the place of ${vocabulary.word(id)} in the vocabulary`;
  const own = {
    contexts: (r, t) => {
      const id = contexts.data[r * width + t];
      return [id, { digits: 0, note: id === 0 ? "padding: nothing stands here" : place(id) }];
    },
    targets: (r) => [targets.data[r], { digits: 0, note: `${place(targets.data[r])}; it follows “${rows[r].label}”` }],
    sentence_loss: () => {
      const losses = rows.map(({ c, target }) => floor.ref("best_loss", c, target));
      const parts = sum(losses.length, (r) => [losses[r]]), among = new Set(sentences);
      const note = among.has(words) ? `ln ${among.size}: what it takes to single out one of ${among.size} sentences` : "";
      return [losses.reduce((total, { value }) => total + value, 0), { rule: "Σ loss at best", parts, note }];
    },
  };
  return ({ name, index }) => {
    if (!Object.hasOwn(own, name)) return floor.explain({ name, index });
    return explanation({ name, index }, ...own[name](...index));
  };
}

function first({ c }) {
  return c < 0 ? { name: "occurs", index: [c] } : { name: "adds", index: [c] };
}

// In words and as tables -----------------------------------------------------------------------

function sentence(text, { rows }, floor) {
  const known = rows.filter(({ c }) => c >= 0), open = known.filter(({ c }) => floor.open.includes(c));
  const adds = open.reduce((total, { c }) => total + floor.adds[c], 0);
  return (
    `“${text}” gives ${rows.length} examples; the corpus has ${known.length} of their contexts and leaves ` +
    `${open.length} of them open: that adds ${number(adds, 4)} to the floor of ${number(floor.value, 4)} nats.`
  );
}

function twin({ rows, contexts }, floor, words, ids) {
  const width = contexts.shape[1];
  return [
    { caption: "Tokens", columns: ["token", "id"], rows: words.map((word, n) => [word, String(ids[n])]) },
    {
      caption: "Examples",
      columns: ["context", ...Array.from({ length: width }, (_, t) => `X ${t}`), "next token", "Y", "in the corpus", "so followed", "loss at best", "entropy", "adds"],
      rows: rows.map(({ r, c, label, next, target }) => [
        label, ...contexts.data.slice(r * width, (r + 1) * width).map(String), next, String(target),
        ...["occurs", "follows", "best_loss"].map((name) => floor.explain({ name, index: [c, target] }).value),
        c < 0 ? "" : floor.entropies[c], c < 0 ? "" : floor.adds[c],
      ]),
    },
    {
      caption: `The floor, ${number(floor.value, 6)} nats`,
      columns: ["context", "in the corpus", "entropy", "adds", "part"],
      rows: floor.open.map((c) => [floor.words(c), floor.counts[c].total, floor.entropies[c], floor.adds[c], percent(floor.adds[c] / floor.value)]),
    },
  ];
}
