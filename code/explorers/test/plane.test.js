import assert from "node:assert/strict";
import { test } from "node:test";
import { Generator } from "../src/engine/index.js";
import { explainKept, finiteRows, kept, onPlane, principalPlane } from "../src/plane.js";
import { explanation } from "../src/provenance.js";
import { follow } from "./formula.js";

const generator = new Generator(3);
const drawn = (n, d) => ({ shape: [n, d], data: Float64Array.from({ length: n * d }, (_, i) => generator.normal() * (1 + (i % d))) });
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

test("the axes are of length 1, at a right angle, with their largest part positive", () => {
  for (const d of [2, 3, 8, 32]) {
    const { axes: [a, b] } = principalPlane(drawn(24, d));
    for (const [got, want] of [[dot(a, a), 1], [dot(b, b), 1], [dot(a, b), 0]]) assert.ok(Math.abs(got - want) < 1e-12, `${d}: ${got}`);
    for (const axis of [a, b]) assert.ok(Math.max(...axis) >= Math.max(...axis.map((x) => -x)));
  }
});

test("no other plane keeps more of the variance, and in the flat all is kept", () => {
  const vectors = drawn(24, 8), plane = principalPlane(vectors), best = kept(vectors, plane);
  assert.ok(best > 0.2 && best < 1);
  for (let i = 0; i < 50; i++) {
    const other = principalPlane(drawn(24, 8));
    assert.ok(kept(vectors, other) < best);
  }
  const flat = drawn(9, 2);
  assert.ok(Math.abs(kept(flat, principalPlane(flat)) - 1) < 1e-12);
});

test("places are distances along the axes from the mean", () => {
  const vectors = { shape: [4, 2], data: Float64Array.of(-3, 1, 5, 1, 1, 0, 1, 2) };
  assert.deepEqual(onPlane(vectors, principalPlane(vectors)), [[-4, 0], [4, 0], [0, -1], [0, 1]]);
  const line = { shape: [2, 1], data: Float64Array.of(1, 3) };
  assert.deepEqual(onPlane(line, principalPlane(line)), [[-1, 0], [1, 0]]);
});

test("vectors that are not numbers end the search as well", () => {
  const places = onPlane({ shape: [2, 3], data: new Float64Array(6).fill(NaN) }, principalPlane({ shape: [2, 3], data: new Float64Array(6).fill(NaN) }));
  assert.ok(places.flat().every(Number.isNaN));
});

test("the plane of vectors some of which are not numbers is that of the others", () => {
  const vectors = drawn(9, 4), broken = { shape: [10, 4], data: Float64Array.of(...vectors.data, 1, Infinity, NaN, 2) };
  assert.deepEqual(finiteRows(broken), vectors);
  const places = onPlane(broken, principalPlane(finiteRows(broken)));
  assert.deepEqual(places.map((place) => place.every(Number.isFinite)), [...Array(9).fill(true), false]);
});

test("the part of the variance that is kept is followed down to the vectors", () => {
  for (const d of [1, 2, 8]) {
    const vectors = drawn(24, d), spread = explainKept("E", vectors, principalPlane(drawn(24, d)));
    const given = ({ name, index: [r, i] }) => explanation({ name, index: [r, i] }, vectors.data[r * d + i], { note: "drawn" });
    const met = follow((ref) => spread(ref) ?? given(ref), { name: "kept", index: [] });
    assert.deepEqual([...met].sort(), ["E", "along", "axis", "kept", "mean of column", "spread", "spread on the map"]);
  }
});
