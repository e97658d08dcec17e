import assert from "node:assert/strict";
import { test } from "node:test";
import { BabyGroot, Generator } from "../src/engine/index.js";
import { NORMS, Passage, STAGES, W2 } from "../src/passage.js";
import { explain } from "../src/provenance.js";

const model = BabyGroot.draw(new Generator(3), 9, 4, 6);
const ids = [1, 5, 2, 7];
const passages = ids.map((_, position) => new Passage(model, ids, position));

/** Return the value of an explanation's parts, operands put in. */
function evaluated(parts) {
  const text = (all) => all.map((part) => (typeof part === "string" ? part : part.fold ? text(part.fold) : `(${part.value})`)).join("");
  const source = text(parts).replaceAll("·", "*").replaceAll("−", "-").replaceAll("²", "**2").replaceAll("√", "Math.sqrt");
  return Function(`return ${source}`)();
}

const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

test("every number beside the trace is what its formula makes of its operands, which all can be followed", () => {
  for (const p of passages) {
    const t = p.position, refs = [];
    for (const stage of STAGES) for (const measure of ["mean", "variance", "length"]) refs.push([`${stage}.${measure}`, t]);
    for (const { z } of Object.values(NORMS)) for (let c = 0; c < 6; c++) refs.push([z, t, c]);
    for (let u = 0; u < p.units; u++) for (let c = 0; c < 6; c++) refs.push(["reads", t, u, c], ["adds", t, u, c]);
    for (const [name, ...index] of refs) {
      const found = p.explain({ name, index });
      near(evaluated(found.parts), found.value);
      for (const ref of found.refs) {
        near(p.ref(ref.name, ...ref.index).value, ref.value);
        assert.ok(p.explain(ref) ?? explain(p, ref.name, ref.index));
      }
    }
  }
});

test("measures, z and what units add fit the trace", () => {
  for (const p of passages) {
    const t = p.position;
    for (const [made, { z, weights }] of Object.entries(NORMS)) {
      const flat = Array.from({ length: 6 }, (_, c) => p.ref(z, t, c).value);
      near(flat.reduce((a, b) => a + b), 0);
      flat.forEach((value, c) => near(value * p.ref(`${weights}.weight`, c).value + p.ref(`${weights}.bias`, c).value, p.at(made)[c]));
    }
    for (let u = 0; u < p.units; u++) {
      const read = Array.from({ length: 6 }, (_, i) => p.ref("reads", t, u, i).value).reduce((a, b) => a + b);
      near(read + p.ref("transformer.ffn.0.bias", u).value, p.at("ffn_hidden")[u]);
      assert.equal(p.fires(u), p.at("ffn_activation")[u] > 0);
    }
    for (let c = 0; c < 6; c++) {
      const added = Array.from({ length: p.units }, (_, u) => p.ref("adds", t, u, c).value).reduce((a, b) => a + b);
      near(added + p.ref("transformer.ffn.2.bias", c).value, p.at("ffn_out")[c]);
    }
    assert.equal(p.ref("fires", t).value, [...p.at("ffn_activation")].filter((a) => a > 0).length);
  }
});

test("numbers that are not there have no explanation", () => {
  const [p] = passages;
  assert.throws(() => p.explain({ name: "r1.mean", index: [4] }), /There is no number/);
  assert.throws(() => p.explain({ name: "adds", index: [0, 99, 0] }), /There is no number/);
  assert.equal(p.explain({ name: "r1", index: [0, 0] }), null);
  assert.equal(p.explain({ name: W2, index: [0, 0] }), null);
  assert.equal(p.explain({ name: "r1.toString", index: [0] }), null);
});

test("units that are not numbers are not called off", () => {
  const broken = BabyGroot.draw(new Generator(3), 9, 4, 6);
  broken.weights["transformer.ffn.0.bias"].data[2] = NaN;
  const p = new Passage(broken, ids, 1);
  assert.ok(p.fires(2) && Number.isNaN(p.at("ffn_activation")[2]));
});
