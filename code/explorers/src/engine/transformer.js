/**
 * A LLaMA-style Transformer: RMSNorm, rotary positions, grouped-query attention, SwiGLU, KV cache.
 * T = new tokens, S = all tokens so far (cached + new), C = dim, V = vocab_size,
 * H = query heads, K = key/value heads, D = head_dim.
 *
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {import("./arithmetic.js").Counter} Counter
 * @typedef {"position 0"|"first rows"|"no mask"} Fault a classic mistake, to be shown:
 *   "position 0": tokens are numbered within their pass, so each decoded one is turned as the first;
 *   "first rows": a later piece gets the first rows of the mask where the last belong;
 *   "no mask": pieces of several tokens are not masked at all
 * @typedef {{cache?: KVCache, fault?: Fault|null, counter?: Counter,
 *   note?: function(string, Tensor): Tensor}} Options
 */

import { add, copy, lastRow, tensor } from "./tensor.js";
import { dot, gated, linear, lookup, rmsNorm, softmax } from "./arithmetic.js";
import { checkIds, checkWeights } from "./checking.js";
import { TransformerConfig } from "./config.js";

export const FAULTS = Object.freeze(["position 0", "first rows", "no mask"]);

/**
 * Return the cosine and sine of each pair's angle at each position, [length, D/2] each.
 * Pair 0 turns fastest (Su et al., 2021).
 * @param {number} headDim
 * @param {number} length
 * @param {number} [theta]
 * @returns {{cos: Tensor, sin: Tensor}}
 */
export function rotaryTable(headDim, length, theta = 10000) {
  const pairs = headDim / 2;
  const cos = tensor([length, pairs]), sin = tensor([length, pairs]);
  for (let position = 0; position < length; position++) {
    for (let pair = 0; pair < pairs; pair++) {
      const angle = position * theta ** ((-2 * pair) / headDim);
      cos.data[position * pairs + pair] = Math.cos(angle);
      sin.data[position * pairs + pair] = Math.sin(angle);
    }
  }
  return { cos, sin };
}

/**
 * Turn each pair (x₀, x₁), (x₂, x₃), … of x [heads, T, D] by its angle at positions start … .
 * @param {Tensor} x
 * @param {{cos: Tensor, sin: Tensor}} table
 * @param {number} start
 * @returns {Tensor}
 */
export function rotate(x, { cos, sin }, start) {
  const [heads, T, D] = x.shape, pairs = D / 2;
  const turned = tensor(x.shape);
  for (let row = 0; row < heads * T; row++) {
    const position = start + (row % T);
    for (let pair = 0; pair < pairs; pair++) {
      const i = row * D + 2 * pair, a = position * pairs + pair;
      turned.data[i] = x.data[i] * cos.data[a] - x.data[i + 1] * sin.data[a];
      turned.data[i + 1] = x.data[i] * sin.data[a] + x.data[i + 1] * cos.data[a];
    }
  }
  return turned;
}

/** Keys and values of every token seen so far, preallocated to the model's whole window. */
export class KVCache {
  /** @param {TransformerConfig} config */
  constructor(config) {
    const { n_layers: L, kv_heads: K, max_seq_len: longest, head_dim: D } = config;
    this.shape = [L, K, longest, D];
    this.keys = Array.from({ length: L }, () => tensor([K, longest, D]));
    this.values = Array.from({ length: L }, () => tensor([K, longest, D]));
    this.length = 0; // tokens held; also the position of the next one
  }

  /** Number of tokens that still fit. */
  get room() {
    return this.shape[2] - this.length;
  }

  /** Throw an Error unless the cache was made for this config. */
  check({ n_layers: L, kv_heads: K, max_seq_len: longest, head_dim: D }) {
    if (String(this.shape) !== String([L, K, longest, D])) {
      throw new Error(
        "The cache was made for a model of another shape; make one with new KVCache(model.config).",
      );
    }
  }

  /**
   * Store k, v [K, T, D] of a layer behind the tokens held; return the tensors [K, max, D].
   * @param {number} layer
   * @param {Tensor} k
   * @param {Tensor} v
   * @returns {[Tensor, Tensor]}
   */
  append(layer, k, v) {
    const [heads, T, D] = k.shape;
    for (const [held, more] of [[this.keys[layer], k], [this.values[layer], v]]) {
      for (let head = 0; head < heads; head++) {
        const start = (head * held.shape[1] + this.length) * D;
        held.data.set(more.data.subarray(head * T * D, (head + 1) * T * D), start);
      }
    }
    return [this.keys[layer], this.values[layer]];
  }

  /** Count new tokens as held, once every layer has appended them. */
  advance(tokens) {
    this.length += tokens;
  }

  /** Forget every token; the memory stays. */
  reset() {
    this.length = 0;
  }
}

export class Transformer {
  /**
   * Make the model of a config from weights, as `readSafetensors` returns them; copied.
   * @param {TransformerConfig|Object<string, *>} config
   * @param {Object<string, Tensor>} tensors
   */
  constructor(config, tensors) {
    this.config = config instanceof TransformerConfig ? config : new TransformerConfig(config);
    const held = count(tensors), needed = this.config.numParams();
    if (held !== needed) { // seen before anything is made, however large
      throw new Error(`The weights hold ${held} numbers, but the config's model has ${needed}.`);
    }
    const shapes = this.config.shapes();
    checkWeights(shapes, tensors);
    this.weights = {};
    for (const name of Object.keys(shapes)) this.weights[name] = copy(tensors[name]);
    const { head_dim: D, max_seq_len: longest, rope_theta: theta } = this.config;
    this.turns = rotaryTable(D, longest, theta);
  }

  /** Number of tokens the model knows. */
  get vocabSize() {
    return this.config.vocab_size;
  }

  /** The head's weights [V, C]: its own, or the embedding's if they are tied. */
  get head() {
    return this.weights["output.weight"] ?? this.weights["tok_embeddings.weight"];
  }

  /** Return the number of trainable parameters. */
  numParams() {
    return count(this.weights);
  }

  /**
   * Return the logits [T, V] for ids [T]; with a cache, they continue what it holds.
   * @param {ArrayLike<number>} ids
   * @param {Options} [options] `note` is handed every intermediate as it is made
   * @returns {Tensor}
   */
  forward(ids, { cache, fault = null, counter, note = (_, made) => made } = {}) {
    if (fault !== null && !FAULTS.includes(fault)) {
      throw new Error(`There is no fault '${fault}'; choose from ${FAULTS.join(", ")}.`);
    }
    const { max_seq_len: window, n_layers: layers, norm_eps: eps } = this.config;
    const start = cache ? cache.length : 0;
    checkIds(ids, this.vocabSize, window - start, window);
    cache?.check(this.config);
    note("ids", tensor([ids.length], ids));
    let h = note("h0", lookup(this.weights["tok_embeddings.weight"], ids)); // [T, C]
    for (let n = 0; n < layers; n++) {
      const noteHere = (name, made) => note(`layers.${n}.${name}`, made);
      h = this.block(n, h, { cache, fault, counter, start, note: noteHere });
    }
    cache?.advance(ids.length);
    const hOut = note("h_out", rmsNorm(h, this.weights["norm.weight"], eps));
    return note("logits", linear(hOut, this.head, null, counter)); // [T, V]
  }

  /** Return the residual stream h [T, C] with what layer n adds: attention, then feed-forward. */
  block(n, h, pass) {
    const { note, counter } = pass, { norm_eps: eps } = this.config;
    const w = (name) => this.weights[`layers.${n}.${name}.weight`];
    let x = note("attention_norm", rmsNorm(h, w("attention_norm"), eps));
    h = note("r1", add(h, this.attend(n, x, pass, w)));
    x = note("ffn_norm", rmsNorm(h, w("ffn_norm"), eps));
    const gate = note("ffn_gate", linear(x, w("feed_forward.w_gate"), null, counter)); // [T, hidden]
    const up = note("ffn_up", linear(x, w("feed_forward.w_up"), null, counter)); // [T, hidden]
    const hidden = note("ffn_hidden", gated(gate, up));
    const out = note("ffn_out", linear(hidden, w("feed_forward.w_down"), null, counter)); // [T, C]
    return note("r2", add(h, out));
  }

  /** Return what each position of x [T, C] gathers from those before it and itself, [T, C]. */
  attend(n, x, { cache, fault, counter, start, note }, w) {
    const { n_heads: H, kv_heads: K } = this.config;
    const project = (name, heads) =>
      splitHeads(linear(x, w(`attention.${name}`), null, counter), heads);
    const q = note("q", project("wq", H)); // [H, T, D]
    const k = note("k", project("wk", K)); // [K, T, D]
    const v = note("v", project("wv", K)); // [K, T, D]
    const first = fault === "position 0" ? 0 : start; // position of the first new token
    const qRotated = note("q_rotated", rotate(q, this.turns, first));
    const kRotated = note("k_rotated", rotate(k, this.turns, first));
    const [keys, values] = cache ? cache.append(n, kRotated, v) : [kRotated, v]; // [K, S or max, D]
    const scores = note("scores", scoresOf(qRotated, keys, start, counter)); // [H, T, S]
    const masked = note("masked_scores", hideFuture(scores, start, fault));
    const attention = note("attention", softmax(masked)); // [H, T, S], rows sum to 1
    const context = note("context", weightedSum(attention, values, counter)); // [T, C]
    return note("attention_out", linear(context, w("attention.wo"), null, counter));
  }

  /**
   * Return every named intermediate of one pass over ids [T], in order, as `glassformer.trace`.
   * @param {ArrayLike<number>} ids
   * @param {Options} [options]
   * @returns {Object<string, Tensor>}
   */
  trace(ids, options = {}) {
    const seen = {};
    const logits = this.forward(ids, { ...options, note: (name, made) => (seen[name] = made) });
    seen.probabilities = softmax(logits); // [T, V]
    return seen;
  }

  /**
   * Return a function that takes new ids and returns the logits [V] of the token that follows all.
   * @param {{useCache?: boolean, fault?: Fault|null, counter?: Counter}} [options]
   * @returns {function(number[]): Float64Array}
   */
  reader({ useCache = true, fault = null, counter } = {}) {
    const cache = useCache ? new KVCache(this.config) : undefined;
    const seen = [];
    return (ids) => {
      if (!useCache) seen.push(...ids);
      return lastRow(this.forward(useCache ? ids : seen, { cache, fault, counter })); // [V]
    };
  }
}

function count(tensors) {
  return Object.values(tensors).reduce((sum, { data }) => sum + data.length, 0);
}

/** Return x [T, heads · D] as [heads, T, D]. */
function splitHeads(x, heads) {
  const [T, width] = x.shape, D = width / heads;
  const split = tensor([heads, T, D]);
  for (let head = 0; head < heads; head++) {
    for (let t = 0; t < T; t++) {
      const from = t * width + head * D;
      split.data.set(x.data.subarray(from, from + D), (head * T + t) * D);
    }
  }
  return split;
}

/** Return the scores [H, T, S] of queries [H, T, D] against keys [K, ≥S, D]; H / K heads share one. */
function scoresOf(q, keys, start, counter) {
  const [H, T, D] = q.shape, [K, room] = keys.shape, S = start + T;
  const root = Math.sqrt(D);
  const scores = tensor([H, T, S]);
  for (let head = 0, i = 0; head < H; head++) {
    const shared = Math.floor((head * K) / H);
    for (let t = 0; t < T; t++) {
      for (let s = 0; s < S; s++, i++) {
        const query = (head * T + t) * D, key = (shared * room + s) * D; // where they start
        scores.data[i] = dot(q.data, query, keys.data, key, D) / root;
      }
    }
  }
  if (counter) counter.multiplications += H * T * S * D;
  return scores;
}

/** Return scores [H, T, S] with −∞ where a query would see a later token; one new token sees all. */
function hideFuture(scores, start, fault) {
  const [H, T, S] = scores.shape;
  if (T === 1 || fault === "no mask") return scores;
  const masked = copy(scores);
  for (let row = 0; row < H * T; row++) {
    const position = (fault === "first rows" ? 0 : start) + (row % T);
    masked.data.fill(-Infinity, row * S + position + 1, (row + 1) * S);
  }
  return masked;
}

/** Return A V with its heads side by side, [T, H · D], for A [H, T, S] and values [K, ≥S, D]. */
function weightedSum(attention, values, counter) {
  const [H, T, S] = attention.shape, [K, room, D] = values.shape;
  const sum = tensor([T, H * D]);
  for (let head = 0; head < H; head++) {
    const shared = Math.floor((head * K) / H);
    for (let t = 0; t < T; t++) {
      const to = (t * H + head) * D;
      for (let s = 0; s < S; s++) {
        const weight = attention.data[(head * T + t) * S + s], from = (shared * room + s) * D;
        for (let c = 0; c < D; c++) sum.data[to + c] += weight * values.data[from + c];
      }
    }
  }
  if (counter) counter.multiplications += H * T * S * D;
  return sum;
}
