/**
 * The matrix products of both models, each as it is computed: rows times columns. Numbers are refs
 * {name, index, value}, so that each can be explained where it came from.
 *
 * @typedef {{name: string, index: number[], value: number}} Ref
 * @typedef {{rows: number, inner: number, columns: number, left: function(number, number): Ref,
 *   right: function(number, number): Ref, result: (function(number, number): Ref)|null, names: string[],
 *   roles: string[], words: boolean, then: [string, function(number, number): Ref][]}} Product
 *   `result` is null where the trace holds only what becomes of it; `names` of the left factor, the right one and the result; `words`: columns are words, or tokens;
 *   `then`: what becomes of a cell, in order
 */

import { at } from "./engine/index.js";
import { explanation, sum, symbolOf } from "./provenance.js";

/** The products of each model, in the order of a pass: [name, label]. */
export const PRODUCTS = {
  groot: [
    ["q", "Q = H₀ W_Qᵀ + b_Q"], ["k", "K = H₀ W_Kᵀ + b_K"], ["v", "V = H₀ W_Vᵀ + b_V"],
    ["scores", "Q Kᵀ"], ["context", "A V"],
    ["ffn_hidden", "N₁ W₁ᵀ + b₁"], ["ffn_out", "ReLU(…) W₂ᵀ + b₂"], ["logits", "hidden × head + b"],
  ],
  tiny: [
    ["q", "Q = x W_Qᵀ"], ["k", "K = x W_Kᵀ"], ["v", "V = x W_Vᵀ"],
    ["scores", "Q′ K′ᵀ"], ["context", "A V"], ["attention_out", "context W_Oᵀ"],
    ["ffn_gate", "x W_gateᵀ"], ["ffn_up", "x W_upᵀ"], ["ffn_out", "SwiGLU hidden W_downᵀ"], ["logits", "hidden × head"],
  ],
};

/** All names of products. */
export const NAMES = [...new Set(Object.values(PRODUCTS).flat().map(([name]) => name))];

const GROOT_LINEAR = {
  q: ["h0", "transformer.attn.q"], k: ["h0", "transformer.attn.k"], v: ["h0", "transformer.attn.v"],
  ffn_hidden: ["n1", "transformer.ffn.0"], ffn_out: ["ffn_activation", "transformer.ffn.2"],
  logits: ["h_out", "head"],
};
const TINY_LINEAR = {
  q: ["attention_norm", "attention.wq"], k: ["attention_norm", "attention.wk"], v: ["attention_norm", "attention.wv"],
  attention_out: ["context", "attention.wo"], ffn_gate: ["ffn_norm", "feed_forward.w_gate"],
  ffn_up: ["ffn_norm", "feed_forward.w_up"], ffn_out: ["ffn_hidden", "feed_forward.w_down"],
};
const ROLES = {
  q: ["residual", "query", "query"], k: ["residual", "key", "key"], v: ["residual", "value", "value"],
  scores: ["query", "key", "scores"], context: ["attention", "value", "context"],
  logits: ["residual", "token", "scores"],
};

/**
 * Return a product of a pass; one that the model does not have becomes its scores.
 * @param {import("./provenance.js").Pass} pass
 * @param {string} name
 * @param {number} [layer]
 * @param {number} [head]
 * @returns {Product & {name: string}}
 */
export function productOf(pass, name, layer = 0, head = 0) {
  const modern = Boolean(pass.model.config), kinds = PRODUCTS[modern ? "tiny" : "groot"];
  const own = kinds.some(([known]) => known === name) ? name : "scores";
  const made = (modern ? ofTiny : ofGroot)(pass, own, layer, head);
  return { then: [], words: false, ...made, name: own, roles: ROLES[own] ?? ["residual", "residual", "residual"] };
}

/** Return a function that finds numbers of a pass or of its weights. */
function finder({ model, seen }) {
  return (name, ...index) => ({ name, index, value: at(seen[name] ?? model.weights[name], ...index) });
}

function ofGroot(pass, name) {
  const { seen, model } = pass, ref = finder(pass), T = seen.ids.shape[0];
  if (name === "scores") {
    const then = [[`÷ √${model.dim}`, "scores"], ["mask", "masked_scores"], ["softmax", "attention"]];
    return {
      rows: T, inner: model.dim, columns: T, words: true, names: ["q", "k", "scores"],
      left: (r, i) => ref("q", r, i), right: (i, c) => ref("k", c, i), result: null,
      then: then.map(([label, of]) => [label, (r, c) => ref(of, r, c)]),
    };
  }
  if (name === "context") return { ...summed(ref, T, model.dim), names: ["attention", "v", "context"] };
  const [x, weights] = GROOT_LINEAR[name], bias = symbolOf(`${weights}.bias`);
  const then = [[`+ ${bias}`, (r, c) => ref(name, r, c)]];
  if (name === "logits") then.push(["softmax", (r, c) => ref("probabilities", r, c)]);
  return {
    ...linear(pass, x, `${weights}.weight`), then, names: [x, `${weights}.weight`, name], words: name === "logits", result: null,
  };
}

function ofTiny(pass, name, layer, head) {
  const { seen, model: { config, weights } } = pass, ref = finder(pass), T = seen.ids.shape[0];
  const here = (own) => `layers.${layer}.${own}`, D = config.head_dim;
  const shared = Math.floor((head * config.kv_heads) / config.n_heads);
  if (name === "scores") {
    const [q, k] = [here("q_rotated"), here("k_rotated")];
    const then = [[`÷ √${D}`, "scores"], ["mask", "masked_scores"], ["softmax", "attention"]];
    return {
      rows: T, inner: D, columns: T, words: true, names: [q, k, here("scores")],
      left: (r, i) => ref(q, head, r, i), right: (i, c) => ref(k, shared, c, i), result: null,
      then: then.map(([label, of]) => [label, (r, c) => ref(here(of), head, r, c)]),
    };
  }
  if (name === "context") {
    const [A, V, context] = [here("attention"), here("v"), here("context")];
    return {
      rows: T, inner: T, columns: D, names: [A, V, context], left: (r, i) => ref(A, head, r, i),
      right: (i, c) => ref(V, shared, i, c), result: (r, c) => ref(context, r, head * D + c),
    };
  }
  if (name === "logits") {
    const W = weights["output.weight"] ? "output.weight" : "tok_embeddings.weight";
    const then = [["softmax", (r, c) => ref("probabilities", r, c)]];
    return { ...linear(pass, "h_out", W), then, names: ["h_out", W, name], words: true, result: (r, c) => ref(name, r, c) };
  }
  const [x, matrix] = TINY_LINEAR[name], W = here(`${matrix}.weight`), heads = seen[here(name)].shape.length === 3;
  const result = (r, c) => (heads ? ref(here(name), Math.floor(c / D), r, c % D) : ref(here(name), r, c));
  return { ...linear(pass, here(x), W), names: [here(x), W, here(name)], result };
}

/** Return the factors of A V in BabyGroot. */
function summed(ref, T, d) {
  return {
    rows: T, inner: T, columns: d, left: (r, i) => ref("attention", r, i),
    right: (i, c) => ref("v", i, c), result: (r, c) => ref("context", r, c),
  };
}

/** Return the factors of x Wᵀ. */
function linear(pass, x, W) {
  const ref = finder(pass), [columns, inner] = pass.model.weights[W].shape;
  return {
    rows: pass.seen[x].shape[0], inner, columns, left: (r, i) => ref(x, r, i), right: (i, c) => ref(W, c, i),
  };
}

/** One product of a pass, all its numbers at hand, and what explains those on the way to a cell. */
export class Filled {
  /** @param {Product} product */
  constructor(product) {
    this.product = product;
    const { rows, inner, columns, left, right } = product;
    const grid = (height, width, make) =>
      Array.from({ length: height }, (_, r) => Array.from({ length: width }, (_, c) => make(r, c)));
    this.left = grid(rows, inner, left);
    this.right = grid(inner, columns, right);
    this.cells = grid(rows, columns, (r, c) => product.result?.(r, c) ?? this.whole(r, c));
  }

  /** Return the sum of all terms of a cell, as a number of its own. */
  whole(r, c) {
    return { name: "product", index: [r, c], value: this.sum(r, c, this.product.inner) };
  }

  /** Return the sum of the first n terms of a cell. */
  sum(r, c, n) {
    let total = 0;
    for (let i = 0; i < n; i++) total += this.left[r][i].value * this.right[i][c].value;
    return total;
  }

  /** Return the first n terms of a cell: [left, right, product, sum so far], each a ref. */
  terms(r, c, n) {
    let total = 0;
    return Array.from({ length: n }, (_, i) => {
      const a = this.left[r][i], b = this.right[i][c], value = a.value * b.value;
      total += value;
      return [a, b, { name: "term", index: [r, c, i], value }, { name: "sum", index: [r, c, i], value: total }];
    });
  }

  /** Return how a term, a sum so far or a cell was made; null for what the trace knows. */
  explain({ name, index }) {
    const [r, c, i] = index, factors = (n) => [this.left[r][n], " · ", this.right[n][c]];
    if (name === "product") {
      const parts = sum(this.product.inner, factors);
      return explanation({ name, index }, this.sum(r, c, this.product.inner), { symbol: "row · column", parts });
    }
    if (name === "term") {
      return explanation({ name, index }, this.left[r][i].value * this.right[i][c].value, { symbol: `term ${i}`, parts: factors(i) });
    }
    if (name !== "sum") return null;
    const [, , term, total] = this.terms(r, c, i + 1)[i];
    const before = i ? [{ name, index: [r, c, i - 1], value: this.sum(r, c, i) }, " + "] : [];
    return explanation({ name, index }, total.value, { symbol: "sum so far", parts: [...before, term] });
  }
}
