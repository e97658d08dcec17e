import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Vocabulary, accuracyCeiling, entropyFloor, nearest, nextTokenCounts, prefixPairs,
} from "../src/engine/index.js";
import { compare, readJson, refuses } from "./fixtures.js";

compare("vocabularies, examples, floors and ceilings are Python's", () => {
  for (const { sentences, words, X, Y, floor, ceiling, counts } of readJson("data").corpora) {
    const vocabulary = Vocabulary.fromSentences(sentences);
    assert.deepEqual(vocabulary.words, words);
    const { contexts, targets } = prefixPairs(sentences, vocabulary, X[0].length);
    assert.deepEqual(contexts, X);
    assert.deepEqual(targets, Y);
    assert.ok(Math.abs(entropyFloor(contexts, targets) - floor) < 1e-12);
    assert.equal(accuracyCeiling(contexts, targets), ceiling);
    const ours = nextTokenCounts(contexts, targets);
    assert.deepEqual(ours.map(({ context, followers }) => [context, [...followers]]), counts);
  }
});

compare("texts are encoded, and unknown words answered, as in Python", () => {
  const { words, texts } = readJson("data");
  const vocabulary = new Vocabulary(words);
  for (const { text, ids, message } of texts) {
    if (message) assert.throws(() => vocabulary.encode(text), { message });
    else {
      assert.deepEqual(vocabulary.encode(text), ids);
      assert.deepEqual(vocabulary.encode(vocabulary.decode(ids)), ids);
    }
  }
});

compare("the nearest known words are difflib's", () => {
  const { words, near } = readJson("data");
  for (const { word, matches } of near) assert.deepEqual(nearest(word, words), matches, word);
});

test("what is no text, id or corpus is refused in a sentence", () => {
  const vocabulary = new Vocabulary(["<PAD>", "<START>", "<END>", "i"]);
  for (const text of [null, undefined, 3, ["i"]]) {
    refuses(() => vocabulary.encode(text), /^encode needs a text/);
  }
  for (const id of [-1, 4, 1.5, NaN, "1", null]) {
    refuses(() => vocabulary.decode([id]), /not a token id/);
  }
  for (const ids of [null, "12", 3]) refuses(() => vocabulary.decode(ids), /^decode needs a list/);
  refuses(() => vocabulary.encode("j"), /^The word 'j' is not in the vocabulary; /);
  refuses(() => new Vocabulary(["a", "a"]), /stands twice/);
  refuses(() => prefixPairs([], vocabulary), /corpus is empty/);
  refuses(() => prefixPairs(["i i i i"], vocabulary), /needs contexts of 5 tokens/);
  refuses(() => prefixPairs(["i"], vocabulary, 0), /^max_len = 0/);
  refuses(() => prefixPairs(["<PAD>"], vocabulary), /pads contexts/);
});

test("a long unknown word is answered at once", () => {
  const vocabulary = new Vocabulary(["<PAD>", "groot"]);
  refuses(() => vocabulary.encode("g".repeat(100000)), /nothing known is near it/);
});
