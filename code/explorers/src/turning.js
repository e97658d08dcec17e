/** A query and a key turned to two positions, pair by pair, and each number of it explained. */

import { dot } from "./engine/index.js";
import { explanation } from "./provenance.js";

/**
 * Return both vectors turned, and what each pair gives to their product.
 * @param {Float64Array} q [D]
 * @param {Float64Array} k [D]
 * @param {{queryAt: number, keyAt: number, theta: number, turned: function(number): boolean}} options
 *   `turned` says which pairs are turned
 * @returns {{q: Float64Array, k: Float64Array, qTurned: Float64Array, kTurned: Float64Array,
 *   pairs: {speed: number, turns: boolean, queryAngle: number, keyAngle: number, product: number}[],
 *   product: number, queryAt: number, keyAt: number, theta: number}}
 */
export function turnBoth(q, k, { queryAt, keyAt, theta, turned }) {
  const D = q.length;
  const qTurned = Float64Array.from(q), kTurned = Float64Array.from(k);
  const pairs = Array.from({ length: D / 2 }, (_, pair) => {
    const speed = theta ** ((-2 * pair) / D), turns = turned(pair);
    const [queryAngle, keyAngle] = turns ? [queryAt * speed, keyAt * speed] : [0, 0];
    turnPair(qTurned, pair, queryAngle);
    turnPair(kTurned, pair, keyAngle);
    return { speed, turns, queryAngle, keyAngle, product: dot(qTurned, 2 * pair, kTurned, 2 * pair, 2) };
  });
  return { q, k, qTurned, kTurned, pairs, product: dot(qTurned, 0, kTurned, 0, D), queryAt, keyAt, theta };
}

/** Turn numbers 2 · pair and 2 · pair + 1 of x by an angle, in place. */
function turnPair(x, pair, angle) {
  const i = 2 * pair, a = x[i], b = x[i + 1];
  x[i] = a * Math.cos(angle) - b * Math.sin(angle);
  x[i + 1] = a * Math.sin(angle) + b * Math.cos(angle);
}

/**
 * Return the score q′ · k′ / √D of two vectors for each distance from −most to most.
 * @param {Float64Array} q
 * @param {Float64Array} k
 * @param {{theta: number, turned: function(number): boolean}} options
 * @param {number} most
 * @returns {number[][]} [distance, score]
 */
export function scoreByDistance(q, k, options, most) {
  return Array.from({ length: 2 * most + 1 }, (_, n) => {
    const distance = n - most;
    const { product } = turnBoth(q, k, { ...options, queryAt: distance, keyAt: 0 });
    return [distance, product / Math.sqrt(q.length)];
  });
}

/**
 * Return a function that explains the turned numbers, as `explain` does for those of a pass: "q′", "k′"
 * [i], "speed", "query angle", "key angle" and "pair product" [pair], and "score".
 * @param {ReturnType<turnBoth>} both
 * @param {{q: function(number): object, k: function(number): object}} origin the refs of what is turned
 */
export function explainTurning(both, origin) {
  const makers = {
    "q′": ([i]) => turnedNumber("q", i, both.qTurned, "query angle"),
    "k′": ([i]) => turnedNumber("k", i, both.kTurned, "key angle"),
    speed: ([pair]) => speedOf(pair),
    "query angle": ([pair]) => angleOf("query angle", pair, both.queryAt),
    "key angle": ([pair]) => angleOf("key angle", pair, both.keyAt),
    "pair product": ([pair]) => pairProduct(pair),
    score: () => scoreOfAll(),
  };

  function turnedNumber(own, i, turned, which) {
    const pair = i >> 1, angle = ref(which, pair), first = i % 2 === 0;
    const [a, b] = [2 * pair, 2 * pair + 1].map(origin[own]);
    const rule = first
      ? `${own}′[${i}] = ${own}[${i}] · cos a − ${own}[${i + 1}] · sin a`
      : `${own}′[${i}] = ${own}[${i - 1}] · sin a + ${own}[${i}] · cos a`;
    const [f, g, sign] = first ? ["cos", "sin", " − "] : ["sin", "cos", " + "];
    const parts = [a, ` · ${f}(`, angle, `)${sign}`, b, ` · ${g}(`, angle, ")"];
    return made(`${own}′`, [i], turned[i], { rule, parts, note: `pair ${pair}, turned by its angle` });
  }

  function speedOf(pair) {
    const D = both.q.length, { speed } = both.pairs[pair];
    const told = { rule: "θ^(−2 · pair / D)", parts: [`${both.theta}^(−${2 * pair} / ${D})`] };
    return made("speed", [pair], speed, { ...told, note: `radians that pair ${pair} turns from one position to the next` });
  }

  function angleOf(name, pair, position) {
    const { value } = ref(name, pair);
    if (!both.pairs[pair].turns) return made(name, [pair], value, { parts: ["0"], note: `pair ${pair} is not turned` });
    return made(name, [pair], value, { rule: "position · speed", parts: [`${position} · `, ref("speed", pair)], note: "radians" });
  }

  function pairProduct(pair) {
    const i = 2 * pair;
    const parts = [ref("q′", i), " · ", ref("k′", i), " + ", ref("q′", i + 1), " · ", ref("k′", i + 1)];
    const rule = `q′[${i}] · k′[${i}] + q′[${i + 1}] · k′[${i + 1}]`;
    return made("pair product", [pair], both.pairs[pair].product, { rule, parts });
  }

  function scoreOfAll() {
    const sum = both.pairs.flatMap((_, pair) => [...(pair ? [" + "] : []), ref("pair product", pair)]);
    const D = both.q.length;
    const told = { rule: `q′ · k′ / √${D}`, parts: ["(", ...sum, `) / √${D}`] };
    return made("score", [], both.product / Math.sqrt(D), told);
  }

  function ref(name, i) {
    const pair = both.pairs[i];
    const values = {
      "q′": both.qTurned[i], "k′": both.kTurned[i],
      speed: pair?.speed, "query angle": pair?.queryAngle, "key angle": pair?.keyAngle, "pair product": pair?.product,
    };
    return { name, index: [i], value: values[name] };
  }

  function made(name, index, value, told) {
    return explanation({ name, index }, value, { symbol: name, ...told });
  }

  return ({ name, index }) => makers[name]?.(index) ?? null;
}
