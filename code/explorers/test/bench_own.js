/** Measure a model of two million parameters that `tests/bench.py` wrote into the folder GLASS_FIXTURES. */

import fs from "node:fs";
import path from "node:path";
import { KVCache, argmax, lastRow, readTrained } from "../src/engine/index.js";

const NEW = 128, PROMPT = 64;

const read = (...parts) => fs.readFileSync(path.join(process.env.GLASS_FIXTURES, ...parts));
const median = (took) => took.sort((a, b) => a - b)[took.length >> 1];

const start = performance.now();
const { model } = readTrained({
  config: read("trained_0", "config.json").toString(), weights: read("trained_0", "model.safetensors"),
  tokenizer: read("tokenizer.json").toString(),
});
const opening = performance.now() - start;

const cache = new KVCache(model.config), decode = [], prefill = [];
for (let round = 0; round < 3; round++) {
  cache.reset();
  const before = performance.now();
  let ids = Array.from({ length: PROMPT }, (_, n) => n);
  for (let n = 0; n <= NEW; n++) {
    const began = performance.now();
    ids = [argmax(lastRow(model.forward(ids, { cache })))];
    if (n === 0) prefill.push(performance.now() - before);
    else if (round > 0) decode.push(performance.now() - began); // the first round warms up
  }
}
console.log(JSON.stringify({ opening, prefill: Math.min(...prefill), decode: median(decode), fastest: Math.min(...decode) }));
