/**
 * Read weights from a safetensors file: 8 bytes with the length of a JSON header, the header that
 * names each tensor with its type, shape and place, then the numbers themselves.
 *
 * @typedef {import("./tensor.js").Tensor} Tensor
 */

const BYTES = { F64: 8, F32: 4, F16: 2 };

/**
 * Return the tensors of a safetensors file by name; an Error says in a sentence what is wrong.
 * @param {ArrayBuffer|Uint8Array|DataView} file
 * @returns {Object<string, Tensor>}
 */
export function readSafetensors(file) {
  const bytes = asBytes(file);
  const { header, start } = readHeader(bytes);
  const tensors = Object.create(null); // no inherited names, so any name is safe
  let end = 0;
  for (const [name, entry] of inOrder(header)) {
    check(entry, name, end);
    end = entry.data_offsets[1];
    if (start + end > bytes.length) broken(`${name} ends behind the end of the file`);
    const numbers = bytes.slice(start + entry.data_offsets[0], start + end).buffer;
    tensors[name] = { shape: entry.shape, data: READ[entry.dtype](numbers) };
  }
  if (start + end !== bytes.length) broken("it has bytes that belong to no tensor");
  return tensors;
}

/** What makes float64 of the bytes of each type, exactly. */
const READ = {
  F64: (numbers) => new Float64Array(numbers),
  F32: (numbers) => new Float64Array(new Float32Array(numbers)),
  F16: (numbers) => Float64Array.from(new Uint16Array(numbers), fromHalf),
};

/** Return the number that the 16 bits of a float16 mean: a sign, 5 bits of exponent, 10 of fraction. */
function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}

function broken(what) {
  throw new Error(`This is not a whole safetensors file: ${what}.`);
}

function asBytes(file) {
  if (file instanceof ArrayBuffer) return new Uint8Array(file);
  if (ArrayBuffer.isView(file)) return new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  throw new Error("readSafetensors needs an ArrayBuffer or a Uint8Array.");
}

/** Return the JSON header and the byte at which the numbers start. */
function readHeader(bytes) {
  if (bytes.length < 8) broken("it is shorter than 8 bytes");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32; // little-endian
  if (length > bytes.length - 8) broken("its header ends behind the end of the file");
  let header;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + length));
    header = JSON.parse(text);
  } catch {
    broken("its header is not JSON");
  }
  if (!isObject(header)) broken("its header is not an object");
  return { header, start: 8 + length };
}

/** Return the header's entries as [name, entry], in the order of their places in the file. */
function inOrder(header) {
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  for (const [name, entry] of entries) {
    const places = isObject(entry) && entry.data_offsets;
    if (!areSizes(places) || places.length !== 2) broken(`the header does not say where ${name} is`);
  }
  return entries.sort(
    ([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1],
  );
}

/** Throw an Error unless a header entry is sound and starts where the one before it ended. */
function check({ dtype, shape, data_offsets: [from, to] }, name, end) {
  if (typeof dtype !== "string" || !Object.hasOwn(BYTES, dtype)) {
    throw new Error(`The tensor ${name} is of type ${dtype}; the engine reads F16, F32 and F64.`);
  }
  if (!areSizes(shape)) broken(`the shape of ${name} is not a list of sizes`);
  if (from !== end) broken(`${name} does not start where the tensor before it ends`);
  const needed = shape.reduce((product, n) => product * n, BYTES[dtype]);
  if (to - from !== needed) broken(`${name} needs ${needed} bytes and has ${to - from}`);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function areSizes(value) {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);
}
