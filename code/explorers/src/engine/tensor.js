/**
 * A tensor is its shape and its numbers, row after row, as PyTorch lays them out.
 *
 * @typedef {{shape: number[], data: Float64Array}} Tensor
 */

/**
 * Return a tensor of a shape, filled with zeros or with the given numbers.
 * @param {number[]} shape
 * @param {ArrayLike<number>} [numbers]
 * @returns {Tensor}
 */
export function tensor(shape, numbers) {
  const size = shape.reduce((product, n) => product * n, 1);
  const data = numbers === undefined ? new Float64Array(size) : Float64Array.from(numbers);
  if (data.length !== size) {
    throw new Error(`A tensor of shape [${shape}] holds ${size} numbers, not ${data.length}.`);
  }
  return { shape: [...shape], data };
}

/**
 * Return a copy that can be changed without changing the original.
 * @param {Tensor} x
 * @returns {Tensor}
 */
export function copy(x) {
  return { shape: [...x.shape], data: x.data.slice() };
}

/**
 * Return the sum of two tensors of one shape.
 * @param {Tensor} a
 * @param {Tensor} b
 * @returns {Tensor}
 */
export function add(a, b) {
  const sum = copy(a);
  for (let i = 0; i < sum.data.length; i++) sum.data[i] += b.data[i];
  return sum;
}

/**
 * Return one number of a tensor: `at(q, 2, 5)` is row 2, column 5.
 * @param {Tensor} x
 * @param {...number} index one whole number for each dimension
 * @returns {number}
 */
export function at(x, ...index) {
  return x.data[index.reduce((offset, i, dimension) => offset * x.shape[dimension] + i, 0)];
}

/**
 * Return row `index` of x [..., n] as a view [n], all leading dimensions counted as one.
 * @param {Tensor} x
 * @param {number} index
 * @returns {Float64Array}
 */
export function row(x, index) {
  const n = x.shape[x.shape.length - 1];
  return x.data.subarray(index * n, (index + 1) * n);
}

/**
 * Return the last row of x [..., n] as a view [n].
 * @param {Tensor} x
 * @returns {Float64Array}
 */
export function lastRow(x) {
  return x.data.subarray(x.data.length - x.shape[x.shape.length - 1]);
}

/**
 * Return a tensor as nested arrays, for printing.
 * @param {Tensor} x
 * @returns {Array}
 */
export function nested(x) {
  let values = Array.from(x.data);
  for (const n of x.shape.slice(1).reverse()) {
    const rows = [];
    for (let i = 0; i < values.length; i += n) rows.push(values.slice(i, i + n));
    values = rows;
  }
  return x.shape.length === 0 ? values[0] : values;
}

/**
 * Return the index of the largest number, the first of equals; like PyTorch, NaN is the largest.
 * @param {ArrayLike<number>} x
 * @returns {number}
 */
export function argmax(x) {
  let best = 0;
  for (let i = 0; i < x.length; i++) {
    if (Number.isNaN(x[i])) return i;
    if (x[i] > x[best]) best = i;
  }
  return best;
}
