/**
 * A trained model's folder: config.json, model.safetensors and tokenizer.json, as `glassformer train`
 * leaves them, or as it exports them for Hugging Face, under a LLaMA's names. All three come from
 * elsewhere and are looked at before anything is made of them.
 */

import { BytePairTokenizer, parseTokenizer } from "./bytepair.js";
import { TransformerConfig, parseData } from "./config.js";
import { readSafetensors } from "./safetensors.js";
import { tensor } from "./tensor.js";
import { Transformer } from "./transformer.js";

export const FILES = Object.freeze(["config.json", "model.safetensors", "tokenizer.json"]);
export const MOST_PARAMS = 1e7; // of a model that a page can hold and still answer
const MOST_PLACES = 512; // of its window
const MOST_CACHED = 2 ** 24; // numbers in its cache

/** What a LLaMA's config.json calls the fields. */
const LLAMA_FIELDS = {
  vocab_size: "vocab_size", dim: "hidden_size", n_layers: "num_hidden_layers", n_heads: "num_attention_heads",
  n_kv_heads: "num_key_value_heads", max_seq_len: "max_position_embeddings", norm_eps: "rms_norm_eps",
  tie_word_embeddings: "tie_word_embeddings",
};

/** What a LLaMA calls the weights of a block. */
const LLAMA_BLOCK = {
  "attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj", "attention.wv": "self_attn.v_proj",
  "attention.wo": "self_attn.o_proj", "feed_forward.w_gate": "mlp.gate_proj", "feed_forward.w_up": "mlp.up_proj",
  "feed_forward.w_down": "mlp.down_proj", attention_norm: "input_layernorm", ffn_norm: "post_attention_layernorm",
};
const LLAMA_ENDS = { tok_embeddings: "model.embed_tokens", norm: "model.norm", output: "lm_head" };

/**
 * Return the model and the tokenizer of a folder; an Error says in a sentence what is wrong. The
 * model's window is the config's, or the shorter one for which a page has room.
 * @param {{config: string, weights: ArrayBuffer|Uint8Array, tokenizer: string}} files their contents
 * @returns {{model: Transformer, tokenizer: BytePairTokenizer, config: TransformerConfig}}
 */
export function readTrained({ config: text, weights, tokenizer: pieces }) {
  const data = parseData(text);
  const config = configOf(data), isLlama = isLlamas(data);
  const size = config.numParams();
  if (size > MOST_PARAMS) {
    throw new Error(
      `The config's model has ${size.toLocaleString("en")} parameters; this page reads models of at most ` +
        `${MOST_PARAMS.toLocaleString("en")}.`,
    );
  }
  const tokenizer = parseTokenizer(pieces);
  if ([...tokenizer.pieces.keys()].some((id) => id >= config.vocab_size)) {
    throw new Error(
      `tokenizer.json has ids that the model's ${config.vocab_size} do not include: they belong to different runs.`,
    );
  }
  const tensors = readSafetensors(weights);
  const model = new Transformer(withRoom(config), narrowed(isLlama ? fromLlama(tensors, config) : tensors));
  return { model, tokenizer, config };
}

/** Return tensors with their numbers in float32 where that is exact: half the memory to go through for each token. */
function narrowed(tensors) {
  const exact = (x) => Math.fround(x) === x || Number.isNaN(x);
  const narrow = ([name, { shape, data }]) => [name, { shape, data: data.every(exact) ? Float32Array.from(data) : data }];
  return Object.fromEntries(Object.entries(tensors).map(narrow));
}

/**
 * Return the config that a config.json's data describes, under the course's names or a LLaMA's.
 * @param {Object<string, *>} data
 * @returns {TransformerConfig}
 */
export function configOf(data) {
  return isLlamas(data) ? llamaConfig(data) : new TransformerConfig(data);
}

function isLlamas(data) {
  return data?.model_type === "llama" && !Object.hasOwn(data, "dim");
}

/** Return a config with a window for which a page has room; nothing else depends on the window. */
function withRoom(config) {
  const room = Math.max(1, Math.floor(MOST_CACHED / config.kvCacheValues(1)));
  return new TransformerConfig({ ...config.toJSON(), max_seq_len: Math.min(config.max_seq_len, MOST_PLACES, room) });
}

/**
 * Return the course's config of a LLaMA's, if it has one.
 * @param {Object<string, *>} data
 * @returns {TransformerConfig}
 */
export function llamaConfig(data) {
  const cannot = (what) => {
    throw new Error(`config.json describes a LLaMA that this course's model cannot be: ${what}.`);
  };
  const needed = [...Object.values(LLAMA_FIELDS), "intermediate_size"];
  const missing = needed.filter((field) => !Object.hasOwn(data, field));
  if (missing.length) cannot(`it lacks ${missing.join(", ")}`);
  const { rope_parameters: rope, rope_scaling: scaling, intermediate_size: hidden } = data;
  if (data.hidden_act !== undefined && data.hidden_act !== "silu") cannot("its activation is not silu");
  if (data.attention_bias || data.mlp_bias) cannot("it has biases");
  for (const turns of [rope, scaling]) {
    if ((turns?.rope_type ?? turns?.type ?? "default") !== "default") cannot("its rotary positions are scaled");
  }
  const fields = Object.entries(LLAMA_FIELDS).map(([ours, theirs]) => [ours, data[theirs]]);
  const config = new TransformerConfig({
    ...Object.fromEntries(fields),
    ffn_dim_multiplier: typeof hidden === "number" ? (3 * hidden) / (2 * data.hidden_size) : hidden,
    rope_theta: rope?.rope_theta ?? data.rope_theta ?? 10000,
  });
  if (config.ffn_hidden_dim !== hidden) cannot("its intermediate_size is not a multiple of 64");
  if ((data.head_dim ?? config.head_dim) !== config.head_dim) cannot("its head_dim is not hidden_size / num_attention_heads");
  return config;
}

/**
 * Return a LLaMA's weights under the course's names, queries and keys with neighbours paired.
 * @param {Object<string, import("./tensor.js").Tensor>} tensors those that have no name here keep theirs
 * @param {TransformerConfig} config
 */
function fromLlama(tensors, config) {
  const found = Object.create(null), left = new Map(Object.entries(tensors));
  for (const [name, shape] of Object.entries(config.shapes())) {
    const theirs = llamaName(name), weight = left.get(theirs);
    if (!weight) throw new Error(`The weight ${theirs} is missing; these weights belong to another model.`);
    left.delete(theirs);
    const paired = /\.w[qk]\.weight$/.test(name) && String(weight.shape) === String(shape);
    found[name] = paired ? neighbours(weight, config.head_dim) : weight;
  }
  for (const [name, weight] of left) found[name] = weight; // to be refused by name
  return found;
}

function llamaName(name) {
  const [, layer, part] = /^(?:layers\.(\d+)\.)?(.+)\.weight$/.exec(name);
  return layer === undefined ? `${LLAMA_ENDS[part]}.weight` : `model.layers.${layer}.${LLAMA_BLOCK[part]}.weight`;
}

/** Reorder the rows of a weight [heads · D, C]: in each head 0, D/2, 1, D/2 + 1, … become 0, 1, 2, 3, … */
function neighbours({ shape, data }, D) {
  const C = shape[1], made = tensor(shape);
  for (let row = 0; row < shape[0]; row++) {
    const i = row % D, from = row - i + (i % 2) * (D / 2) + Math.floor(i / 2);
    made.data.set(data.subarray(from * C, (from + 1) * C), row * C);
  }
  return made;
}
