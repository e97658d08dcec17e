/**
 * A text that a model reads and goes on writing, token by token, with a cache. What the model made of
 * any token of it is one pass over that token, with what the cache held before it.
 */

import { Generator, KVCache, argmax, draw, lastRow, leading, nextTokenProbabilities } from "./engine/index.js";
import { explain, explanation } from "./provenance.js";

const PIECE = 4; // tokens of the prompt that are read at once
const FIRST = 10; // of the next tokens, that are put in order
const SPELLED = 3; // terms of a sum over all tokens that are written out
const TIMED = 32; // tokens over which the time is taken

export class Reading {
  /**
   * @param {import("./engine/transformer.js").Transformer} model
   * @param {number[]} prompt ids that fit the window
   */
  constructor(model, prompt) {
    this.model = model;
    this.first = prompt.length;
    this.ids = [...prompt];
    this.cache = new KVCache(model.config);
    this.times = []; // milliseconds of each token written
    this.choose({ temperature: 0, seed: 0 });
  }

  /** How many tokens can be written. */
  get room() {
    return this.model.config.max_seq_len - this.first;
  }

  /** How many tokens are read. */
  get read() {
    return this.cache.length;
  }

  /**
   * Write from the prompt on in another way, if it is another.
   * @param {{temperature: number, seed: number}} choices temperature 0 takes the likeliest token
   */
  choose({ temperature, seed }) {
    if (temperature === this.temperature && seed === this.seed) return;
    Object.assign(this, { temperature, seed, generator: new Generator(seed), place: null });
    this.ids.length = this.first;
    this.cache.length = Math.min(this.cache.length, this.first);
  }

  /**
   * Read, and write on, until the text has so many tokens and all are read, or the time is over.
   * @param {number} length
   * @param {number} [milliseconds]
   * @returns {boolean} whether that is done
   */
  work(length, milliseconds = Infinity) {
    const end = performance.now() + milliseconds;
    while (this.read < length) {
      if (this.read < this.first) this.model.forward(this.ids.slice(this.read, Math.min(this.read + PIECE, this.first)), { cache: this.cache });
      else this.write();
      if (performance.now() >= end) break;
    }
    return this.read >= length;
  }

  /** Choose the next token from what the last one says, and read it. */
  write() {
    const start = performance.now(), { place } = this;
    const { logits } = place?.t === this.read - 1 ? place : this.at(this.read - 1);
    const { temperature, generator } = this;
    this.ids[this.read] = temperature === 0 ? argmax(logits) : draw(nextTokenProbabilities(logits, { temperature }), generator);
    this.place = this.made(this.read);
    this.times.push(performance.now() - start);
    if (this.times.length > TIMED) this.times.shift();
  }

  /** Milliseconds that a token takes, in the middle of the last ones; undefined if none was written. */
  get pace() {
    return [...this.times].sort((a, b) => a - b)[this.times.length >> 1];
  }

  /**
   * Return what the model made of the token at a position that is read.
   * @param {number} t
   * @returns {{t: number, seen: Object<string, Tensor>, logits: Float64Array, shares: Float64Array, order: number[]}}
   *   `shares` are what the next token is drawn from, `order` the likeliest ids, from the first down
   */
  at(t) {
    if (this.place?.t !== t) {
      const { length } = this.cache;
      this.cache.length = t;
      this.place = this.made(t);
      this.cache.length = length; // what was there is there again
    }
    return this.place;
  }

  made(t) {
    const { model, cache, temperature } = this;
    const seen = model.trace([this.ids[t]], { cache }), logits = lastRow(seen.logits);
    const place = { t, model, cache, seen, logits };
    const shares = () => (temperature ? nextTokenProbabilities(logits, { temperature }) : oneFor(argmax(logits), logits.length));
    return later(later(place, "shares", shares), "order", () => leading(logits, FIRST));
  }

  /**
   * Return what explains the numbers at a position, and those that count the cache of a text so long.
   * @param {number} t
   * @param {number} held tokens
   * @param {number} bytesPerValue
   * @returns {function({name: string, index: number[]}): object|null}
   */
  explainer(t, held, bytesPerValue) {
    return (ref) => {
      const place = this.at(t);
      if (Object.hasOwn(SHARES, ref.name)) return SHARES[ref.name](ref, place, this.temperature);
      return counted(ref, this.model.config, held, bytesPerValue) ?? explain(place, ref.name, ref.index);
    };
  }
}

/** Give an object a property that is worked out when it is first asked for. */
function later(object, name, make) {
  let made;
  return Object.defineProperty(object, name, { get: () => (made ??= make()) });
}

function oneFor(token, size) {
  const shares = new Float64Array(size);
  shares[token] = 1;
  return shares;
}

/** What explains the share of a token, and the numbers it is made of. */
const SHARES = {
  share(ref, place, temperature) {
    const [id] = ref.index, told = { symbol: "share", note: "the token's chance to be drawn" };
    if (!temperature) {
      return explanation(ref, place.shares[id], { ...told, parts: [String(place.shares[id])], note: "at temperature 0 the likeliest token has it all" });
    }
    const e = (token) => ["e^", scaled(place, temperature, token)];
    const most = place.order.slice(0, SPELLED).flatMap((token, n) => [...(n ? [" + "] : []), ...e(token)]);
    const rest = { name: "others", index: [], value: others(place, temperature) };
    return explanation(ref, place.shares[id], { ...told, rule: "e^scaled / Σ e^scaled", parts: [...e(id), " / (", ...most, " + ", rest, ")"] });
  },
  scaled(ref, place, temperature) {
    const z = (id) => ({ name: "logits", index: [place.t, id], value: place.logits[id] });
    return explanation(ref, scaled(place, temperature, ref.index[0]).value, {
      symbol: "scaled", rule: "(z − largest z) / τ", parts: ["(", z(ref.index[0]), " − ", z(place.order[0]), `) / ${temperature}`],
      note: "a logit divided by the temperature; taking the largest away first changes no share",
    });
  },
  others(ref, place, temperature) {
    return explanation(ref, others(place, temperature), {
      symbol: "Σ", note: `e^scaled of the other ${Math.max(0, place.logits.length - SPELLED)} tokens together`,
    });
  },
};

function scaled({ logits, order }, temperature, id) {
  return { name: "scaled", index: [id], value: (logits[id] - logits[order[0]]) / temperature };
}

function others(place, temperature) {
  const spelled = place.order.slice(0, SPELLED);
  return place.logits.reduce((sum, _, id) => (spelled.includes(id) ? sum : sum + Math.exp(scaled(place, temperature, id).value)), 0);
}

/** Explain how many numbers, or bytes, the cache holds; null for other names. */
function counted(ref, { n_layers: L, kv_heads: K, head_dim: D, max_seq_len: window }, held, bytesPerValue) {
  const each = 2 * L * K * D, what = "key and value · blocks · key heads · head size";
  const rules = {
    "numbers held": [held, "", ` · tokens held`],
    "bytes held": [held, ` · ${bytesPerValue}`, " · tokens held · bytes a number"],
    "bytes reserved": [window, ` · ${bytesPerValue}`, " · places in the window · bytes a number"],
  };
  if (!Object.hasOwn(rules, ref.name)) return null;
  const [places, more, told] = rules[ref.name];
  return explanation(ref, each * places * (more ? bytesPerValue : 1), {
    digits: 0, parts: [`2 · ${L} · ${K} · ${D} · ${places}${more}`], note: what + told,
  });
}
