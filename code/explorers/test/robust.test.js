import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BabyGroot, Generator, KVCache, Training, Transformer, TransformerConfig, generate,
  nextTokenProbabilities, readSafetensors, tensor,
} from "../src/engine/index.js";
import { refuses } from "./fixtures.js";

const CONFIG = {
  vocab_size: 8, dim: 8, n_layers: 2, n_heads: 2, n_kv_heads: 1, max_seq_len: 6, ffn_dim_multiplier: 2,
};

function randomTransformer(seed = 1) {
  const config = new TransformerConfig(CONFIG), generator = new Generator(seed);
  const weights = Object.entries(config.shapes()).map(([name, shape]) => {
    const made = tensor(shape);
    made.data.forEach((_, i) => (made.data[i] = generator.uniform() - 0.5));
    return [name, made];
  });
  return new Transformer(config, Object.fromEntries(weights));
}

/** Return the bytes of a safetensors file with a header and so many bytes of numbers. */
function file(header, numbers = 0) {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + numbers);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 8);
  return bytes;
}

const entry = (more = {}) => ({ dtype: "F64", shape: [2], data_offsets: [0, 16], ...more });

test("a safetensors file is read from any place in memory, float32 widened", () => {
  const y = { dtype: "F32", shape: [], data_offsets: [16, 20] };
  const bytes = file({ __metadata__: { a: "b" }, x: entry(), y }, 20);
  new DataView(bytes.buffer).setFloat32(bytes.length - 4, 0.1, true);
  const shifted = new Uint8Array(bytes.length + 3);
  shifted.set(bytes, 3);
  for (const source of [bytes, bytes.buffer, shifted.subarray(3)]) {
    const read = readSafetensors(source);
    assert.deepEqual(read.x, tensor([2]));
    assert.deepEqual(read.y, tensor([], [Math.fround(0.1)]));
  }
});

test("a broken safetensors file is answered in a sentence", () => {
  refuses(() => readSafetensors("text"), /needs an ArrayBuffer/);
  refuses(() => readSafetensors(new Uint8Array(3)), /shorter than 8 bytes/);
  refuses(() => readSafetensors(new Uint8Array(8).fill(255)), /header ends behind/);
  refuses(() => readSafetensors(file("{")), /not JSON/);
  refuses(() => readSafetensors(file("[]")), /not an object/);
  refuses(() => readSafetensors(file("null")), /not an object/);
  refuses(() => readSafetensors(file({ x: null })), /where x is/);
  refuses(() => readSafetensors(file({ x: entry({ data_offsets: [0, -16] }) }, 16)), /where x is/);
  refuses(() => readSafetensors(file({ x: entry({ dtype: "BF16" }) }, 16)), /type BF16/);
  refuses(() => readSafetensors(file({ x: entry({ dtype: "toString" }) }, 16)), /type toString/);
  refuses(() => readSafetensors(file({ x: entry({ shape: [1.5] }) }, 16)), /shape of x/);
  refuses(() => readSafetensors(file({ x: entry({ shape: [3] }) }, 16)), /needs 24 bytes/);
  refuses(() => readSafetensors(file({ x: entry({ shape: [1e9, 1e9] }) }, 16)), /needs 8000000000000000000 bytes/);
  refuses(() => readSafetensors(file({ x: entry() }, 8)), /behind the end/);
  refuses(() => readSafetensors(file({ x: entry(), y: entry() }, 16)), /y does not start/);
  refuses(() => readSafetensors(file({ x: entry() }, 24)), /belong to no tensor/);
});

test("no single wrong byte breaks the reader otherwise than with an Error's sentence", () => {
  const sound = file({ x: entry(), y: entry({ data_offsets: [16, 32] }) }, 32), generator = new Generator(3);
  for (let n = 0; n < 3000; n++) {
    const bytes = sound.slice(0, n % 7 ? sound.length : generator.random() % sound.length);
    bytes[generator.random() % bytes.length] = generator.random();
    try {
      readSafetensors(bytes);
    } catch (error) {
      assert.equal(error.constructor, Error);
      assert.match(error.message, /\.$/);
    }
  }
});

test("ids that cannot be are refused, and nothing is changed", () => {
  const groot = BabyGroot.draw(new Generator(1), 24, 4), modern = randomTransformer();
  for (const model of [groot, modern]) {
    for (const ids of [null, undefined, 3, "12"]) refuses(() => model.trace(ids), /whole numbers|not fit/);
    refuses(() => model.forward([]), /prompt is empty/);
    refuses(() => model.forward([1.5]), /whole numbers/);
    refuses(() => model.forward([NaN]), /whole numbers/);
    refuses(() => model.forward([-1]), /Token id -1 is out of range/);
    refuses(() => model.forward([99]), /Token id 99 is out of range/);
    for (const ids of [[], null, undefined, 3]) {
      refuses(() => generate(model, ids, 1), /prompt is empty/);
    }
    refuses(() => generate(model, "12", 1), /whole numbers/);
    refuses(() => generate(model, [1], -1), /^max_new_tokens = -1/);
  }
  refuses(() => groot.forward([1, 1, 1, 1, 1]), /5 tokens do not fit: the model's window has 4 places\./);
  refuses(() => generate(modern, [1, 2], 9), /ask for at most 5 new tokens/);
  assert.equal(generate(modern, [1, 2], 5).length, 7);
  const cache = new KVCache(modern.config);
  modern.forward([1, 2, 3, 4], { cache });
  refuses(() => modern.forward([1, 2, 3], { cache }), /of which 4 are taken/);
  refuses(() => modern.forward([9], { cache }), /out of range/);
  assert.equal(cache.length, 4);
  cache.reset();
  assert.equal(modern.forward([1, 2, 3], { cache }).shape[0], 3);
  const other = new KVCache(new TransformerConfig({ ...CONFIG, max_seq_len: 5 }));
  refuses(() => modern.forward([1], { cache: other }), /another shape/);
  refuses(() => modern.forward([1], { fault: "gremlins" }), /no fault 'gremlins'/);
});

test("weights that do not fit are refused by name", () => {
  const { weights } = BabyGroot.draw(new Generator(1), 24, 4);
  const { "head.bias": _, ...without } = weights;
  refuses(() => BabyGroot.fromWeights(without), /head.bias is missing/);
  refuses(() => BabyGroot.fromWeights({ ...weights, more: tensor([1]) }), /a weight more/);
  const short = { ...weights, "head.bias": tensor([3]) };
  refuses(() => BabyGroot.fromWeights(short), /head.bias has shape \[3\], the model needs \[24\]/);
  refuses(() => BabyGroot.fromWeights({}), /is missing/);
  const modern = randomTransformer();
  refuses(() => new Transformer({ ...CONFIG, dim: 16 }, modern.weights), /do not|but the config/);
  refuses(() => new Transformer({ ...CONFIG, n_heads: 3 }, modern.weights), /must divide dim/);
  const swapped = { ...modern.weights, "norm.weight": undefined, "norm.bias": modern.weights["norm.weight"] };
  delete swapped["norm.weight"];
  refuses(() => new Transformer(CONFIG, swapped), /norm\.bias|norm\.weight/);
});

test("weights are copied: changing the model leaves their source alone", () => {
  const source = randomTransformer(), model = new Transformer(CONFIG, source.weights);
  const before = source.weights["norm.weight"].data[0];
  model.weights["norm.weight"].data[0] = 5;
  assert.equal(source.weights["norm.weight"].data[0], before);
});

test("NaN and infinite weights flow through both models without an exception", () => {
  for (const poison of [NaN, Infinity, -Infinity, 1e308]) {
    const groot = BabyGroot.draw(new Generator(1), 24, 4), modern = randomTransformer();
    for (let i = 0; i < groot.parameters.length; i += 37) {
      const kept = groot.parameters[i];
      groot.parameters[i] = poison;
      groot.trace([1, 2, 3]);
      generate(groot, [1], 6, { temperature: 1, topK: 3, topP: 0.5, stopId: 2 });
      groot.parameters[i] = kept;
    }
    for (const { data } of Object.values(modern.weights)) {
      const kept = data[0];
      data[0] = poison;
      modern.trace([1, 2, 3]);
      for (const temperature of [0, 1]) assert.equal(generate(modern, [1], 6, { temperature }).length, 7);
      data[0] = kept;
    }
    for (const choices of [{}, { topK: 2 }, { topP: 0.5 }, { temperature: 1e-300 }]) {
      assert.equal(nextTokenProbabilities([1, poison, 2, poison], choices).length, 4);
    }
  }
});

test("NaN in the weights reaches the probabilities", () => {
  const groot = BabyGroot.draw(new Generator(1), 24, 4), modern = randomTransformer();
  groot.weights["transformer.attn.q.bias"].data[0] = NaN;
  modern.weights["layers.0.attention.wq.weight"].data[0] = NaN;
  for (const model of [groot, modern]) {
    assert.ok(model.trace([1, 2]).probabilities.data.every(Number.isNaN));
  }
});

test("training goes on through a learning rate that destroys the model", () => {
  const examples = { contexts: [[1, 0, 0], [1, 2, 0]], targets: [2, 3], vocabSize: 8 };
  for (const learningRate of [1e300, 1e6, 0]) {
    const training = new Training({ ...examples, learningRate });
    for (let n = 0; n < 20; n++) training.epoch();
    assert.equal(training.history.losses.length, 20);
  }
  refuses(() => new Training({ ...examples, learningRate: NaN }), /^learning_rate = NaN/);
  refuses(() => new Training({ ...examples, batchSize: 0 }), /^batch_size = 0/);
  refuses(() => new Training({ ...examples, seed: 1.5 }), /^seed = 1.5/);
  refuses(() => new Training({ ...examples, targets: [1] }), /as many targets/);
  refuses(() => new Training({ ...examples, contexts: [[1], [1, 2]] }), /do not fit|one length/);
  refuses(() => new Training({ ...examples, contexts: [null, [1]] }), /whole numbers/);
  refuses(() => new Training({ ...examples, targets: [1, 8] }), /Token id 8/);
});
