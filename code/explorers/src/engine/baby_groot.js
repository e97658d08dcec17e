/**
 * BabyGrootGPT: a decoder with one block and one head, 968 parameters for a 24-token world.
 * T = tokens in the sequence, d = numbers per token, V = words in the vocabulary.
 *
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {{mask: boolean, scale: boolean, positions: boolean, residuals: boolean,
 *   normalisation: boolean}} Switches the model's parts; what is switched off is left out
 */

import { add, lastRow, tensor } from "./tensor.js";
import { dot, layerNorm, linear, lookup, relu, softmax } from "./arithmetic.js";
import { checkIds, checkWeights, needWhole } from "./checking.js";
import { fillNormal, fillUniform } from "./random.js";

export const ALL_ON = Object.freeze({
  mask: true, scale: true, positions: true, residuals: true, normalisation: true,
});

/**
 * Return the shape of every weight by name, in the order in which PyTorch keeps them.
 * @param {number} vocabSize
 * @param {number} maxLen
 * @param {number} d
 * @returns {Object<string, number[]>}
 */
export function babyGrootShapes(vocabSize, maxLen, d) {
  return {
    "token_embedding.weight": [vocabSize, d],
    "position_embedding.weight": [maxLen, d],
    "transformer.attn.q.weight": [d, d],
    "transformer.attn.q.bias": [d],
    "transformer.attn.k.weight": [d, d],
    "transformer.attn.k.bias": [d],
    "transformer.attn.v.weight": [d, d],
    "transformer.attn.v.bias": [d],
    "transformer.norm1.weight": [d],
    "transformer.norm1.bias": [d],
    "transformer.norm2.weight": [d],
    "transformer.norm2.bias": [d],
    "transformer.ffn.0.weight": [2 * d, d],
    "transformer.ffn.0.bias": [2 * d],
    "transformer.ffn.2.weight": [d, 2 * d],
    "transformer.ffn.2.bias": [d],
    "head.weight": [vocabSize, d],
    "head.bias": [vocabSize],
  };
}

/**
 * Return one array of all numbers, and named tensors that are views into it.
 * @param {Object<string, number[]>} shapes
 * @returns {{all: Float64Array, named: Object<string, Tensor>}}
 */
export function layOut(shapes) {
  const sizes = Object.values(shapes).map((shape) => shape.reduce((product, n) => product * n, 1));
  const all = new Float64Array(sizes.reduce((sum, n) => sum + n, 0));
  const named = {};
  let start = 0;
  Object.entries(shapes).forEach(([name, shape], n) => {
    named[name] = { shape, data: all.subarray(start, (start += sizes[n])) };
  });
  return { all, named };
}

export class BabyGroot {
  /**
   * Make a model whose weights are all 0; see `fromWeights` and `draw`.
   * @param {number} vocabSize
   * @param {number} maxLen
   * @param {number} [dim]
   */
  constructor(vocabSize, maxLen, dim = 8) {
    needWhole("vocab_size", vocabSize, 1);
    needWhole("max_len", maxLen, 1);
    needWhole("embed_dim", dim, 1);
    this.vocabSize = vocabSize;
    this.maxLen = maxLen;
    this.dim = dim;
    this.shapes = babyGrootShapes(vocabSize, maxLen, dim);
    const { all, named } = layOut(this.shapes);
    this.parameters = all; // every number; changing one changes the model
    this.weights = named; // the same numbers by name
  }

  /**
   * Return the model that has the given weights, as `readSafetensors` returns them; copied.
   * @param {Object<string, Tensor>} tensors
   * @returns {BabyGroot}
   */
  static fromWeights(tensors) {
    const [vocabSize, dim] = tensors["token_embedding.weight"]?.shape ?? [1, 1];
    const [maxLen] = tensors["position_embedding.weight"]?.shape ?? [1];
    const model = new BabyGroot(vocabSize, maxLen, dim);
    model.load(tensors);
    return model;
  }

  /**
   * Return an untrained model with the weights that PyTorch draws, to float32's last digit.
   * @param {import("./random.js").Generator} generator seeded as by `torch.manual_seed`
   * @param {number} vocabSize
   * @param {number} maxLen
   * @param {number} [dim]
   * @returns {BabyGroot}
   */
  static draw(generator, vocabSize, maxLen, dim = 8) {
    const model = new BabyGroot(vocabSize, maxLen, dim);
    for (const [name, { shape, data }] of Object.entries(model.weights)) {
      const inputs = name.includes("ffn.2") ? 2 * dim : dim;
      if (name.includes("embedding")) fillNormal(data, generator);
      else if (!name.includes("norm")) fillUniform(data, 1 / Math.sqrt(inputs), generator);
      else data.fill(name.endsWith("weight") ? 1 : 0);
    }
    return model;
  }

  /**
   * Copy weights of the same names and shapes into the model.
   * @param {Object<string, Tensor>} tensors
   */
  load(tensors) {
    checkWeights(this.shapes, tensors);
    for (const name of Object.keys(this.shapes)) this.weights[name].data.set(tensors[name].data);
  }

  /** Return the number of trainable parameters. */
  numParams() {
    return this.parameters.length;
  }

  /**
   * Return the logits [T, V] for token ids [T], T ≤ maxLen.
   * @param {ArrayLike<number>} ids
   * @param {{switches?: Partial<Switches>, note?: function(string, Tensor): Tensor}} [options]
   *   `note` is handed every intermediate as it is made
   * @returns {Tensor}
   */
  forward(ids, { switches = {}, note = (_, made) => made } = {}) {
    checkIds(ids, this.vocabSize, this.maxLen, this.maxLen);
    const on = { ...ALL_ON, ...switches };
    const w = this.weights, T = ids.length;
    note("ids", tensor([T], ids));
    const tokens = note("token_embedding", lookup(w["token_embedding.weight"], ids)); // [T, d]
    const places = Array.from(ids, (_, t) => t);
    const positions = on.positions
      ? lookup(w["position_embedding.weight"], places)
      : tensor([T, this.dim]);
    const h0 = note("h0", add(tokens, note("position_embedding", positions))); // [T, d]
    const context = this.attend(h0, on, note); // [T, d]
    const r1 = note("r1", on.residuals ? add(h0, context) : context);
    const n1 = note("n1", this.normalise(r1, "transformer.norm1", on));
    const out = this.digest(n1, note); // [T, d]
    const r2 = note("r2", on.residuals ? add(n1, out) : out);
    const hOut = note("h_out", this.normalise(r2, "transformer.norm2", on));
    return note("logits", linear(hOut, w["head.weight"], w["head.bias"])); // [T, V]
  }

  /** Return what each position of h [T, d] gathers from those before it and itself, [T, d]. */
  attend(h, on, note) {
    const T = h.shape[0], d = this.dim;
    const [q, k, v] = ["q", "k", "v"].map((name) =>
      note(name, this.project(h, `transformer.attn.${name}`)),
    ); // [T, d] each
    const scores = tensor([T, T]);
    const root = on.scale ? Math.sqrt(d) : 1;
    for (let t = 0; t < T; t++) {
      for (let s = 0; s < T; s++) scores.data[t * T + s] = dot(q.data, t * d, k.data, s * d, d) / root;
    }
    note("scores", scores);
    const masked = note("masked_scores", on.mask ? hideFuture(scores) : scores); // [T, T]
    const attention = note("attention", softmax(masked)); // [T, T], rows sum to 1
    return note("context", weightedSum(attention, v));
  }

  /** Return the feed-forward network's output [T, d] for n1 [T, d], each position on its own. */
  digest(n1, note) {
    const hidden = note("ffn_hidden", this.project(n1, "transformer.ffn.0")); // [T, 2d]
    const active = note("ffn_activation", relu(hidden)); // [T, 2d], negative units are off
    return note("ffn_out", this.project(active, "transformer.ffn.2")); // [T, d]
  }

  /** Return x Wᵀ + b with the weight and bias of a name. */
  project(x, name) {
    return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  /** Return x [T, d] after the LayerNorm of a name, or x itself if that is switched off. */
  normalise(x, name, on) {
    if (!on.normalisation) return x;
    return layerNorm(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  /**
   * Return every named intermediate of one pass over ids [T], in order, as `glassformer.trace`.
   * @param {ArrayLike<number>} ids
   * @param {{switches?: Partial<Switches>}} [options]
   * @returns {Object<string, Tensor>}
   */
  trace(ids, { switches } = {}) {
    const seen = {};
    const logits = this.forward(ids, { switches, note: (name, made) => (seen[name] = made) });
    seen.probabilities = softmax(logits); // [T, V]
    return seen;
  }

  /**
   * Return a function that takes new ids and returns the logits [V] of the token that follows all.
   * The model sees the last maxLen tokens: its window slides.
   * @param {{switches?: Partial<Switches>}} [options]
   * @returns {function(number[]): Float64Array}
   */
  reader(options = {}) {
    const seen = [];
    return (ids) => {
      seen.push(...ids);
      return lastRow(this.forward(seen.slice(-this.maxLen), options)); // [V]
    };
  }
}

/** Return scores [T, T] with −10⁹ wherever a query would see a later token than its own. */
function hideFuture(scores) {
  const T = scores.shape[0];
  const masked = tensor([T, T], scores.data);
  for (let t = 0; t < T; t++) masked.data.fill(-1e9, t * T + t + 1, (t + 1) * T);
  return masked;
}

/** Return A V [T, d]: row t is the sum of the rows of v [S, d], weighted by row t of A [T, S]. */
function weightedSum(attention, v) {
  const [T, S] = attention.shape, d = v.shape[1];
  const sum = tensor([T, d]);
  for (let t = 0; t < T; t++) {
    for (let s = 0; s < S; s++) {
      for (let c = 0; c < d; c++) sum.data[t * d + c] += attention.data[t * S + s] * v.data[s * d + c];
    }
  }
  return sum;
}
