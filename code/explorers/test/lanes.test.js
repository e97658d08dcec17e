import assert from "node:assert/strict";
import { test } from "node:test";
import { Generator, Transformer, TransformerConfig, generate, tensor } from "../src/engine/index.js";
import { Lanes, TOLERANCE, total } from "../src/lanes.js";

const generator = new Generator(8);

function randomTransformer() {
  const sizes = { vocab_size: 9, dim: 8, n_layers: 2, n_heads: 4, n_kv_heads: 2, max_seq_len: 12 };
  const config = new TransformerConfig(sizes);
  const weights = Object.entries(config.shapes()).map(([name, shape]) => {
    const made = tensor(shape);
    for (let i = 0; i < made.data.length; i++) made.data[i] = 0.6 * generator.normal();
    return [name, made];
  });
  return new Transformer(config, Object.fromEntries(weights));
}

const model = randomTransformer();
const prompt = [1, 5, 2, 7, 3];
const lanesOf = (options) => new Lanes(model, prompt, options);
const END = (lanes) => lanes.first + 5; // the step that writes the sixth token

test("both lanes write what generate writes, however the prompt is cut", () => {
  for (const chunk of [0, 1, 2, 3, 4, 5]) {
    const lanes = lanesOf({ chunk }), { recompute, cache } = lanes.after(END(lanes));
    const written = generate(model, prompt, 6);
    assert.deepEqual(cache.text, written);
    assert.deepEqual(recompute.text, written);
    assert.equal(lanes.cache.length, prompt.length + 5);
    assert.equal(recompute.passes.length, 6);
    assert.equal(cache.passes.length, Math.ceil(5 / (chunk || 5)) + 5);
    for (const { distance } of lanes.compared(END(lanes))) assert.ok(distance <= TOLERANCE, `apart by ${distance}`);
  }
});

test("an earlier step shows what was there then, whatever was computed since", () => {
  const lanes = lanesOf({ chunk: 2 });
  lanes.after(END(lanes));
  const early = lanes.after(2);
  assert.deepEqual(early.cache.passes.map(({ ids }) => ids), [[1, 5], [2, 7]]);
  assert.deepEqual([early.recompute.passes.length, early.cache.text], [0, prompt]);
  assert.deepEqual(lanes.compared(2), []);
  const written = lanes.after(lanes.first);
  assert.equal(written.cache.text.length, prompt.length + 1);
  assert.equal(lanes.compared(lanes.first).length, prompt.length);
});

test("as many tokens can be written as the window has places, and one that is never read", () => {
  const lanes = lanesOf({});
  assert.equal(lanes.room, 12 - 5 + 1);
  assert.equal(lanes.after(lanes.first + lanes.room - 1).cache.text.length, 13);
});

/** Return the value of an explanation's parts. */
function evaluated({ parts }) {
  const source = parts.map((part) => (typeof part === "string" ? part : part.fold ? fold(part) : `(${part.value})`)).join("");
  return Function(`return ${source.replaceAll("·", "*").replaceAll("−", "-").replace(/\|(.*)\|/, "Math.abs($1)")}`)();
}

const fold = ({ fold: parts }) => parts.map((part) => (typeof part === "string" ? part : part.value)).join("");

test("counts and distances come with a formula that gives them", () => {
  const lanes = lanesOf({ chunk: 2, fault: "position 0" });
  for (let step = 1; step <= END(lanes); step++) {
    const explain = lanes.explainer(step, 4), after = lanes.after(step);
    const check = (name, index, value) => {
      const found = explain({ name, index });
      assert.equal(found.value, value, name);
      assert.ok(Math.abs(evaluated(found) - value) <= 1e-12 * Math.max(1, value), `${name}: ${evaluated(found)}, not ${value}`);
    };
    for (const [lane, { passes }] of Object.entries(after)) {
      check(`${lane}: all passes`, [], total(passes));
      passes.forEach(({ multiplications, ids, start }, n) => {
        check(`${lane}: pass`, [n], multiplications);
        assert.equal(multiplications, model.config.multiplications(ids.length, start));
      });
    }
    const held = after.cache.passes.reduce((sum, { ids }) => sum + ids.length, 0);
    check("numbers held", [], 2 * 2 * 2 * 2 * held);
    check("bytes held", [], 4 * 2 * 2 * 2 * 2 * held);
    check("bytes reserved", [], 4 * 2 * 2 * 2 * 2 * 12);
    for (const { position, distance } of lanes.compared(step)) check("distance", [position], distance);
  }
});

test("numbers of both lanes are explained, each from its own lane", () => {
  const lanes = lanesOf({ chunk: 2, fault: "position 0" }), { cache, recompute } = lanes.after(END(lanes));
  const explain = lanes.explainer(END(lanes), 4), last = recompute.passes.at(-1);
  for (let position = 0; position < last.ids.length; position++) {
    const pass = cache.passes.find(({ start, ids }) => position >= start && position < start + ids.length);
    const kept = explain({ name: "logits", index: [position, 4] });
    const again = explain({ name: "recompute.logits", index: [position, 4] });
    assert.equal(kept.value, pass.seen.logits.data[(position - pass.start) * 9 + 4]);
    assert.equal(again.value, last.seen.logits.data[position * 9 + 4]);
    assert.ok(again.refs.every(({ name }) => /^recompute\.h_out$|^output\.weight$/.test(name)));
    for (const { name, index, value } of [...kept.refs, ...again.refs]) {
      assert.equal(explain({ name, index }).value, value, name);
    }
  }
  const key = explain({ name: "layers.1.k_rotated", index: [1, 3, 0] });
  assert.equal(key.value, lanes.cache.keys[1].data[(12 + 3) * 2]);
  assert.throws(() => explain({ name: "nothing of ours", index: [] }));
});

test("faults set the lanes apart where they should, and only the lane with the cache", () => {
  const apart = (options) => {
    const lanes = lanesOf(options), found = lanes.compared(END(lanes)).find(({ distance }) => distance > TOLERANCE);
    assert.deepEqual(lanes.after(END(lanes)).recompute.text, generate(model, prompt, 6));
    return found?.position ?? null;
  };
  assert.equal(apart({ fault: "position 0" }), 5); // the first decoded token
  assert.equal(apart({ fault: "position 0", chunk: 2 }), 2); // the second piece's first token
  assert.equal(apart({ fault: "first rows" }), null); // the prompt in one piece needs no other rows
  assert.equal(apart({ fault: "first rows", chunk: 1 }), null); // single tokens are not masked
  assert.equal(apart({ fault: "first rows", chunk: 3 }), 3);
  assert.equal(apart({ fault: "no mask" }), 0);
  assert.equal(apart({ fault: "no mask", chunk: 1 }), null);
});

test("a run writes the whole text again, and touches nothing that is shown", () => {
  const lanes = lanesOf({ chunk: 2 });
  lanes.after(2);
  lanes.run("cache", 6);
  lanes.run("recompute", 6);
  assert.deepEqual([lanes.cache.length, lanes.texts.cache], [4, prompt]);
});

test("lanes that both say NaN or infinity agree, and a difference to them is one", () => {
  const broken = randomTransformer();
  broken.weights["output.weight"].data.set([NaN, Infinity]);
  const lanes = new Lanes(broken, prompt, { chunk: 2 });
  for (const { position, distance } of lanes.compared(4)) {
    assert.ok(distance <= TOLERANCE, `apart by ${distance}`);
    assert.equal(lanes.explainer(4, 4)({ name: "distance", index: [position] }).value, distance);
  }
  lanes.after(4).cache.passes[0].seen.logits.data[0] = 1;
  assert.ok(Number.isNaN(lanes.compared(4)[0].distance));
});
