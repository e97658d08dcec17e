/** Models of the reader's own: the folders of `glassformer train` and `export`, and their tokenizer. */

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import {
  BytePairTokenizer, Generator, KVCache, TransformerConfig, llamaConfig, parseTokenizer, readTrained, tensor,
} from "../src/engine/index.js";
import { compare, readJson, readTensors, refuses } from "./fixtures.js";

const NEAR = 1e-4; // of numbers that PyTorch computed in float32

const at = (...parts) => path.join(process.env.GLASS_FIXTURES, ...parts);

/** Return what a folder holds, with the tokenizer of all of them. */
function opened(folder) {
  return readTrained({
    config: fs.readFileSync(at(folder, "config.json"), "utf8"),
    weights: fs.readFileSync(at(folder, "model.safetensors")),
    tokenizer: fs.readFileSync(at("tokenizer.json"), "utf8"),
  });
}

/** Assert that numbers are near the wanted ones; return how far off they are at most. */
function near(where, got, want) {
  let most = 0;
  want.forEach((x, i) => {
    if (x === got[i]) return; // masked scores are not finite
    const off = Math.abs(x - got[i]);
    if (!(off <= NEAR)) assert.fail(`${where}[${i}] is ${got[i]}, not ${x}`);
    most = Math.max(most, off);
  });
  return most;
}

compare("logits, attention and cache of trained and exported models are PyTorch's, to float32's rounding", (t) => {
  const { models } = readJson("trained"), want = readTensors("trained");
  let most = 0;
  models.forEach(({ ids, pieces }, m) => {
    for (const folder of [`trained_${m}`, `exported_${m}`]) {
      const { model } = opened(folder), { config } = model, cache = new KVCache(config);
      most = Math.max(most, near(`${folder} logits`, model.forward(ids).data, want[`${m}/logits`].data));
      let start = 0;
      pieces.forEach((size, n) => {
        const seen = model.trace(ids.slice(start, (start += size)), { cache });
        for (const [name, { data }] of Object.entries(seen)) near(`${folder}, piece ${n}, ${name}`, data, want[`${m}/${n}/${name}`].data);
      });
      for (const kind of ["keys", "values"]) near(`${folder} ${kind}`, held(cache[kind], ids.length), want[`${m}/${kind}`].data);
    }
  });
  t.diagnostic(`largest difference of logits ${most.toExponential(1)}`);
});

/** Return the numbers that a cache holds of so many tokens, layer after layer. */
function held(layers, tokens) {
  return layers.flatMap(({ shape: [heads, room, D], data }) =>
    Array.from({ length: heads }, (_, h) => [...data.subarray(h * room * D, (h * room + tokens) * D)]).flat());
}

compare("each of the 65,536 numbers of float16 is read as PyTorch reads it", () => {
  const { half, double } = readTensors("halves");
  assert.equal(half.data.length, 2 ** 16);
  half.data.forEach((x, i) => assert.ok(Object.is(x, double.data[i]), `${i} is ${x}, not ${double.data[i]}`));
});

compare("texts are cut as the tokenizers library cuts them, and unknown letters named", () => {
  const tokenizer = parseTokenizer(fs.readFileSync(at("tokenizer.json"), "utf8")), { cut } = readJson("trained");
  for (const { text, ids } of cut) {
    if (ids === null) refuses(() => tokenizer.encode(text), /^The letter .* does not occur/);
    else {
      assert.deepEqual(tokenizer.encode(text), ids, JSON.stringify(text));
      assert.equal(tokenizer.decode(ids), text);
    }
  }
  assert.ok(cut.filter(({ ids }) => ids).length > cut.length / 3);
});

compare("ids are written as the tokenizers library writes them, torn letters too", () => {
  const tokenizer = parseTokenizer(fs.readFileSync(at("tokenizer.json"), "utf8"));
  for (const { ids, text } of readJson("trained").decoded) assert.equal(tokenizer.decode(ids), text, String(ids));
});

// Files that cannot be read

const BYTES = { type: "ByteLevel", add_prefix_space: false, use_regex: true };
const PIECES = { a: 0, b: 1, Ġ: 2, ab: 3, Ġab: 4, "'": 5 };
const file = (more = {}, model = {}) =>
  JSON.stringify({
    pre_tokenizer: BYTES, decoder: { type: "ByteLevel" }, normalizer: null, post_processor: null, added_tokens: [], ...more,
    model: { type: "BPE", vocab: PIECES, merges: [["a", "b"], "Ġ ab"], ...model },
  });

test("a tokenizer is read, its merges as pairs or as texts, any piece by any name", () => {
  const tokenizer = parseTokenizer(file());
  assert.deepEqual(tokenizer.encode("ab abba 'ab"), [3, 4, 1, 0, 2, 5, 3]);
  assert.equal(tokenizer.decode([4, 99, 0]), " aba");
  const proto = { ...PIECES, constructor: 6, toString: 7 };
  assert.equal(parseTokenizer(file({}, { vocab: proto })).size, 8);
  assert.equal(parseTokenizer(file().replace('"a":0', '"__proto__":9,"a":0')).decode([9]), "__proto__");
  refuses(() => tokenizer.encode("abc"), /^The letter 'c' does not/);
  refuses(() => tokenizer.encode("a\u00a0"), /^The letter U\+00A0 does not/);
  refuses(() => tokenizer.encode("a\ud800"), /^The letter U\+D800 does not/);
  assert.deepEqual(tokenizer.encode(""), []);
});

test("a file that is no such tokenizer is answered in a sentence", () => {
  const whole = (text) => () => parseTokenizer(text);
  refuses(whole(null), /larger than/);
  refuses(whole("{"), /not JSON/);
  for (const text of ["null", "[]", "3", "{}", '{"model": []}']) refuses(whole(text), /does not describe a model/);
  refuses(whole(file({}, { type: "Unigram" })), /not BPE/);
  refuses(whole(file({ pre_tokenizer: { ...BYTES, add_prefix_space: true } })), /prefixed blank/);
  refuses(whole(file({ pre_tokenizer: { ...BYTES, use_regex: false } })), /prefixed blank/);
  refuses(whole(file({ pre_tokenizer: null })), /prefixed blank/);
  refuses(whole(file({ decoder: null })), /decoder/);
  refuses(whole(file({ normalizer: { type: "Lowercase" } })), /changes texts/);
  refuses(whole(file({ post_processor: { type: "TemplateProcessing" } })), /adds tokens/);
  for (const added_tokens of [[{ id: 0 }], {}, "x"]) refuses(whole(file({ added_tokens })), /added tokens/);
  for (const more of [{ dropout: 0.1 }, { unk_token: "a" }, { byte_fallback: true }, { ignore_merges: true }]) {
    refuses(whole(file({}, more)), /dropout, an unknown token/);
  }
  for (const vocab of [null, [], "x"]) refuses(whole(file({}, { vocab })), /no vocabulary/);
  refuses(whole(file({}, { vocab: {} })), /is empty/);
  for (const vocab of [{ " ": 0 }, { "": 0 }, { 字: 0 }]) refuses(whole(file({}, { vocab })), /letters of bytes/);
  for (const id of [-1, 0.5, "0", null, 1e9]) refuses(whole(file({}, { vocab: { a: id } })), /whole number/);
  refuses(whole(file({}, { vocab: { a: 0, b: 0 } })), /two pieces have the id 0/);
  refuses(whole(file({}, { merges: {} })), /no list of merges/);
  for (const merge of [null, "ab", "a b c", ["a"], ["a", 1]]) refuses(whole(file({}, { merges: [merge] })), /merge 0 is not a pair/);
  for (const merge of ["b a", ["a", "x"], ["__proto__", "a"]]) refuses(whole(file({}, { merges: [merge] })), /merge 0 has a piece/);
});

const CONFIG = { vocab_size: 6, dim: 8, n_layers: 1, n_heads: 2, n_kv_heads: 1, max_seq_len: 2048, ffn_dim_multiplier: 1 };

/** Return the bytes of a safetensors file of a config's weights, drawn. */
function weightsOf(config, change = (header) => header, Numbers = Float32Array) {
  const generator = new Generator(1), header = {}, numbers = [], { BYTES_PER_ELEMENT: size } = Numbers;
  for (const [name, shape] of Object.entries(new TransformerConfig(config).shapes())) {
    const { data } = tensor(shape), start = size * numbers.length;
    for (let i = 0; i < data.length; i++) numbers.push(generator.normal());
    header[name] = { dtype: `F${8 * size}`, shape, data_offsets: [start, size * numbers.length] };
  }
  const text = new TextEncoder().encode(JSON.stringify(change(header)));
  const bytes = new Uint8Array(8 + text.length + size * numbers.length);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 8);
  bytes.set(new Uint8Array(Numbers.from(numbers).buffer), 8 + text.length);
  return bytes;
}

const trained = (config = CONFIG, weights = weightsOf(CONFIG), tokenizer = file()) =>
  readTrained({ config: typeof config === "string" ? config : JSON.stringify(config), weights, tokenizer });

test("a window for which a page has no room is shortened, and nothing else", () => {
  const { model, config } = trained();
  assert.equal(model.config.max_seq_len, 512);
  assert.equal(config.max_seq_len, 2048);
  assert.equal(model.forward([1, 2, 3]).shape[1], 6);
});

test("weights take half the memory, unless that would change one", () => {
  const [single, double] = [Float32Array, Float64Array].map((Numbers) => trained(CONFIG, weightsOf(CONFIG, undefined, Numbers)).model);
  for (const [name, { data }] of Object.entries(single.weights)) {
    assert.ok(data instanceof Float32Array && double.weights[name].data instanceof Float64Array, name);
    assert.deepEqual(Array.from(data), Array.from(double.weights[name].data, Math.fround));
  }
  assert.notDeepEqual(single.forward([1, 2]).data, double.forward([1, 2]).data);
});

test("files that do not belong together, or are not what they say, are answered in a sentence", () => {
  refuses(() => trained("{"), /config.json is not JSON/);
  refuses(() => trained("[]"), /A config is an object/);
  refuses(() => trained({ ...CONFIG, dim: 9 }), /^n_heads = 2 cannot be/);
  refuses(() => trained({ ...CONFIG, vocab_size: 1e12 }), /parameters; this page reads models of at most 10,000,000/);
  refuses(() => trained({ ...CONFIG, ffn_dim_multiplier: 1e30 }), /this page reads/);
  refuses(() => trained({ ...CONFIG, n_layers: 1e12 }), /this page reads/);
  refuses(() => trained({ ...CONFIG, vocab_size: 5 }), /different runs/);
  refuses(() => trained({ ...CONFIG, n_layers: 2 }), /The weights hold .* numbers, but/);
  refuses(() => trained(CONFIG, weightsOf(CONFIG).subarray(0, 900)), /not a whole safetensors file/);
  refuses(() => trained(CONFIG, new Uint8Array(0)), /shorter than 8 bytes/);
  const renamed = (to) => ({ "norm.weight": entry, ...others }) => ({ ...others, [to]: entry });
  for (const to of ["norm.bias", "constructor", "toString"]) {
    refuses(() => trained(CONFIG, weightsOf(CONFIG, renamed(to))), /is missing|does not have/);
  }
  const retyped = (dtype) => (header) => ({ ...header, "norm.weight": { ...header["norm.weight"], dtype } });
  for (const dtype of ["BF16", "I16", ["F32"], "__proto__", null]) {
    refuses(() => trained(CONFIG, weightsOf(CONFIG, retyped(dtype))), /the engine reads F16, F32 and F64/);
  }
  const overlapping = (header) => ({ ...header, "norm.weight": { ...header["norm.weight"], data_offsets: [0, 32] } });
  refuses(() => trained(CONFIG, weightsOf(CONFIG, overlapping)), /does not start where/);
});

const LLAMA = {
  model_type: "llama", vocab_size: 6, hidden_size: 8, intermediate_size: 64, num_hidden_layers: 1, num_attention_heads: 2,
  num_key_value_heads: 1, max_position_embeddings: 32, rms_norm_eps: 1e-5, tie_word_embeddings: false, hidden_act: "silu",
};

test("a LLaMA that the course's model can be is read, another is refused in a sentence", () => {
  assert.equal(llamaConfig(LLAMA).ffn_hidden_dim, 64);
  assert.equal(llamaConfig({ ...LLAMA, rope_theta: 5 }).rope_theta, 5);
  assert.equal(llamaConfig({ ...LLAMA, rope_theta: 5, rope_parameters: { rope_theta: 7 } }).rope_theta, 7);
  for (let hidden = 64; hidden < 4096; hidden += 64) {
    assert.equal(llamaConfig({ ...LLAMA, hidden_size: 24, intermediate_size: hidden }).ffn_hidden_dim, hidden);
  }
  const { rms_norm_eps: _, ...without } = LLAMA;
  refuses(() => llamaConfig(without), /lacks rms_norm_eps/);
  refuses(() => llamaConfig({ ...LLAMA, hidden_act: "gelu" }), /not silu/);
  refuses(() => llamaConfig({ ...LLAMA, attention_bias: true }), /has biases/);
  refuses(() => llamaConfig({ ...LLAMA, rope_parameters: { rope_type: "yarn" } }), /are scaled/);
  refuses(() => llamaConfig({ ...LLAMA, rope_scaling: { type: "linear" } }), /are scaled/);
  refuses(() => llamaConfig({ ...LLAMA, intermediate_size: 100 }), /multiple of 64/);
  refuses(() => llamaConfig({ ...LLAMA, head_dim: 16 }), /head_dim is not/);
  for (const value of ["64", null, {}, [64], NaN]) {
    for (const field of ["hidden_size", "intermediate_size", "num_hidden_layers"]) refuses(() => llamaConfig({ ...LLAMA, [field]: value }), /cannot be/);
  }
  refuses(() => trained(LLAMA), /The weight model\.embed_tokens\.weight is missing/);
});

test("a wrong byte anywhere gives a model or a sentence, never anything else", () => {
  const sound = { config: JSON.stringify(CONFIG), weights: weightsOf(CONFIG), tokenizer: file() }, generator = new Generator(5);
  const pick = (n) => generator.random() % n;
  for (let n = 0; n < 1500; n++) {
    const files = { ...sound }, which = ["config", "weights", "tokenizer"][n % 3];
    const bytes = which === "weights" ? files.weights.slice() : new TextEncoder().encode(files[which]);
    bytes[pick(which === "weights" ? 900 : bytes.length)] = pick(256);
    files[which] = which === "weights" ? bytes : new TextDecoder().decode(bytes);
    try {
      const { model, tokenizer } = readTrained(files);
      model.forward([0, 1]);
      assert.ok(tokenizer instanceof BytePairTokenizer);
    } catch (error) {
      assert.equal(error.constructor, Error, String(error.stack));
      assert.match(error.message, /\.$/);
    }
  }
});
