/** Numbers, words and shapes as the figures of the book write them. */

/**
 * Return a number with fixed digits and a true minus sign; no negative zero.
 * @param {number} value
 * @param {number} [digits]
 * @returns {string}
 */
export function number(value, digits = 2) {
  if (Number.isNaN(value)) return "NaN";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (value === -1e9) return "−10⁹"; // what BabyGroot's mask writes
  if (Math.abs(value) >= 1e7) return value.toExponential(2).replaceAll("-", "−").replace("e+", "e");
  const rounded = Number(value.toFixed(digits)) + 0;
  return grouped(Math.abs(rounded).toFixed(digits), rounded < 0);
}

/** Return a number with all its digits, as many as say which number it is. */
export function exact(value) {
  return Number.isFinite(value) ? String(value).replaceAll("-", "−") : number(value);
}

/**
 * Return a number with fixed digits, or with two that count where those would show nothing: 0.00042.
 * @param {number} value
 * @param {number} [digits]
 * @returns {string}
 */
export function operand(value, digits = 3) {
  if (value === 0 || !(Math.abs(value) < 0.5 / 10 ** digits)) return number(value, digits);
  const most = 1 - Math.floor(Math.log10(Math.abs(value)));
  return most <= 7 ? number(value, most) : value.toExponential(1).replaceAll("-", "−");
}

/**
 * Return a count with its digits in groups of three.
 * @param {number} value
 * @returns {string}
 */
export function count(value) {
  return Number.isSafeInteger(value) ? grouped(String(Math.abs(value)), value < 0) : number(value, 0);
}

/** Return a share as a percentage: 0.8648 → "86.5 %", with a narrow space. */
export function percent(share, digits = 1) {
  return Number.isFinite(share) ? `${number(100 * share, digits)}\u202f%` : number(share);
}

/** Return a shape as the book writes it: [3, 8]. */
export function shape(sizes) {
  return `[${sizes.join(", ")}]`;
}

/**
 * Return a tensor [n] or [rows, columns] as Python that makes it, all digits kept.
 * @param {string} name
 * @param {{shape: number[], data: ArrayLike<number>}} tensor
 * @returns {string}
 */
export function asPython(name, tensor) {
  return `${name.replace(/\W+/g, "_")} = ${pythonTensor(tensor)}\n`;
}

/**
 * Return named tensors as Python that makes a dictionary of them, such as `load_state_dict` reads.
 * @param {string} name
 * @param {Object<string, {shape: number[], data: ArrayLike<number>}>} tensors
 * @returns {string}
 */
export function asPythonDict(name, tensors) {
  const lines = Object.entries(tensors).map(([key, tensor]) => `    "${key}": ${pythonTensor(tensor)},\n`);
  return `${name} = {\n${lines.join("")}}\n`;
}

function pythonTensor({ shape: sizes, data }) {
  const columns = sizes[sizes.length - 1];
  const rows = [];
  for (let i = 0; i < data.length; i += columns) {
    rows.push(`[${Array.from(data.slice(i, i + columns), pythonNumber).join(", ")}]`);
  }
  const numbers = sizes.length === 1 ? rows[0] : `[\n    ${rows.join(",\n    ")},\n]`;
  const reshaped = sizes.length > 2 ? `.reshape(${sizes.join(", ")})` : "";
  return `torch.tensor(${numbers}, dtype=torch.float64)${reshaped}`;
}

function pythonNumber(value) {
  if (Number.isNaN(value)) return 'float("nan")';
  if (!Number.isFinite(value)) return `float("${value < 0 ? "-" : ""}inf")`;
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? `${value}.0` : String(value);
}

function grouped(digits, negative) {
  const [whole, rest] = digits.split(".");
  const groups = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return (negative ? "−" : "") + groups + (rest === undefined ? "" : `.${rest}`);
}
