/** The plane in which vectors spread most: for maps of more dimensions than a page has. */

import { explanation, sum } from "./provenance.js";

/**
 * Return the mean of vectors and their two main directions, signs fixed: the largest part is positive.
 * The same as `glassformer.figures.principal_plane`.
 * @param {{shape: number[], data: ArrayLike<number>}} vectors [n, d]
 * @returns {{mean: Float64Array, axes: Float64Array[]}} axes: two of [d]; if d is 1, the second is 0
 */
export function principalPlane({ shape: [n, d], data }) {
  const mean = meanOf({ shape: [n, d], data });
  const spread = Array.from({ length: d }, () => new Float64Array(d));
  for (let r = 0; r < n; r++) {
    for (let i = 0; i < d; i++) {
      for (let j = 0; j < d; j++) spread[i][j] += (data[r * d + i] - mean[i]) * (data[r * d + j] - mean[j]);
    }
  }
  const { values, vectors } = eigen(spread);
  const order = values.map((_, i) => i).sort((a, b) => values[b] - values[a]);
  return { mean, axes: [0, 1].map((place) => (place < d ? upright(vectors[order[place]]) : new Float64Array(d))) };
}

/**
 * Return where vectors lie on a plane, [n] pairs of numbers.
 * @param {{shape: number[], data: ArrayLike<number>}} vectors [n, d]
 * @param {{mean: Float64Array, axes: Float64Array[]}} plane
 * @returns {number[][]}
 */
export function onPlane({ shape: [n, d], data }, { mean, axes }) {
  const along = (axis, r) => axis.reduce((sum, part, i) => sum + part * (data[r * d + i] - mean[i]), 0);
  return Array.from({ length: n }, (_, r) => axes.map((axis) => along(axis, r)));
}

/**
 * Return the part of the vectors' variance that a plane keeps, from 0 to 1.
 * @param {{shape: number[], data: ArrayLike<number>}} vectors [n, d]
 * @param {{axes: Float64Array[]}} plane
 * @returns {number}
 */
export function kept(vectors, plane) {
  return explainKept("vectors", vectors, plane)({ name: "kept", index: [] }).value;
}

/**
 * Return a function that explains the part of the vectors' variance that a plane keeps, "kept", and what it
 * is made of, as `explain` does for the numbers of a pass, to which the vectors belong.
 * @param {string} name of the vectors in the pass
 * @param {{shape: number[], data: ArrayLike<number>}} vectors [n, d]
 * @param {{axes: Float64Array[]}} plane
 */
export function explainKept(name, vectors, { axes }) {
  const [n, d] = vectors.shape, mean = meanOf(vectors);
  const away = { shape: vectors.shape, data: Float64Array.from(vectors.data, (x, i) => x - mean[i % d]) };
  const flat = onPlane(away, { mean: new Float64Array(d), axes });
  const square = (numbers) => numbers.reduce((total, x) => total + x * x, 0);
  const x = (r, i) => ({ name, index: [r, i], value: vectors.data[r * d + i] });
  const distance = (r, i) => ["(", x(r, i), " − ", ref("mean of column", i), ")"];
  const told = { // of each number: its value, and how it is made
    kept: () => [square(flat.flat()) / square(away.data), {
      symbol: "variance kept", rule: "spread on the map / spread of all", parts: [ref("spread on the map"), " / ", ref("spread")],
      note: "the part of the variance that is seen on the map",
    }],
    "spread on the map": () => [square(flat.flat()), {
      rule: "Σ along²", parts: sum(2 * n, (m) => [ref("along", m >> 1, m % 2), "²"]),
    }],
    spread: () => [square(away.data), {
      rule: "Σ (E − mean)²", parts: sum(n * d, (m) => [...distance(Math.floor(m / d), m % d), "²"]),
    }],
    along: (r, a) => [flat[r][a], {
      rule: "Σᵢ axis[i] · (E[n,i] − mean[i])", parts: sum(d, (i) => [ref("axis", a, i), " · ", ...distance(r, i)]),
      note: `how far vector ${r} lies ${a ? "up" : "across"} from the middle of all`,
    }],
    axis: (a, i) => [axes[a][i], { note: `of the direction that the map shows ${a ? "upwards" : "across"}; it stays the same from epoch to epoch` }],
    "mean of column": (i) => [mean[i], { rule: `Σₙ E[n,${i}] / ${n}`, parts: ["(", ...sum(n, (r) => [x(r, i)]), `) / ${n}`] }],
  };
  const ref = (own, ...index) => ({ name: own, index, value: told[own](...index)[0] });
  return ({ name: own, index }) => {
    if (!Object.hasOwn(told, own)) return null;
    const [value, how] = told[own](...index);
    return explanation({ name: own, index }, value, { symbol: own, ...how });
  };
}

/** Return those of the vectors that are finite, for a plane that the others leave alone. */
export function finiteRows({ shape: [n, d], data }) {
  const rows = Array.from({ length: n }, (_, r) => data.subarray(r * d, (r + 1) * d)).filter((row) => row.every(Number.isFinite));
  return { shape: [rows.length, d], data: Float64Array.from(rows.flatMap((row) => [...row])) };
}

function meanOf({ shape: [n, d], data }) {
  const mean = new Float64Array(d);
  data.forEach((x, i) => (mean[i % d] += x / n));
  return mean;
}

function upright(vector) {
  const largest = vector.reduce((best, x, i) => (Math.abs(x) > Math.abs(vector[best]) ? i : best), 0);
  return vector[largest] < 0 ? vector.map((x) => -x) : vector;
}

/** Return the eigenvalues and eigenvectors of a symmetric matrix, changed in place (Jacobi, 1846). */
function eigen(matrix) {
  const d = matrix.length;
  const vectors = Array.from({ length: d }, (_, i) => Float64Array.from({ length: d }, (_, j) => (i === j ? 1 : 0)));
  const tiny = 1e-15 * matrix.reduce((sum, row, i) => sum + row[i], 0);
  for (let round = 0, turned = true; turned && round < 50; round++) {
    turned = false;
    for (let i = 0; i < d; i++) {
      for (let j = i + 1; j < d; j++) {
        if (!(Math.abs(matrix[i][j]) > tiny)) continue;
        rotate(matrix, vectors, i, j);
        turned = true;
      }
    }
  }
  return { values: matrix.map((row, i) => row[i]), vectors };
}

/** Turn the plane of axes i and j so that the matrix has 0 at [i, j]. */
function rotate(matrix, vectors, i, j) {
  const half = (matrix[j][j] - matrix[i][i]) / (2 * matrix[i][j]);
  const tangent = (half < 0 ? -1 : 1) / (Math.abs(half) + Math.sqrt(half * half + 1));
  const cos = 1 / Math.sqrt(tangent * tangent + 1), sin = tangent * cos;
  const mix = (a, b) => [cos * a - sin * b, sin * a + cos * b];
  for (const row of matrix) [row[i], row[j]] = mix(row[i], row[j]);
  for (const rows of [matrix, vectors]) {
    for (let c = 0; c < matrix.length; c++) [rows[i][c], rows[j][c]] = mix(rows[i][c], rows[j][c]);
  }
}
