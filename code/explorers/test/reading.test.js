import assert from "node:assert/strict";
import { test } from "node:test";
import { Generator, Transformer, TransformerConfig, generate, nextTokenProbabilities, row, tensor } from "../src/engine/index.js";
import { Reading } from "../src/reading.js";
import { near, worked } from "./formula.js";

const generator = new Generator(8);
const config = new TransformerConfig({ vocab_size: 9, dim: 8, n_layers: 2, n_heads: 4, n_kv_heads: 2, max_seq_len: 16 });
const drawn = Object.entries(config.shapes()).map(([name, shape]) => {
  const made = tensor(shape);
  for (let i = 0; i < made.data.length; i++) made.data[i] = 0.6 * generator.normal();
  return [name, made];
});
const model = new Transformer(config, Object.fromEntries(drawn));
const prompt = [1, 5, 2, 7, 3, 3];
const CHOICES = [{ temperature: 0, seed: 0 }, { temperature: 0.7, seed: 3 }, { temperature: 2, seed: 4 }];

test("it writes what generate writes, in one go or in slices, forth and back", () => {
  for (const { temperature, seed } of CHOICES) {
    const want = generate(model, prompt, 10, { temperature, generator: new Generator(seed) });
    for (const slice of [Infinity, 0]) {
      const reading = new Reading(model, prompt);
      reading.choose({ temperature, seed });
      assert.equal(reading.room, 10);
      for (const length of [6, 9, 16]) {
        let slices = 1;
        while (!reading.work(length, slice)) slices += 1;
        assert.ok(slice ? slices === 1 : length === 6 ? slices === 2 : slices >= 3, `${slices} slices`);
        assert.deepEqual(reading.ids, want.slice(0, length));
        reading.at(2); // looking back does not change what is written on
      }
      assert.ok(reading.pace >= 0);
    }
  }
});

test("other choices write another text from the same prompt, and the same ones the same", () => {
  const reading = new Reading(model, prompt), texts = CHOICES.map((choices) => {
    reading.choose(choices);
    reading.work(16);
    return [...reading.ids];
  });
  assert.equal(new Set(texts.map(String)).size, 3);
  reading.choose(CHOICES[1]);
  assert.equal(reading.read, 6); // the prompt is not read again
  reading.work(16);
  assert.deepEqual(reading.ids, texts[1]);
  reading.choose({ ...CHOICES[1], temperature: 2 });
  reading.work(16);
  assert.notDeepEqual(reading.ids, texts[1]);
});

test("what was made of each token is what a pass over the whole text makes", () => {
  const reading = new Reading(model, prompt);
  reading.choose(CHOICES[1]);
  reading.work(16);
  const whole = model.trace(reading.ids);
  for (const t of [15, 0, 9, 3, 15]) {
    const { seen, logits, shares, order } = reading.at(t);
    assert.deepEqual([...logits], [...row(whole.logits, t)]);
    assert.deepEqual([...shares], [...nextTokenProbabilities(logits, { temperature: 0.7 })]);
    order.slice(1).forEach((id, n) => assert.ok(logits[order[n]] >= logits[id]));
    const all = whole["layers.1.attention"].data, own = seen["layers.1.attention"];
    assert.deepEqual(own.shape, [4, 1, t + 1]);
    for (let h = 0; h < 4; h++) for (let s = 0; s <= t; s++) near(own.data[h * (t + 1) + s], all[(h * 16 + t) * 16 + s], `head ${h}`);
  }
  assert.equal(reading.read, 16);
});

test("shares and counts have formulas that give them, of numbers that are explained in turn", () => {
  for (const choices of CHOICES) {
    const reading = new Reading(model, prompt);
    reading.choose(choices);
    reading.work(12);
    for (const t of [0, 7, 11]) {
      const explain = reading.explainer(t, 12, 4), { order } = reading.at(t), kept = `layers.1.${t % 2 ? "v" : "k_rotated"}`;
      const queue = order.map((id) => ({ name: "share", index: [id], value: reading.at(t).shares[id] })), met = new Set();
      for (const name of ["numbers held", "bytes held", "bytes reserved"]) queue.push({ name, index: [] });
      queue.push({ name: "layers.1.attention", index: [3, t, 0] }, { name: kept, index: [1, 0, 1] });
      for (const ref of queue) {
        const { value, parts, note, refs } = explain(ref);
        if (ref.value !== undefined) near(ref.value, value, ref.name);
        met.add(ref.name);
        if (parts.length && !ref.name.startsWith("layers.")) near(worked(parts), value, ref.name);
        assert.ok(parts.length || note || value === 0, ref.name);
        if (ref.name === "share" || ref.name === "scaled") queue.push(...refs);
      }
      assert.equal(met.has("logits") && met.has("others"), choices.temperature > 0);
    }
    const explain = reading.explainer(5, 12, 4), value = (name) => explain({ name, index: [] }).value;
    assert.equal(value("numbers held"), config.kvCacheValues(12));
    assert.equal(value("bytes held"), config.kvCacheBytes(12));
    assert.equal(value("bytes reserved"), config.kvCacheBytes());
    if (choices.temperature) {
      const { order, shares } = reading.at(5);
      near(value("others") * shares[order[0]], order.slice(3).reduce((sum, id) => sum + shares[id], 0), "others");
    }
  }
});
