/**
 * Where a number comes from: its formula, with the operands filled in.
 *
 * The `parts` of an explanation, read one after the other, are a formula that can be worked out by
 * hand: text holds signs and constants (+ − · / ^ ² √ e ∞, cos, sin, max), everything else a number. A
 * negative number among other parts is meant to be shown in parentheses.
 *
 * Positions count from the first token of the text, in a pass that continues a cache as well: there
 * `layers.0.q` with index [head, 5, i] is the query of token 5, as it is in a pass over all tokens. The
 * pass starts at `startOf(pass)`; of what came before it, `k_rotated` and `v` are found in the cache.
 *
 * @typedef {{name: string, index: number[], value: number}} Ref a number of the trace or of the weights
 * @typedef {{label: string, value: number, parts: Part[]}} Result a number made on the way: a mean, a
 *   mean square, a variance, an angle, with a formula of its own
 * @typedef {{fold: Part[]}} Fold the middle of a long sum, which may be shown as "…" and unfolded
 * @typedef {string|Ref|Result|Fold} Part
 * @typedef {{model: BabyGroot|Transformer, seen: Object<string, Tensor>, switches?: Partial<Switches>,
 *   cache?: KVCache, fault?: Fault|null}} Pass a model, its trace, and how the trace was made
 * @typedef {{name: string, index: number[], value: number, rule: string, parts: Part[], refs: Ref[],
 *   note: string}} Explanation `rule` is the formula in symbols; `parts` has the operands filled in
 *   (empty: the number is not computed here); `refs` are the operands, each once; `note` says in words
 *   what a formula cannot, or is ""
 *
 * @typedef {import("./engine/tensor.js").Tensor} Tensor
 * @typedef {import("./engine/baby_groot.js").BabyGroot} BabyGroot
 * @typedef {import("./engine/baby_groot.js").Switches} Switches
 * @typedef {import("./engine/transformer.js").Transformer} Transformer
 * @typedef {import("./engine/transformer.js").KVCache} KVCache
 * @typedef {import("./engine/transformer.js").Fault} Fault
 */

import { ALL_ON } from "./engine/baby_groot.js";
import { at } from "./engine/tensor.js";

const MANY = 8; // terms; of a longer sum, the middle is folded
const LAYER = /^layers\.(\d+)\./;
const LAYER_NORM_EPS = 1e-5;

const SYMBOLS = {
  token_embedding: "Eₜ", position_embedding: "Pₜ", h0: "H₀",
  q: "Q", k: "K", v: "V", q_rotated: "Q′", k_rotated: "K′",
  scores: "QKᵀ/√dₕ", attention: "A", context: "AV",
  r1: "R₁", n1: "N₁", ffn_out: "F", r2: "R₂", h_out: "H_out", logits: "z", probabilities: "p",
  "token_embedding.weight": "E", "position_embedding.weight": "P", "tok_embeddings.weight": "E",
  "transformer.attn.q.weight": "W_Q", "transformer.attn.q.bias": "b_Q",
  "transformer.attn.k.weight": "W_K", "transformer.attn.k.bias": "b_K",
  "transformer.attn.v.weight": "W_V", "transformer.attn.v.bias": "b_V",
  "transformer.norm1.weight": "γ₁", "transformer.norm1.bias": "β₁",
  "transformer.norm2.weight": "γ₂", "transformer.norm2.bias": "β₂",
  "transformer.ffn.0.weight": "W₁", "transformer.ffn.0.bias": "b₁",
  "transformer.ffn.2.weight": "W₂", "transformer.ffn.2.bias": "b₂",
  "head.weight": "W_head", "head.bias": "b_head", "output.weight": "W_head",
  "attention.wq.weight": "W_Q", "attention.wk.weight": "W_K", "attention.wv.weight": "W_V",
  "attention.wo.weight": "W_O", "feed_forward.w_gate.weight": "W_gate",
  "feed_forward.w_up.weight": "W_up", "feed_forward.w_down.weight": "W_down",
  "attention_norm.weight": "g", "ffn_norm.weight": "g", "norm.weight": "g",
};

/**
 * Return the symbol of a trace name or weight, or the name in words if the book has no symbol for it.
 * @param {string} name
 * @returns {string}
 */
export function symbolOf(name) {
  const own = name.replace(LAYER, "");
  return SYMBOLS[own] ?? own.replaceAll("_", " ");
}

/**
 * Return the position of a pass's first token: how many the cache held before it.
 * @param {Pass} pass
 * @returns {number}
 */
export function startOf({ model, seen }) {
  return model.config ? seen["layers.0.scores"].shape[2] - seen.ids.shape[0] : 0;
}

/**
 * Return how one number of a pass, or of the model's weights, was computed.
 * @param {Pass} pass
 * @param {string} name a trace name or the name of a weight
 * @param {number[]} index one whole number for each dimension
 * @returns {Explanation}
 */
export function explain(pass, name, index) {
  const start = startOf(pass);
  const { value, kind } = find(pass, start, name, index);
  const { rule, parts = [], note = "" } = LEAVES[kind] ?? recipe(pass, start, name)(...index);
  return {
    name, index, value, parts, note,
    rule: rule ? `${term(name, ...index)} = ${rule}` : term(name, ...index),
    refs: [...operands(parts).values()],
  };
}

const LEAVES = {
  learned: { note: "a learned number" },
  held: { note: "held in the cache since an earlier pass" },
};

/** Return a number's value, and whether it is "made" in the pass, "learned", or "held" in the cache. */
function find({ model, seen, cache }, start, name, index) {
  const made = Object.hasOwn(seen, name);
  let place = index, x = made ? seen[name] : model.weights[name], kind = made ? "made" : "learned";
  if (made && start > 0) {
    const dimension = x.shape.length === 3 ? 1 : 0; // the one that counts positions
    const [, layer, own] = name.match(/^layers\.(\d+)\.(k_rotated|v)$/) ?? [];
    if (own && index[dimension] < start) {
      kind = "held";
      x = (own === "v" ? cache.values : cache.keys)[layer];
    } else place = index.map((i, d) => (d === dimension ? i - start : i));
  }
  const inside = (i, d) => Number.isInteger(i) && i >= 0 && i < x.shape[d];
  if (place.length !== x?.shape?.length || !place.every(inside)) {
    throw new Error(`The pass has no number ${name}[${index}].`);
  }
  return { value: at(x, ...place), kind };
}

/** Return the function of an index that says how a number of that name was computed. */
function recipe(pass, start, name) {
  const { model, seen, switches } = pass, n = Number(name.match(LAYER)?.[1]);
  const p = {
    ...pass, start, n,
    on: { ...ALL_ON, ...switches },
    end: start + seen.ids.shape[0], // how many tokens there are, cached and new
    here: (own) => `layers.${n}.${own}`,
    width: (x) => (seen[x] ?? model.weights[x]).shape.at(-1),
    ref: (x, ...index) => ({ name: x, index, value: find(pass, start, x, index).value }),
  };
  const make = (model.config ? MODERN : GROOT)[name.replace(LAYER, "")];
  return (...index) => make(p, ...index);
}

// BabyGroot, in the order of its trace

const GROOT = {
  ids: () => GIVEN,
  token_embedding: (p, t, c) => token(p, "token_embedding.weight", t, c),
  position_embedding: (p, t, c) =>
    p.on.positions
      ? same(p, ["position_embedding.weight", t, c], `row ${t} of the table, for position ${t}`)
      : { rule: "0", parts: ["0"], note: "positions are switched off" },
  h0: (p, t, c) => plus(p, "token_embedding", "position_embedding", t, c),
  q: (p, t, c) => linear(p, "h0", t, "transformer.attn.q", c),
  k: (p, t, c) => linear(p, "h0", t, "transformer.attn.k", c),
  v: (p, t, c) => linear(p, "h0", t, "transformer.attn.v", c),
  scores: (p, t, s) => fit(p, ["q", t], ["k", s], p.on.scale),
  masked_scores: (p, t, s) => {
    if (!p.on.mask) return same(p, ["scores", t, s], "the mask is switched off");
    return mask(p, ["scores", t, s], s > t, s > t, "−10⁹");
  },
  attention: (p, t, s) => softmax(p, ["masked_scores", t], s),
  context: (p, t, c) => gather(p, ["attention", t], ["v"], c),
  r1: (p, t, c) => residual(p, "h0", "context", t, c),
  n1: (p, t, c) => layerNorm(p, "r1", "transformer.norm1", t, c),
  ffn_hidden: (p, t, c) => linear(p, "n1", t, "transformer.ffn.0", c),
  ffn_activation: (p, t, c) => ({
    rule: `max(0, ${term("ffn_hidden", t, c)})`,
    parts: ["max(0, ", p.ref("ffn_hidden", t, c), ")"],
  }),
  ffn_out: (p, t, c) => linear(p, "ffn_activation", t, "transformer.ffn.2", c),
  r2: (p, t, c) => residual(p, "n1", "ffn_out", t, c),
  h_out: (p, t, c) => layerNorm(p, "r2", "transformer.norm2", t, c),
  logits: (p, t, w) => linear(p, "h_out", t, "head", w),
  probabilities: (p, t, w) => softmax(p, ["logits", t], w),
};

// Transformer; `h` is its query head, `shared` the key and value head that it reads

const MODERN = {
  ids: () => GIVEN,
  h0: (p, t, c) => token(p, "tok_embeddings.weight", t, c),
  attention_norm: (p, t, c) => rmsNorm(p, stream(p, p.n), p.here("attention_norm.weight"), t, c),
  q: (p, h, t, c) => project(p, "wq", h, t, c),
  k: (p, h, t, c) => project(p, "wk", h, t, c),
  v: (p, h, t, c) => project(p, "wv", h, t, c),
  q_rotated: (p, h, t, c) => turn(p, "q", h, t, c),
  k_rotated: (p, h, t, c) => turn(p, "k", h, t, c),
  scores: (p, h, t, s) =>
    fit(p, [p.here("q_rotated"), h, t], [p.here("k_rotated"), shared(p, h), s], true),
  masked_scores: (p, h, t, s) =>
    mask(p, [p.here("scores"), h, t, s], s > t, isHidden(p, t, s), "−∞"),
  attention: (p, h, t, s) => softmax(p, [p.here("masked_scores"), h, t], s),
  context: (p, t, c) => {
    const D = p.model.config.head_dim, h = Math.floor(c / D);
    return gather(p, [p.here("attention"), h, t], [p.here("v"), shared(p, h)], c % D);
  },
  attention_out: (p, t, c) => linear(p, p.here("context"), t, p.here("attention.wo"), c),
  r1: (p, t, c) => plus(p, stream(p, p.n), p.here("attention_out"), t, c),
  ffn_norm: (p, t, c) => rmsNorm(p, p.here("r1"), p.here("ffn_norm.weight"), t, c),
  ffn_gate: (p, t, c) => linear(p, p.here("ffn_norm"), t, p.here("feed_forward.w_gate"), c),
  ffn_up: (p, t, c) => linear(p, p.here("ffn_norm"), t, p.here("feed_forward.w_up"), c),
  ffn_hidden: (p, t, c) => gated(p, t, c),
  ffn_out: (p, t, c) => linear(p, p.here("ffn_hidden"), t, p.here("feed_forward.w_down"), c),
  r2: (p, t, c) => plus(p, p.here("r1"), p.here("ffn_out"), t, c),
  h_out: (p, t, c) => rmsNorm(p, stream(p, p.model.config.n_layers), "norm.weight", t, c),
  logits: (p, t, w) => linear(p, "h_out", t, headName(p.model), w),
  probabilities: (p, t, w) => softmax(p, ["logits", t], w),
};

/** Return the name of the residual stream as layer n finds it. */
function stream(p, n) {
  return n ? `layers.${n - 1}.r2` : "h0";
}

/** Return the key and value head that query head h shares with its neighbours. */
function shared({ model: { config } }, h) {
  return Math.floor((h * config.kv_heads) / config.n_heads);
}

/** Return the head's name: its own, or the token table's if they are tied. */
function headName({ weights }) {
  return weights["output.weight"] ? "output" : "tok_embeddings";
}

/** Return whether the mask, or the fault in it, hides token s from query t. */
function isHidden({ start, end, fault }, t, s) {
  if (end - start === 1 || fault === "no mask") return false;
  return s > (fault === "first rows" ? t - start : t);
}

// Formulas: each returns {rule, parts, note}

const GIVEN = { note: "given: the number of the token in the vocabulary" };

/** The number of another place, as it is. */
function same(p, [name, ...index], note) {
  return { rule: term(name, ...index), parts: [p.ref(name, ...index)], note };
}

/** A number from the row of a table that a token's id names. */
function token(p, table, t, c) {
  const id = p.ref("ids", t).value;
  return same(p, [table, id, c], `row ${id} of the table, for token ${id}`);
}

function plus(p, a, b, t, c) {
  const parts = [p.ref(a, t, c), " + ", p.ref(b, t, c)];
  return { rule: `${term(a, t, c)} + ${term(b, t, c)}`, parts };
}

/** What a part of BabyGroot's block adds to the stream, or puts in its place. */
function residual(p, h, added, t, c) {
  if (p.on.residuals) return plus(p, h, added, t, c);
  return same(p, [added, t, c], "residuals are switched off");
}

/** Number o of row t of x Wᵀ + b; a model whose weights have no bias adds none. */
function linear(p, x, t, weights, o) {
  const W = `${weights}.weight`, b = `${weights}.bias`;
  const rule = `Σᵢ ${term(x, t, "i")} · ${term(W, o, "i")}`;
  const parts = sum(p.width(x), (i) => [p.ref(x, t, i), " · ", p.ref(W, o, i)]);
  if (!p.model.weights[b]) return { rule, parts };
  return { rule: `${rule} + ${term(b, o)}`, parts: [...parts, " + ", p.ref(b, o)] };
}

/** Number c of head h: the rows of the matrix are the heads' numbers, one head after the other. */
function project(p, matrix, h, t, c) {
  const o = h * p.model.config.head_dim + c;
  return linear(p, p.here("attention_norm"), t, p.here(`attention.${matrix}`), o);
}

/** How well a query fits a key: their dot product, divided by √d. */
function fit(p, query, key, scaled) {
  const d = p.width(query[0]), root = scaled ? ` / √${d}` : "";
  const rule = `Σᵢ ${term(...query, "i")} · ${term(...key, "i")}`;
  const parts = sum(d, (i) => [p.ref(...query, i), " · ", p.ref(...key, i)]);
  if (!scaled) return { rule, parts, note: "the scale is switched off" };
  return { rule: `(${rule})${root}`, parts: ["(", ...parts, `)${root}`] };
}

/** A score, or the number in its place that softmax turns into 0; a fault may hide the wrong ones. */
function mask(p, score, later, hidden, instead) {
  const when = `the key ${later ? "comes" : "does not come"} later than the query`;
  if (!hidden) return same(p, score, `${when}: the score stays`);
  return { rule: instead, parts: [instead], note: `${when}: it is hidden` };
}

/** eˣ divided by the sum of all eˣ of a row. */
function softmax(p, row, j) {
  const parts = sum(p.width(row[0]), (i) => ["e^", p.ref(...row, i)]);
  return {
    rule: `e^${term(...row, j)} / Σᵢ e^${term(...row, "i")}`,
    parts: ["e^", p.ref(...row, j), " / (", ...parts, ")"],
  };
}

/** What a query gathers: every token's value, weighted by the attention it gets. */
function gather(p, weights, values, c) {
  return {
    rule: `Σₛ ${term(...weights, "s")} · ${term(...values, "s", c)}`,
    parts: sum(p.end, (s) => [p.ref(...weights, s), " · ", p.ref(...values, s, c)]),
  };
}

function layerNorm(p, x, norm, t, c) {
  if (!p.on.normalisation) return same(p, [x, t, c], "normalisation is switched off");
  const row = Array.from({ length: p.width(x) }, (_, i) => p.ref(x, t, i));
  const mean = average("mean", row, (a) => [a], (a) => a.value);
  const away = (a) => (a.value - mean.value) ** 2;
  const variance = average("variance", row, (a) => ["(", a, " − ", mean, ")²"], away);
  const g = p.ref(`${norm}.weight`, c), b = p.ref(`${norm}.bias`, c);
  const below = ") / √(", eps = ` + ${LAYER_NORM_EPS}) · `;
  return {
    rule: `(${term(x, t, c)} − mean${below}variance${eps}${term(g.name, c)} + ${term(b.name, c)}`,
    parts: ["(", row[c], " − ", mean, below, variance, eps, g, " + ", b],
  };
}

function rmsNorm(p, x, weight, t, c) {
  const row = Array.from({ length: p.width(x) }, (_, i) => p.ref(x, t, i));
  const square = average("mean square", row, (a) => [a, "²"], (a) => a.value ** 2);
  const eps = ` + ${p.model.config.norm_eps}) · `;
  return {
    rule: `${term(x, t, c)} / √(mean square${eps}${term(weight, c)}`,
    parts: [row[c], " / √(", square, eps, p.ref(weight, c)],
  };
}

/** One of a pair of numbers after its turn, by an angle that grows with the position. */
function turn(p, own, h, t, c) {
  const { rope_theta: theta, head_dim: D } = p.model.config, x = p.here(own), pair = c >> 1;
  const position = p.fault === "position 0" ? t - p.start : t;
  const angle = {
    label: "angle",
    value: position * theta ** ((-2 * pair) / D),
    parts: [`${position} · ${theta}^(−2 · ${pair} / ${D})`],
  };
  const [first, then, sign] = c % 2 ? ["sin", "cos", "+"] : ["cos", "sin", "−"];
  const [a, b] = [2 * pair, 2 * pair + 1];
  return {
    rule: `${term(x, h, t, a)} · ${first} angle ${sign} ${term(x, h, t, b)} · ${then} angle`,
    parts: [
      p.ref(x, h, t, a), ` · ${first}(`, angle, `) ${sign} `, p.ref(x, h, t, b), ` · ${then}(`, angle, ")",
    ],
  };
}

/** SiLU(gate) · up. */
function gated(p, t, c) {
  const gate = p.ref(p.here("ffn_gate"), t, c), up = p.ref(p.here("ffn_up"), t, c);
  const z = term(gate.name, t, c);
  return {
    rule: `${z} / (1 + e^(−${z})) · ${term(up.name, t, c)}`,
    parts: [gate, " / (1 + e^(−", gate, ")) · ", up],
  };
}

// Pieces of formulas

/** Return a number in symbols: "Q[2,3]"; by its name where the symbol is a product or there is none. */
export function term(name, ...index) {
  const own = name.replace(LAYER, "");
  return `${/^(scores|context)$/.test(own) ? own : SYMBOLS[own] ?? own}[${index}]`;
}

/**
 * Return n terms with plus signs between them, those in the middle of a long sum folded.
 * @param {number} n
 * @param {function(number): Part[]} partsOf
 * @returns {Part[]}
 */
export function sum(n, partsOf) {
  const joined = (from, to) =>
    Array.from({ length: to - from }, (_, i) => [...(i ? [" + "] : []), ...partsOf(from + i)]).flat();
  if (n <= MANY) return joined(0, n);
  return [...joined(0, 3), " + ", { fold: joined(3, n - 1) }, " + ", ...joined(n - 1, n)];
}

/** Return the mean, over a row, of what `partsOf` writes and `valueOf` computes for a number. */
function average(label, row, partsOf, valueOf) {
  const value = row.reduce((total, a) => total + valueOf(a), 0) / row.length;
  return { label, value, parts: ["(", ...sum(row.length, (i) => partsOf(row[i])), `) / ${row.length}`] };
}

/**
 * Return the explanation of a number outside a pass, as `explain` does for those of one.
 * @param {{name: string, index: number[]}} ref
 * @param {number} value
 * @param {{symbol?: string, rule?: string, parts?: Part[], note?: string, digits?: number}} told
 * @returns {Explanation}
 */
export function explanation({ name, index }, value, { rule = "", parts = [], note = "", ...more }) {
  return { ...more, name, index, value, rule, parts, note, refs: [...operands(parts).values()] };
}

/** Return the distinct operands of parts in order, those of folds and of results among them. */
function operands(parts, found = new Map(), visited = new Set()) {
  for (const part of parts) {
    if (part.name) found.set(`${part.name}[${part.index}]`, part);
    const inner = part.fold ?? part.parts;
    if (!inner || visited.has(inner)) continue;
    visited.add(inner);
    operands(inner, found, visited);
  }
  return found;
}
