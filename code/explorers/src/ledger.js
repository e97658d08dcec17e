/** Where BabyGroot's parameters go, and where they would go if its parts were exchanged one by one. */

/** Query heads, and key and value heads, of a BabyGroot with grouped heads. */
export const GROUPED = Object.freeze({ heads: 4, kvHeads: 2 });

/**
 * Return parameters by part, and the numbers that a cache would keep for each token.
 * @param {{vocabSize: number, maxLen: number, dim: number}} model
 * @param {{rmsnorm?: boolean, rotary?: boolean, swiglu?: boolean, grouped?: boolean}} [exchanged]
 * @returns {{parts: Object<string, number>, total: number, cached: number}}
 */
export function ledger({ vocabSize: V, maxLen, dim: d }, { rmsnorm, rotary, swiglu, grouped } = {}) {
  const hidden = 2 * d; // both feed-forward networks widen a vector to twice its size
  const shared = (d / GROUPED.heads) * GROUPED.kvHeads; // numbers in the keys of one token, all heads
  const parts = {
    tokens: V * d,
    positions: rotary ? 0 : maxLen * d,
    attention: grouped ? 2 * d * d + 2 * d * shared : 3 * (d * d + d),
    ffn: swiglu ? 3 * d * hidden : 2 * d * hidden + hidden + d,
    norms: rmsnorm ? 2 * d : 4 * d,
    head: V * d + V,
  };
  const total = Object.values(parts).reduce((sum, n) => sum + n, 0);
  return { parts, total, cached: 2 * (grouped ? shared : d) };
}

/** Return the same for a Transformer's config. */
export function ledgerOf(config) {
  const { embedding, attention, ffn, norms, head } = config.paramsByPart();
  const parts = { tokens: embedding, positions: 0, attention, ffn, norms, head };
  return { parts, total: config.numParams(), cached: config.kvCacheValues() };
}
