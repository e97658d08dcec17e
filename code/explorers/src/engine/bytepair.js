/**
 * Byte-pair encoding as the `tokenizers` library writes it into tokenizer.json: a text is cut into
 * words, a word into bytes, each written as one letter, and neighbours are merged in the order in
 * which training learnt to merge them. The file is data from elsewhere: every part of it is looked at.
 */

const LONGEST_FILE = 16 * 1024 * 1024; // letters
const LARGEST_ID = 1e6;

/** How GPT-2 cuts a text into words; `\s` of other languages is White_Space in this one. */
const WORDS =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** The letter of each byte: itself if it can be seen, else one from 256 on, so that Ġ is the blank. */
const LETTERS = (() => {
  const seen = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(seen(byte) ? byte : next++));
})();
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));

export class BytePairTokenizer {
  /**
   * @param {Map<string, number>} ids of the pieces, written in letters of bytes
   * @param {[string, string][]} merges in the order in which they were learnt
   */
  constructor(ids, merges) {
    this.ids = ids;
    this.pieces = new Map([...ids].map(([piece, id]) => [id, piece]));
    this.ranks = new Map(merges.map(([a, b], rank) => [`${a} ${b}`, rank])); // no piece has a blank
  }

  /** Number of pieces. */
  get size() {
    return this.ids.size;
  }

  /**
   * Return the ids of a text; an Error names a letter that never occurred in training.
   * @param {string} text
   * @returns {number[]}
   */
  encode(text) {
    for (const letter of new Set(text)) {
      if ([...written(letter)].every((piece) => this.ids.has(piece))) continue;
      throw new Error(
        `The letter ${named(letter)} does not occur in the text the model was trained on; write the prompt without it.`,
      );
    }
    const words = text.match(WORDS) ?? [];
    return words.flatMap((word) => this.cut(written(word)).map((piece) => this.ids.get(piece)));
  }

  /** Return the pieces of a word: of all pairs of neighbours the one learnt first is merged, and again. */
  cut(word) {
    const pieces = [...word];
    for (;;) {
      let first = Infinity, at = -1;
      for (let i = 0; i + 1 < pieces.length; i++) {
        const rank = this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? Infinity;
        if (rank < first) [first, at] = [rank, i];
      }
      if (at < 0) return pieces;
      pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
    }
  }

  /**
   * Return the text of some ids; bytes that are no letter become �, ids without a piece nothing.
   * @param {ArrayLike<number>} ids
   * @returns {string}
   */
  decode(ids) {
    const letters = Array.from(ids, (id) => this.pieces.get(id) ?? "").join("");
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(letters, (letter) => BYTES.get(letter)));
  }
}

/** Return a text's bytes, one letter each. */
function written(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => LETTERS[byte]).join("");
}

/** Return a letter as a sentence names it: itself, or its number if it cannot be seen. */
function named(letter) {
  if (!/[\p{C}\p{Z}]/u.test(letter)) return `'${letter}'`;
  return `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * Return the tokenizer that the text of a tokenizer.json holds; an Error says in a sentence what is
 * wrong, or what it asks for that this reader does not do.
 * @param {string} text
 * @param {string} [name] how sentences call the file
 * @returns {BytePairTokenizer}
 */
export function parseTokenizer(text, name = "tokenizer.json") {
  const broken = (what) => {
    throw new Error(`${name} is not a tokenizer that can be read here: ${what}.`);
  };
  if (typeof text !== "string" || text.length > LONGEST_FILE) broken("it is larger than 16 MiB");
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    broken("it is not JSON");
  }
  if (!isObject(file) || !isObject(file.model)) broken("it does not describe a model");
  if (file.model.type !== "BPE") broken("its model is not BPE");
  checkSteps(file, broken);
  const ids = readPieces(file.model.vocab, broken);
  return new BytePairTokenizer(ids, readMerges(file.model.merges, ids, broken));
}

/** Refuse a tokenizer that does anything but cut into words, write as bytes, merge. */
function checkSteps({ normalizer, pre_tokenizer: cutter, post_processor: after, decoder, added_tokens: added, model }, broken) {
  const bytes = (step) => isObject(step) && step.type === "ByteLevel";
  if (!bytes(cutter) || cutter.add_prefix_space !== false || (cutter.use_regex ?? true) !== true) {
    broken("it does not cut texts as byte-level BPE without a prefixed blank does");
  }
  if (!bytes(decoder)) broken("its decoder is not ByteLevel");
  if (normalizer ?? false) broken("it changes texts before it cuts them");
  if ((after ?? false) && !bytes(after)) broken("it adds tokens to a text");
  if (!Array.isArray(added ?? []) || added?.length) broken("it has added tokens");
  const { dropout, unk_token: unknown, continuing_subword_prefix: prefix, end_of_word_suffix: suffix } = model;
  if (dropout || unknown || prefix || suffix || model.byte_fallback || model.ignore_merges) {
    broken("its model has dropout, an unknown token, prefixes, suffixes, byte fallback or ignored merges");
  }
}

function readPieces(vocab, broken) {
  if (!isObject(vocab)) broken("it has no vocabulary");
  const ids = new Map(Object.entries(vocab)); // a Map, so that a piece may have any name
  const taken = new Set();
  for (const [piece, id] of ids) {
    if (piece === "" || ![...piece].every((letter) => BYTES.has(letter))) broken("a piece is not written in letters of bytes");
    if (!Number.isSafeInteger(id) || id < 0 || id > LARGEST_ID) broken("an id is not a whole number up to 1,000,000");
    if (taken.has(id)) broken(`two pieces have the id ${id}`);
    taken.add(id);
  }
  if (!ids.size) broken("its vocabulary is empty");
  return ids;
}

function readMerges(list, ids, broken) {
  if (!Array.isArray(list)) broken("it has no list of merges");
  return list.map((merge, n) => {
    const pair = typeof merge === "string" ? merge.split(" ") : merge;
    if (!Array.isArray(pair) || pair.length !== 2 || !pair.every((piece) => typeof piece === "string")) {
      broken(`merge ${n} is not a pair of pieces`);
    }
    if (![...pair, pair.join("")].every((piece) => ids.has(piece))) broken(`merge ${n} has a piece that the vocabulary lacks`);
    return pair;
  });
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
