/**
 * The shape of a Transformer as data: exact arithmetic, validation, and config.json. Fields are
 * named as in the file; every sentence about a bad one is the one that `TransformerConfig` says.
 */

const WHOLE = ["vocab_size", "dim", "n_layers", "n_heads", "max_seq_len"];
const POSITIVE = ["ffn_dim_multiplier", "norm_eps", "rope_theta"];
const NEEDED = ["vocab_size", "dim", "n_layers", "n_heads"];
const LARGEST = 1e12;
const WHOLE_RULE = "it must be a whole number from 1 to 1,000,000,000,000";
const DEEPEST = 20; // nesting in unknown keys
const MAX_BYTES = 64 * 1024;

export const DEFAULTS = Object.freeze({
  n_kv_heads: null, // as many as n_heads
  max_seq_len: 128,
  ffn_dim_multiplier: 4,
  norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: false,
});
const FIELDS = [...NEEDED, ...Object.keys(DEFAULTS)]; // in the order of the file

/**
 * Return every broken rule of a config given as plain data, as sentences; none: it is valid.
 * Rules that compare fields are looked at once the fields themselves are sound.
 * @param {Object<string, *>} data
 * @returns {{field: string, message: string}[]}
 */
export function brokenRules(data) {
  const config = { ...DEFAULTS, ...data };
  const found = [];
  const broken = (field, rule) => found.push({ field, message: bad(field, config[field], rule) });
  const isWhole = (value) => Number.isSafeInteger(value) && value >= 1 && value <= LARGEST;
  for (const field of WHOLE) {
    if (!isWhole(config[field])) broken(field, WHOLE_RULE);
  }
  if (config.n_kv_heads !== null && !isWhole(config.n_kv_heads)) broken("n_kv_heads", WHOLE_RULE);
  for (const field of POSITIVE) {
    const value = config[field];
    if (typeof value !== "number" || !(value >= 1e-30 && value <= 1e30)) {
      broken(field, "it must be a positive number from 1e-30 to 1e+30");
    }
  }
  if (typeof config.tie_word_embeddings !== "boolean") {
    broken("tie_word_embeddings", "it must be true or false");
  }
  return found.length ? found : brokenDivisions(config, broken, found);
}

function brokenDivisions({ dim, n_heads: heads, n_kv_heads: kv }, broken, found) {
  const size = dim / heads;
  if (dim % heads) broken("n_heads", `it must divide dim = ${dim}`);
  else if (size % 2) {
    const even = `dim / n_heads = ${size} must be even, because RoPE turns pairs`;
    broken("dim", `${even}; with n_heads = ${heads} take dim = ${heads * (size + 1)}`);
  }
  if (kv !== null && heads % kv) broken("n_kv_heads", `it must divide n_heads = ${heads}`);
  return found;
}

/** Return the sentence that names a field, its value and what would be valid. */
function bad(field, value, rule) {
  let shown = typeof value === "number" ? String(value) : JSON.stringify(value) ?? String(value);
  shown = shown.length <= 40 ? shown : `${shown.slice(0, 37)}…`;
  return `${field} = ${shown} cannot be: ${rule}.`;
}

/** Every choice that fixes a LLaMA-style Transformer's shape; an Error names a bad field. */
export class TransformerConfig {
  /** @param {Object<string, *>} data fields by name; keys that are not fields are kept in `extra` */
  constructor(data) {
    if (typeof data !== "object" || data === null || Array.isArray(data)) {
      throw new Error('A config is an object such as {"dim": 32, …}.');
    }
    const missing = NEEDED.filter((field) => !Object.hasOwn(data, field));
    if (missing.length) {
      throw new Error(`The config lacks ${missing.join(", ")}; add it, for example "dim": 32.`);
    }
    const [first] = brokenRules(data);
    if (first) throw new Error(first.message);
    const entries = Object.entries(data), isField = ([key]) => FIELDS.includes(key);
    Object.assign(this, DEFAULTS, Object.fromEntries(entries.filter(isField)));
    this.extra = Object.fromEntries(entries.filter((entry) => !isField(entry)));
    for (const [key, value] of Object.entries(this.extra)) {
      const rule = `further keys hold plain JSON data, at most ${DEEPEST} deep, without NaN`;
      if (!isPlain(value, DEEPEST)) throw new Error(bad(`'${key.slice(0, 38)}'`, value, rule));
    }
  }

  /** Size of one attention head. */
  get head_dim() {
    return this.dim / this.n_heads;
  }

  /** Number of key and value heads; equals n_heads when n_kv_heads is null. */
  get kv_heads() {
    return this.n_kv_heads ?? this.n_heads;
  }

  /** Hidden size of SwiGLU: 2/3 · multiplier · dim, rounded up to a multiple of 64. */
  get ffn_hidden_dim() {
    const hidden = Math.trunc((this.ffn_dim_multiplier * this.dim * 2) / 3);
    return 64 * Math.max(1, Math.ceil(hidden / 64));
  }

  /** Return the number of trainable parameters, exact up to 2⁵³, without building the model. */
  numParams() {
    return Object.values(this.paramsByPart()).reduce((sum, n) => sum + n, 0);
  }

  /**
   * Return where the parameters are; the parts sum to `numParams()`.
   * @returns {{embedding: number, attention: number, ffn: number, norms: number, head: number}}
   */
  paramsByPart() {
    const { vocab_size: V, dim, n_layers: L, kv_heads: K, head_dim: D } = this;
    return {
      embedding: V * dim,
      attention: L * (2 * dim * dim + 2 * dim * K * D),
      ffn: L * 3 * dim * this.ffn_hidden_dim,
      norms: (2 * L + 1) * dim,
      head: this.tie_word_embeddings ? 0 : V * dim,
    };
  }

  /**
   * Return how many numbers the KV cache holds: keys and values, all layers.
   * @param {number} [tokens]
   * @param {number} [batchSize]
   */
  kvCacheValues(tokens = 1, batchSize = 1) {
    return 2 * this.n_layers * this.kv_heads * this.head_dim * tokens * batchSize;
  }

  /**
   * Return the bytes of a KV cache, by default of a full window of 32-bit numbers.
   * @param {number} [tokens]
   * @param {number} [batchSize]
   * @param {number} [bytesPerValue]
   */
  kvCacheBytes(tokens = this.max_seq_len, batchSize = 1, bytesPerValue = 4) {
    return this.kvCacheValues(tokens, batchSize) * bytesPerValue;
  }

  /**
   * Return the multiplications in all matrix products of one pass over new tokens, each scored
   * against every key; `past` tokens are already in the cache.
   * @param {number} tokens
   * @param {number} [past]
   */
  multiplications(tokens, past = 0) {
    const { attention, ffn } = this.paramsByPart();
    const matrices = attention + ffn + this.vocab_size * this.dim;
    return tokens * (matrices + 2 * this.n_layers * this.dim * (past + tokens));
  }

  /**
   * Return floating-point operations to decode one token that sees `context` tokens; each
   * multiplication counts with its addition: 2 operations.
   * @param {number} [context]
   */
  flopsPerToken(context = this.max_seq_len) {
    return 2 * this.multiplications(1, context - 1);
  }

  /** Return the shape of every weight by name; a tied head has none of its own. */
  shapes() {
    const { vocab_size: V, dim, kv_heads: K, head_dim: D, ffn_hidden_dim: hidden } = this;
    const shapes = { "tok_embeddings.weight": [V, dim] };
    for (let n = 0; n < this.n_layers; n++) {
      const layer = {
        "attention.wq": [dim, dim], "attention.wk": [K * D, dim], "attention.wv": [K * D, dim],
        "attention.wo": [dim, dim], "feed_forward.w_gate": [hidden, dim],
        "feed_forward.w_up": [hidden, dim], "feed_forward.w_down": [dim, hidden],
        attention_norm: [dim], ffn_norm: [dim],
      };
      for (const [name, shape] of Object.entries(layer)) shapes[`layers.${n}.${name}.weight`] = shape;
    }
    shapes["norm.weight"] = [dim];
    if (!this.tie_word_embeddings) shapes["output.weight"] = [V, dim];
    return shapes;
  }

  /** Return the fields, and the unknown keys that were read, as plain data; JSON.stringify calls it. */
  toJSON() {
    return { ...this.extra, ...Object.fromEntries(FIELDS.map((field) => [field, this[field]])) };
  }

  /** Return the text of config.json. */
  toText() {
    return `${JSON.stringify(this, null, 2)}\n`;
  }
}

/** Return whether JSON can hold a value, at most `depth` levels of lists and objects deep. */
function isPlain(value, depth) {
  if (typeof value === "number") return Number.isFinite(value);
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  const inside = (v) => depth > 0 && isPlain(v, depth - 1);
  return typeof value === "object" && Object.values(value).every(inside);
}

/**
 * Return the config that the text of a config.json holds; an Error says in a sentence what is wrong.
 * @param {string} text
 * @param {string} [name] how sentences call the file
 * @param {function(object): TransformerConfig} [read] makes the config of the file's data
 * @returns {TransformerConfig}
 */
export function parseConfig(text, name = "config.json", read = (data) => new TransformerConfig(data)) {
  return read(parseData(text, name));
}

/**
 * Return what the text of a config.json holds, before it is looked at as a config.
 * @param {string} text
 * @param {string} [name] how sentences call the file
 */
export function parseData(text, name = "config.json") {
  if (typeof text !== "string") throw new Error(`${name} must be given as text.`);
  if (text.length > MAX_BYTES) {
    throw new Error(`${name} is larger than 64 KiB; a config needs less than 1 KiB.`);
  }
  if (!text.trim()) throw new Error(`${name} is empty; write a config first.`);
  if (text.startsWith("\ufeff")) {
    throw new Error(`${name} starts with a byte-order mark; save it as UTF-8 without one.`);
  }
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is not JSON: ${error.message}.`);
  }
  for (const [key, value] of members(text)) checkWritten(key, value, name);
  return data;
}

/** Throw an Error for a whole number written as 32.0 or 1e3: Python reads those as no whole number. */
function checkWritten(key, value, name) {
  if ([...WHOLE, "n_kv_heads"].includes(key) && /^-?\d+[.eE]/.test(value)) {
    const rule = "it must be a whole number, written without a point and without e";
    throw new Error(`${name}: ${key} = ${value.slice(0, 40)} cannot be: ${rule}.`);
  }
}

/** Return [key, value as written] of the outermost object; an Error names a key that stands twice. */
function members(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g);
  const open = []; // the keys seen so far in each object that is not closed yet; null for a list
  const found = [];
  tokens.forEach((token, i) => {
    if (token === "{" || token === "[") open.push(token === "{" ? new Set() : null);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      const key = JSON.parse(tokens[i - 1]);
      const seen = open[open.length - 1];
      if (seen.has(key)) {
        throw new Error(`The key '${key.slice(0, 40)}' stands twice in the config; keep one.`);
      }
      seen.add(key);
      if (open.length === 1) found.push([key, tokens[i + 1]]);
    }
  });
  return found;
}
