import assert from "node:assert/strict";
import { test } from "node:test";
import { Generator } from "../src/engine/index.js";
import { Likeness } from "../src/likeness.js";
import { follow, near } from "./formula.js";

const generator = new Generator(5);
const table = { shape: [6, 8], data: Float64Array.from({ length: 48 }, () => generator.normal()) };
const likeness = new Likeness(table, "after", "a learned number");

test("right angles, the same and the opposite direction", () => {
  const plain = new Likeness({ shape: [4, 2], data: Float64Array.of(3, 4, 6, 8, -3, -4, -4, 3) }, "x", "given");
  assert.deepEqual([plain.dot(0, 1), plain.lengths[0], plain.cosine(0, 1), plain.cosine(0, 2), plain.cosine(0, 3)], [50, 5, 1, -1, 0]);
  assert.deepEqual(plain.nearest(0), [1, 3, 2]);
});

test("every cosine is explained, down to the table's numbers", () => {
  for (let a = 0; a < 6; a++) {
    for (let b = 0; b < 6; b++) {
      const met = follow((ref) => likeness.explain(ref), { name: "cosine_after", index: [a, b] });
      assert.deepEqual([...met], ["cosine_after", "dot_after", "E_after", "length_after"]);
      near(likeness.cosine(a, b), likeness.cosine(b, a), "the other way round");
    }
    near(likeness.cosine(a, a), 1, "itself");
  }
  assert.equal(likeness.explain({ name: "E_after", index: [2, 3] }).value, table.data[19]);
});

test("the nearest come first, itself left out", () => {
  const order = likeness.nearest(2);
  assert.deepEqual([...order].sort(), [0, 1, 3, 4, 5]);
  order.slice(1).forEach((b, n) => assert.ok(likeness.cosine(2, order[n]) >= likeness.cosine(2, b)));
});

test("another table's numbers are not explained; a vector without length has no direction", () => {
  for (const name of ["cosine_before", "toString_after", "h0"]) assert.equal(likeness.explain({ name, index: [0, 0] }), null);
  const none = new Likeness({ shape: [2, 1], data: Float64Array.of(0, 1) }, "x", "given");
  assert.ok(Number.isNaN(none.cosine(0, 1)) && none.nearest(0).length === 1);
});
