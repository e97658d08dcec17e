/**
 * BabyGroot's loss and all its gradients, by hand, for one example at a time.
 *
 * Training asks for one prediction per example, at the last real token. So the query, the
 * feed-forward network and the head run for that token alone, and keys and values only for the
 * tokens it may see; the padding behind it, hidden by the mask, costs nothing. `gradient` arrays
 * are named d…: dLogits is how much the loss grows per unit of each logit.
 *
 * d = numbers per token, V = words in the vocabulary, S = tokens seen.
 */

import { ALL_ON, layOut } from "./baby_groot.js";
import { argmax } from "./tensor.js";
import { softmaxInPlace } from "./arithmetic.js";

const EPS = 1e-5; // of LayerNorm

/** y = W x + b for x [inputs], W [outputs, inputs]. */
function linearInto(y, W, b, x) {
  const inputs = x.length;
  for (let o = 0, w = 0; o < y.length; o++) {
    let sum = b[o];
    for (let i = 0; i < inputs; i++, w++) sum += W[w] * x[i];
    y[o] = sum;
  }
}

/** Add to dW, db and dx what dy [outputs] says about the W, b and x of y = W x + b. */
function linearBack(dy, W, x, dW, db, dx) {
  const inputs = x.length;
  for (let o = 0, w = 0; o < dy.length; o++) {
    const g = dy[o];
    if (g === 0) {
      w += inputs; // a unit that is off: nothing to add
      continue;
    }
    db[o] += g;
    for (let i = 0; i < inputs; i++, w++) {
      dW[w] += g * x[i];
      dx[i] += g * W[w];
    }
  }
}

/** y = weight · unit + bias, where unit is x with mean 0 and variance 1; return 1 / deviation. */
function normInto(y, unit, x, weight, bias) {
  const d = x.length;
  let mean = 0, variance = 0;
  for (let i = 0; i < d; i++) mean += x[i];
  mean /= d;
  for (let i = 0; i < d; i++) variance += (x[i] - mean) * (x[i] - mean);
  const scale = 1 / Math.sqrt(variance / d + EPS);
  for (let i = 0; i < d; i++) {
    unit[i] = (x[i] - mean) * scale;
    y[i] = unit[i] * weight[i] + bias[i];
  }
  return scale;
}

/** Add to dWeight, dBias and dx what dy [d] says about y = weight · unit(x) + bias. */
function normBack(dy, unit, scale, weight, dWeight, dBias, dx) {
  const d = dy.length;
  let mean = 0, along = 0; // of g = dy · weight: its mean, and its mean product with unit
  for (let i = 0; i < d; i++) {
    const g = dy[i] * weight[i];
    mean += g / d;
    along += (g * unit[i]) / d;
    dWeight[i] += dy[i] * unit[i];
    dBias[i] += dy[i];
  }
  for (let i = 0; i < d; i++) dx[i] += scale * (dy[i] * weight[i] - mean - unit[i] * along);
}

/** a += factor · b. */
function addTo(a, b, factor = 1) {
  for (let i = 0; i < a.length; i++) a[i] += factor * b[i];
}

/** a · b. */
function product(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** One example forward, then backward; every array is made once and used for all examples. */
export class LastTokenPass {
  /**
   * @param {import("./baby_groot.js").BabyGroot} model
   * @param {Partial<import("./baby_groot.js").Switches>} [switches]
   */
  constructor(model, switches = {}) {
    this.model = model;
    this.on = { ...ALL_ON, ...switches };
    this.root = this.on.scale ? Math.sqrt(model.dim) : 1;
    const { all, named } = layOut(model.shapes);
    this.gradients = all; // in the order of model.parameters
    this.w = byPart(model.weights);
    this.g = byPart(named);
    this.a = arrays(model); // activations
    this.d = arrays(model); // the loss's gradient for each of them
    this.unit1 = new Float64Array(model.dim);
    this.unit2 = new Float64Array(model.dim);
  }

  /** Set all gradients to 0. */
  zero() {
    this.gradients.fill(0);
  }

  /**
   * Run the model on a padded context [maxLen]; its last real token's prediction stays in
   * `this.a.logits` and `this.a.probabilities` [V].
   * @param {ArrayLike<number>} ids
   */
  forward(ids) {
    this.ids = ids;
    let real = 0;
    for (let t = 0; t < ids.length; t++) if (ids[t] !== 0) real += 1;
    this.last = Math.max(real - 1, 0);
    this.S = this.on.mask ? this.last + 1 : ids.length; // tokens that the last one sees
    this.attend();
    this.digest();
    this.a.probabilities.set(this.a.logits);
    softmaxInPlace(this.a.probabilities, 0, this.a.probabilities.length);
  }

  /** From ids to the context [d] of the last token. */
  attend() {
    const { a, w, on, S, last, ids, model: { dim: d } } = this;
    for (let s = 0; s < S; s++) {
      for (let c = 0; c < d; c++) {
        a.h0[s][c] = w.token[ids[s] * d + c] + (on.positions ? w.position[s * d + c] : 0);
      }
      linearInto(a.k[s], w.k, w.kBias, a.h0[s]);
      linearInto(a.v[s], w.v, w.vBias, a.h0[s]);
    }
    linearInto(a.q, w.q, w.qBias, a.h0[last]);
    for (let s = 0; s < S; s++) a.attention[s] = product(a.q, a.k[s]) / this.root;
    softmaxInPlace(a.attention, 0, S);
    a.context.fill(0);
    for (let s = 0; s < S; s++) addTo(a.context, a.v[s], a.attention[s]);
  }

  /** From the context [d] of the last token to its logits [V]. */
  digest() {
    const { a, w, on, last } = this;
    a.r1.set(a.context);
    if (on.residuals) addTo(a.r1, a.h0[last]);
    if (on.normalisation) this.scale1 = normInto(a.n1, this.unit1, a.r1, w.norm1, w.norm1Bias);
    else a.n1.set(a.r1);
    linearInto(a.hidden, w.widen, w.widenBias, a.n1);
    for (let i = 0; i < a.hidden.length; i++) a.active[i] = a.hidden[i] <= 0 ? 0 : a.hidden[i];
    linearInto(a.r2, w.narrow, w.narrowBias, a.active);
    if (on.residuals) addTo(a.r2, a.n1);
    if (on.normalisation) this.scale2 = normInto(a.hOut, this.unit2, a.r2, w.norm2, w.norm2Bias);
    else a.hOut.set(a.r2);
    linearInto(a.logits, w.head, w.headBias, a.hOut);
  }

  /**
   * Add the gradients of share · loss to `gradients`, after `forward`; loss = −ln p(target).
   * @param {number} target
   * @param {number} [share] 1 / batch size, so that a batch's gradients are those of its mean
   */
  backward(target, share = 1) {
    const { a, d } = this;
    for (let i = 0; i < d.logits.length; i++) d.logits[i] = a.probabilities[i] * share;
    d.logits[target] -= share; // of softmax and −ln together: probability − 1 for the target
    this.digestBack();
    this.attendBack();
  }

  /** From dLogits [V] back to dContext [d], and to dH0 of the last token past the attention. */
  digestBack() {
    const { a, d, w, g, on, last } = this;
    for (const x of [d.hOut, d.r2, d.active, d.n1, d.r1, ...d.h0]) x.fill(0);
    linearBack(d.logits, w.head, a.hOut, g.head, g.headBias, d.hOut);
    if (on.normalisation) normBack(d.hOut, this.unit2, this.scale2, w.norm2, g.norm2, g.norm2Bias, d.r2);
    else d.r2.set(d.hOut);
    if (on.residuals) d.n1.set(d.r2); // a sum hands its gradient to both parts
    linearBack(d.r2, w.narrow, a.active, g.narrow, g.narrowBias, d.active);
    for (let i = 0; i < d.hidden.length; i++) d.hidden[i] = a.hidden[i] <= 0 ? 0 : d.active[i];
    linearBack(d.hidden, w.widen, a.n1, g.widen, g.widenBias, d.n1);
    if (on.normalisation) normBack(d.n1, this.unit1, this.scale1, w.norm1, g.norm1, g.norm1Bias, d.r1);
    else d.r1.set(d.n1);
    d.context.set(d.r1);
    if (on.residuals) d.h0[last].set(d.r1);
  }

  /** From dContext [d] back to the embeddings. */
  attendBack() {
    const { a, d, w, g, on, S, last, ids } = this;
    let mean = 0; // softmax: each weight's gradient counts against their weighted mean
    for (let s = 0; s < S; s++) {
      d.attention[s] = product(d.context, a.v[s]);
      mean += a.attention[s] * d.attention[s];
    }
    d.q.fill(0);
    for (let s = 0; s < S; s++) {
      const dScore = (a.attention[s] * (d.attention[s] - mean)) / this.root;
      addTo(d.q, a.k[s], dScore);
      for (let c = 0; c < d.q.length; c++) {
        d.k[s][c] = dScore * a.q[c];
        d.v[s][c] = a.attention[s] * d.context[c];
      }
      linearBack(d.k[s], w.k, a.h0[s], g.k, g.kBias, d.h0[s]);
      linearBack(d.v[s], w.v, a.h0[s], g.v, g.vBias, d.h0[s]);
    }
    linearBack(d.q, w.q, a.h0[last], g.q, g.qBias, d.h0[last]);
    for (let s = 0; s < S; s++) {
      addRow(g.token, ids[s], d.h0[s]);
      if (on.positions) addRow(g.position, s, d.h0[s]);
    }
  }

  /**
   * Return −ln p(target) after `forward`: finite even where p itself is too small for a number.
   * @param {number} target
   * @returns {number}
   */
  loss(target) {
    const { logits, probabilities } = this.a, likely = argmax(logits);
    return logits[likely] - logits[target] - Math.log(probabilities[likely]);
  }

  /** Return the id of the most likely next token after `forward`. */
  choice() {
    return argmax(this.a.logits);
  }
}

/** Add x [d] to row n of a table [rows, d]. */
function addRow(table, n, x) {
  for (let c = 0, start = n * x.length; c < x.length; c++) table[start + c] += x[c];
}

/** Return arrays for one token's activations; keys, values and h0 for each place. */
function arrays({ dim: d, maxLen, vocabSize }) {
  const vector = (n) => new Float64Array(n);
  const perPlace = () => Array.from({ length: maxLen }, () => vector(d));
  return {
    h0: perPlace(), k: perPlace(), v: perPlace(), q: vector(d), attention: vector(maxLen),
    context: vector(d), r1: vector(d), n1: vector(d), hidden: vector(2 * d), active: vector(2 * d),
    r2: vector(d), hOut: vector(d), logits: vector(vocabSize), probabilities: vector(vocabSize),
  };
}

/** Return the arrays of named weights, or of their gradients, under short names. */
function byPart(named) {
  const data = (name) => named[name].data;
  const pair = (short, name) => ({
    [short]: data(`${name}.weight`), [`${short}Bias`]: data(`${name}.bias`),
  });
  return {
    token: data("token_embedding.weight"),
    position: data("position_embedding.weight"),
    ...pair("q", "transformer.attn.q"),
    ...pair("k", "transformer.attn.k"),
    ...pair("v", "transformer.attn.v"),
    ...pair("norm1", "transformer.norm1"),
    ...pair("norm2", "transformer.norm2"),
    ...pair("widen", "transformer.ffn.0"),
    ...pair("narrow", "transformer.ffn.2"),
    ...pair("head", "head"),
  };
}
