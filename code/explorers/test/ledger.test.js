import assert from "node:assert/strict";
import test from "node:test";
import { TransformerConfig } from "../src/engine/index.js";
import { explainLedger, ledgerOf } from "../src/ledger.js";

test("the ledger of a config has the config's own counts", () => {
  for (const more of [{}, { n_kv_heads: 1 }, { tie_word_embeddings: true }, { n_layers: 3, ffn_dim_multiplier: 1.5 }]) {
    const config = new TransformerConfig({ vocab_size: 30, dim: 16, n_layers: 2, n_heads: 4, ...more });
    const { parts, total, cached } = ledgerOf(config), { embedding, ...others } = config.paramsByPart();
    assert.deepEqual(parts, { tokens: embedding, positions: 0, ...others });
    assert.equal(total, config.numParams());
    assert.equal(cached, config.kvCacheValues());
  }
});

test("what is no number of the ledger is not explained", () => {
  const explain = explainLedger({ one: ledgerOf({ vocab_size: 3, dim: 2, n_layers: 1, kv_heads: 1, head_dim: 2, ffn_hidden_dim: 4 }) });
  assert.equal(explain({ name: "one: head", index: [] }).value, 6);
  assert.equal(explain({ name: "other: head", index: [] }), null);
  assert.equal(explain({ name: "constructor", index: [] }), null);
});
