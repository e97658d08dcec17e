import assert from "node:assert/strict";
import { test } from "node:test";
import { TransformerConfig, brokenRules, parseConfig } from "../src/engine/index.js";
import { compare, readJson, refuses } from "./fixtures.js";

/** Whole numbers come as text, since JSON readers here round them above 2⁵³. */
function sameNumber(where, got, text) {
  if (Number(text) <= Number.MAX_SAFE_INTEGER) assert.equal(String(got), text, where);
  else assert.ok(Math.abs(got / Number(text) - 1) < 1e-12, `${where}: ${got}, not ${text}`);
}

compare("sizes of random configs are Python's", () => {
  const { valid } = readJson("config");
  for (const { data, want } of valid) {
    const config = new TransformerConfig(data);
    const where = JSON.stringify(data);
    const got = {
      head_dim: config.head_dim, kv_heads: config.kv_heads, ffn_hidden_dim: config.ffn_hidden_dim,
      num_params: config.numParams(), kv_cache_bytes: config.kvCacheBytes(),
      kv_cache_bytes_of: config.kvCacheBytes(37, 3, 2), flops: config.flopsPerToken(),
      flops_at_5: config.flopsPerToken(5), multiplications: config.multiplications(7, 11),
    };
    for (const [name, text] of Object.entries(want)) sameNumber(`${where} ${name}`, got[name], text);
    assert.deepEqual(brokenRules(data), [], where);
    assert.deepEqual(new TransformerConfig(JSON.parse(config.toText())), config);
  }
});

compare("what Python refuses is refused, in the same sentence", () => {
  const { invalid } = readJson("config");
  for (const { data, message } of invalid) {
    assert.throws(() => new TransformerConfig(data), (error) => {
      const [theirs, ours] = [message, error.message].map((m) => m.split(" cannot be: "));
      assert.equal(ours[1], theirs[1], JSON.stringify(data)); // the rule
      assert.equal(ours[0].split(" = ")[0], theirs[0].split(" = ")[0]); // the field
      const field = theirs[0].split(" = ")[0];
      if (Number.isInteger(data[field])) assert.equal(error.message, message);
      return true;
    });
  }
});

compare("a file is accepted here if Python accepts it", () => {
  for (const { text, accepted } of readJson("config").files) {
    if (accepted) assert.ok(parseConfig(text), text);
    else refuses(() => parseConfig(text), /./);
  }
});

compare("a model's weights have the names and shapes of PyTorch's", () => {
  for (const { data, shapes } of readJson("config").built) {
    assert.deepEqual(new TransformerConfig(data).shapes(), shapes);
  }
});

test("unknown keys are kept, known ones written in the file's order", () => {
  const fields = '"vocab_size": 8, "dim": 8, "n_layers": 1, "n_heads": 2';
  const config = parseConfig(`{"note": [1, {"a": 2}], ${fields}}`);
  const keys = Object.keys(JSON.parse(config.toText()));
  assert.deepEqual(keys.slice(0, 4), ["note", "vocab_size", "dim", "n_layers"]);
  assert.deepEqual(parseConfig(config.toText()), config);
});

test("all broken rules are named, not only the first", () => {
  const found = brokenRules({ vocab_size: 0, dim: 8, n_layers: -1, n_heads: 2, norm_eps: NaN });
  assert.deepEqual(found.map(({ field }) => field), ["vocab_size", "n_layers", "norm_eps"]);
});
