/** Tokens and positions become rows of H₀; and which token vectors point the same way. */

import { useCallback, useMemo } from "preact/hooks";
import { SPECIALS } from "../engine/index.js";
import { Likeness } from "../likeness.js";
import {
  Choice, Figures, Frame, Matrix, Prompt, Row, Select, Tokens, count, exact, flag, number, text, usePrompt, whole,
} from "../kit/index.js";

const PROMPT = "<START> i am groot";
const SHOWN = 8; // of the nearest tokens

export const embedding = {
  name: "embedding",
  title: "From ids to vectors",
  fields: { prompt: text(PROMPT), position: whole(2, 0, 63), token: text("we"), other: text("you"), trained: flag(true) },
  View,
};

function View({ state, set, data }) {
  const { groot, vocabulary } = data;
  const tables = useMemo(() => tablesOf(data), [data]);
  const { before, after } = tables, trained = state.trained || !before;
  const model = trained ? groot : data.initial;
  const prompt = usePrompt(state.prompt, vocabulary, groot.maxLen, PROMPT);
  const pass = useMemo(() => ({ model, seen: model.trace(prompt.ids) }), [model, String(prompt.ids)]);
  const explainer = useCallback((ref) => after.explain(ref) ?? before?.explain(ref) ?? null, [tables]);
  const words = prompt.ids.map((id) => vocabulary.word(id)), at = Math.min(state.position, words.length - 1);
  const [a, b] = pairOf(state, vocabulary);
  return (
    <Frame
      pass={pass} explainer={explainer} first={{ name: "h0", index: [at, 0] }}
      sentence={sentence(pass.seen, words, at, tables, a, b, vocabulary)} twin={() => twin(pass.seen, words, tables, vocabulary)}
    >
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={groot.maxLen} onChange={(text) => set({ prompt: text })} />
      <Tokens label="Which position?" words={words} ids={prompt.ids} chosen={at} onChoose={(t) => set({ position: t })} />
      {before && (
        <Choice label="Weights" value={trained} options={[[false, "as drawn"], [true, "trained"]]} onChange={(on) => set({ trained: on })} />
      )}
      <RowSum seen={pass.seen} at={at} id={prompt.ids[at]} word={words[at]} />
      <Matrix name="h0" tensor={pass.seen.h0} role="residual" rows={words} lit={LIT[at]} />
      <p class="gfx-embedding-head">Which token vectors point the same way?</p>
      <Maps tables={tables} a={a} b={b} words={vocabulary.words} set={set} />
      <Row>
        <Select label="A token" value={vocabulary.word(a)} options={vocabulary.words.map((word) => [word, word])} onChange={(word) => set({ token: word })} />
        <Select label="Another" value={vocabulary.word(b)} options={vocabulary.words.map((word) => [word, word])} onChange={(word) => set({ other: word })} />
      </Row>
      <Row>
        <Pair tables={tables} a={a} b={b} vocabulary={vocabulary} />
        <Nearest tables={tables} a={a} vocabulary={vocabulary} />
      </Row>
    </Frame>
  );
}

/** The keys of each row of H₀, for a frame around the chosen one. */
const LIT = Array.from({ length: 64 }, (_, t) => Array.from({ length: 64 }, (_, c) => `h0[${t},${c}]`));

/** Return the token tables before and after training; before is null if it is not of the same model. */
function tablesOf({ groot, initial }) {
  const [now, then] = [groot, initial].map(({ weights }) => weights["token_embedding.weight"]);
  const same = String(now.shape) === String(then.shape) && groot.maxLen === initial.maxLen;
  return {
    before: same ? new Likeness(then, "before", "as drawn, before training") : null,
    after: new Likeness(now, "after", "a learned number"),
  };
}

/** Return the ids of the pair; a word that is unknown here gives way to the last two of the vocabulary. */
function pairOf({ token, other }, vocabulary) {
  const id = (word, instead) => (vocabulary.has(word) ? vocabulary.id(word) : instead);
  return [id(token, Math.max(vocabulary.size - 2, 0)), id(other, vocabulary.size - 1)];
}

// What is shown --------------------------------------------------------------------------------

/** One row of H₀ as a sum of two rows, column under column. */
function RowSum({ seen, at, id, word }) {
  const rowOf = ({ shape: [, d], data }) => ({ shape: [1, d], data: data.subarray(at * d, (at + 1) * d) });
  const rows = useMemo(() => ["token_embedding", "position_embedding", "h0"].map((name) => rowOf(seen[name])), [seen, at]);
  const scale = Math.max(...rows.flatMap(({ data }) => [...data].map(Math.abs)));
  const line = (n, name, role, label, title) => (
    <Matrix name={name} tensor={rows[n]} role={role} rows={[label]} from={at} scale={scale} title={title} />
  );
  return (
    <div class="gfx-embedding-sum">
      {line(0, "token_embedding", "token", word, <><b>E[{id}]</b> the row of “{word}”</>)}
      {line(1, "position_embedding", "position", `+ position ${at}`, <><b>P[{at}]</b> the row of position {at}</>)}
      {line(2, "h0", "residual", "=", <><b>H₀[{at}]</b> what enters the block</>)}
    </div>
  );
}

/** The cosines of all pairs, as drawn and trained; a click chooses a pair. */
function Maps({ tables: { before, after }, a, b, words, set }) {
  const choose = useCallback(([row, column]) => set({ token: words[row], other: words[column] }), [set, words]);
  const map = (likeness, title) => {
    const name = `cosine_${likeness.when}`;
    return (
      <Matrix
        name={name} title={title} tensor={likeness.cosines} role="scores" scale={1} rows={words} columns={words}
        printed={false} onChoose={choose} lit={[`${name}[${a},${b}]`, `${name}[${b},${a}]`]}
      />
    );
  };
  return (
    <>
      <Row>
        {before && map(before, <b>cosines as drawn</b>)}
        {map(after, <b>cosines trained</b>)}
      </Row>
      <p class="gfx-embedding-key">
        <span class="gfx-embedding-same">the same way, 1</span> <span class="gfx-embedding-right">at a right angle, 0</span>
        <span class="gfx-embedding-opposite">opposite ways, −1</span>
      </p>
    </>
  );
}

/** The chosen pair, spelled out. */
function Pair({ tables: { before, after }, a, b, vocabulary }) {
  const line = (likeness, when) => [
    when, likeness.ref("dot", a, b), likeness.ref("length", a), likeness.ref("length", b), likeness.ref("cosine", a, b),
  ];
  return (
    <Figures
      label={`The cosine of ${vocabulary.word(a)} and ${vocabulary.word(b)}`}
      columns={["", "dot product", `‖${vocabulary.word(a)}‖`, `‖${vocabulary.word(b)}‖`, "cosine"]}
      rows={[...(before ? [line(before, "as drawn")] : []), line(after, "trained")]}
    />
  );
}

/** The tokens whose vectors are nearest to one, ranked. */
function Nearest({ tables: { before, after }, a, vocabulary }) {
  const lists = [before, after].filter(Boolean), order = lists.map((likeness) => likeness.nearest(a));
  const rows = order[0].slice(0, SHOWN).map((_, n) => [
    String(n + 1), ...lists.flatMap((likeness, l) => [vocabulary.word(order[l][n]), likeness.ref("cosine", a, order[l][n])]),
  ]);
  const columns = lists.flatMap(({ when }) => [when === "before" ? "as drawn" : "trained", "cosine"]);
  return <Figures label={`Nearest to ${vocabulary.word(a)}`} columns={[`nearest to ${vocabulary.word(a)}`, ...columns]} rows={rows} />;
}

// In words and as tables -----------------------------------------------------------------------

function sentence({ h0 }, words, at, { before, after }, a, b, vocabulary) {
  const d = h0.shape[1], row = `${words[at]}, at position ${at}, enters the block as ${d} numbers that begin ${number(h0.data[at * d])}.`;
  const pair = `${vocabulary.word(a)} and ${vocabulary.word(b)}`, now = number(after.cosine(a, b));
  if (!before) return `${row} The cosine of ${pair} is ${now}.`;
  const [closer, all] = drewTogether(before, after, vocabulary);
  return (
    `${row} The cosine of ${pair} was ${number(before.cosine(a, b))} as drawn and is ${now} after training; of all ` +
    `${count(all)} pairs of words ${count(closer)} drew together.`
  );
}

/** Return how many pairs of words, marks aside, have a larger cosine after training, and how many there are. */
function drewTogether(before, after, vocabulary) {
  const ids = vocabulary.words.flatMap((word, id) => (SPECIALS.includes(word) ? [] : [id]));
  const pairs = ids.flatMap((a, n) => ids.slice(n + 1).map((b) => [a, b]));
  return [pairs.filter(([a, b]) => after.cosine(a, b) > before.cosine(a, b)).length, pairs.length];
}

function twin(seen, words, { before, after }, vocabulary) {
  const columns = Array.from({ length: seen.h0.shape[1] }, (_, c) => String(c));
  const rows = ({ shape: [, d], data }, labels) => labels.map((label, t) => [label, ...Array.from(data.subarray(t * d, (t + 1) * d), exact)]);
  const rowTables = ["token_embedding", "position_embedding", "h0"].map((name) => ({
    caption: name, columns: ["token", ...columns], rows: rows(seen[name], words),
  }));
  const maps = [before, after].filter(Boolean).map(({ cosines, when }) => ({
    caption: `Cosines ${when} training`, columns: ["token", ...vocabulary.words], rows: rows(cosines, vocabulary.words),
  }));
  return [...rowTables, ...maps];
}
