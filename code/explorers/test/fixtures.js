/**
 * What PyTorch computed, for the engine to compute again. `tests/test_engine.py` writes it into a
 * folder and names that folder in GLASS_FIXTURES; without it, the tests that compare are skipped.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { readSafetensors } from "../src/engine/index.js";

const folder = process.env.GLASS_FIXTURES;
const hint = "run `pytest tests/test_engine.py`: it writes what PyTorch computes";

/** Return the plain data of a fixture. */
export function readJson(name) {
  return JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), "utf8"));
}

/** Return the tensors of a fixture. */
export function readTensors(name) {
  return readSafetensors(fs.readFileSync(path.join(folder, `${name}.safetensors`)));
}

/** A test that needs fixtures. */
export function compare(name, body) {
  test(name, { skip: folder ? false : hint }, body);
}

/** Return the tensors whose names start with a prefix, without it, in the file's order. */
export function below(tensors, prefix) {
  const own = Object.entries(tensors).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(prefix.length), value]));
}

/** The largest relative difference that `close` has seen and let pass. */
export const worst = { value: 0, where: "" };

/**
 * Assert that two tensors agree to within `bound` times the largest entry of the wanted one.
 * Entries that are not finite, and BabyGroot's masked −10⁹, must be equal and do not count as large.
 */
export function close(where, got, want, bound = 1e-10) {
  assert.deepEqual(got.shape, want.shape, `${where}: shape`);
  assert.equal(got.data.length, want.data.length, `${where}: size`);
  const special = (x) => !Number.isFinite(x) || x === -1e9;
  let largest = 0;
  for (const x of want.data) if (!special(x)) largest = Math.max(largest, Math.abs(x));
  want.data.forEach((x, i) => {
    const y = got.data[i], off = Math.abs(y - x) / (largest || 1);
    const same = special(x) ? Object.is(x, y) : off <= bound;
    if (!same) assert.fail(`${where}[${i}] is ${y}, not ${x}: off by ${off} of the largest`);
    if (off > worst.value) Object.assign(worst, { value: off, where });
  });
}

/** Assert that a trace has exactly the wanted names, in order, and the wanted numbers. */
export function sameTrace(where, got, names, want) {
  assert.deepEqual(Object.keys(got), names, `${where}: names`);
  for (const name of names) close(`${where} ${name}`, got[name], want[name]);
}

/** Assert that a function throws an Error of one sentence that a pattern matches. */
export function refuses(body, pattern) {
  assert.throws(body, (error) => {
    assert.equal(error.constructor, Error, String(error));
    assert.match(error.message, pattern);
    assert.ok(!error.message.includes("\n") && error.message.endsWith("."), error.message);
    return true;
  });
}
