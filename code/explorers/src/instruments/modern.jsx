/** BabyGroot and the LLaMA-style model side by side, part by part, and a ledger of what a part costs. */

import { useMemo } from "preact/hooks";
import { row } from "../engine/index.js";
import { GROUPED, amount, explainLedger, ledger, ledgerOf } from "../ledger.js";
import { Choice, Figures, Frame, Matrix, Prompt, Scope, Switch, choice, count, flag, text, usePrompt } from "../kit/index.js";

const GROOT_PROMPT = "<START> i am groot";
const CAT_PROMPT = "the cat sat on the mat";

/** Each part: its label, and for both models what it is called, what it does, and what shows it. */
const PARTS = {
  norm: {
    label: "norm",
    then: { what: "LayerNorm", does: "shifts each row to mean 0 and scales it to variance 1, then scales and shifts as learned.", shows: ["r1", "n1"] },
    now: { what: "RMSNorm", does: "divides each row by its root mean square and scales as learned. The mean stays.", shows: ["layers.0.r1", "layers.0.ffn_norm"] },
  },
  positions: {
    label: "positions",
    then: { what: "learned positions", does: "add a vector of their own to each place, before the block.", shows: ["token_embedding", "position_embedding", "h0"] },
    now: { what: "rotary positions", does: "add nothing: they turn queries and keys, in every block, by an angle that grows with the place.", shows: ["layers.0.q", "layers.0.q_rotated"] },
  },
  ffn: {
    label: "feed-forward",
    then: { what: "ReLU", does: "lets a unit pass if it is positive and makes it 0 otherwise.", shows: ["ffn_hidden", "ffn_activation", "ffn_out"] },
    now: { what: "SwiGLU", does: "lets a second matrix decide, by a smooth gate, how much of each unit passes.", shows: ["layers.0.ffn_gate", "layers.0.ffn_up", "layers.0.ffn_hidden", "layers.0.ffn_out"] },
  },
  heads: {
    label: "heads",
    then: { what: "one head", does: "asks one question for each token.", shows: ["q", "k", "attention"] },
    now: { what: "grouped heads", does: "ask several questions at once; several query heads share one head of keys and values.", shows: ["layers.0.q_rotated", "layers.0.k_rotated", "layers.0.attention"] },
  },
};

const ROLES = {
  token_embedding: "token", position_embedding: "position", q: "query", q_rotated: "query", k: "key", k_rotated: "key",
  attention: "attention",
};

const SWITCHES = [
  ["rmsnorm", "RMSNorm"], ["rotary", "rotary positions"], ["swiglu", "SwiGLU"], ["grouped", `${GROUPED.heads} heads on ${GROUPED.kvHeads} of keys and values`],
];

/** The books of the ledger, in the order of its columns. */
const MODELS = ["BabyGroot", "exchanged", "LLaMA-style"];

const LABELS = {
  tokens: "token embedding", positions: "positions", attention: "attention", ffn: "feed-forward", norms: "norms", head: "output head",
};

export const modern = {
  name: "modern",
  title: "Then and now, part by part",
  fields: {
    prompt: text(GROOT_PROMPT),
    tiny_prompt: text(CAT_PROMPT),
    part: choice("norm", Object.keys(PARTS)),
    rmsnorm: flag(false),
    rotary: flag(false),
    swiglu: flag(false),
    grouped: flag(false),
  },
  View,
};

function View({ state, set, data }) {
  const { groot, vocabulary, tiny, tinyVocabulary } = data;
  const old = useSide(groot, vocabulary, state.prompt, groot.maxLen, GROOT_PROMPT);
  const now = useSide(tiny, tinyVocabulary, state.tiny_prompt, tiny.config.max_seq_len, CAT_PROMPT);
  const part = PARTS[state.part];
  const { rmsnorm, rotary, swiglu, grouped } = state;
  const books = useMemo(() => [ledger(groot), ledger(groot, state), ledgerOf(tiny.config)], [groot, tiny, rmsnorm, rotary, swiglu, grouped]);
  const explainer = useMemo(() => explainLedger(Object.fromEntries(MODELS.map((name, n) => [name, books[n]]))), [books]);
  return (
    <Frame explainer={explainer} sentence={sentence(part, old, now, state, books)} twin={() => twin(part, old, now, books)}>
      <Choice label="Part" value={state.part} options={Object.entries(PARTS).map(([name, { label }]) => [name, label])} onChange={(name) => set({ part: name })} />
      <div class="gfx-modern-sides">
        <Side title="BabyGroot" side={old} part={part.then} onPrompt={(prompt) => set({ prompt })} />
        <Side title="LLaMA-style" side={now} part={part.now} onPrompt={(prompt) => set({ tiny_prompt: prompt })} />
      </div>
      <fieldset class="gfx-choice">
        <legend>Exchange parts of BabyGroot</legend>
        <div class="gfx-choice-options">
          {SWITCHES.map(([name, label]) => <Switch key={name} label={label} on={state[name]} onChange={(on) => set({ [name]: on })} />)}
        </div>
      </fieldset>
      <Ledger books={books} />
    </Frame>
  );
}

/** Return one model with its readable prompt and the pass over it. */
function useSide(model, vocabulary, text, max, standard) {
  const prompt = usePrompt(text, vocabulary, max, standard);
  const pass = useMemo(() => ({ model, seen: model.trace(prompt.ids) }), [model, String(prompt.ids)]);
  return { model, vocabulary, max, prompt, pass, words: prompt.ids.map((id) => vocabulary.word(id)) };
}

function Side({ title, side, part, onPrompt }) {
  const { prompt, pass, words, vocabulary, max } = side;
  const last = part.shows[part.shows.length - 1];
  const shown = pass.seen[last].shape.length === 3 ? [0, words.length - 1, 0] : [words.length - 1, 0];
  return (
    <div class="gfx-modern-side" role="group" aria-label={title}>
      <Scope pass={pass} first={{ name: last, index: shown }}>
        <Prompt label={`${title} reads`} value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={max} onChange={onPrompt} />
        <p><b>{upper(part.what)}</b> {part.does}</p>
        {part.shows.map((name) => <Tensor key={name} name={name} tensor={pass.seen[name]} words={words} model={side.model} />)}
      </Scope>
    </div>
  );
}

/** One tensor; of one with heads, a matrix for each head. */
function Tensor({ name, tensor, words, model }) {
  const own = name.replace("layers.0.", "");
  const heads = tensor.shape.length === 3 ? tensor.shape[0] : 1;
  const square = own === "attention";
  const marks = { role: ROLES[own] ?? "residual", rows: words, columns: square ? words : undefined, scale: square ? 1 : undefined };
  return Array.from({ length: heads }, (_, head) => (
    <Matrix key={head} name={name} tensor={tensor} head={head} {...marks} title={heads > 1 ? headTitle(name, own, head, model) : undefined} bare={head > 0} />
  ));
}

function headTitle(name, own, head, { config }) {
  const reads = own === "attention" ? `, reads keys and values ${Math.floor((head * config.kv_heads) / config.n_heads)}` : "";
  return <><span class="gfx-mono">{name}</span>, head {head}{reads}</>;
}

function Ledger({ books }) {
  const rows = [...Object.keys(LABELS), "total", "cached"].map((name) => {
    const [plain, changed, modern] = books.map((book, n) => ({ name: `${MODELS[n]}: ${name}`, index: [], value: amount(book, name), show: count }));
    const label = LABELS[name] ?? { total: "all parameters", cached: "numbers cached a token" }[name];
    return [label, plain, changed, signed(changed.value - plain.value), modern];
  });
  return <Figures label="Parameters by part" columns={["part", "BabyGroot", "exchanged", "difference", "LLaMA-style"]} rows={rows} />;
}

function signed(n) {
  return n === 0 ? "" : n > 0 ? `+${count(n)}` : count(n);
}

function upper(words) {
  return words[0].toUpperCase() + words.slice(1);
}

function sentence(part, old, now, state, [plain, changed]) {
  const exchanged = SWITCHES.filter(([name]) => state[name]).map(([, label]) => label);
  const told = exchanged.length ? `with ${exchanged.join(", ")} BabyGroot would have ${count(changed.total)} parameters instead of ${count(plain.total)} and cache ${count(changed.cached)} numbers a token instead of ${count(plain.cached)}` : `BabyGroot as it is has ${count(plain.total)} parameters and would cache ${count(plain.cached)} numbers a token`;
  return `${upper(part.then.what)} in BabyGroot, ${part.now.what} in the LLaMA-style model; ${told}.`;
}

function twin(part, old, now, books) {
  const tables = [[part.then, old], [part.now, now]].flatMap(([{ shows }, { pass, words }]) => shows.flatMap((name) => tablesOf(name, pass.seen[name], words)));
  const rows = Object.entries(LABELS).map(([name, label]) => [label, ...books.map(({ parts }) => parts[name])]);
  return [...tables, { caption: "Parameters", columns: ["part", "BabyGroot", "exchanged", "LLaMA-style"], rows }];
}

function tablesOf(name, tensor, words) {
  const [width] = tensor.shape.slice(-1), heads = tensor.shape.length === 3 ? tensor.shape[0] : 1;
  return Array.from({ length: heads }, (_, head) => ({
    caption: heads > 1 ? `${name}, head ${head}` : name,
    columns: ["token", ...Array.from({ length: width }, (_, c) => String(c))],
    rows: words.map((word, t) => [word, ...row(tensor, head * words.length + t)]),
  }));
}
