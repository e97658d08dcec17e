import assert from "node:assert/strict";
import { test } from "node:test";
import { Generator } from "../src/engine/index.js";
import { explanation } from "../src/provenance.js";
import { explainTurning, turnBoth } from "../src/turning.js";
import { follow } from "./formula.js";

const generator = new Generator(5);
const drawn = () => Float64Array.from({ length: 8 }, () => generator.normal());

/** Return what explains the numbers of two drawn vectors turned, those that are turned too. */
function explainer(options) {
  const vectors = { q: drawn(), k: drawn() };
  const both = turnBoth(vectors.q, vectors.k, { queryAt: 7, keyAt: 2, theta: 10000, ...options });
  const ref = (name) => (i) => ({ name, index: [i], value: vectors[name][i] });
  const turning = explainTurning(both, { q: ref("q"), k: ref("k") });
  const given = ({ name, index }) => explanation({ name, index }, vectors[name][index[0]], { note: "drawn" });
  return { both, explain: (wanted) => turning(wanted) ?? given(wanted) };
}

test("a score is followed down to the angles, the speeds and what is turned", () => {
  const { explain } = explainer({ turned: () => true });
  const met = follow(explain, { name: "score", index: [] });
  const names = ["score", "pair product", "q′", "k′", "q", "k", "query angle", "key angle", "speed"];
  assert.deepEqual([...met].sort(), names.sort());
});

test("a pair that is not turned has angles of 0, and says so", () => {
  const { explain, both } = explainer({ turned: (pair) => pair === 1 });
  for (const name of ["query angle", "key angle"]) {
    for (const pair of both.pairs.keys()) follow(explain, { name, index: [pair] });
    assert.match(explain({ name, index: [0] }).note, /pair 0 is not turned/);
    assert.equal(explain({ name, index: [0] }).value, 0);
  }
  assert.equal(explain({ name: "query angle", index: [1] }).value, 7 * 10000 ** (-2 / 8));
});
