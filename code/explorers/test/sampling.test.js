import assert from "node:assert/strict";
import { test } from "node:test";
import { Generator, draw, leading, nextTokenProbabilities, ranked } from "../src/engine/index.js";
import { close, compare, readJson, readTensors, refuses } from "./fixtures.js";

compare("temperature, top-k and top-p give PyTorch's distributions", () => {
  const { cases } = readJson("sampling"), tensors = readTensors("sampling");
  cases.forEach((choices, n) => {
    const data = nextTokenProbabilities(tensors[`${n}/logits`].data, choices);
    const want = tensors[`${n}/probabilities`];
    close(`case ${n} ${JSON.stringify(choices)}`, { shape: want.shape, data }, want);
    want.data.forEach((p, i) => assert.equal(p === 0, data[i] === 0, `case ${n}: token ${i} stays`));
  });
});

test("tokens are drawn as often as their probabilities say", () => {
  const probabilities = [0.5, 0, 0.3, 0.15, 0.05];
  const generator = new Generator(1), N = 200000;
  const counts = new Array(5).fill(0);
  for (let n = 0; n < N; n++) counts[draw(probabilities, generator)] += 1;
  probabilities.forEach((p, id) => {
    const spread = Math.sqrt(N * p * (1 - p));
    assert.ok(Math.abs(counts[id] - N * p) <= 4.5 * spread, `token ${id} was drawn ${counts[id]} times`);
  });
});

test("the same seed draws the same tokens", () => {
  const drawn = (seed) => {
    const generator = new Generator(seed);
    return Array.from({ length: 50 }, () => draw([0.25, 0.25, 0.25, 0.25], generator));
  };
  assert.deepEqual(drawn(7), drawn(7));
  assert.notDeepEqual(drawn(7), drawn(8));
});

test("of equals the lower id comes first", () => {
  assert.deepEqual(ranked([1, 3, 3, 2]), [1, 2, 3, 0]);
  assert.deepEqual([...nextTokenProbabilities([5, 5, 5], { topK: 1 })], [1, 0, 0]);
});

test("the first of the ranked ids are found without ranking all", () => {
  const generator = new Generator(3), odd = [NaN, Infinity, -Infinity, 0, -0];
  for (let n = 0; n < 300; n++) {
    const pick = () => (generator.random() % 4 ? (generator.random() % 9) - 4 : odd[generator.random() % 5]);
    const numbers = Array.from({ length: n }, pick), count = generator.random() % 14;
    assert.deepEqual(leading(numbers, count), ranked(numbers).slice(0, count), String(numbers));
  }
});

test("choices that cannot be are refused in a sentence", () => {
  const with_ = (choices) => () => nextTokenProbabilities([1, 2], choices);
  for (const temperature of [-1, NaN, Infinity, "hot", null]) {
    refuses(with_({ temperature }), /^temperature = /);
  }
  for (const topK of [0, -1, 1.5, NaN, "3"]) refuses(with_({ topK }), /^top_k = /);
  for (const topP of [0, -0.1, 1.1, NaN, "x"]) refuses(with_({ topP }), /^top_p = /);
  refuses(with_({ temperature: 0 }), /no distribution/);
});
