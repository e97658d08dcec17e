/** How alike the vectors of a table are: their dot products, lengths and cosines, each with its formula. */

import { explanation, sum } from "./provenance.js";

export class Likeness {
  /**
   * @param {{shape: number[], data: Float64Array}} table [n, d], a vector in each row
   * @param {string} when what the names of its numbers end in
   * @param {string} note what its numbers are
   */
  constructor(table, when, note) {
    this.table = table;
    this.when = when;
    this.note = note;
    const [n] = table.shape, all = Array.from({ length: n }, (_, a) => a);
    this.lengths = all.map((a) => Math.sqrt(this.dot(a, a)));
    const cosine = (a, b) => this.dot(a, b) / (this.lengths[a] * this.lengths[b]);
    this.cosines = { shape: [n, n], data: Float64Array.from({ length: n * n }, (_, i) => cosine(Math.floor(i / n), i % n)) };
  }

  /** Return the dot product of rows a and b. */
  dot(a, b) {
    const { shape: [, d], data } = this.table;
    let total = 0;
    for (let c = 0; c < d; c++) total += data[a * d + c] * data[b * d + c];
    return total;
  }

  /** Return the cosine of the angle between rows a and b. */
  cosine(a, b) {
    return this.cosines.data[a * this.table.shape[0] + b];
  }

  /** Return the other rows, the nearest to row a first. */
  nearest(a) {
    const others = [...this.lengths.keys()].filter((b) => b !== a);
    return others.sort((b, c) => this.cosine(a, c) - this.cosine(a, b) || b - c);
  }

  /** Return a number as an operand; `kind` is cosine, dot, length or E. */
  ref(kind, ...index) {
    return { name: `${kind}_${this.when}`, index, value: this.valueOf(kind, index) };
  }

  valueOf(kind, [a, b]) {
    if (kind === "E") return this.table.data[a * this.table.shape[1] + b];
    return kind === "length" ? this.lengths[a] : this[kind](a, b);
  }

  /** Return how a number was made, or null if it is none of this table's. */
  explain({ name, index }) {
    const [kind, when] = name.split("_"), [a, b] = index, d = this.table.shape[1];
    if (when !== this.when || !Object.hasOwn(SYMBOLS, kind)) return null;
    const told = {
      cosine: () => ({
        rule: "a · b / (‖a‖ · ‖b‖)",
        parts: [this.ref("dot", a, b), " / (", this.ref("length", a), " · ", this.ref("length", b), ")"],
      }),
      dot: () => ({ rule: "Σᵢ aᵢ · bᵢ", parts: sum(d, (c) => [this.ref("E", a, c), " · ", this.ref("E", b, c)]) }),
      length: () => ({ rule: "√ Σᵢ aᵢ²", parts: ["√(", ...sum(d, (c) => [this.ref("E", a, c), " · ", this.ref("E", a, c)]), ")"] }),
      E: () => ({ note: this.note }),
    }[kind]();
    return explanation({ name, index }, this.valueOf(kind, index), { symbol: SYMBOLS[kind], ...told });
  }
}

const SYMBOLS = { cosine: "cos", dot: "a · b", length: "‖a‖", E: "E" };
