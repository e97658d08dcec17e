/** The plane in which vectors spread most: for maps of more dimensions than a page has. */

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
export function kept(vectors, { axes }) {
  const [n, d] = vectors.shape, mean = meanOf(vectors);
  const square = (numbers) => numbers.reduce((sum, x) => sum + x * x, 0);
  const away = Float64Array.from(vectors.data, (x, i) => x - mean[i % d]);
  const flat = onPlane({ shape: [n, d], data: away }, { mean: new Float64Array(d), axes });
  return square(flat.flat()) / square(away);
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
