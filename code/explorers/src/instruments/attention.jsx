/** Attention of BabyGroot, step by step: Q Kᵀ → scale → mask → softmax → A V. */

import { useMemo } from "preact/hooks";
import { explain } from "../provenance.js";
import {
  Bars, Choice, Frame, Matrix, Prompt, Row, Switch, Tokens, choice, flag, percent, text, usePrompt, whole,
} from "../kit/index.js";

const PROMPT = "<START> i am groot";

/** Each step: its name in the state, its label, what happens in it, and the tensors it shows. */
const STEPS = [
  ["qkv", "Q, K, V", "Each token's vector in H₀ becomes a query, a key and a value.", ["q", "k", "v"]],
  ["products", "Q Kᵀ", "Every query meets every key: their dot product says how well they fit.", ["q", "k", "products"]],
  ["scores", "÷ √d", "Products grow with the width d of the vectors; dividing by √d takes that back.", ["scores"]],
  ["masked_scores", "mask", "What comes after a token is hidden from it: its score is set so low that it cannot count.", ["masked_scores"]],
  ["attention", "softmax", "Softmax turns each row of scores into shares that sum to one.", ["masked_scores", "attention"]],
  ["context", "A V", "Each token gathers the values, each by its share.", ["attention", "v", "context"]],
];

const PRODUCTS = "QKᵀ";

const ROLES = {
  q: "query", k: "key", v: "value", products: "scores", scores: "scores", masked_scores: "scores", attention: "attention", context: "context",
};

export const attention = {
  name: "attention",
  title: "Attention, step by step",
  fields: {
    prompt: text(PROMPT),
    query: whole(2, 0, 63),
    step: choice("attention", STEPS.map(([name]) => name)),
    scale: flag(true),
    mask: flag(true),
  },
  View,
};

function View({ state, set, data }) {
  const { groot, vocabulary } = data;
  const prompt = usePrompt(state.prompt, vocabulary, groot.maxLen, PROMPT);
  const { step, scale, mask } = state;
  const ids = String(prompt.ids);
  const pass = useMemo(() => passOf(groot, prompt.ids, { scale, mask }), [groot, ids, scale, mask]);
  const unscaled = useMemo(() => passOf(groot, prompt.ids, { scale: false }), [groot, ids]);
  const explainer = useMemo(() => explainerOf(unscaled), [unscaled]);
  const seen = { ...pass.seen, products: unscaled.seen.scores };
  const query = Math.min(state.query, prompt.ids.length - 1);
  const words = prompt.ids.map((id) => vocabulary.word(id));
  const [, , what, names] = STEPS.find(([name]) => name === step);
  const result = names[names.length - 1];
  return (
    <Frame
      pass={pass} explainer={explainer} sentence={sentence(seen.attention, words, query)} twin={twin(seen, names, words)}
      first={{ name: result === "v" ? "q" : result, index: [query, 0] }}
    >
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={groot.maxLen} onChange={(text) => set({ prompt: text })} />
      <Tokens label="Whose query?" words={words} ids={prompt.ids} chosen={query} onChoose={(n) => set({ query: n })} />
      <Choice label="Step" value={step} options={STEPS.map(([name, label]) => [name, label])} onChange={(name) => set({ step: name })} />
      <Row>
        <Switch label="divide by √d" on={scale} onChange={(on) => set({ scale: on })} />
        <Switch label="causal mask" on={mask} onChange={(on) => set({ mask: on })} />
      </Row>
      <p>{what}</p>
      <Row>
        {names.map((name) => (
          <Matrix
            key={name} name={name} title={titleOf(name, scale)} tensor={seen[name]} role={ROLES[name]} rows={words}
            columns={isSquare(name) ? words : undefined} lit={rowOf(seen[name], name, query)} scale={name === "attention" ? 1 : undefined}
          />
        ))}
      </Row>
      <Bars
        label={`Where ${words[query]} looks`} role="attention"
        bars={words.map((word, n) => ({ key: n, label: word, share: seen.attention.data[query * words.length + n], name: "attention", index: [query, n] }))}
      />
    </Frame>
  );
}

function passOf(model, ids, switches) {
  return { model, switches, seen: model.trace(ids, { switches }) };
}

/** Return what explains the products, which a pass holds under the name of scores that are not scaled. */
function explainerOf(unscaled) {
  return ({ name, index }) => {
    if (name !== "products") return null;
    const { rule, ...found } = explain(unscaled, "scores", index);
    return { ...found, name, symbol: PRODUCTS, rule: rule.replace("scores", name) };
  };
}

/** Return what stands over a matrix of scores that are not divided; others have their own symbols. */
function titleOf(name, scale) {
  if (name !== "products" && (name !== "scores" || scale)) return undefined;
  return <><b>{PRODUCTS}</b> <span class="gfx-mono gfx-muted">{name}</span></>;
}

function isSquare(name) {
  return ["products", "scores", "masked_scores", "attention"].includes(name);
}

/** Return the keys of the chosen query's row; keys and values belong to all queries. */
function rowOf({ shape }, name, query) {
  if (name === "k" || name === "v") return [];
  return Array.from({ length: shape[1] }, (_, c) => `${name}[${query},${c}]`);
}

function sentence({ data }, words, query) {
  const T = words.length, shares = Array.from(data.subarray(query * T, (query + 1) * T));
  const told = shares.map((share, n) => `${percent(share)} to ${words[n]}`);
  return `${words[query]}, at position ${query}, gives ${told.join(", ")}.`;
}

function twin(seen, names, words) {
  return names.map((name) => {
    const { shape, data } = seen[name];
    const columns = isSquare(name) ? words : Array.from({ length: shape[1] }, (_, c) => String(c));
    const rows = words.map((word, t) => [word, ...data.subarray(t * shape[1], (t + 1) * shape[1])]);
    return { caption: name, columns: ["token", ...columns], rows };
  });
}
