import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALL_ON, BabyGroot, FAULTS, Generator, KVCache, Transformer, TransformerConfig, at, tensor,
} from "../src/engine/index.js";
import { explain, startOf, symbolOf } from "../src/provenance.js";
import { refuses } from "./fixtures.js";

// Models and passes

const generator = new Generator(11);
const randomIds = (n, vocabSize) => Array.from({ length: n }, () => generator.random() % vocabSize);

function shake(data, scale) {
  for (let i = 0; i < data.length; i++) data[i] = scale * generator.normal();
}

function randomGroot(vocabSize, maxLen, dim) {
  const model = new BabyGroot(vocabSize, maxLen, dim);
  shake(model.parameters, 0.7);
  return model;
}

function randomTransformer(more) {
  const sizes = { vocab_size: 9, dim: 8, n_layers: 2, n_heads: 4, n_kv_heads: 2, max_seq_len: 6 };
  const config = new TransformerConfig({ ...sizes, ffn_dim_multiplier: 0.5, ...more });
  const weights = Object.entries(config.shapes()).map(([name, shape]) => {
    const made = tensor(shape);
    shake(made.data, 0.5);
    return [name, made];
  });
  return new Transformer(config, Object.fromEntries(weights));
}

/** Return the passes over ids in pieces of the given sizes, one cache behind all of them. */
function inPieces(model, ids, sizes, fault = null) {
  const cache = new KVCache(model.config);
  let start = 0;
  return sizes.map((size) => {
    const seen = model.trace(ids.slice(start, (start += size)), { cache, fault });
    return { model, seen, cache, fault };
  });
}

const modernModels = () => [
  randomTransformer({}),
  randomTransformer({ n_kv_heads: null, tie_word_embeddings: true, rope_theta: 500000 }),
  randomTransformer({ n_layers: 1, n_heads: 2, n_kv_heads: 1, norm_eps: 1e-7 }),
];

/** Return every index of a tensor, positions counted from `start`. */
function indexes({ shape }, start = 0) {
  const place = shape.length === 3 ? 1 : 0;
  const grow = (found, n, d) =>
    found.flatMap((index) => Array.from({ length: n }, (_, i) => [...index, d === place ? i + start : i]));
  return shape.reduce(grow, [[]]);
}

/** Call a function with every number of a pass: its explanation, and what the trace holds. */
function everyNumber(pass, body) {
  const start = startOf(pass);
  for (const [name, numbers] of Object.entries(pass.seen)) {
    indexes(numbers, start).forEach((index, i) => {
      body(explain(pass, name, index), numbers.data[i], `${name}[${index}]`);
    });
  }
}

// An evaluator of formulas, which knows nothing of the models

const SIGNS = /\d+(?:\.\d+)?(?:e[+-]\d+)?|cos|sin|max|[e∞√²⁹()+−·/^,]/gu;

/** Return parts as a flat list of signs and numbers; text that is neither is an error. */
function tokens(parts) {
  return parts.flatMap((part) => {
    if (part.fold) return tokens(part.fold);
    if (typeof part !== "string") return [part];
    assert.match(part.replace(SIGNS, ""), /^ *$/, `"${part}" is no formula`);
    return part.match(SIGNS) ?? [];
  });
}

/** A number and how large the numbers were that it was made of: rounding is a share of that. */
const exact = (value) => ({ value, size: Math.abs(value) });
const OPERATIONS = {
  "+": (a, b) => ({ value: a.value + b.value, size: a.size + b.size }),
  "−": (a, b) => ({ value: a.value - b.value, size: a.size + b.size }),
  "·": (a, b) => ({ value: a.value * b.value, size: a.size * b.size }),
  "/": (a, b) => ({ value: a.value / b.value, size: (a.size * b.size) / b.value ** 2 }),
  "^": (a, b) => {
    const value = a.value ** b.value;
    return { value, size: value && value * (1 + b.size * Math.abs(Math.log(a.value))) };
  },
};

class Formula {
  constructor(parts, checked) {
    this.left = tokens(parts);
    this.checked = checked; // results whose own formulas have been evaluated already
  }

  take(...signs) {
    return signs.includes(this.left[0]) ? this.left.shift() : null;
  }

  /** Evaluate operands with signs of one rank between them, from left to right. */
  chain(operand, ...signs) {
    let value = operand();
    for (let sign; (sign = this.take(...signs)); ) value = OPERATIONS[sign](value, operand());
    return value;
  }

  sum() {
    return this.chain(() => this.product(), "+", "−");
  }

  product() {
    return this.chain(() => this.signed(), "·", "/");
  }

  signed() {
    return this.take("−") ? OPERATIONS["−"](exact(0), this.signed()) : this.power();
  }

  power() {
    const base = this.atom();
    if (this.take("²")) return OPERATIONS["·"](base, base);
    if (this.take("⁹")) return exact(base.value ** 9);
    return this.take("^") ? OPERATIONS["^"](base, this.signed()) : base;
  }

  atom() {
    const first = this.left.shift();
    if (typeof first !== "string") return this.operand(first);
    if (first === "e") return exact(Math.E);
    if (first === "∞") return exact(Infinity);
    if (first === "√") {
      const { value, size } = this.atom();
      return { value: Math.sqrt(value), size: size / Math.sqrt(value) };
    }
    if (first === "(") return this.closed(this.sum());
    if (["cos", "sin", "max"].includes(first)) return this.call(first);
    assert.match(first, /^\d/, `${first} stands where a number should`);
    return exact(Number(first));
  }

  call(name) {
    assert.ok(this.take("("));
    const first = this.sum();
    if (name !== "max") return this.closed({ value: Math[name](first.value), size: 1 + first.size });
    assert.ok(this.take(","));
    const second = this.closed(this.sum());
    return second.value > first.value ? second : first;
  }

  closed(value) {
    assert.ok(this.take(")"), "a parenthesis is open");
    return value;
  }

  /** Return a number's value; a result with a formula of its own must come out as that formula does. */
  operand(number) {
    if (number.label && !this.checked.has(number)) {
      this.checked.add(number);
      agrees(evaluate(number.parts, this.checked), number.value, number.label);
    }
    return exact(number.value);
  }
}

/** Return what a formula comes to. */
function evaluate(parts, checked = new Set()) {
  const formula = new Formula(parts, checked), value = formula.sum();
  assert.equal(formula.left.length, 0, `behind the formula stands ${formula.left[0]}`);
  return value;
}

function agrees({ value, size }, want, where) {
  if (Object.is(value, want)) return;
  const off = Math.abs(value - want);
  assert.ok(off < Infinity && off <= 1e-12 * size, `${where} is ${want}, its formula gives ${value}`);
}

/** Assert that the formula of every number gives the number; return how many formulas there were. */
function everyFormula(pass, how) {
  let formulas = 0;
  everyNumber(pass, ({ name, value, parts, note }, want, where) => {
    assert.ok(Object.is(value, want), `${how}: ${where} is ${want}, not ${value}`);
    assert.equal(parts.length === 0, name === "ids", `${how}: ${where} has ${parts.length} parts`);
    if (!parts.length) return assert.match(note, /^given/);
    agrees(evaluate(parts), want, `${how}: ${where}`);
    formulas += 1;
  });
  return formulas;
}

// The formulas are right

test("the evaluator computes what is written, and refuses what is not a formula", () => {
  const x = { name: "x", index: [0], value: -2 };
  const cases = [
    [["1 + 2 · 3"], 7], [["1 − 2 − 3"], -4], [["8 / 2 / 2"], 2], [["(1 + 2) · 3"], 9],
    [["−10⁹"], -1e9], [["−∞"], -Infinity], [["√(16) · 3"], 12], [["√16 / 2"], 2], [[x, "²"], 4],
    [["2^(−1 · 3 / 3)"], 0.5], [["max(0, ", x, ")"], 0], [["e^", x, " / (", { fold: [x] }, ")"], Math.exp(-2) / -2],
    [["cos(", x, ") + sin(0)"], Math.cos(2)], [["1e-7 + 1e-7"], 2e-7], [["e^(−", x, ")"], Math.exp(2)],
  ];
  for (const [parts, want] of cases) agrees(evaluate(parts), want, parts.join(""));
  for (const parts of [["1 +"], ["1 2"], ["(1"], ["1)"], ["one"], [x, x], [""], ["max(1)"]]) {
    assert.throws(() => evaluate(parts), undefined, String(parts));
  }
  const wrong = { label: "mean", value: 1, parts: ["(1 + 2) / 2"] };
  assert.throws(() => evaluate([wrong]), /mean is 1, its formula gives 1.5/);
  for (const [parts, want] of [[["−∞"], 1], [["1"], Infinity], [["1"], NaN], [["∞ − ∞"], 1], [["1"], 1 + 1e-11]]) {
    assert.throws(() => agrees(evaluate(parts), want, parts[0]), undefined, `${parts} passes for ${want}`);
  }
});

test("every number of BabyGroot comes out as its formula says, with any switches", (t) => {
  let formulas = 0;
  for (let n = 0; n < 32; n++) {
    const on = Object.keys(ALL_ON).map((name, bit) => [name, !(n & (1 << bit))]);
    const switches = Object.fromEntries(on), how = JSON.stringify(switches);
    for (const sizes of [[10, 4, 8], [12, 3, 5]]) {
      const model = randomGroot(...sizes), seen = model.trace(randomIds(sizes[1], sizes[0]), { switches });
      formulas += everyFormula({ model, seen, switches }, how);
    }
  }
  t.diagnostic(`${formulas} formulas evaluated`);
});

test("every number of the Transformer comes out as its formula says, in one pass and in pieces", (t) => {
  let formulas = 0;
  for (const model of modernModels()) {
    const ids = randomIds(6, 9);
    const full = { model, seen: model.trace(ids) };
    formulas += everyFormula(full, "full");
    for (const pieces of [[3, 1, 2], [1, 4, 1]]) {
      for (const pass of inPieces(model, ids, pieces)) formulas += everyFormula(pass, `pieces ${pieces}`);
    }
    for (const fault of FAULTS) {
      for (const pass of inPieces(model, ids, [2, 3, 1], fault)) formulas += everyFormula(pass, fault);
    }
  }
  t.diagnostic(`${formulas} formulas evaluated`);
});

// The operands are right

const addressOf = ({ name, index }) => `${name}[${index}]`;

/** Return the operands of parts, with repetitions. */
function operandsOf(parts) {
  return parts.flatMap((part) => (part.name ? [part] : operandsOf(part.fold ?? part.parts ?? [])));
}

test("operands can be followed back, step by step, to ids, weights and the cache", () => {
  const groot = randomGroot(9, 4, 4), modern = randomTransformer({});
  const passes = [
    { model: groot, seen: groot.trace([3, 1, 2]) },
    { model: modern, seen: modern.trace([3, 1, 2]) },
    ...inPieces(modern, [3, 1, 2, 5, 4], [2, 1, 2]),
  ];
  for (const pass of passes) {
    const order = Object.keys(pass.seen), met = new Set();
    everyNumber(pass, ({ name, parts, refs }, _, where) => {
      const own = new Map(operandsOf(parts).map((ref) => [addressOf(ref), ref]));
      assert.deepEqual(refs.map(addressOf), [...own.keys()], where);
      for (const ref of refs) {
        const next = explain(pass, ref.name, ref.index);
        assert.ok(Object.is(ref.value, next.value), `${where} takes ${addressOf(ref)} for ${ref.value}`);
        assert.ok(order.indexOf(ref.name) < order.indexOf(name), `${where} uses the later ${ref.name}`);
        met.add(next.parts.length ? "made" : next.note);
      }
    });
    const leaves = ["made", "a learned number"];
    if (startOf(pass)) leaves.push("held in the cache since an earlier pass");
    assert.deepEqual([...met].sort(), leaves.sort());
  }
});

test("a number has the same address and the same formula in a cached pass as in a full one", () => {
  const model = randomTransformer({}), ids = randomIds(6, 9);
  const full = { model, seen: model.trace(ids) };
  for (const pass of inPieces(model, ids, [2, 1, 3])) {
    everyNumber(pass, ({ name, index, rule, refs }, _, where) => {
      const there = explain(full, name, index);
      assert.equal(at(full.seen[name], ...index), there.value);
      if (/attention$|context$/.test(name)) return; // a piece's rows are shorter: it knows no later token
      if (name.endsWith("masked_scores") && pass.seen.ids.shape[0] === 1) return; // nothing to hide
      assert.equal(rule, there.rule, where);
      refs.forEach((ref, i) => assert.equal(addressOf(ref), addressOf(there.refs[i]), where));
    });
  }
});

test("keys and values before the pass are found in the cache, by their absolute position", () => {
  const model = randomTransformer({}), ids = randomIds(5, 9);
  const pass = inPieces(model, ids, [3, 2])[1];
  assert.equal(startOf(pass), 3);
  const full = model.trace(ids);
  for (const name of ["layers.1.k_rotated", "layers.1.v"]) {
    const { value, parts, refs, note } = explain(pass, name, [1, 2, 1]);
    assert.ok(Math.abs(value - at(full[name], 1, 2, 1)) < 1e-12);
    assert.deepEqual([parts, refs, note], [[], [], "held in the cache since an earlier pass"]);
  }
  refuses(() => explain(pass, "layers.1.k", [1, 2, 1]), /no number layers\.1\.k\[1,2,1\]/);
});

// What a reader sees

/** Return parts as text: numbers with two digits, folded stretches in braces, results by label. */
function text(parts) {
  return parts.map((part) => {
    if (typeof part === "string") return part;
    if (part.fold) return `{${text(part.fold)}}`;
    return part.label ?? part.value.toFixed(2);
  }).join("");
}

test("formulas read as in the book", () => {
  const model = new BabyGroot(10, 4, 2);
  model.parameters.forEach((_, i) => (model.parameters[i] = (i % 7) / 4));
  const pass = { model, seen: model.trace([3, 1]) };
  const read = (name, ...index) => {
    const { rule, parts, note } = explain(pass, name, index);
    return [rule, text(parts), note];
  };
  assert.deepEqual(read("ids", 0), ["ids[0]", "", "given: the number of the token in the vocabulary"]);
  assert.deepEqual(read("head.bias", 3), ["b_head[3]", "", "a learned number"]);
  assert.deepEqual(read("token_embedding", 0, 1), [
    "Eₜ[0,1] = E[3,1]", "0.00", "row 3 of the table, for token 3",
  ]);
  assert.deepEqual(read("h0", 0, 1), ["H₀[0,1] = Eₜ[0,1] + Pₜ[0,1]", "0.00 + 0.00", ""]);
  assert.deepEqual(read("q", 1, 0), [
    "Q[1,0] = Σᵢ H₀[1,i] · W_Q[0,i] + b_Q[0]", "0.75 · 0.00 + 1.25 · 0.25 + 1.00", "",
  ]);
  const [rule, written, note] = read("scores", 1, 0);
  assert.equal(rule, "scores[1,0] = (Σᵢ Q[1,i] · K[0,i]) / √2");
  assert.match(written, /^\(\d\.\d\d · \d\.\d\d \+ \d\.\d\d · \d\.\d\d\) \/ √2$/);
  assert.equal(note, "");
  assert.deepEqual(read("masked_scores", 0, 1), [
    "masked_scores[0,1] = −10⁹", "−10⁹", "the key comes later than the query: it is hidden",
  ]);
  assert.deepEqual(read("masked_scores", 1, 1).filter((_, i) => i !== 1), [
    "masked_scores[1,1] = scores[1,1]", "the key does not come later than the query: the score stays",
  ]);
  assert.equal(read("attention", 0, 1)[0], "A[0,1] = e^masked_scores[0,1] / Σᵢ e^masked_scores[0,i]");
  assert.equal(read("context", 1, 0)[0], "context[1,0] = Σₛ A[1,s] · V[s,0]");
  assert.equal(read("ffn_activation", 0, 1)[0], "ffn_activation[0,1] = max(0, ffn_hidden[0,1])");
  assert.equal(read("n1", 0, 1)[0], "N₁[0,1] = (R₁[0,1] − mean) / √(variance + 0.00001) · γ₁[1] + β₁[1]");
  assert.match(read("n1", 0, 1)[1], /^\(\d\.\d\d − mean\) \/ √\(variance \+ 0\.00001\) · 1\.25 \+ 0\.00$/);
  assert.match(read("probabilities", 0, 9)[1], /^e\^\S+ \/ \((e\^\S+ \+ ){3}\{(e\^\S+ \+ ){5}e\^\S+\} \+ e\^\S+\)$/);
});

test("the Transformer's formulas read as in the book", () => {
  const model = randomTransformer({ dim: 16 }), pass = { model, seen: model.trace([3, 1, 2]) };
  const rule = (name, ...index) => explain(pass, name, index).rule;
  const turned = explain(pass, "layers.1.q_rotated", [3, 2, 3]);
  assert.equal(turned.rule, "Q′[3,2,3] = Q[3,2,2] · sin angle + Q[3,2,3] · cos angle");
  assert.deepEqual(turned.parts.find(({ label }) => label === "angle").parts, ["2 · 10000^(−2 · 1 / 4)"]);
  assert.equal(rule("layers.0.q", 3, 2, 1), "Q[3,2,1] = Σᵢ attention_norm[2,i] · W_Q[13,i]");
  assert.equal(rule("layers.0.scores", 3, 2, 1), "scores[3,2,1] = (Σᵢ Q′[3,2,i] · K′[1,1,i]) / √4");
  assert.equal(rule("layers.0.masked_scores", 3, 0, 1), "masked_scores[3,0,1] = −∞");
  const notes = [0, 1].map((s) => explain(pass, "layers.0.masked_scores", [3, 0, s]).note);
  assert.deepEqual(notes, [
    "the key does not come later than the query: the score stays",
    "the key comes later than the query: it is hidden",
  ]);
  assert.equal(rule("layers.0.context", 2, 9), "context[2,9] = Σₛ A[2,2,s] · V[1,s,1]");
  assert.equal(rule("layers.1.r1", 2, 9), "R₁[2,9] = R₂[2,9] + attention_out[2,9]");
  assert.equal(rule("layers.0.ffn_hidden", 0, 1),
    "ffn_hidden[0,1] = ffn_gate[0,1] / (1 + e^(−ffn_gate[0,1])) · ffn_up[0,1]");
  assert.equal(rule("h_out", 0, 1), "H_out[0,1] = R₂[0,1] / √(mean square + 0.00001) · g[1]");
});

test("what is switched off says so", () => {
  const model = randomGroot(9, 4, 4);
  const places = {
    mask: "masked_scores", scale: "scores", positions: "position_embedding", residuals: "r1", normalisation: "n1",
  };
  for (const [off, name] of Object.entries(places)) {
    const switches = { [off]: false };
    const { note } = explain({ model, seen: model.trace([1, 2], { switches }), switches }, name, [0, 1]);
    assert.match(note, new RegExp(`^(the )?${off} (is|are) switched off$`));
  }
});

test("a symbol is the book's, or else the name in words", () => {
  assert.equal(symbolOf("layers.12.q"), "Q");
  assert.equal(symbolOf("scores"), "QKᵀ/√dₕ");
  assert.equal(symbolOf("layers.0.attention.wo.weight"), "W_O");
  assert.equal(symbolOf("layers.0.ffn_gate"), "ffn gate");
});

// Whatever comes

test("NaN and infinite numbers are explained like any other", () => {
  for (const poison of [NaN, Infinity, -Infinity]) {
    const groot = randomGroot(9, 4, 4), modern = randomTransformer({});
    groot.weights["token_embedding.weight"].data[4] = poison;
    modern.weights["tok_embeddings.weight"].data[8] = poison;
    for (const model of [groot, modern]) {
      const seen = model.trace([1, 2]);
      everyNumber({ model, seen }, ({ value }, want, where) => assert.ok(Object.is(value, want), where));
      assert.ok(!Number.isFinite(explain({ model, seen }, "h0", [0, 0]).refs[0].value));
    }
  }
});

test("a number that is not there is refused by name", () => {
  const model = randomGroot(9, 4, 4), pass = { model, seen: model.trace([1, 2]) };
  for (const index of [[2, 0], [0, 4], [-1, 0], [0], [0, 0, 0], [0.5, 0], [NaN, 0], ["0", 0]]) {
    refuses(() => explain(pass, "q", index), /no number q\[/);
  }
  refuses(() => explain(pass, "layers.0.q", [0, 0]), /no number layers\.0\.q\[0,0\]/);
  refuses(() => explain(pass, "toString", [0]), /no number toString/);
});
