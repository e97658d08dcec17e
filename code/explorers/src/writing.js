/**
 * Writing on with BabyGroot: what may come next at any place of a text, what is drawn there, and how each
 * of these numbers is made. A place is named by its path: the ids written between the prompt and it.
 */

import { Generator, argmax, countReaching, draw, nextTokenProbabilities, ranked, row } from "./engine/index.js";
import { explanation, sum } from "./provenance.js";

const AFTER = " after ";

export class Writing {
  /**
   * @param {import("./engine/baby_groot.js").BabyGroot} model
   * @param {number[]} prompt
   * @param {{temperature: number, topK: number, topP: number, seed: number}} choices topK 0: all
   * @param {import("./engine/data.js").Vocabulary} vocabulary
   * @param {Map<string, object>} [traces] of windows, which other choices share
   */
  constructor(model, prompt, choices, vocabulary, traces = new Map()) {
    Object.assign(this, { model, prompt, vocabulary, traces, ...choices });
    this.places = new Map();
    this.generator = new Generator(this.seed);
    this.uniforms = [];
  }

  /** Return the place that a path of ids leads to. */
  at(path) {
    const key = String(path);
    if (!this.places.has(key)) this.places.set(key, new Place(this, path));
    return this.places.get(key);
  }

  /** Return the uniform number that decides the draw at a place: the n-th that the seed gives. */
  uniform(n) {
    while (this.uniforms.length <= n) this.uniforms.push(this.generator.uniform());
    return this.uniforms[n];
  }

  /** Return the trace of the tokens that the model reads, the last ones that fit its window. */
  trace(ids) {
    const key = String(ids);
    if (!this.traces.has(key)) this.traces.set(key, this.model.trace(ids));
    return this.traces.get(key);
  }

  /** Return a path continued until a token ends it, or it has `most` tokens. */
  on(path, choose, ends, most) {
    const longer = [...path];
    while (longer.length < most && !(longer.length && ends(longer.at(-1)))) longer.push(choose(this.at(longer)));
    return longer;
  }

  /** Return how likely a path is: the product of its tokens' shares. */
  likelihood(path) {
    if (!path.length) return 1;
    const before = this.at(path.slice(0, -1));
    return before.likelihood * before.shares[path.at(-1)];
  }

  /** Return what explains the numbers of a place, and those of others if they come with a path. */
  explainer(path) {
    return ({ name, index, path: other }) => {
      const [own, after] = name.split(AFTER), place = this.at(after === undefined ? path : other);
      return Object.hasOwn(MADE, own) ? MADE[own]({ ...about(place, after !== undefined), index, name }, ...index) : null;
    };
  }
}

/** What may come next at one place of a text. */
class Place {
  constructor(writing, path) {
    const { model, temperature, topK, topP } = writing;
    this.writing = writing;
    this.model = model;
    this.path = [...path];
    this.text = [...writing.prompt, ...path];
    this.ids = this.text.slice(-model.maxLen); // the window slides
    this.seen = writing.trace(this.ids);
    this.last = this.ids.length - 1;
    this.logits = row(this.seen.logits, this.last); // [V]
    this.probabilities = row(this.seen.probabilities, this.last); // [V]
    this.order = ranked(this.logits);
    this.rank = new Map(this.order.map((w, rank) => [w, rank]));
    this.best = argmax(this.logits);
    const size = this.logits.length;
    this.scaled = this.logits.map((z) => (z - this.logits[this.best]) / temperature);
    this.byK = temperature === 0 ? 1 : topK ? Math.min(topK, size) : size; // how many tokens top-k leaves
    this.kept = this.byK;
    this.tempered = this.shares = oneFor(this.best, size);
    if (temperature === 0) return;
    this.tempered = nextTokenProbabilities(this.logits, { temperature, topK: topK || null }); // before top-p
    this.shares = nextTokenProbabilities(this.logits, { temperature, topK: topK || null, topP });
    if (topP < 1) this.kept = countReaching(this.scaled.map((z, w) => (this.rank.get(w) < this.byK ? z : -Infinity)), topP);
  }

  /** How likely the way to this place is, worked out once. */
  get likelihood() {
    this.reached ??= this.writing.likelihood(this.path);
    return this.reached;
  }

  /** Return why the token of a rank cannot be drawn: "", or what cuts it. */
  cut(rank) {
    if (rank < this.kept) return "";
    return this.writing.temperature === 0 ? "temperature 0" : rank < this.byK ? "top-p" : "top-k";
  }

  /** The number that decides the draw here. */
  get uniform() {
    return this.writing.uniform(this.path.length);
  }

  /** The rank of the token that is drawn here: the shares are laid end to end, the likeliest first. */
  get drawnRank() {
    return draw(this.order.map((w) => this.shares[w]), { uniform: () => this.uniform });
  }

  get drawn() {
    return this.order[this.drawnRank];
  }

  /** Return the sum of the first n shares. */
  reach(n) {
    return this.order.slice(0, n).reduce((sum, w) => sum + this.shares[w], 0);
  }

  /** Return the sum of the n largest probabilities that top-p sees. */
  mass(n) {
    return this.order.slice(0, n).reduce((sum, w) => sum + this.tempered[w], 0);
  }
}

function oneFor(token, size) {
  const shares = new Float64Array(size);
  shares[token] = 1;
  return shares;
}

// Explanations: each is given the place, how to name and refer to its numbers, and the index

function about(place, elsewhere) {
  const { writing, path } = place;
  const suffix = elsewhere ? `${AFTER}${path.length ? writing.vocabulary.decode(path) : "the prompt"}` : "";
  const ref = (own, value, ...index) => ({ name: own + suffix, index, value, path });
  const z = (w) =>
    elsewhere ? ref("logit", place.logits[w], w) : { name: "logits", index: [place.last, w], value: place.logits[w] };
  return { place, writing, ref, z, word: (w) => writing.vocabulary.word(w) };
}

/** Return e^scaled[w], divided by the same of n tokens, as parts. */
function softmaxOver({ place, ref }, w, n) {
  const e = (token) => ["e^", ref("scaled", place.scaled[token], token)];
  return [...e(w), " / (", ...sum(n, (r) => e(place.order[r])), ")"];
}

const MADE = {
  share(a, w) {
    const { place, writing } = a, cut = place.cut(place.rank.get(w));
    const told = (more) => explanation(a, place.shares[w], { symbol: "share", ...more });
    if (cut) return told({ rule: "0", parts: ["0"], note: `${a.word(w)} is cut: ${why(place, cut)}` });
    if (writing.temperature === 0) return told({ rule: "1", parts: ["1"], note: "at temperature 0 the likeliest token has it all" });
    return told({
      rule: `e^scaled[${w}] / Σ e^scaled, over the ${place.kept} that stay`,
      parts: softmaxOver(a, w, place.kept),
      note: `the share of ${a.word(w)}`,
    });
  },
  scaled(a, w) {
    const { place, writing, z } = a;
    return explanation(a, place.scaled[w], {
      symbol: "scaled", rule: "(z − largest z) / τ", parts: ["(", z(w), " − ", z(place.best), `) / ${writing.temperature}`],
      note: "a logit divided by the temperature; taking the largest away first changes no share",
    });
  },
  logit(a, w) {
    return explanation(a, a.place.logits[w], { symbol: "z", note: "a logit of another place: go there to see how it is made" });
  },
  tempered(a, w) {
    return explanation(a, a.place.tempered[w], {
      symbol: "probability", rule: `e^scaled[${w}] / Σ e^scaled`, parts: softmaxOver(a, w, a.place.byK), note: "before top-p cuts",
    });
  },
  mass(a, n) {
    const { place, ref } = a;
    return explanation(a, place.mass(n), {
      symbol: "Σ", rule: `the ${n} likeliest together`, note: "before top-p cuts",
      parts: sum(n, (r) => [ref("tempered", place.tempered[place.order[r]], place.order[r])]),
    });
  },
  reach(a, n) {
    const { place, ref } = a;
    return explanation(a, place.reach(n), {
      symbol: "Σ", rule: `the first ${n} shares`, parts: n ? sum(n, (r) => [ref("share", place.shares[place.order[r]], place.order[r])]) : ["0"],
    });
  },
  uniform(a, n) {
    return explanation(a, a.writing.uniform(n), {
      symbol: "u", note: `number ${n} from seed ${a.writing.seed}; torch.rand in float64 gives the same`,
    });
  },
  path(a) {
    const { writing, place: { path } } = a;
    const factor = (n) => {
      const before = writing.at(path.slice(0, n));
      return about(before, true).ref("share", before.shares[path[n]], path[n]);
    };
    return explanation(a, writing.likelihood(path), {
      symbol: "likelihood", rule: "the product of the shares on the way", parts: product(path.length, factor),
      note: `of writing “${writing.vocabulary.decode(path)}”`,
    });
  },
};

/** Return the name of the likelihood of a path, and with it what `path` explains. */
export function pathRef(writing, path) {
  return { name: `path${AFTER}${writing.vocabulary.decode(path)}`, index: [], path, value: writing.likelihood(path) };
}

/** Return the share of a token at any place, as a number that can be pointed at. */
export function shareRef(writing, path, token) {
  const place = writing.at(path);
  return about(place, true).ref("share", place.shares[token], token);
}

/** Return what cuts a token, in words. */
export function why(place, cut) {
  const { topK, topP } = place.writing;
  if (cut === "top-k") return `top-k keeps the ${topK} likeliest`;
  if (cut === "top-p") return `the ${place.kept} likelier reach ${topP} already`;
  return "temperature 0 takes the likeliest";
}

function product(n, factor) {
  const joined = (from, to) =>
    Array.from({ length: to - from }, (_, i) => [...(i ? [" · "] : []), factor(from + i)]).flat();
  return n <= 8 ? joined(0, n) : [...joined(0, 3), " · ", { fold: joined(3, n - 1) }, " · ", factor(n - 1)];
}

// The tree

const BRANCHES = 3;

/**
 * Return the rows of the tree below a path: the likeliest tokens, and those that were tried.
 * @param {Writing} writing
 * @param {number[]} root
 * @param {{opened: function(number[]): boolean, tried: Set<string>, ends: function(number): boolean}} options
 * @returns {{path: number[], token: number, level: number, place: number, of: number, leaf: boolean, open: boolean}[]}
 */
export function branches(writing, root, { opened, tried, ends }, level = 1) {
  const place = writing.at(root);
  const shown = place.order.filter((w, rank) => rank < Math.min(BRANCHES, place.kept) || tried.has(String([...root, w])));
  return shown.flatMap((token, n) => {
    const path = [...root, token], leaf = ends(token), open = !leaf && opened(path);
    const own = { path, token, level, place: n + 1, of: shown.length, leaf, open };
    return [own, ...(open ? branches(writing, path, { opened, tried, ends }, level + 1) : [])];
  });
}
