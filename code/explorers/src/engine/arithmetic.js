/**
 * The operations that both models are made of. T = positions, C = numbers per position.
 *
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {{multiplications: number}} Counter counts multiplications in matrix products
 */

import { tensor } from "./tensor.js";

/**
 * Return the dot product of n numbers of `a` from i on with n numbers of `b` from j on.
 * Four sums run side by side: a processor adds them at the same time.
 * @param {Float64Array} a
 * @param {number} i
 * @param {Float64Array} b
 * @param {number} j
 * @param {number} n
 * @returns {number}
 */
export function dot(a, i, b, j, n) {
  let sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0, m = 0;
  for (; m + 3 < n; m += 4) {
    sum0 += a[i + m] * b[j + m];
    sum1 += a[i + m + 1] * b[j + m + 1];
    sum2 += a[i + m + 2] * b[j + m + 2];
    sum3 += a[i + m + 3] * b[j + m + 3];
  }
  for (; m < n; m++) sum0 += a[i + m] * b[j + m];
  return sum0 + sum1 + (sum2 + sum3);
}

/**
 * Put the dot products of n numbers of `a` from i on with two runs of n numbers of `b`, from j on one after
 * the other, into `y` from k on, as `dot` adds them: each number of `a` is fetched once for both.
 */
function dotTwo(a, i, b, j, n, y, k) {
  const l = j + n;
  let sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0, more0 = 0, more1 = 0, more2 = 0, more3 = 0, m = 0;
  for (; m + 3 < n; m += 4) {
    const a0 = a[i + m], a1 = a[i + m + 1], a2 = a[i + m + 2], a3 = a[i + m + 3];
    sum0 += a0 * b[j + m];
    sum1 += a1 * b[j + m + 1];
    sum2 += a2 * b[j + m + 2];
    sum3 += a3 * b[j + m + 3];
    more0 += a0 * b[l + m];
    more1 += a1 * b[l + m + 1];
    more2 += a2 * b[l + m + 2];
    more3 += a3 * b[l + m + 3];
  }
  for (; m < n; m++) {
    sum0 += a[i + m] * b[j + m];
    more0 += a[i + m] * b[l + m];
  }
  y[k] = sum0 + sum1 + (sum2 + sum3);
  y[k + 1] = more0 + more1 + (more2 + more3);
}

/**
 * Return x Wᵀ + b [T, out] for x [T, in], W [out, in] and, if there is one, b [out].
 * @param {Tensor} x
 * @param {Tensor} W
 * @param {Tensor|null} [b]
 * @param {Counter} [counter]
 * @returns {Tensor}
 */
export function linear(x, W, b = null, counter) {
  const [T, inputs] = x.shape;
  const outputs = W.shape[0];
  const y = tensor([T, outputs]);
  for (let t = 0; t < T; t++) {
    const from = t * inputs, to = t * outputs;
    let o = 0;
    for (; o + 1 < outputs; o += 2) dotTwo(x.data, from, W.data, o * inputs, inputs, y.data, to + o);
    if (o < outputs) y.data[to + o] = dot(x.data, from, W.data, o * inputs, inputs);
    if (b !== null) for (o = 0; o < outputs; o++) y.data[to + o] += b.data[o];
  }
  if (counter) counter.multiplications += T * outputs * inputs;
  return y;
}

/**
 * Return the rows of a table [V, C] that the ids [T] name, [T, C].
 * @param {Tensor} table
 * @param {ArrayLike<number>} ids
 * @returns {Tensor}
 */
export function lookup(table, ids) {
  const C = table.shape[1];
  const x = tensor([ids.length, C]);
  for (let t = 0; t < ids.length; t++) {
    x.data.set(table.data.subarray(ids[t] * C, (ids[t] + 1) * C), t * C);
  }
  return x;
}

/**
 * Turn n numbers from `start` on into probabilities, in place: eˣ divided by the sum of all eˣ.
 * The largest is subtracted first, which changes nothing but keeps eˣ finite.
 * @param {Float64Array} x
 * @param {number} start
 * @param {number} n
 */
export function softmaxInPlace(x, start, n) {
  let largest = -Infinity;
  for (let i = start; i < start + n; i++) largest = Math.max(largest, x[i]);
  let sum = 0;
  for (let i = start; i < start + n; i++) sum += x[i] = Math.exp(x[i] - largest);
  for (let i = start; i < start + n; i++) x[i] /= sum;
}

/**
 * Return the softmax of each row of x [..., n]: every row sums to 1.
 * @param {Tensor} x
 * @returns {Tensor}
 */
export function softmax(x) {
  const n = x.shape[x.shape.length - 1];
  const y = tensor(x.shape, x.data);
  for (let start = 0; start < y.data.length; start += n) softmaxInPlace(y.data, start, n);
  return y;
}

/**
 * Return each row of x [T, C] with mean 0 and variance 1, then scaled and shifted (LayerNorm).
 * @param {Tensor} x
 * @param {Tensor} weight [C]
 * @param {Tensor} bias [C]
 * @param {number} [eps]
 * @returns {Tensor}
 */
export function layerNorm(x, weight, bias, eps = 1e-5) {
  const [T, C] = x.shape;
  const y = tensor([T, C]);
  for (let t = 0; t < T; t++) {
    let mean = 0, variance = 0;
    for (let c = 0; c < C; c++) mean += x.data[t * C + c] / C;
    for (let c = 0; c < C; c++) variance += (x.data[t * C + c] - mean) ** 2 / C;
    const scale = 1 / Math.sqrt(variance + eps);
    for (let c = 0; c < C; c++) {
      y.data[t * C + c] = (x.data[t * C + c] - mean) * scale * weight.data[c] + bias.data[c];
    }
  }
  return y;
}

/**
 * Return each row of x [T, C] divided by its root mean square, then scaled (RMSNorm).
 * @param {Tensor} x
 * @param {Tensor} weight [C]
 * @param {number} eps
 * @returns {Tensor}
 */
export function rmsNorm(x, weight, eps) {
  const [T, C] = x.shape;
  const y = tensor([T, C]);
  for (let t = 0; t < T; t++) {
    const meanSquare = dot(x.data, t * C, x.data, t * C, C) / C;
    const scale = 1 / Math.sqrt(meanSquare + eps);
    for (let c = 0; c < C; c++) y.data[t * C + c] = x.data[t * C + c] * scale * weight.data[c];
  }
  return y;
}

/**
 * Return x with every negative number replaced by 0; NaN stays NaN.
 * @param {Tensor} x
 * @returns {Tensor}
 */
export function relu(x) {
  return { shape: [...x.shape], data: x.data.map((value) => (value <= 0 ? 0 : value)) };
}

/**
 * Return silu(gate) · up, number by number; silu(x) = x / (1 + e⁻ˣ).
 * @param {Tensor} gate
 * @param {Tensor} up
 * @returns {Tensor}
 */
export function gated(gate, up) {
  const hidden = tensor(gate.shape);
  for (let i = 0; i < hidden.data.length; i++) {
    hidden.data[i] = (gate.data[i] / (1 + Math.exp(-gate.data[i]))) * up.data[i];
  }
  return hidden;
}
