/** Where BabyGroot's parameters go, and where they would go if its parts were exchanged one by one. */

import { explanation } from "./provenance.js";

/** Query heads, and key and value heads, of a BabyGroot with grouped heads. */
export const GROUPED = Object.freeze({ heads: 4, kvHeads: 2 });

/**
 * Return parameters by part, and the numbers that a cache would keep for each token; `terms` are what
 * these are the sums of, each a product.
 * @param {{vocabSize: number, maxLen: number, dim: number}} model
 * @param {{rmsnorm?: boolean, rotary?: boolean, swiglu?: boolean, grouped?: boolean}} [exchanged]
 * @returns {{parts: Object<string, number>, total: number, cached: number, terms: Object<string, number[][]>}}
 */
export function ledger({ vocabSize: V, maxLen, dim: d }, { rmsnorm, rotary, swiglu, grouped } = {}) {
  const hidden = 2 * d; // both feed-forward networks widen a vector to twice its size
  const shared = (d / GROUPED.heads) * GROUPED.kvHeads; // numbers in the keys of one token, all heads
  return book({
    tokens: [[V, d]],
    positions: rotary ? [] : [[maxLen, d]],
    attention: grouped ? [[2, d, d], [2, d, shared]] : [[3, d, d], [3, d]],
    ffn: swiglu ? [[3, d, hidden]] : [[2, d, hidden], [hidden], [d]],
    norms: [[rmsnorm ? 2 : 4, d]],
    head: [[V, d], [V]],
    cached: [[2, grouped ? shared : d]],
  });
}

/** Return the same for a Transformer's config. */
export function ledgerOf({ vocab_size: V, dim: d, n_layers: L, kv_heads: K, head_dim: D, ffn_hidden_dim: hidden, tie_word_embeddings: tied }) {
  return book({
    tokens: [[V, d]],
    positions: [],
    attention: [[L, 2, d, d], [L, 2, d, K, D]],
    ffn: [[L, 3, d, hidden]],
    norms: [[2 * L + 1, d]],
    head: tied ? [] : [[V, d]],
    cached: [[2, L, K, D]],
  });
}

function book(terms) {
  const value = (products) => products.reduce((sum, factors) => sum + factors.reduce((a, b) => a * b), 0);
  const { cached, ...parts } = Object.fromEntries(Object.entries(terms).map(([name, products]) => [name, value(products)]));
  return { parts, total: Object.values(parts).reduce((sum, n) => sum + n, 0), cached, terms };
}

/**
 * Return what explains the numbers of books, named such as "BabyGroot: attention", "BabyGroot: total".
 * @param {Object<string, ReturnType<ledger>>} books by the names of their models
 */
export function explainLedger(books) {
  const ref = (model, name) => ({ name: `${model}: ${name}`, index: [], digits: 0, value: amount(books[model], name) });
  return ({ name, index }) => {
    const [model, own] = name.split(": "), found = Object.hasOwn(books, model) ? books[model] : null;
    if (!found) return null;
    const parts =
      own === "total"
        ? Object.keys(found.parts).flatMap((part, n) => [...(n ? [" + "] : []), ref(model, part)])
        : [found.terms[own].map((factors) => factors.join(" · ")).join(" + ") || "0"];
    return explanation({ name, index }, amount(found, own), { symbol: " ", digits: 0, parts });
  };
}

/** Return one number of a book: a part's parameters, "total", or "cached". */
export function amount({ parts, total, cached }, name) {
  return { ...parts, total, cached }[name];
}
