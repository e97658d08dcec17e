/** Weights that are changed, numbers that move, the trail back. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  changedModel, countMoved, fitting, indexOf, isChange, kept, nudged, placeOf, stepTo, typedNumber, withChange,
} from "../src/changes.js";
import { BabyGroot, Generator } from "../src/engine/index.js";
import { explain } from "../src/provenance.js";

const model = BabyGroot.draw(new Generator(1), 24, 4);
const W = "head.weight";

test("a place and an index say the same", () => {
  const tensor = model.weights[W];
  for (let place = 0; place < tensor.data.length; place++) assert.equal(placeOf(tensor, indexOf(tensor, place)), place);
  for (const index of [[24, 0], [0, 8], [-1, 0], [0], [0, 0, 0], [0.5, 0]]) assert.equal(placeOf(tensor, index), -1);
  assert.equal(placeOf(undefined, [0]), -1);
});

test("what comes as a change is looked at", () => {
  for (const item of [[W, [2, 1], 0.5], [W, [2, 1], "NaN"], [W, [], "-Infinity"]]) assert.ok(isChange(item));
  for (const item of [null, "x", [W, [2, 1]], [W, 2, 1], [W, ["2"], 1], [2, [1], 1], [W, [2, 1], "1"], [W, [2, 1], null]]) {
    assert.ok(!isChange(item), JSON.stringify(item));
  }
});

test("a changed model is another model; what does not fit is left out and the last change holds", () => {
  const changes = [[W, [2, 1], 5], ["__proto__", [0], 1], ["constructor", [], 1], [W, [24, 0], 1], [W, [2, 1], "Infinity"]];
  const before = model.weights[W].data.slice();
  const changed = changedModel(model, changes);
  assert.equal(changed.weights[W].data[17], Infinity);
  assert.deepEqual(model.weights[W].data, before);
  assert.deepEqual(fitting(model, changes), [{ name: W, index: [2, 1], value: Infinity, before: before[17] }]);
});

test("a change replaces the one before it, and a weight back at its value is no change", () => {
  const ref = { name: W, index: [2, 1] }, own = model.weights[W].data[17];
  const once = withChange(model, [], ref, 3);
  assert.deepEqual(once, [[W, [2, 1], 3]]);
  assert.deepEqual(withChange(model, once, ref, NaN), [[W, [2, 1], "NaN"]]);
  assert.deepEqual(withChange(model, once, ref, -Infinity), [[W, [2, 1], "-Infinity"]]);
  assert.deepEqual(withChange(model, once, ref, own), []);
  assert.equal(withChange(model, once, { name: W, index: [2, 2] }, 1).length, 2);
});

test("numbers are read as people type them", () => {
  const typed = { "-1.5": -1.5, "−1.5": -1.5, "+2": 2, ".5": 0.5, "3.": 3, " 1e3 ": 1000, "0,25": 0.25, "∞": Infinity, "−∞": -Infinity, "-inf": -Infinity, Infinity, NaN };
  for (const [text, value] of Object.entries(typed)) assert.equal(typedNumber(text), value, text);
  for (const text of ["", "-", "abc", "1 2", "0x10", "1,2,3", "<b>", "١"]) assert.equal(typedNumber(text), null, text);
  assert.equal(nudged(0.2, 0.1, 5), 0.3);
  assert.equal(nudged(Infinity, 0.1, 5), Infinity);
  const own = 2.0763672226668395;
  assert.equal(nudged(nudged(own, 0.1, own), -0.1, own), own);
});

test("what says the same stays the same object, and what moved is counted", () => {
  const base = model.trace([1, 2, 3]), changed = changedModel(model, [["head.bias", [4], 9]]);
  const now = kept(base, changed.trace([1, 2, 3]));
  for (const name of Object.keys(now)) assert.equal(now[name] === base[name], !["logits", "probabilities"].includes(name), name);
  assert.deepEqual(countMoved(base, now), { moved: 3 + 3 * 24, lost: 0 });
  assert.notEqual(kept(base, model.trace([1, 2])).h0, base.h0);
  const lost = changedModel(model, [["head.bias", [4], NaN]]).trace([1, 2, 3]);
  assert.deepEqual(countMoved(base, lost), { moved: 75, lost: 75 });
});

test("the trail leads on to operands, back to what is on it, and starts afresh elsewhere", () => {
  const pass = { model, seen: model.trace([1, 2, 3]) };
  const refs = ({ name, index }) => explain(pass, name, index).refs;
  const p = { name: "probabilities", index: [2, 5] }, z = { name: "logits", index: [2, 5] }, h = { name: "h_out", index: [2, 3] };
  const trail = [z, h].reduce((way, ref) => stepTo(way, refs(way.at(-1)), ref), [p]);
  assert.deepEqual(trail, [p, z, h]);
  assert.deepEqual(stepTo(trail, refs(h), z), [p, z]);
  assert.deepEqual(stepTo(trail, refs(h), { name: "v", index: [0, 0] }), [{ name: "v", index: [0, 0] }]);
});
