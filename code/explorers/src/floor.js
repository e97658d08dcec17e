/**
 * What a corpus says about the token that follows each context, and the floor under every loss on it:
 * all numbers of both, and how each is made.
 */

import { nextTokenCounts } from "./engine/index.js";
import { explanation, sum } from "./provenance.js";

export class Floor {
  /**
   * @param {number[][]} contexts [N][T], padded with 0; see `prefixPairs`
   * @param {number[]} targets [N]
   * @param {import("./engine/data.js").Vocabulary} vocabulary
   */
  constructor(contexts, targets, vocabulary) {
    this.vocabulary = vocabulary;
    this.examples = targets.length;
    this.counts = nextTokenCounts(contexts, targets); // one for each context
    this.places = new Map(this.counts.map(({ context }, c) => [String(context), c]));
    this.entropies = this.counts.map(entropy);
    this.adds = this.counts.map(({ total }, c) => (total * this.entropies[c]) / this.examples);
    this.value = this.adds.reduce((a, b) => a + b, 0);
    this.open = [...this.counts.keys()].filter((c) => this.counts[c].followers.size > 1);
  }

  /** Return the place of a padded context among those of the corpus, or -1. */
  find(context) {
    return this.places.get(String(context)) ?? -1;
  }

  /** Return the words of context c. */
  words(c) {
    return contextWords(this.counts[c].context, this.vocabulary);
  }

  /** Return how often token w follows context c. */
  follows(c, w) {
    return this.counts[c]?.followers.get(w) ?? 0;
  }

  /** Return the loss of token w after context c for a model that knows the corpus's shares. */
  bestLoss(c, w) {
    return c < 0 ? Infinity : -Math.log(this.follows(c, w) / this.counts[c].total) + 0;
  }

  /** Return how a number was made, or null if it is none of these. */
  explain({ name, index }) {
    return Object.hasOwn(MADE, name) ? MADE[name](this, ...index) : null;
  }

  /** Return a number as an operand. */
  ref(name, ...index) {
    const { value, digits } = this.explain({ name, index });
    return { name, index, value, digits };
  }
}

/** Return the words of a padded context. */
export function contextWords(context, vocabulary) {
  return vocabulary.decode(context.filter((id) => id !== 0));
}

function entropy({ followers, total }) {
  let sum = 0;
  for (const n of followers.values()) sum -= (n / total) * Math.log(n / total);
  return sum + 0; // no negative zero
}

const NONE = "the corpus has no such context";

const MADE = {
  floor: (f) =>
    explanation({ name: "floor", index: [] }, f.value, {
      rule: "Σ n · H / N over all contexts",
      parts: sum(f.open.length, (i) => [f.ref("adds", f.open[i])]),
      note: `the other ${f.counts.length - f.open.length} contexts settle what follows and add 0`,
    }),
  adds: (f, c) =>
    explanation({ name: "adds", index: [c] }, f.adds[c], {
      rule: "n · H / N",
      parts: [f.ref("occurs", c), " · ", f.ref("entropy", c), " / ", f.ref("examples")],
      note: `what “${f.words(c)}” adds to the floor`,
    }),
  part: (f, c) =>
    explanation({ name: "part", index: [c] }, f.adds[c] / f.value, {
      rule: "(n · H / N) / floor",
      parts: [f.ref("adds", c), " / ", f.ref("floor")],
      note: `the part of the floor that “${f.words(c)}” makes up`,
    }),
  entropy: (f, c) => {
    const tokens = [...f.counts[c].followers.keys()];
    const share = (w) => [f.ref("follows", c, w), " / ", f.ref("occurs", c)];
    return explanation({ name: "entropy", index: [c] }, f.entropies[c], {
      symbol: "H",
      rule: "Σ share · −ln share",
      parts: sum(tokens.length, (i) => ["(", ...share(tokens[i]), ") · −ln(", ...share(tokens[i]), ")"]),
      note: `how open “${f.words(c)}” leaves what follows`,
    });
  },
  share: (f, c, w) =>
    explanation({ name: "share", index: [c, w] }, f.follows(c, w) / f.counts[c].total, {
      parts: [f.ref("follows", c, w), " / ", f.ref("occurs", c)],
      note: `the part of “${f.words(c)}” that goes on with ${f.vocabulary.word(w)}`,
    }),
  best_loss: (f, c, w) =>
    explanation({ name: "best_loss", index: [c, w] }, f.bestLoss(c, w), {
      rule: "−ln share",
      parts: c < 0 ? [] : ["−ln(", f.ref("follows", c, w), " / ", f.ref("occurs", c), ")"],
      note: c < 0 ? NONE : "the loss of a model that knows the corpus's shares",
    }),
  occurs: (f, c) =>
    explanation({ name: "occurs", index: [c] }, f.counts[c]?.total ?? 0, {
      symbol: "n",
      digits: 0,
      note: c < 0 ? NONE : `counted: so often “${f.words(c)}” stands in the corpus`,
    }),
  follows: (f, c, w) =>
    explanation({ name: "follows", index: [c, w] }, f.follows(c, w), {
      digits: 0,
      note: c < 0 ? NONE : `counted: so often ${f.vocabulary.word(w)} follows “${f.words(c)}”`,
    }),
  examples: (f) =>
    explanation({ name: "examples", index: [] }, f.examples, {
      symbol: "N", digits: 0, note: "counted: examples in the corpus",
    }),
};
