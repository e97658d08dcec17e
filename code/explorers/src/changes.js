/**
 * The reasoning behind "everything": weights that are changed, numbers that move, the trail that leads
 * back from a number to those that made it.
 *
 * @typedef {import("./engine/tensor.js").Tensor} Tensor
 * @typedef {{name: string, index: number[]}} Ref a number of the trace or of the weights
 * @typedef {[string, number[], number|string]} Change a weight, a place in it, and what stands there now:
 *   a number, or one that JSON cannot write, as the text NaN, Infinity or -Infinity
 */

import { BabyGroot } from "./engine/index.js";

export const MOST_CHANGES = 64;

/** Return whether two refs are about the same number. */
export function sameRef(a, b) {
  return a.name === b.name && String(a.index) === String(b.index);
}

/**
 * Return the place of an index in a tensor's numbers, or −1 if it is outside.
 * @param {Tensor|undefined} tensor
 * @param {number[]} index
 * @returns {number}
 */
export function placeOf(tensor, index) {
  const fits = (i, d) => Number.isInteger(i) && i >= 0 && i < tensor.shape[d];
  if (!tensor || index.length !== tensor.shape.length || !index.every(fits)) return -1;
  return index.reduce((place, i, d) => place * tensor.shape[d] + i, 0);
}

/**
 * Return the index of a place in a tensor of one or two dimensions.
 * @param {Tensor} tensor
 * @param {number} place
 * @returns {number[]}
 */
export function indexOf({ shape }, place) {
  return shape.length === 1 ? [place] : [Math.floor(place / shape[1]), place % shape[1]];
}

// Changes

/** Return whether a value, from a link or from Python, is a change. */
export function isChange(item) {
  if (!Array.isArray(item) || item.length !== 3) return false;
  const [name, index, value] = item;
  const number = typeof value === "number" || ["NaN", "Infinity", "-Infinity"].includes(value);
  return typeof name === "string" && Array.isArray(index) && index.every(Number.isInteger) && number;
}

/**
 * Return the changes that a model has a place for, the last of each place.
 * @param {BabyGroot} model
 * @param {Change[]} changes
 * @returns {(Ref & {value: number, before: number})[]}
 */
export function fitting({ weights }, changes) {
  const found = new Map();
  for (const [name, index, value] of changes) {
    const tensor = Object.hasOwn(weights, name) ? weights[name] : undefined, place = placeOf(tensor, index);
    if (place >= 0) found.set(`${name}[${index}]`, { name, index, value: Number(value), before: tensor.data[place] });
  }
  return [...found.values()];
}

/**
 * Return the model with some of its weights changed; the model itself stays as it is.
 * @param {BabyGroot} model
 * @param {Change[]} changes
 * @returns {BabyGroot}
 */
export function changedModel(model, changes) {
  const other = BabyGroot.fromWeights(model.weights);
  for (const { name, index, value } of fitting(model, changes)) {
    other.weights[name].data[placeOf(other.weights[name], index)] = value;
  }
  return other;
}

/**
 * Return the changes with one weight set to a value; back at its own value, it is no change.
 * @param {BabyGroot} model the model without changes
 * @param {Change[]} changes
 * @param {Ref} ref
 * @param {number} value
 * @returns {Change[]}
 */
export function withChange(model, changes, ref, value) {
  const { name, index } = ref, tensor = model.weights[name];
  const others = changes.filter(([other, place]) => !sameRef(ref, { name: other, index: place }));
  if (value === tensor.data[placeOf(tensor, index)]) return others;
  return [...others, [name, index, Number.isFinite(value) ? value : String(value)]];
}

/**
 * Return the number that a text means, or null: −1.5, 2e3, ∞, -inf and NaN are numbers here.
 * @param {string} text
 * @returns {number|null}
 */
export function typedNumber(text) {
  const plain = text.trim().toLowerCase().replaceAll("−", "-").replace(/^(-?\d*),(\d+)$/, "$1.$2");
  if (plain === "nan") return NaN;
  if (/^[+-]?(∞|inf|infinity)$/.test(plain)) return plain.startsWith("-") ? -Infinity : Infinity;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(plain) ? Number(plain) : null;
}

/**
 * Return a weight moved by a step, without the rounding that would write 0.30000000000000004; steps
 * there and back lead to its own value again.
 */
export function nudged(value, step, own) {
  const to = Number((value + step).toPrecision(12));
  return Math.abs(to - own) < 1e-9 ? own : to;
}

// Numbers that move

/** Return whether two tensors hold the same numbers. */
export function alike(a, b) {
  return a === b || (a.data.length === b.data.length && a.data.every((value, n) => Object.is(value, b.data[n])));
}

/**
 * Return tensors by name, those that say the same as before being the very ones from before, so that
 * what has not changed is not drawn again.
 * @param {Object<string, Tensor>} before
 * @param {Object<string, Tensor>} now
 * @returns {Object<string, Tensor>}
 */
export function kept(before, now) {
  const same = (name) => before[name] && String(before[name].shape) === String(now[name].shape) && alike(before[name], now[name]);
  return Object.fromEntries(Object.keys(now).map((name) => [name, same(name) ? before[name] : now[name]]));
}

/** Return how many numbers of `now` differ from those of `before`, and how many of them are NaN. */
export function countMoved(before, now) {
  let moved = 0, lost = 0;
  for (const [name, { data }] of Object.entries(now)) {
    if (data === before[name].data) continue;
    for (let n = 0; n < data.length; n++) {
      if (!Object.is(data[n], before[name].data[n])) moved++;
      if (Number.isNaN(data[n])) lost++;
    }
  }
  return { moved, lost };
}

// The trail

/**
 * Return the trail after a step to a number: one that is on the trail is gone back to, an operand of
 * the last is a step further, any other begins a new trail.
 * @param {Ref[]} trail
 * @param {Ref[]} operands of the trail's last number
 * @param {Ref} ref
 * @returns {Ref[]}
 */
export function stepTo(trail, operands, { name, index }) {
  const ref = { name, index }, is = (other) => sameRef(other, ref), at = trail.findIndex(is);
  if (at >= 0) return trail.slice(0, at + 1);
  return operands.some(is) ? [...trail, ref] : [ref];
}
