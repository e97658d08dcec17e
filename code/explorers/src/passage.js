/**
 * One token's way through BabyGroot's block: the numbers that stand beside the trace (means, lengths, what
 * one hidden unit reads and adds), and how each is made.
 */

import { at, row } from "./engine/index.js";
import { explanation, sum, term } from "./provenance.js";

/** The stages of a token, as `glassformer.trace` names them. */
export const STAGES = ["h0", "context", "r1", "n1", "ffn_hidden", "ffn_activation", "ffn_out", "r2", "h_out"];

/** Each norm: what it reads, what it makes, and the name of its γ and β. */
export const NORMS = {
  n1: { reads: "r1", z: "z1", weights: "transformer.norm1" },
  h_out: { reads: "r2", z: "z2", weights: "transformer.norm2" },
};

export const W1 = "transformer.ffn.0.weight", B1 = "transformer.ffn.0.bias";
export const W2 = "transformer.ffn.2.weight", B2 = "transformer.ffn.2.bias";
const EPS = 1e-5; // of LayerNorm

export class Passage {
  /**
   * @param {import("./engine/baby_groot.js").BabyGroot} model
   * @param {number[]} ids
   * @param {number} position of the token
   */
  constructor(model, ids, position) {
    this.model = model;
    this.seen = model.trace(ids);
    this.position = position;
    this.units = this.seen.ffn_hidden.shape[1];
    this.explained = new Map(); // by key: many numbers share a mean
  }

  /** Return the token's numbers at a stage. */
  at(stage) {
    return row(this.seen[stage], this.position);
  }

  /** Return whether a hidden unit fires for the token: whether ReLU lets it through. */
  fires(unit) {
    return !(this.at("ffn_hidden")[unit] <= 0); // as in the engine, NaN is not switched off
  }

  /** Return any number, of the trace, of the weights or of those beside them, as an operand. */
  ref(name, ...index) {
    return { name, index, value: this.explain({ name, index })?.value ?? this.given(name, index) };
  }

  /** Return the token's numbers at a stage as operands. */
  refs(stage) {
    return Array.from(this.at(stage), (value, c) => ({ name: stage, index: [this.position, c], value }));
  }

  given(name, index) {
    const x = this.seen[name] ?? this.model.weights[name];
    if (index.length !== x?.shape.length || !index.every((i, d) => i < x.shape[d])) {
      throw new Error(`There is no number ${name}[${index}].`);
    }
    return at(x, ...index);
  }

  /** Return how a number beside the trace is made, or null if it is none of these. */
  explain({ name, index }) {
    const key = `${name}[${index}]`;
    if (!this.explained.has(key)) this.explained.set(key, this.made({ name, index }));
    return this.explained.get(key);
  }

  made({ name, index }) {
    const [stage, measure] = name.split(".");
    if (Object.hasOwn(MEASURES, measure ?? "") && Object.hasOwn(this.seen, stage)) {
      return MEASURES[measure](this, { name, index }, stage);
    }
    return Object.hasOwn(BESIDE, name) ? BESIDE[name](this, { name, index }, ...index) : null;
  }

  /** Return the row of a tensor of the trace that an index names, as operands. */
  line(stage, t) {
    const width = this.seen[stage].shape[1];
    return Array.from({ length: width }, (_, c) => ({ name: stage, index: [t, c], value: this.given(stage, [t, c]) }));
  }
}

const total = (refs, of) => refs.reduce((so_far, { value }) => so_far + of(value), 0);

/** The three measures of a row, each with its index [position]. */
const MEASURES = {
  mean(p, ref, stage) {
    const refs = p.line(stage, ...ref.index), n = refs.length;
    return explanation(ref, total(refs, (x) => x) / n, {
      symbol: "μ", rule: `Σᵢ ${term(stage, ref.index, "i")} / ${n}`, digits: 4,
      parts: ["(", ...sum(n, (i) => [refs[i]]), `) / ${n}`],
    });
  },
  variance(p, ref, stage) {
    const refs = p.line(stage, ...ref.index), n = refs.length, mean = p.ref(`${stage}.mean`, ...ref.index);
    return explanation(ref, total(refs, (x) => (x - mean.value) ** 2) / n, {
      symbol: "σ²", rule: `Σᵢ (${term(stage, ref.index, "i")} − μ)² / ${n}`, digits: 4,
      parts: ["(", ...sum(n, (i) => ["(", refs[i], " − ", mean, ")²"]), `) / ${n}`],
      note: `divided by ${n}, not ${n - 1}: all of the row is there`,
    });
  },
  length(p, ref, stage) {
    const refs = p.line(stage, ...ref.index);
    return explanation(ref, Math.sqrt(total(refs, (x) => x * x)), {
      symbol: "length", rule: `√ Σᵢ ${term(stage, ref.index, "i")}²`, digits: 4,
      parts: ["√(", ...sum(refs.length, (i) => [refs[i], "²"]), ")"],
    });
  },
};

/** A number of a row with mean 0 and variance 1, before γ and β. */
function normalised(p, ref, t, c) {
  const { reads } = Object.values(NORMS).find(({ z }) => z === ref.name);
  const x = p.ref(reads, t, c), mean = p.ref(`${reads}.mean`, t), variance = p.ref(`${reads}.variance`, t);
  return explanation(ref, (x.value - mean.value) / Math.sqrt(variance.value + EPS), {
    symbol: "z", rule: `(${term(reads, t, c)} − μ) / √(σ² + ε)`,
    parts: ["(", x, " − ", mean, ") / √(", variance, ` + ${EPS})`],
  });
}

const BESIDE = {
  z1: normalised,
  z2: normalised,
  /** What input i brings to hidden unit u: [position, unit, input]. */
  reads(p, ref, t, u, i) {
    const x = p.ref("n1", t, i), w = p.ref(W1, u, i);
    return explanation(ref, x.value * w.value, {
      symbol: "N₁ · W₁", rule: `${term("n1", t, i)} · ${term(W1, u, i)}`, parts: [x, " · ", w],
      note: `what number ${i} of N₁ brings to unit ${u}`,
    });
  },
  /** What hidden unit u adds to number c of F: [position, unit, c]. */
  adds(p, ref, t, u, c) {
    const a = p.ref("ffn_activation", t, u), w = p.ref(W2, c, u);
    return explanation(ref, a.value * w.value + 0, {
      symbol: "a · W₂", rule: `${term("ffn_activation", t, u)} · ${term(W2, c, u)}`, parts: [a, " · ", w],
      note: `what unit ${u} adds to number ${c} of F; the other units and b₂ add the rest`,
    });
  },
  /** How many hidden units fire: [position]. */
  fires(p, ref, t) {
    const on = p.line("ffn_hidden", t).filter(({ value }) => !(value <= 0)).length;
    return explanation(ref, on, { symbol: "units that fire", digits: 0, note: "counted: units above zero before ReLU" });
  },
};
