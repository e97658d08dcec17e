import assert from "node:assert/strict";
import { test } from "node:test";
import { BabyGroot, Generator, Vocabulary, generate, nextTokenProbabilities } from "../src/engine/index.js";
import { explain } from "../src/provenance.js";
import { Writing, branches, pathRef, shareRef } from "../src/writing.js";

const words = ["<PAD>", "<START>", "<END>", "a", "b", "c", "d", "e", "f", "g", "h", "i"];
const vocabulary = new Vocabulary(words), END = 2;
const model = BabyGroot.draw(new Generator(5), words.length, 4, 6);
const writing = (choices, prompt = [1, 5]) => new Writing(model, prompt, { temperature: 1, topK: 0, topP: 1, seed: 0, ...choices }, vocabulary);
const CHOICES = [{}, { temperature: 0 }, { temperature: 0.3 }, { temperature: 2, topK: 5 }, { topP: 0.4 }, { topK: 9, topP: 0.7 }, { topK: 99 }, { topK: 1 }];

const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

/** Return the value of an explanation's parts, operands put in. */
function evaluated(parts) {
  const text = (all) => all.map((part) => (typeof part === "string" ? part : part.fold ? text(part.fold) : `(${part.value})`)).join("");
  return Function(`return ${text(parts).replaceAll("·", "*").replaceAll("−", "-").replaceAll("e^", "Math.E**")}`)();
}

test("shares are nextTokenProbabilities of the last window, and what is cut is said", () => {
  for (const choices of CHOICES) {
    const w = writing(choices), path = [3, 4, 9], place = w.at(path), { temperature: t = 1, topK = 0, topP = 1 } = choices;
    const logits = model.trace([5, 3, 4, 9]).logits.data.slice(-words.length);
    assert.deepEqual(place.logits, logits);
    const want = t === 0 ? place.shares : nextTokenProbabilities(logits, { temperature: t, topK: topK || null, topP });
    assert.deepEqual(place.shares, want);
    place.order.forEach((token, rank) => assert.equal(place.shares[token] > 0, place.cut(rank) === "", `${JSON.stringify(choices)}, rank ${rank}`));
    near(place.reach(words.length), 1);
    if (topP < 1) assert.ok(place.mass(place.kept) >= topP && place.mass(place.kept - 1) < topP);
  }
});

test("every number is what its formula makes of its operands, and each operand can be followed", () => {
  for (const choices of CHOICES) {
    const w = writing(choices), path = [3, 4], place = w.at(path), explainer = w.explainer(path);
    const start = [pathRef(w, [3, 4, 7, 8, 9, 3, 3, 4, 5, 6]), shareRef(w, [6], 3), { name: "uniform", index: [2] }];
    for (let n = 0; n < words.length; n++) start.push({ name: "share", index: [n] }, { name: "reach", index: [n] });
    if (place.kept < place.byK) start.push({ name: "mass", index: [place.kept] }, { name: "mass", index: [place.kept - 1] });
    const queue = [...start], met = new Set();
    while (queue.length) {
      const ref = queue.pop(), key = `${ref.name}[${ref.index}]`;
      if (met.has(key)) continue;
      met.add(key);
      const found = explainer(ref) ?? explain(place, ref.name, ref.index);
      if (ref.value !== undefined) near(found.value, ref.value);
      if (ref.name === "logits" || !found.parts.length) continue; // the pass explains these itself
      near(evaluated(found.parts), found.value);
      queue.push(...found.refs);
    }
    assert.ok(met.size > start.length);
  }
});

test("a place's pass explains its logits and probabilities", () => {
  const place = writing().at([3, 4, 7]);
  assert.equal(explain(place, "probabilities", [3, 6]).value, place.probabilities[6]);
});

test("greedy and drawn texts end where they should", () => {
  const w = writing(), ends = (token) => token === END;
  const greedy = w.on([], (place) => place.best, ends, 20);
  assert.deepEqual([1, 5, ...greedy], generate(model, [1, 5], 20, { stopId: END }));
  const drawn = w.on([], (place) => place.drawn, ends, 20);
  assert.deepEqual(drawn, writing().on([], (place) => place.drawn, ends, 20));
  assert.notDeepEqual(drawn, writing({ seed: 1 }).on([], (place) => place.drawn, ends, 20));
  assert.deepEqual(w.on([3, END], (place) => place.best, ends, 20), [3, END]);
});

test("the token drawn is the one on whose share the uniform number falls", () => {
  const counts = new Array(words.length).fill(0), N = 4000;
  for (let seed = 0; seed < N; seed++) {
    const place = writing({ seed, topK: 5 }).at([3]), rank = place.drawnRank, u = new Generator(seed);
    u.uniform();
    assert.equal(place.uniform, u.uniform()); // the second number: one token is written
    assert.ok(place.reach(rank) <= place.uniform && place.uniform < place.reach(rank + 1));
    counts[place.drawn] += 1;
  }
  writing({ topK: 5 }).at([3]).shares.forEach((share, w) => assert.ok(Math.abs(counts[w] - N * share) <= 4.5 * Math.sqrt(N * share * (1 - share)), words[w]));
});

test("the tree has the likeliest tokens and those tried, and nothing that is cut or over", () => {
  const w = writing(), first = w.at([]), odd = first.order[9];
  const all = { opened: ({ length }) => length < 3, tried: new Set([String([odd])]), ends: (token) => token === END };
  const rows = branches(w, [], all), top = rows.filter(({ level }) => level === 1);
  assert.deepEqual(top.map(({ token }) => token), [...first.order.slice(0, 3), odd]);
  assert.deepEqual(top.map(({ place, of }) => [place, of]), [[1, 4], [2, 4], [3, 4], [4, 4]]);
  assert.ok(rows.every(({ token, leaf, open }) => leaf === (token === END) && !(leaf && open)));
  assert.equal(branches(writing({ topK: 1 }), [], { ...all, tried: new Set() }).filter(({ level }) => level === 2).length, first.best === END ? 0 : 1);
});

test("weights that are not numbers break nothing", () => {
  const broken = BabyGroot.draw(new Generator(5), words.length, 4, 6);
  broken.weights["head.bias"].data[4] = NaN;
  broken.weights["head.bias"].data[5] = Infinity;
  for (const choices of CHOICES) {
    const w = new Writing(broken, [1], { temperature: 1, topK: 0, topP: 1, seed: 0, ...choices }, vocabulary);
    assert.equal(w.at([]).best, 4);
    assert.ok(w.at([]).drawn >= 0 && branches(w, [], { opened: () => false, tried: new Set(), ends: () => false }).length > 0);
    w.explainer([])({ name: "share", index: [4] });
  }
});
