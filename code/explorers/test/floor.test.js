import assert from "node:assert/strict";
import { test } from "node:test";
import { Vocabulary, entropyFloor, prefixPairs } from "../src/engine/index.js";
import { Floor, contextWords } from "../src/floor.js";
import { follow, near, worked } from "./formula.js";

const SENTENCES = ["i am groot", "you are groot", "groot is happy", "groot is sad", "groot likes you"];
const vocabulary = Vocabulary.fromSentences(SENTENCES);
const { contexts, targets } = prefixPairs(SENTENCES, vocabulary);
const floor = new Floor(contexts, targets, vocabulary);
const padded = (text) => [...vocabulary.encode(text), 0, 0, 0, 0].slice(0, 4);

test("the floor is the engine's, and its formula leads down to what is counted", () => {
  near(floor.value, entropyFloor(contexts, targets), "floor");
  const met = follow((ref) => floor.explain(ref), { name: "floor", index: [] });
  assert.deepEqual([...met].sort(), ["adds", "entropy", "examples", "floor", "follows", "occurs"]);
  assert.deepEqual(floor.open.map((c) => floor.words(c)), ["<START>", "<START> groot", "<START> groot is"]);
});

test("counts, shares and best losses are those of the corpus", () => {
  const c = floor.find(padded("<START> groot")), is = vocabulary.id("is"), likes = vocabulary.id("likes");
  assert.equal(floor.explain({ name: "occurs", index: [c] }).value, 3);
  assert.deepEqual([floor.follows(c, is), floor.follows(c, likes), floor.follows(c, 0)], [2, 1, 0]);
  near(floor.entropies[c], (2 / 3) * Math.log(3 / 2) + Math.log(3) / 3, "entropy");
  for (const name of ["share", "best_loss"]) follow((ref) => floor.explain(ref), { name, index: [c, is] });
  near(floor.bestLoss(c, likes), Math.log(3), "best loss");
  near(floor.open.reduce((sum, at) => sum + floor.explain({ name: "part", index: [at] }).value, 0), 1, "parts");
  assert.equal(floor.bestLoss(c, 0), Infinity);
  assert.equal(worked(floor.explain({ name: "best_loss", index: [c, 0] }).parts), Infinity);
});

test("the best losses of a sentence of the corpus single it out among all", () => {
  for (const sentence of SENTENCES) {
    const pairs = prefixPairs([sentence], vocabulary);
    const losses = pairs.contexts.map((context, n) => floor.bestLoss(floor.find(context), pairs.targets[n]));
    near(losses.reduce((a, b) => a + b), Math.log(SENTENCES.length), sentence);
  }
});

test("a context that the corpus has not is -1 and explained in words; other numbers are not explained", () => {
  const c = floor.find(padded("<START> happy"));
  assert.equal(c, -1);
  assert.equal(floor.bestLoss(c, 3), Infinity);
  for (const name of ["occurs", "follows", "best_loss"]) assert.match(floor.explain({ name, index: [c, 3] }).note, /no such context/);
  assert.equal(floor.explain({ name: "attention", index: [0, 0] }), null);
  assert.equal(floor.explain({ name: "constructor", index: [0] }), null);
  assert.equal(contextWords(padded("<START> i"), vocabulary), "<START> i");
});
