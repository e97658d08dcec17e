/**
 * Two lanes that write a text with one model: one reads everything again for every token, the other
 * keeps keys and values. Both are run step by step, and any number in them can be explained.
 *
 * A step is one pass of the lane with the cache: first the pieces of the prompt, then one token after
 * the other. The other lane makes a pass whenever a token is to be written.
 *
 * @typedef {{start: number, ids: number[], seen: Object<string, Tensor>, multiplications: number,
 *   wrote: number|null}} Pass
 * @typedef {import("./engine/tensor.js").Tensor} Tensor
 */

import { KVCache, argmax, row } from "./engine/index.js";
import { explain, explanation, sum, symbolOf } from "./provenance.js";

export const TOLERANCE = 1e-9; // logits closer than this are the same, rounded differently
const AGAIN = "recompute."; // before the names of what the lane without a cache computes

export class Lanes {
  /**
   * @param {import("./engine/transformer.js").Transformer} model
   * @param {number[]} prompt ids that fit the window
   * @param {{chunk?: number, fault?: string|null}} [options] `chunk` tokens of the prompt are read in one
   *   pass, 0: all; the fault is in the lane with the cache
   */
  constructor(model, prompt, { chunk = 0, fault = null } = {}) {
    this.model = model;
    this.prompt = prompt;
    this.fault = fault;
    this.pieces = cut(prompt, chunk || prompt.length);
    this.room = model.config.max_seq_len - prompt.length + 1; // tokens that can be written
    this.cache = new KVCache(model.config);
    this.made = { recompute: [], cache: [] }; // passes
    this.texts = { recompute: [...prompt], cache: [...prompt] };
  }

  /** Return the step in which the first token is written. */
  get first() {
    return this.pieces.length;
  }

  /**
   * Return both lanes after a step: each {passes, text}; what was not computed yet is computed now.
   * @param {number} step
   * @returns {{recompute: {passes: Pass[], text: number[]}, cache: {passes: Pass[], text: number[]}}}
   */
  after(step) {
    while (this.made.cache.length < step) this.advance();
    const written = Math.max(0, step - this.first + 1), end = this.prompt.length + written;
    const lane = (name, passes) => ({
      passes: this.made[name].slice(0, passes),
      text: this.texts[name].slice(0, end),
    });
    return { recompute: lane("recompute", written), cache: lane("cache", step) };
  }

  /** Make the passes of the next step. */
  advance() {
    const step = this.made.cache.length;
    const piece = this.pieces[step] ?? [this.texts.cache.at(-1)];
    const writes = step >= this.first - 1;
    this.read("cache", piece, writes, { cache: this.cache, fault: this.fault });
    if (writes) this.read("recompute", [...this.texts.recompute], true, {});
  }

  /** Make one pass of a lane over ids; the last logits choose the token that it writes. */
  read(lane, ids, writes, options) {
    const counter = { multiplications: 0 }, start = options.cache?.length ?? 0;
    const seen = this.model.trace(ids, { ...options, counter });
    const wrote = writes ? argmax(row(seen.logits, ids.length - 1)) : null;
    if (writes) this.texts[lane].push(wrote);
    this.made[lane].push({ start, ids, seen, multiplications: counter.multiplications, wrote });
  }

  /** Write a lane's text of so many new tokens once more, looking at nothing, as one measures it. */
  run(lane, newTokens) {
    const cached = lane === "cache", read = this.model.reader({ useCache: cached, fault: cached ? this.fault : null });
    const pieces = cached ? this.pieces : [this.prompt];
    let token;
    for (const piece of pieces) token = argmax(read(piece));
    for (let n = 1; n < newTokens; n++) token = argmax(read([token]));
  }

  /**
   * Return, for each position that both lanes have read after the same words, what each says there.
   * @param {number} step
   * @returns {{position: number, again: Float64Array, kept: Float64Array, word: number, distance: number}[]}
   *   logits [V] of both lanes, and how far they are apart for the word where that is most
   */
  compared(step) {
    const { recompute, cache } = this.after(step), last = recompute.passes.at(-1);
    const found = [];
    for (let position = 0; last && position < last.ids.length; position++) {
      if (recompute.text[position] !== cache.text[position]) break;
      const pass = passAt(cache.passes, position);
      const again = row(last.seen.logits, position), kept = row(pass.seen.logits, position - pass.start);
      const apart = again.map((logit, id) => (Object.is(logit, kept[id]) ? 0 : Math.abs(logit - kept[id])));
      const word = argmax(apart);
      found.push({ position, again, kept, word, distance: apart[word] });
    }
    return found;
  }

  /**
   * Return what explains the numbers of both lanes after a step: those of the lane with the cache under
   * their trace names, the other's with "recompute." before them, and counts and distances.
   * @param {number} step
   * @param {number} bytesPerValue
   * @returns {function({name: string, index: number[]}): object|null}
   */
  explainer(step, bytesPerValue) {
    const lanes = this.after(step), { model, cache, fault } = this;
    const counts = countRules(model.config, lanes, bytesPerValue);
    return ({ name, index }) => {
      if (name === "distance") return distanceOf(this.compared(step)[index[0]]);
      if (Object.hasOwn(counts, name)) return counts[name](...index);
      if (!lanes.cache.passes.length) return null;
      if (name.startsWith(AGAIN)) {
        const pass = { model, seen: lanes.recompute.passes.at(-1).seen };
        return renamed(explain(pass, name.slice(AGAIN.length), index), pass.seen);
      }
      const seen = lanes.cache.passes[0].seen[name];
      const position = index[seen?.shape.length === 3 ? 1 : 0];
      const pass = seen ? passAt(lanes.cache.passes, position) : lanes.cache.passes[0];
      return explain({ model, cache, fault, seen: pass.seen }, name, index);
    };
  }
}

/** Return ids in pieces of `size`, the last as long as it comes out. */
function cut(ids, size) {
  const pieces = [];
  for (let start = 0; start < ids.length; start += size) pieces.push(ids.slice(start, start + size));
  return pieces;
}

/** Return the pass that read a position. */
function passAt(passes, position) {
  return passes.find(({ start, ids }) => position >= start && position < start + ids.length);
}

/** Return the multiplications of a lane's passes. */
export function total(passes) {
  return passes.reduce((sum, { multiplications }) => sum + multiplications, 0);
}

/** Return functions of an index that explain counts, by name. */
function countRules(config, { recompute, cache }, bytesPerValue) {
  const { n_layers: L, kv_heads: K, head_dim: D } = config;
  const held = cache.passes.reduce((sum, { ids }) => sum + ids.length, 0), numbers = config.kvCacheValues(held);
  const sums = { recompute: total(recompute.passes), cache: total(cache.passes) };
  const whole = (name, value, told) => () => explanation({ name, index: [] }, value, { digits: 0, ...told });
  const rules = [
    whole("numbers held", numbers, {
      parts: [`2 · ${L} · ${K} · ${D} · ${held}`],
      note: "key and value · blocks · key heads · head size · tokens held",
    }),
    whole("bytes held", numbers * bytesPerValue, {
      parts: [count("numbers held", numbers), ` · ${bytesPerValue}`],
      note: `${bytesPerValue} bytes a number`,
    }),
    whole("bytes reserved", config.kvCacheBytes(config.max_seq_len, 1, bytesPerValue), {
      parts: [`2 · ${L} · ${K} · ${D} · ${config.max_seq_len} · ${bytesPerValue}`],
      note: "key and value · blocks · key heads · head size · places in the window · bytes a number",
    }),
    whole("times as many", sums.recompute / sums.cache, {
      digits: 4,
      parts: [count("recompute: all passes", sums.recompute), " / ", count("cache: all passes", sums.cache)],
    }),
    ...passRules("recompute", recompute.passes, config),
    ...passRules("cache", cache.passes, config),
  ];
  return Object.fromEntries(rules.map((rule) => [rule().name, rule]));
}

/** Return what explains the multiplications of a lane: those of each pass, and of all. */
function passRules(lane, passes, config) {
  const each = 2 * config.n_layers * config.dim, weights = config.multiplications(1) - each;
  const name = `${lane}: pass`;
  const one = (n = 0) => {
    const { ids, start, multiplications } = passes[n] ?? { ids: [], start: 0, multiplications: 0 };
    return explanation({ name, index: [n] }, multiplications, {
      digits: 0,
      parts: [`${ids.length} · (${weights} + ${each} · ${start + ids.length})`],
      note: "tokens read · (weights in the matrices + 2 · blocks · width · tokens seen)",
    });
  };
  const all = () =>
    explanation({ name: `${lane}: all passes`, index: [] }, total(passes), {
      digits: 0,
      parts: passes.length ? sum(passes.length, (n) => [count(name, passes[n].multiplications, n)]) : ["0"],
      note: "multiplications, pass by pass",
    });
  return [one, all];
}

function count(name, value, ...index) {
  return { name, index, value, digits: 0 };
}

function distanceOf({ position, word, again, kept, distance }) {
  const logit = (name, value) => ({ name, index: [position, word], value });
  return explanation({ name: "distance", index: [position] }, distance, {
    symbol: "|Δz|",
    parts: Number.isFinite(distance) && !Number.isFinite(again[word])
      ? []
      : ["|", logit(`${AGAIN}logits`, again[word]), " − ", logit("logits", kept[word]), "|"],
    note: `the largest of ${again.length} such distances`,
  });
}

/** Return an explanation with the names of what a pass computed marked as the lane's without a cache. */
function renamed(explanation, seen) {
  const other = (part) => (part.name && Object.hasOwn(seen, part.name) ? { ...part, name: AGAIN + part.name } : part);
  const deep = (part) => {
    if (typeof part === "string") return part;
    if (part.fold) return { fold: part.fold.map(deep) };
    return part.parts ? { ...part, parts: part.parts.map(deep) } : other(part);
  };
  return {
    ...other(explanation),
    symbol: symbolOf(explanation.name),
    parts: explanation.parts.map(deep),
    refs: explanation.refs.map(other),
  };
}
