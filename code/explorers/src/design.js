/**
 * A design of a Transformer: what its config costs, how each number follows from the fields, and what
 * keeps it from the milestones.
 */

import { DEFAULTS, TransformerConfig, brokenRules } from "./engine/index.js";
import { count } from "./kit/format.js";
import { explanation } from "./provenance.js";

export const BUDGET = 2_000_000;
// The milestones, as in `glassformer.milestones`.
const M1 = { shortestWindow: 32, longestWindow: 2 ** 20, largestVocabulary: 2 ** 18 };
const M2 = { sequences: 8, tokens: 512, bytes: 8_000_000 };
const AS_M1 = "It allows no more parameters than M1."; // for a sentence that M1 has said
const BYTES = 4; // of a float32

/** The fields of a config, in the order of the file. */
export const FIELDS = ["vocab_size", "dim", "n_layers", "n_heads", ...Object.keys(DEFAULTS)];

/** The designs of the book. */
export const PRESETS = {
  plain: [2_048, 128, 4, 4, 2, 256, 4, false],
  "many words": [8_192, 128, 4, 4, 2, 256, 4, true],
  "many layers": [256, 96, 20, 6, 2, 512, 4, true],
  "long memory": [2_048, 192, 4, 6, 1, 2_048, 4, true],
  "tiny LLaMA": [8, 32, 2, 4, 2, 16, 2, false],
  "Llama 3 8B": [128_256, 4_096, 32, 32, 8, 8_192, 5.25, false],
};
const CHOSEN = [...FIELDS.slice(0, 7), "tie_word_embeddings"]; // what a preset lists

/** Return the fields of a preset; those that cost nothing are as they are by default. */
export function preset(name) {
  const values = Object.fromEntries(CHOSEN.map((field, n) => [field, PRESETS[name][n]]));
  return { ...DEFAULTS, ...values };
}

/** A design that may break rules; one that breaks none has a config. */
export class Design {
  /** @param {Object<string, *>} values the fields, and `extra`, an object of further keys */
  constructor({ extra, ...values }) {
    this.values = values;
    this.broken = brokenRules(values);
    this.config = this.broken.length ? null : new TransformerConfig({ ...extra, ...values });
  }

  /**
   * Return what keeps a valid design from each milestone, in the sentences of `judge_m1` and
   * `judge_m2`; none: accepted.
   * @param {number} [budget] of parameters
   * @returns {{M1: string[], M2: string[]}}
   */
  findings(budget = BUDGET) {
    const { config } = this, over = config.numParams() > budget;
    return {
      M1: [...(over ? [overBudget(config, budget)] : []), ...shortWindow(config, M1.shortestWindow), ...tooLarge(config)],
      M2: [...(over ? [AS_M1] : []), ...shortWindow(config, M2.tokens), ...overCache(config)],
    };
  }

  /**
   * Return what explains the numbers of a valid design, by name.
   * @param {number} budget
   * @returns {function({name: string}): object|null}
   */
  explainer(budget) {
    const rules = rulesOf(this.config, budget);
    return (ref) => (Object.hasOwn(rules, ref.name) ? told(rules, ref.name) : null);
  }

  /**
   * Return the value of a number of a valid design, by the name that the explainer knows.
   * @param {string} name
   * @param {number} budget
   */
  value(name, budget) {
    return rulesOf(this.config, budget)[name].value;
  }
}

function overBudget(config, budget) {
  const params = config.numParams();
  const ways = ["vocab_size", "dim", "n_layers"]
    .map((field) => [field, largestWithin(config, field, budget)])
    .filter(([, largest]) => largest)
    .map(([field, largest]) => `${field} at most ${count(largest)}`);
  const advice = ways.length
    ? `with all else as it is, take ${ways.join(", or ")}`
    : "no single field can mend that: make dim, vocab_size and n_layers smaller together";
  return `The design has ${count(params)} parameters, ${count(params - budget)} more than the ${count(budget)} allowed; ${advice}.`;
}

function shortWindow({ max_seq_len: window }, least) {
  return window < least ? [`max_seq_len = ${window} is too short for ${least} tokens: set it to ${least} or more.`] : [];
}

/** Say which fields are larger than a model can be tried out with. */
function tooLarge(config) {
  return [["vocab_size", M1.largestVocabulary], ["max_seq_len", M1.longestWindow]]
    .filter(([field, most]) => config[field] > most)
    .map(([field, most]) => (
      `${field} = ${count(config[field])} is more than a model of this size can be tried out with: ` +
      `set it to ${count(most)} or less.`
    ));
}

/** Say by how much the cache of M2's batch is too large, and which n_kv_heads would do. */
function overCache(config) {
  const { sequences, tokens, bytes } = M2;
  const taken = config.kvCacheBytes(tokens, sequences, BYTES);
  if (taken < bytes) return [];
  const most = Math.floor((bytes - 1) / (taken / config.kv_heads)); // of key/value heads that fit
  const fits = Array.from({ length: most }, (_, n) => most - n).find((heads) => config.n_heads % heads === 0);
  const advice = fits
    ? `with all else as it is, take n_kv_heads at most ${fits}`
    : "no n_kv_heads alone can mend that: take fewer layers, or more and smaller heads";
  return [
    `The cache of ${sequences} sequences of ${tokens} tokens takes ${count(taken)} bytes, ` +
      `and ${count(bytes)} are the limit; ${advice}.`,
  ];
}

/** Return the largest value of one field, the others unchanged, within a budget; 0 if none is. */
function largestWithin(config, field, budget) {
  const step = field === "dim" ? 2 * config.n_heads : 1;
  let low = 0, high = Math.floor(config[field] / step); // in steps; `high` itself is over budget
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const fits = new TransformerConfig({ ...config.toJSON(), [field]: middle * step }).numParams() <= budget;
    [low, high] = fits ? [middle, high] : [low, middle];
  }
  return low * step;
}

/** Return {value, parts, note} of each number of a design; parts name other numbers in braces. */
function rulesOf(c, budget) {
  const parts = c.paramsByPart(), params = c.numParams();
  const chosen = FIELDS.filter((field) => typeof c[field] === "number");
  const looking = (tokens) => `2 · ({attention} + {ffn} + {vocab_size} · {dim} + 2 · {n_layers} · {dim} · ${tokens})`;
  const rules = {
    ...Object.fromEntries(chosen.map((field) => [field, { value: c[field], note: "chosen" }])),
    n_kv_heads: { value: c.kv_heads, note: "chosen" },
    head_dim: { value: c.head_dim, formula: "{dim} / {n_heads}", note: "numbers in one head's vector" },
    ffn_hidden_dim: {
      value: c.ffn_hidden_dim,
      formula: "64 · ⌈⌊2/3 · {ffn_dim_multiplier} · {dim}⌋ / 64⌉",
      note: "rounded up to a multiple of 64, and at least 64",
    },
    embedding: { value: parts.embedding, formula: "{vocab_size} · {dim}", note: "a vector for each token" },
    attention: {
      value: parts.attention,
      formula: "{n_layers} · (2 · {dim} · {dim} + 2 · {dim} · {n_kv_heads} · {head_dim})",
      note: "W_Q and W_O; W_K and W_V",
    },
    ffn: { value: parts.ffn, formula: "{n_layers} · 3 · {dim} · {ffn_hidden_dim}", note: "gate, up and down" },
    norms: { value: parts.norms, formula: "(2 · {n_layers} + 1) · {dim}", note: "two in a block and one at the end" },
    head: c.tie_word_embeddings
      ? { value: 0, note: "tied: the token table is used again" }
      : { value: parts.head, formula: "{vocab_size} · {dim}", note: "a vector for each token that could come next" },
    parameters: { value: params, formula: "{embedding} + {attention} + {ffn} + {norms} + {head}", note: "" },
    budget: { value: budget, note: "what milestone M1 allows" },
    left: { value: budget - params, formula: "{budget} − {parameters}", note: "" },
    "cache a token": {
      value: c.kvCacheValues(),
      formula: "2 · {n_layers} · {n_kv_heads} · {head_dim}",
      note: "numbers: a key and a value for each block and key/value head",
    },
    "cache, full window": {
      value: c.kvCacheBytes(c.max_seq_len, 1, BYTES),
      formula: `{cache a token} · {max_seq_len} · ${BYTES}`,
      note: `bytes, ${BYTES} a number`,
    },
    "FLOPs, first token": { value: c.flopsPerToken(1), formula: looking("1"), note: "each multiplication with its addition: 2" },
    "FLOPs, last token": { value: c.flopsPerToken(), formula: looking("{max_seq_len}"), note: "a token that sees a full window" },
  };
  for (const part of Object.keys(parts)) {
    rules[`${part}: share`] = { value: parts[part] / params, formula: `{${part}} / {parameters}`, note: "" };
  }
  return rules;
}

function told(rules, name) {
  const { value, formula = "", note } = rules[name];
  const digits = (n) => (Number.isInteger(n) ? 0 : 6);
  const parts = formula.split(/[{}]/).map((part, n) => (n % 2 ? { name: part, index: [], value: rules[part].value, digits: digits(rules[part].value) } : part));
  return explanation({ name, index: [] }, value, { symbol: " ", digits: digits(value), parts: parts.filter((part) => part !== ""), note });
}
