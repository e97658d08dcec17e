import assert from "node:assert/strict";
import { test } from "node:test";
import { LastTokenPass, Vocabulary, prefixPairs, trainBabyGroot } from "../src/engine/index.js";
import { Floor } from "../src/floor.js";
import { Run } from "../src/run.js";
import { follow, near } from "./formula.js";

const SENTENCES = ["i am groot", "you are groot", "groot is happy", "groot is sad", "groot likes you"];
const vocabulary = Vocabulary.fromSentences(SENTENCES);
const examples = prefixPairs(SENTENCES, vocabulary);
const options = { ...examples, vocabSize: vocabulary.size, dim: 4, seed: 7, learningRate: 0.02, switches: {} };
const begin = (more = {}) => new Run({ ...options, ...more }, new Floor(examples.contexts, examples.targets, vocabulary), "a run");

test("a run is the engine's training, with every epoch kept", () => {
  for (const switches of [{}, { mask: false }, { positions: false, residuals: false }, { normalisation: false }]) {
    const run = begin({ switches }), { history } = trainBabyGroot({ ...options, switches, epochs: 12, snapshotEvery: 1 });
    run.advance(5);
    assert.equal(run.epochs, 5);
    run.advance(12);
    assert.deepEqual(run.history.losses, history.losses);
    for (let epoch = 0; epoch <= 12; epoch++) assert.deepEqual(run.at(epoch).parameters, history.snapshots[epoch]);
  }
});

test("it stops when another epoch would not fit into its time, and goes on from there", () => {
  const run = begin();
  run.advance(100_000, 0);
  assert.equal(run.epochs, 1); // one at least, so that it always gets on
  run.advance(100_000, 20);
  const { epochs } = run;
  assert.ok(epochs < 100_000 && run.took > 0, `${epochs} epochs, ${run.took} ms`);
  run.advance(epochs + 1);
  assert.equal(run.epochs, epochs + 1);
  run.advance(3);
  assert.equal(run.epochs, epochs + 1);
});

test("asked as a whole, an epoch's model answers for each example", () => {
  const run = begin();
  run.advance(30);
  for (const epoch of [0, 30, 7]) {
    const pass = new LastTokenPass(run.at(epoch), {}), losses = [];
    let right = 0;
    examples.contexts.forEach((context, n) => {
      pass.forward(context);
      losses.push(pass.loss(examples.targets[n]));
      right += pass.choice() === examples.targets[n];
    });
    const asked = run.asked(epoch);
    assert.deepEqual([asked.losses, asked.right], [losses, right]);
    near(asked.loss, losses.reduce((a, b) => a + b) / losses.length, "loss");
  }
  assert.ok(run.asked(30).loss < run.asked(0).loss);
});

test("its numbers are explained, down to what is counted", () => {
  const run = begin();
  run.advance(9);
  const explain = (ref) => run.explain(ref, 9);
  for (const [name, ...index] of [["loss"], ["right"], ["weights"], ["epochs"], ["logged", 8], ["floor"]]) follow(explain, { name, index });
  assert.equal(explain({ name: "weights", index: [] }).value, run.model.numParams());
  assert.match(explain({ name: "example_loss", index: [2] }).note, /“<START> i am” → groot/);
  assert.match(explain({ name: "batch_mean", index: [0, 1] }).note, /the 4 examples of batch 1/);
  assert.equal(explain({ name: "attention", index: [0, 0] }), null);
});
