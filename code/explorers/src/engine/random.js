/**
 * PyTorch's random numbers on the processor, number for number: `torch.manual_seed(s)` followed by
 * the same draws gives the same order of examples, so a seed means the same in Python and here.
 */

const N = 624; // words of state
const M = 397;
const float32 = Math.fround; // round to 32 bits, as PyTorch does where it draws weights

/** The Mersenne Twister (Matsumoto and Nishimura, 1998), seeded as `torch.manual_seed` does. */
export class Generator {
  /** @param {number|bigint} seed a whole number; its last 32 bits count */
  constructor(seed) {
    if (typeof seed !== "bigint" && !Number.isSafeInteger(seed)) {
      throw new Error(`seed = ${String(seed)} cannot be: it must be a whole number.`);
    }
    this.state = new Uint32Array(N);
    this.state[0] = Number(BigInt.asUintN(32, BigInt(seed)));
    for (let i = 1; i < N; i++) {
      const before = this.state[i - 1] ^ (this.state[i - 1] >>> 30);
      this.state[i] = Math.imul(1812433253, before) + i;
    }
    this.next = N; // all words are used up: twist first
    this.spare = null; // the second of two normal draws
  }

  /** Make the next 624 words of state. */
  twist() {
    const s = this.state;
    for (let i = 0; i < N; i++) {
      const joined = (s[i] & 0x80000000) | (s[(i + 1) % N] & 0x7fffffff);
      s[i] = s[(i + M) % N] ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0);
    }
    this.next = 0;
  }

  /**
   * Return a whole number of 32 random bits.
   * @returns {number}
   */
  random() {
    if (this.next === N) this.twist();
    let y = this.state[this.next++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    y ^= y >>> 18;
    return y >>> 0;
  }

  /**
   * Return a number from 0 up to, not including, 1, with 53 random bits.
   * @returns {number}
   */
  uniform() {
    const high = this.random() & 0x1fffff; // 21 bits, above the 32 of the next draw
    return (high * 2 ** 32 + this.random()) / 2 ** 53;
  }

  /**
   * Return a number from 0 up to, not including, 1, with 24 random bits: what a float32 holds.
   * @returns {number}
   */
  uniform32() {
    return (this.random() & 0xffffff) / 2 ** 24;
  }

  /**
   * Return a number from the normal distribution; two are made at a time, and one is kept.
   * @returns {number}
   */
  normal() {
    if (this.spare !== null) {
      const kept = this.spare;
      this.spare = null;
      return kept;
    }
    const angle = 2 * Math.PI * this.uniform();
    const radius = Math.sqrt(-2 * Math.log1p(-this.uniform()));
    this.spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /**
   * Return 0 … n−1 in random order, as `torch.randperm(n, generator=…)`.
   * @param {number} n
   * @returns {Int32Array}
   */
  permutation(n) {
    const order = Int32Array.from({ length: n }, (_, i) => i);
    for (let i = 0; i < n - 1; i++) {
      const j = i + (this.random() % (n - i));
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }
}

/**
 * Return the order of n examples that a shuffled DataLoader takes in its next epoch.
 * It draws a number for its workers, then a seed, and shuffles with a generator of its own.
 * @param {Generator} generator PyTorch's default generator
 * @param {number} n
 * @returns {Int32Array}
 */
export function epochOrder(generator, n) {
  for (let i = 0; i < 3; i++) generator.random(); // for workers, 64 bits; then the seed's upper 32
  return new Generator(generator.random()).permutation(n);
}

/**
 * Fill x with draws from the normal distribution, rounded to float32, as `nn.Embedding` does.
 * PyTorch's last float32 digits differ from one kind of processor to another, and so may these.
 * @param {Float64Array} x
 * @param {Generator} generator
 */
export function fillNormal(x, generator) {
  if (x.length < 16) {
    for (let i = 0; i < x.length; i++) x[i] = float32(generator.normal());
    return;
  }
  for (let i = 0; i < x.length; i++) x[i] = generator.uniform32();
  for (let start = 0; start + 16 <= x.length; start += 16) sixteenNormal(x, start);
  if (x.length % 16) { // what is left over is drawn again, with those before it that make up 16
    const start = x.length - 16;
    for (let i = start; i < x.length; i++) x[i] = generator.uniform32();
    sixteenNormal(x, start);
  }
}

/** Turn 16 uniform draws into 16 normal ones, in float32 (Box and Muller, 1958). */
function sixteenNormal(x, start) {
  for (let i = start; i < start + 8; i++) {
    const radius = float32(Math.sqrt(float32(-2 * float32(Math.log(1 - x[i])))));
    const angle = float32(2 * Math.PI * x[i + 8]);
    x[i] = float32(radius * float32(Math.cos(angle)));
    x[i + 8] = float32(radius * float32(Math.sin(angle)));
  }
}

/**
 * Fill x with even draws between −bound and bound, rounded to float32 once, as `nn.Linear` does on
 * processors that multiply and add in one step; others may differ in the last float32 digit.
 * @param {Float64Array} x
 * @param {number} bound
 * @param {Generator} generator
 */
export function fillUniform(x, bound, generator) {
  const most = float32(bound);
  for (let i = 0; i < x.length; i++) x[i] = float32(generator.uniform32() * 2 * most - most);
}
