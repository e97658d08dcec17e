/** BabyGroot trained in the page: the same weights, batches and steps as `train_baby_groot`. */

import { Adam } from "./adam.js";
import { BabyGroot } from "./baby_groot.js";
import { LastTokenPass } from "./gradients.js";
import { Generator, epochOrder } from "./random.js";
import { checkIds, needWhole } from "./checking.js";

/**
 * @typedef {object} TrainingOptions
 * @property {number[][]} contexts [N][maxLen], padded on the right with 0; see `prefixPairs`
 * @property {number[]} targets [N]
 * @property {number} vocabSize
 * @property {number} [dim] 8
 * @property {number} [seed] 42; draws the weights and the order of the examples
 * @property {Object<string, import("./tensor.js").Tensor>} [initial] start from these weights
 *   instead of drawn ones; for seed 42 give those of the package, as Python does
 * @property {number} [learningRate] 0.01
 * @property {number} [batchSize] 16
 * @property {Partial<import("./baby_groot.js").Switches>} [switches] parts to leave out
 *
 * @typedef {object} History
 * @property {number[]} losses the mean of the batches' means, one for each epoch
 * @property {number[]} weightedLosses each example weighs alike
 * @property {number[]} accuracies
 * @property {Object<number, Float64Array>} snapshots all weights after so many epochs
 */

/** A training run that goes on epoch by epoch, for as long as it is asked to. */
export class Training {
  /** @param {TrainingOptions} options */
  constructor({ contexts, targets, vocabSize, dim = 8, seed = 42, initial, learningRate = 0.01,
    batchSize = 16, switches = {} }) {
    needWhole("batch_size", batchSize, 1);
    if (!Number.isFinite(learningRate) || learningRate < 0) {
      throw new Error(`learning_rate = ${String(learningRate)} cannot be: it must be 0 or more, and finite.`);
    }
    checkExamples(contexts, targets, vocabSize);
    this.contexts = contexts;
    this.targets = targets;
    this.batchSize = batchSize;
    this.generator = new Generator(seed);
    this.model = BabyGroot.draw(this.generator, vocabSize, contexts[0].length, dim);
    if (initial) this.model.load(initial);
    this.pass = new LastTokenPass(this.model, switches);
    this.adam = new Adam(this.model.parameters, { lr: learningRate });
    this.epochs = 0;
    this.history = { losses: [], weightedLosses: [], accuracies: [], snapshots: {} };
    this.keep();
  }

  /** Keep a copy of the weights as the snapshot of this epoch. */
  keep() {
    this.history.snapshots[this.epochs] = this.model.parameters.slice();
  }

  /**
   * See every example once, in a new order, with one step for each batch; return the loss.
   * @returns {number}
   */
  epoch() {
    const order = epochOrder(this.generator, this.targets.length);
    let batches = 0, sumOfMeans = 0, sum = 0, right = 0;
    for (let start = 0; start < order.length; start += this.batchSize) {
      const batch = order.subarray(start, start + this.batchSize);
      const seen = this.batch(batch);
      batches += 1;
      sumOfMeans += seen.loss / batch.length;
      sum += seen.loss;
      right += seen.right;
    }
    this.epochs += 1;
    this.history.losses.push(sumOfMeans / batches);
    this.history.weightedLosses.push(sum / order.length);
    this.history.accuracies.push(right / order.length);
    return sumOfMeans / batches;
  }

  /** Take one step for the examples of a batch; return the sum of their losses and how many are right. */
  batch(examples) {
    const { pass, contexts, targets } = this;
    let loss = 0, right = 0;
    pass.zero();
    for (const n of examples) {
      pass.forward(contexts[n]);
      loss += pass.loss(targets[n]);
      right += pass.choice() === targets[n] ? 1 : 0;
      pass.backward(targets[n], 1 / examples.length);
    }
    this.adam.step(pass.gradients);
    return { loss, right };
  }
}

function checkExamples(contexts, targets, vocabSize) {
  needWhole("vocab_size", vocabSize, 1);
  if (!contexts?.length || contexts.length !== targets?.length) {
    throw new Error("Training needs contexts and as many targets, at least one; see prefixPairs.");
  }
  const T = contexts[0]?.length ?? 0;
  for (const context of contexts) {
    checkIds(context, vocabSize, T, T);
    if (context.length !== T) throw new Error("All contexts must have one length; pad them with 0.");
  }
  checkIds(targets, vocabSize, targets.length, targets.length);
}

/**
 * Train for a number of epochs and return the model with its history.
 * @param {TrainingOptions & {epochs?: number, snapshotEvery?: number,
 *   progress?: function(number, number): void}} options `progress(epoch, loss)` follows each epoch
 * @returns {{model: BabyGroot, history: History}}
 */
export function trainBabyGroot({ epochs = 500, snapshotEvery = 50, progress, ...options }) {
  needWhole("epochs", epochs, 0);
  const training = new Training(options);
  for (let epoch = 0; epoch < epochs; epoch++) {
    const loss = training.epoch();
    const done = epoch + 1;
    if (done % snapshotEvery === 0 || [5, 10, 20, epochs].includes(done)) training.keep();
    progress?.(epoch, loss);
  }
  return { model: training.model, history: training.history };
}
