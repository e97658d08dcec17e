import assert from "node:assert/strict";
import { test } from "node:test";
import { BabyGroot, Generator, Transformer, TransformerConfig, tensor } from "../src/engine/index.js";
import { Filled, NAMES, PRODUCTS, productOf } from "../src/products.js";
import { explain } from "../src/provenance.js";

const generator = new Generator(5);

function shaken(data) {
  for (let i = 0; i < data.length; i++) data[i] = 0.6 * generator.normal();
  return data;
}

function transformer(more) {
  const config = new TransformerConfig({ vocab_size: 9, dim: 8, n_layers: 2, n_heads: 4, n_kv_heads: 2, max_seq_len: 6, ...more });
  const weights = Object.entries(config.shapes()).map(([name, shape]) => {
    const made = tensor(shape);
    shaken(made.data);
    return [name, made];
  });
  return new Transformer(config, Object.fromEntries(weights));
}

const groot = new BabyGroot(7, 4, 6);
shaken(groot.parameters);

/** Every product of both models, in every layer and head: [where, pass, product]. */
function* everything() {
  const ids = [1, 3, 2, 6];
  for (const model of [groot, transformer(), transformer({ tie_word_embeddings: true, n_kv_heads: 1 })]) {
    const pass = { model, seen: model.trace(ids) }, { n_layers = 1, n_heads = 1 } = model.config ?? {};
    for (const [name] of PRODUCTS[model.config ? "tiny" : "groot"]) {
      for (let layer = 0; layer < n_layers; layer++) {
        for (let head = 0; head < n_heads; head++) yield [`${name} ${layer} ${head}`, pass, productOf(pass, name, layer, head)];
      }
    }
  }
}

const near = (a, b) => Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b));

test("row times column gives each cell, and what follows ends in the trace", () => {
  let cells = 0;
  for (const [where, pass, product] of everything()) {
    const filled = new Filled(product);
    for (let r = 0; r < product.rows; r++) {
      for (let c = 0; c < product.columns; c++, cells++) {
        const total = filled.sum(r, c, product.inner), cell = filled.cells[r][c];
        assert.ok(near(cell.value, total), `${where}[${r},${c}] is ${cell.value}, its row times its column ${total}`);
        for (const { name, index, value } of [cell, ...product.then.map(([, ref]) => ref(r, c))]) {
          if (name !== "product") assert.ok(Object.is(explain(pass, name, index).value, value), `${where}: ${name}`);
        }
      }
    }
  }
  assert.ok(cells > 5000);
});

test("what follows a sum is what explains it: bias, root, mask, softmax", () => {
  for (const [where, pass, product] of everything()) {
    if (product.result) continue;
    const filled = new Filled(product), [label, then] = product.then[0];
    const total = filled.whole(1, 0).value, { value } = then(1, 0);
    const bias = pass.model.weights[product.names[1].replace("weight", "bias")]?.data[0];
    assert.ok(near(value, label.startsWith("÷") ? total / Math.sqrt(product.inner) : total + bias), where);
  }
});

test("terms, sums so far and cells are explained by their operands", () => {
  for (const [where, , product] of everything()) {
    const filled = new Filled(product), last = product.inner - 1;
    const terms = filled.terms(2, 1, product.inner);
    assert.ok(near(terms[last][3].value, filled.sum(2, 1, product.inner)), where);
    for (const [a, b, term, total] of terms) {
      const made = filled.explain(term), so = filled.explain(total), i = term.index[2];
      assert.deepEqual(made.refs.map(({ value }) => value), a.name === b.name && String(a.index) === String(b.index) ? [a.value] : [a.value, b.value]);
      assert.equal(made.value, a.value * b.value);
      assert.equal(so.value, total.value);
      assert.ok(near(so.refs.reduce((sum, { value }) => sum + value, 0), total.value), `${where} ${i}`);
    }
    assert.equal(filled.explain({ name: "h0", index: [0, 0] }), null);
    assert.equal(filled.explain({ name: "product", index: [2, 1] }).refs.length, 2 * product.inner);
  }
});

test("a product that a model lacks becomes its scores; every name is some model's", () => {
  const pass = { model: groot, seen: groot.trace([1, 2]) };
  assert.equal(productOf(pass, "ffn_gate").name, "scores");
  assert.equal(productOf(pass, "ffn_hidden").name, "ffn_hidden");
  assert.deepEqual(NAMES.filter((name) => productOf(pass, name).name !== name), ["attention_out", "ffn_gate", "ffn_up"]);
});
