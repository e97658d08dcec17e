/**
 * Measure the engine on what `tests/test_engine.py` or `tests/bench.py` wrote into the folder
 * GLASS_FIXTURES; run as a program, print milliseconds as JSON.
 */

import { fileURLToPath } from "node:url";
import { Transformer, trainBabyGroot } from "../src/engine/index.js";
import { below, readJson, readTensors } from "./fixtures.js";

/** Return the median milliseconds of n runs, after one run that does not count. */
function median(n, run) {
  const took = [];
  for (let i = 0; i <= n; i++) {
    const start = performance.now();
    run();
    if (i) took.push(performance.now() - start);
  }
  return took.sort((a, b) => a - b)[Math.floor(n / 2)];
}

/** Return milliseconds: a traced pass of the tiny model, and the published training; first and median. */
export function measure() {
  const { contexts, targets, tiny } = readJson("training"), tensors = readTensors("training");
  const model = new Transformer(tiny, below(tensors, "tiny/"));
  const ids = Array.from({ length: 16 }, (_, t) => t % tiny.vocab_size);
  const forward = median(300, () => model.trace(ids));
  const train = () =>
    trainBabyGroot({ contexts, targets, vocabSize: 24, initial: below(tensors, "initial/") });
  const start = performance.now();
  train();
  return { forward, first: performance.now() - start, training: median(3, train) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(measure()));
