/** What an explorer is handed: parts by name, as Python or the page's scripts give them. */

import { BabyGroot, Transformer, Vocabulary, readSafetensors, readTrained } from "../engine/index.js";

/**
 * Return an object with the corpus and models that the parts hold, each read when first asked for.
 * @param {Object<string, object>} parts corpus, groot, initial, tiny, novelist; see `glassformer.explorers.parts`
 */
export function loaded(parts) {
  const groot = (name) => BabyGroot.fromWeights(readSafetensors(bytes(part(parts, name).weights)));
  return lazily({
    vocabulary: () => new Vocabulary(part(parts, "corpus").words),
    sentences: () => part(parts, "corpus").sentences,
    maxLen: () => part(parts, "corpus").max_len,
    published: () => part(parts, "corpus").published,
    groot: () => groot("groot"),
    initial: () => groot("initial"),
    tiny: () => new Transformer(parts.tiny.config, readSafetensors(bytes(part(parts, "tiny").weights))),
    tinyVocabulary: () => new Vocabulary(part(parts, "tiny").words),
    tinySentences: () => part(parts, "tiny").sentences,
    novelist() {
      const { config, weights, tokenizer } = part(parts, "novelist");
      return readTrained({ config: JSON.stringify(config), weights: bytes(weights), tokenizer });
    },
  });
}

function part(parts, name) {
  if (!parts?.[name]) throw new Error(`This explorer was not given its part '${name}'.`);
  return parts[name];
}

/** Return an object whose properties are made when first read, once. */
function lazily(makers) {
  const made = {};
  const properties = Object.entries(makers).map(([name, make]) => [
    name,
    { get: () => (name in made ? made[name] : (made[name] = make())) },
  ]);
  return Object.defineProperties({}, Object.fromEntries(properties));
}

/** Return bytes from what notebooks send (a DataView) or what a page holds ({"$bytes": base64}). */
function bytes(value) {
  if (typeof value?.$bytes !== "string") return value;
  return Uint8Array.from(atob(value.$bytes), (letter) => letter.charCodeAt(0));
}
