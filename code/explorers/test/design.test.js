import assert from "node:assert/strict";
import { test } from "node:test";
import { Generator } from "../src/engine/index.js";
import { BUDGET, Design, FIELDS, PRESETS, preset } from "../src/design.js";

const generator = new Generator(3);
const pick = (choices) => choices[generator.random() % choices.length];

function drawn() {
  const n_heads = pick([1, 2, 3, 6, 8]), n_kv_heads = pick([1, n_heads]);
  return {
    ...preset("plain"), n_heads, n_kv_heads, dim: 2 * n_heads * pick([1, 5, 16]), vocab_size: pick([1, 99, 4096]),
    n_layers: pick([1, 7, 40]), max_seq_len: pick([1, 32, 4096]), ffn_dim_multiplier: pick([0.1, 1, 2.75, 4]),
    tie_word_embeddings: pick([true, false]),
  };
}

/** Return the value of a formula as it is shown. */
function evaluated({ parts }) {
  const shown = parts.map((part) => (typeof part === "string" ? part : `(${part.value})`)).join("");
  const code = shown.replaceAll("·", "*").replaceAll("−", "-").replaceAll("⌈", "Math.ceil(").replaceAll("⌊", "Math.floor(").replace(/[⌉⌋]/g, ")");
  return Function(`return ${code}`)();
}

test("every number of a design comes with the formula that gives it", () => {
  for (let n = 0; n < 200; n++) {
    const design = new Design(drawn()), explain = design.explainer(BUDGET);
    const queue = ["left", "head: share", "cache, full window", "FLOPs, first token", "FLOPs, last token", "norms: share"];
    const seen = new Set(queue);
    for (const name of queue) {
      const found = explain({ name, index: [] });
      assert.equal(found.value, design.value(name, BUDGET));
      if (!found.parts.length) continue;
      const value = name === "ffn_hidden_dim" ? Math.max(64, evaluated(found)) : evaluated(found);
      assert.ok(Math.abs(value - found.value) <= 1e-12 * Math.abs(found.value), `${name}: ${value}, not ${found.value}`);
      for (const ref of found.refs) {
        assert.equal(ref.value, explain(ref).value);
        if (!seen.has(ref.name)) queue.push(ref.name);
        seen.add(ref.name);
      }
    }
    assert.ok(seen.size >= 20, `only ${seen.size} numbers`);
    assert.equal(explain({ name: "toString", index: [] }), null);
  }
});

test("a design that breaks a rule has no config, and names every field that breaks one", () => {
  const { broken, config } = new Design({ ...preset("plain"), dim: 132, n_kv_heads: 3 });
  assert.equal(config, null);
  assert.deepEqual(broken.map(({ field }) => field), ["dim", "n_kv_heads"]);
  assert.deepEqual(new Design({ ...preset("plain"), vocab_size: "", n_layers: 1.5 }).broken.length, 2);
});

test("what is advised for a design over budget is the most that fits, and fits", () => {
  for (let n = 0; n < 100; n++) {
    const values = drawn(), budget = 20_000, design = new Design(values);
    if (design.config.numParams() <= budget) continue;
    const { M1: [advice] } = design.findings(budget);
    for (const [, field, text] of advice.matchAll(/(vocab_size|dim|n_layers) at most ([\d,]+)/g)) {
      const most = Number(text.replaceAll(",", "")), step = field === "dim" ? 2 * values.n_heads : 1;
      const params = (value) => new Design({ ...values, [field]: value }).config.numParams();
      assert.ok(params(most) <= budget && params(most + step) > budget, `${field} at most ${most}`);
    }
  }
});

test("presets are valid, have every field, and keep further keys of a file", () => {
  for (const name of Object.keys(PRESETS)) {
    const design = new Design({ ...preset(name), extra: { name: "mine" } });
    assert.deepEqual(Object.keys(preset(name)).sort(), [...FIELDS].sort());
    assert.equal(JSON.parse(design.config.toText()).name, "mine");
  }
});
