import assert from "node:assert/strict";
import { measure } from "./bench.js";
import { compare } from "./fixtures.js";

compare("a traced pass of the tiny model over 16 tokens takes less than 1 ms", (t) => {
  const { forward, training } = measure();
  t.diagnostic(`traced pass ${forward.toFixed(3)} ms, 500 epochs ${training.toFixed(0)} ms`);
  assert.ok(forward < 1, `it took ${forward} ms`);
});
