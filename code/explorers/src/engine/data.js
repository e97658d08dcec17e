/** Words and ids, and how sentences become examples: as in `glassformer.data`. */

export const PAD = "<PAD>";
export const START = "<START>";
export const END = "<END>";
export const SPECIALS = [PAD, START, END];

// What Python's str.split() splits at; JavaScript's \s differs in a few rare characters.
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/**
 * Return the words of a text.
 * @param {string} text
 * @returns {string[]}
 */
export function splitWords(text) {
  return text.split(BLANKS).filter((word) => word !== "");
}

/** A list of words; the id of a word is its place in the list. */
export class Vocabulary {
  /** @param {Iterable<string>} words */
  constructor(words) {
    this.words = [...words];
    this.places = new Map(this.words.map((word, id) => [word, id]));
    if (this.places.size < this.words.length) {
      const twice = this.words.find((word, id) => this.places.get(word) !== id);
      throw new Error(`The word ${quoted(twice)} stands twice in the vocabulary; keep one.`);
    }
  }

  /**
   * Return the specials, in their order, followed by the sorted words of the sentences.
   * @param {Iterable<string>} sentences
   * @param {string[]} [specials]
   * @returns {Vocabulary}
   */
  static fromSentences(sentences, specials = SPECIALS) {
    const found = new Set([...sentences].flatMap(splitWords));
    specials.forEach((word) => found.delete(word));
    return new Vocabulary([...specials, ...[...found].sort()]);
  }

  /** Number of words. */
  get size() {
    return this.words.length;
  }

  /**
   * Return whether a word is known.
   * @param {string} word
   * @returns {boolean}
   */
  has(word) {
    return this.places.has(word);
  }

  /**
   * Return the ids of the words of a text; an Error names an unknown word and the nearest known.
   * @param {string} text
   * @returns {number[]}
   */
  encode(text) {
    if (typeof text !== "string") throw new Error("encode needs a text, such as 'i am'.");
    return splitWords(text).map((word) => this.id(word));
  }

  /**
   * Return the id of one word.
   * @param {string} word
   * @returns {number}
   */
  id(word) {
    if (this.places.has(word)) return this.places.get(word);
    const near = nearest(word, this.words);
    const hint = near.length ? `the nearest known: ${near.join(", ")}` : "nothing known is near it";
    const known = this.words.slice(0, 24).join(", ") + (this.size > 24 ? ", …" : "");
    const shown = quoted([...word].slice(0, 60).join(""));
    throw new Error(`The word ${shown} is not in the vocabulary; ${hint}. Known: ${known}.`);
  }

  /**
   * Return the words of a sequence of ids, joined by blanks.
   * @param {Iterable<number>} ids
   * @returns {string}
   */
  decode(ids) {
    if (typeof ids === "string" || typeof ids?.[Symbol.iterator] !== "function") {
      throw new Error("decode needs a list of token ids, such as [1, 2].");
    }
    return Array.from(ids, (id) => this.word(id)).join(" ");
  }

  /**
   * Return the word of one id.
   * @param {number} id
   * @returns {string}
   */
  word(id) {
    if (Number.isInteger(id) && id >= 0 && id < this.size) return this.words[id];
    throw new Error(`${String(id)} is not a token id; ids are whole numbers from 0 to ${this.size - 1}.`);
  }
}

/** Return a text in quotes, as Python shows it: what cannot be seen is written as a code. */
function quoted(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`);
  return quote + escaped.replace(/[\p{C}\p{Z}]/gu, codeOf) + quote;
}

function codeOf(letter) {
  const named = { " ": " ", "\t": "\\t", "\n": "\\n", "\r": "\\r" };
  const code = letter.codePointAt(0), hex = code.toString(16);
  if (letter in named) return named[letter];
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/**
 * Return up to n known words that resemble a word, the most alike first, as Python's
 * `difflib.get_close_matches(word, known, n, cutoff)`.
 * @param {string} word
 * @param {string[]} known
 * @param {number} [n]
 * @param {number} [cutoff]
 * @returns {string[]}
 */
export function nearest(word, known, n = 3, cutoff = 0.5) {
  const letters = [...word].slice(0, 200);
  return known
    .map((other) => ({ other, likeness: likeness([...other], letters) }))
    .filter((match) => match.likeness >= cutoff)
    .sort((a, b) => b.likeness - a.likeness || (a.other < b.other ? 1 : -1))
    .slice(0, n)
    .map((match) => match.other);
}

/** Return 2 · letters in common / letters in all, from 0 to 1 (Ratcliff and Obershelp, 1988). */
function likeness(a, b) {
  return a.length + b.length === 0 ? 1 : (2 * inCommon(a, b)) / (a.length + b.length);
}

/** Return the length of the longest common run of letters, plus the same left and right of it. */
function inCommon(a, b) {
  const { i, j, length } = longestRun(a, b);
  if (length === 0) return 0;
  const left = inCommon(a.slice(0, i), b.slice(0, j));
  return left + length + inCommon(a.slice(i + length), b.slice(j + length));
}

/** Return where the longest common run starts in a and in b; of equals the first. */
function longestRun(a, b) {
  let best = { i: 0, j: 0, length: 0 };
  let before = new Array(b.length + 1).fill(0); // before[j + 1]: length of the run ending at a[i−1], b[j]
  for (let i = 0; i < a.length; i++) {
    const now = new Array(b.length + 1).fill(0);
    for (let j = 0; j < b.length; j++) {
      if (a[i] !== b[j]) continue;
      const length = (now[j + 1] = before[j] + 1);
      if (length > best.length) best = { i: i - length + 1, j: j - length + 1, length };
    }
    before = now;
  }
  return best;
}

/**
 * Return contexts [N][maxLen], padded on the right with 0, and next tokens [N].
 * Each sentence, between <START> and <END>, gives one example for every token after the first.
 * @param {Iterable<string>} sentences
 * @param {Vocabulary} vocabulary
 * @param {number} [maxLen]
 * @returns {{contexts: number[][], targets: number[]}}
 */
export function prefixPairs(sentences, vocabulary, maxLen = 4) {
  if (!Number.isSafeInteger(maxLen) || maxLen < 1) {
    throw new Error(`max_len = ${maxLen} cannot be: it must be a whole number, 1 or more.`);
  }
  const contexts = [], targets = [];
  for (const sentence of sentences) {
    const ids = vocabulary.encode(`${START} ${sentence} ${END}`);
    if (ids.length - 1 > maxLen) {
      const needed = `${quoted(sentence)} needs contexts of ${ids.length - 1} tokens`;
      throw new Error(`${needed}, but max_len is ${maxLen}.`);
    }
    if (ids.includes(0)) {
      const word = quoted(vocabulary.words[0]);
      throw new Error(
        `${quoted(sentence)} holds ${word}, whose id 0 is what pads contexts; ` +
          `give the vocabulary ${PAD} as its first word.`,
      );
    }
    for (let end = 1; end < ids.length; end++) {
      contexts.push([...ids.slice(0, end), ...new Array(maxLen - end).fill(0)]);
      targets.push(ids[end]);
    }
  }
  if (targets.length === 0) throw new Error("The corpus is empty; give at least one sentence.");
  return { contexts, targets };
}

/**
 * Return, for every context in order of first occurrence, how often each next token follows it.
 * @param {number[][]} contexts [N][T]
 * @param {number[]} targets [N]
 * @returns {{context: number[], followers: Map<number, number>, total: number}[]}
 */
export function nextTokenCounts(contexts, targets) {
  const found = new Map();
  contexts.forEach((context, n) => {
    const key = context.join(" ");
    if (!found.has(key)) found.set(key, { context, followers: new Map(), total: 0 });
    const { followers } = found.get(key);
    followers.set(targets[n], (followers.get(targets[n]) ?? 0) + 1);
    found.get(key).total += 1;
  });
  return [...found.values()];
}

/**
 * Return the lowest mean cross-entropy, in nats, that any model can reach on the examples.
 * @param {number[][]} contexts
 * @param {number[]} targets
 * @returns {number}
 */
export function entropyFloor(contexts, targets) {
  let floor = 0;
  for (const { followers, total } of nextTokenCounts(contexts, targets)) {
    for (const n of followers.values()) floor -= n * Math.log(n / total);
  }
  return floor / targets.length;
}

/**
 * Return the highest share of next tokens that any model can pick right on the examples.
 * @param {number[][]} contexts
 * @param {number[]} targets
 * @returns {number}
 */
export function accuracyCeiling(contexts, targets) {
  let best = 0;
  for (const { followers } of nextTokenCounts(contexts, targets)) {
    best += Math.max(...followers.values());
  }
  return best / targets.length;
}
