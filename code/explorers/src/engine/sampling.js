/**
 * Writing on: from a model's logits to the next token, and the next.
 *
 * @typedef {{temperature?: number, topK?: number|null, topP?: number|null}} Choices
 */

import { argmax } from "./tensor.js";
import { softmaxInPlace } from "./arithmetic.js";
import { needWhole } from "./checking.js";
import { Generator } from "./random.js";

/**
 * Return the distribution [V] to draw from, given logits [V]. Logits are divided by the
 * temperature; then only the topK most likely tokens stay; then only the fewest most likely tokens
 * whose probabilities reach topP; what stays is scaled to sum 1. Of equals the lower id comes first.
 * @param {ArrayLike<number>} logits
 * @param {Choices} [choices]
 * @returns {Float64Array}
 */
export function nextTokenProbabilities(logits, { temperature = 1, topK = null, topP = null } = {}) {
  checkChoices({ temperature, topK, topP });
  if (temperature === 0) {
    throw new Error("Temperature 0 has no distribution: it takes the most likely token.");
  }
  const largest = logits[argmax(logits)];
  const scaled = Float64Array.from(logits, (logit) => (logit - largest) / temperature);
  if (topK !== null) keepFirst(scaled, topK);
  if (topP !== null && topP < 1) keepFirst(scaled, countReaching(scaled, topP));
  softmaxInPlace(scaled, 0, scaled.length);
  return scaled;
}

/**
 * Return the ids of numbers [V] from the largest down; of equals the lower id first, NaN before all.
 * @param {ArrayLike<number>} numbers
 * @returns {number[]}
 */
export function ranked(numbers) {
  const ids = Array.from(numbers, (_, id) => id);
  const size = (id) => sizeOf(numbers[id]);
  return ids.sort((a, b) => (size(a) < size(b) ? 1 : size(a) > size(b) ? -1 : a - b));
}

function sizeOf(number) {
  return Number.isNaN(number) ? Infinity : number;
}

/**
 * Return the first of the ids that `ranked` returns, without putting the others in order.
 * @param {ArrayLike<number>} numbers
 * @param {number} count
 * @returns {number[]}
 */
export function leading(numbers, count) {
  const first = [];
  for (let id = 0; id < numbers.length; id++) {
    const own = sizeOf(numbers[id]), follows = (other) => sizeOf(numbers[other]) >= own;
    let at = first.length;
    while (at > 0 && !follows(first[at - 1])) at -= 1;
    if (at < count) first.splice(at, 0, id);
    if (first.length > count) first.pop();
  }
  return first;
}

/** Set all but the n largest logits to −∞. */
function keepFirst(logits, n) {
  for (const id of ranked(logits).slice(n)) logits[id] = -Infinity;
}

/**
 * Return how many of the most likely tokens it takes until their probabilities reach topP.
 * @param {ArrayLike<number>} logits those of tokens that are cut already are −∞
 * @param {number} topP
 * @returns {number}
 */
export function countReaching(logits, topP) {
  const order = ranked(logits);
  const p = Float64Array.from(order, (id) => logits[id]);
  softmaxInPlace(p, 0, p.length);
  let sum = 0;
  for (let n = 0; n < p.length; n++) {
    sum += p[n];
    if (sum - p[n] >= topP) return n; // those before it were enough
  }
  return p.length;
}

/**
 * Throw an Error unless temperature, topK and topP can be.
 * @param {Choices} choices
 */
export function checkChoices({ temperature = 0, topK = null, topP = null }) {
  const cannot = (name, value, rule) => {
    throw new Error(`${name} = ${String(value)} cannot be: it must be ${rule}.`);
  };
  if (typeof temperature !== "number" || !(temperature >= 0 && temperature < Infinity)) {
    cannot("temperature", temperature, "0 (greedy) or more, and finite");
  }
  if (topK !== null && !(Number.isSafeInteger(topK) && topK >= 1)) {
    cannot("top_k", topK, "a whole number, 1 or more");
  }
  if (topP !== null && !(typeof topP === "number" && topP > 0 && topP <= 1)) {
    cannot("top_p", topP, "above 0 and at most 1");
  }
}

/**
 * Return a token id drawn from probabilities [V]. The draws follow the same distribution as
 * PyTorch's, but are not the same draws.
 * @param {ArrayLike<number>} probabilities
 * @param {Generator} generator
 * @returns {number}
 */
export function draw(probabilities, generator) {
  let left = generator.uniform();
  for (let id = 0; id < probabilities.length; id++) {
    left -= probabilities[id];
    if (left < 0) return id;
  }
  return argmax(probabilities); // rounding left a crumb, or the probabilities are not numbers
}

/**
 * Write token by token; each step tells all there is to show.
 * @param {import("./baby_groot.js").BabyGroot|import("./transformer.js").Transformer} model
 * @param {number[]} ids the prompt
 * @param {number} maxNewTokens
 * @param {Choices & {stopId?: number|null, generator?: Generator, useCache?: boolean,
 *   fault?: string|null, counter?: object, switches?: object}} [options] temperature 0, the default,
 *   is greedy; a Transformer uses its cache unless told not to
 * @yields {{token: number, logits: Float64Array, ids: number[]}} the token chosen, the logits [V]
 *   it was chosen from, and the whole text with it
 */
export function* write(model, ids, maxNewTokens, options = {}) {
  const { temperature = 0, topK = null, topP = null, stopId = null, generator, ...others } = options;
  const choices = { temperature, topK, topP };
  checkChoices(choices);
  needWhole("max_new_tokens", maxNewTokens, 0);
  checkFits(model, ids, maxNewTokens);
  const random = generator ?? new Generator(42);
  const read = model.reader(others);
  const text = [...ids];
  let fresh = text.slice();
  for (let n = 0; n < maxNewTokens; n++) {
    const logits = read(fresh); // [V]
    const token =
      temperature === 0 ? argmax(logits) : draw(nextTokenProbabilities(logits, choices), random);
    text.push(token);
    fresh = [token];
    yield { token, logits, ids: text.slice() };
    if (token === stopId) return;
  }
}

/** Throw an Error unless a prompt and the new tokens fit a Transformer's window. */
function checkFits(model, ids, maxNewTokens) {
  if (!ids?.length) throw new Error("The prompt is empty; give at least one token.");
  const window = model.config?.max_seq_len ?? Infinity; // BabyGroot's window slides
  if (ids.length + maxNewTokens - 1 > window) {
    throw new Error(
      `${ids.length} prompt tokens and ${maxNewTokens} new ones do not fit: the model's window has ` +
        `${window} places; ask for at most ${Math.max(0, window - ids.length + 1)} new tokens.`,
    );
  }
}

/**
 * Return the prompt ids followed by up to maxNewTokens tokens that the model writes; see `write`.
 * @returns {number[]}
 */
export function generate(model, ids, maxNewTokens, options) {
  let text = ids;
  for (const step of write(model, ids, maxNewTokens, options)) text = step.ids;
  return [...text];
}
