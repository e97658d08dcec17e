/** A training run that keeps everything it went through, so that any epoch can be looked at again. */

import { BabyGroot, LastTokenPass, Training } from "./engine/index.js";
import { contextWords } from "./floor.js";
import { explanation, sum } from "./provenance.js";

export class Run extends Training {
  /**
   * @param {import("./engine/training.js").TrainingOptions} options
   * @param {import("./floor.js").Floor} floor of the same examples
   * @param {string} [label] what makes it different from others, in words
   */
  constructor(options, floor, label = "") {
    super(options);
    this.switches = options.switches;
    this.label = label;
    this.floor = floor;
    this.means = []; // of every batch, in order
    this.took = 0; // milliseconds of training
    this.judge = new LastTokenPass(this.at(0), options.switches);
  }

  /** Take one step, as in training, and keep the mean of the batch's losses. */
  batch(examples) {
    const seen = super.batch(examples);
    this.means.push(seen.loss / examples.length);
    return seen;
  }

  /**
   * Train up to an epoch, or while there is time for one more; one at least.
   * @param {number} epoch
   * @param {number} [milliseconds]
   */
  advance(epoch, milliseconds = Infinity) {
    const start = performance.now();
    let spent = 0, longest = 0; // milliseconds, of all and of one
    while (this.epochs < epoch && spent + longest <= milliseconds) {
      this.epoch();
      this.keep();
      const now = performance.now() - start;
      longest = Math.max(longest, now - spent);
      spent = now;
    }
    this.took += spent;
  }

  /**
   * Return the model as it was after so many epochs.
   * @param {number} epoch
   * @returns {BabyGroot}
   */
  at(epoch) {
    const model = new BabyGroot(this.model.vocabSize, this.model.maxLen, this.model.dim);
    model.parameters.set(this.history.snapshots[epoch]);
    return model;
  }

  /**
   * Ask the model of an epoch for every example's next token.
   * @param {number} epoch
   * @returns {{loss: number, right: number, losses: number[]}} the mean loss, how many were right
   */
  asked(epoch) {
    if (this.answer?.epoch === epoch) return this.answer;
    this.judge.model.parameters.set(this.history.snapshots[epoch]);
    let right = 0;
    const losses = this.contexts.map((context, n) => {
      this.judge.forward(context);
      right += this.judge.choice() === this.targets[n] ? 1 : 0;
      return this.judge.loss(this.targets[n]);
    });
    this.answer = { epoch, right, losses, loss: losses.reduce((a, b) => a + b, 0) / losses.length };
    return this.answer;
  }

  /**
   * Return how a number of this run was made, or null if it is none: `loss` and `right` of the epoch
   * shown, `logged` of any, and those of the floor.
   * @param {{name: string, index: number[]}} ref
   * @param {number} epoch shown
   */
  explain({ name, index }, epoch) {
    return Object.hasOwn(MADE, name) ? MADE[name](this, epoch, ...index) : this.floor.explain({ name, index });
  }

  /** Return the words of example n: its context and its next token. */
  example(n) {
    const { vocabulary } = this.floor;
    return [contextWords(this.contexts[n], vocabulary), vocabulary.word(this.targets[n])];
  }

  /** Return how many batches make up an epoch. */
  get batches() {
    return Math.ceil(this.targets.length / this.batchSize);
  }
}

const MADE = {
  loss: (run, epoch) => {
    const { loss, losses } = run.asked(epoch), N = losses.length;
    const terms = sum(N, (n) => [{ name: "example_loss", index: [n], value: losses[n] }]);
    return explanation({ name: "loss", index: [] }, loss, {
      symbol: "ℒ",
      rule: "Σ −ln p / N",
      parts: ["(", ...terms, ") / ", run.floor.ref("examples")],
      note: `all examples, the weights after ${epoch} epochs`,
    });
  },
  example_loss: (run, epoch, n) => {
    const loss = run.asked(epoch).losses[n], [context, next] = run.example(n);
    return explanation({ name: "example_loss", index: [n] }, loss, {
      rule: "−ln p",
      parts: ["−ln(", { name: "p", index: [n], value: Math.exp(-loss) }, ")"],
      note: `example ${n}: “${context}” → ${next}`,
    });
  },
  p: (run, epoch, n) => {
    const [context, next] = run.example(n);
    return explanation({ name: "p", index: [n] }, Math.exp(-run.asked(epoch).losses[n]), {
      note: `the probability of ${next}; take “${context}” as the prompt to see how it is made`,
    });
  },
  right: (run, epoch) =>
    explanation({ name: "right", index: [] }, run.asked(epoch).right, {
      digits: 0, note: "counted: examples whose next token is the model's likeliest",
    }),
  epochs: (run, epoch) =>
    explanation({ name: "epochs", index: [] }, epoch, {
      digits: 0, note: `each of ${run.batches} steps: ${run.label}`,
    }),
  logged: (run, _, epoch) => {
    const first = epoch * run.batches;
    const mean = (b) => ({ name: "batch_mean", index: [epoch, b], value: run.means[first + b] });
    return explanation({ name: "logged", index: [epoch] }, run.history.losses[epoch], {
      rule: "mean of the batches' means",
      parts: ["(", ...sum(run.batches, (b) => [mean(b)]), `) / ${run.batches}`],
      note: `as epoch ${epoch} went by, a step after each batch`,
    });
  },
  batch_mean: (run, _, epoch, b) => {
    const size = Math.min(run.batchSize, run.targets.length - b * run.batchSize);
    return explanation({ name: "batch_mean", index: [epoch, b] }, run.means[epoch * run.batches + b], {
      note: `the mean of −ln p over the ${size} examples of batch ${b}, drawn anew in each epoch`,
    });
  },
  weights: (run) => {
    const { vocabSize: V, maxLen: T, dim: d } = run.model;
    const linear = (outputs, inputs) => `${outputs} · ${inputs} + ${outputs}`;
    const block = `3 · (${linear(d, d)}) + 2 · (${d} + ${d}) + ${linear(2 * d, d)} + ${linear(d, 2 * d)}`;
    return explanation({ name: "weights", index: [] }, run.model.numParams(), {
      digits: 0,
      rule: "tokens + positions + q, k, v + norms + feed-forward + head",
      parts: [`${V} · ${d} + ${T} · ${d} + ${block} + ${linear(V, d)}`],
    });
  },
};
