import assert from "node:assert/strict";
import { Adam, BabyGroot, Generator, epochOrder, fillNormal, trainBabyGroot } from "../src/engine/index.js";
import { below, close, compare, readJson, readTensors } from "./fixtures.js";

compare("PyTorch's random numbers, orders and first weights, for any seed", () => {
  const { seeds, normals } = readJson("random"), tensors = readTensors("random");
  for (const { sizes, seed, values } of normals) {
    const generator = new Generator(seed);
    sizes.forEach((size, n) => {
      const drawn = new Float64Array(size);
      fillNormal(drawn, generator);
      close(`normal, size ${size}`, { shape: [size], data: drawn }, { shape: [size], data: values[n] }, 2e-6);
    });
  }
  for (const { seed, uniform, permutation, epochs } of seeds) {
    const even = new Generator(BigInt(seed));
    assert.deepEqual(uniform.map(() => even.uniform()), uniform, `seed ${seed}: uniform`);
    const shuffled = new Generator(BigInt(seed)).permutation(permutation.length);
    assert.deepEqual([...shuffled], permutation, `seed ${seed}: permutation`);
    const generator = new Generator(BigInt(seed));
    for (const order of epochs) {
      assert.deepEqual([...epochOrder(generator, order.length)], order, `seed ${seed}: an epoch`);
    }
    const model = BabyGroot.draw(new Generator(BigInt(seed)), 24, 4);
    for (const [name, want] of Object.entries(below(tensors, `${seed}/`))) {
      // PyTorch itself differs by so much from one kind of processor to another.
      close(`seed ${seed} ${name}`, model.weights[name], want, 2e-6);
    }
  }
});

compare("500 epochs end at the package's weights and print the published log", (t) => {
  const { contexts, targets, history, published } = readJson("training");
  const tensors = readTensors("training");
  const start = performance.now();
  const options = { contexts, targets, vocabSize: 24, initial: below(tensors, "initial/") };
  const { model, history: ours } = trainBabyGroot(options);
  const took = performance.now() - start;
  let off = 0;
  for (const [name, { data }] of Object.entries(below(tensors, "trained/"))) {
    data.forEach((x, i) => (off = Math.max(off, Math.abs(x - model.weights[name].data[i]))));
  }
  assert.ok(off <= 1e-7, `a weight is off by ${off}`);
  for (const [epoch, loss] of Object.entries(published)) {
    assert.equal(ours.losses[epoch].toFixed(4), loss.toFixed(4), `epoch ${epoch}`);
  }
  assert.equal(Object.keys(published).length, 10);
  sameHistory(ours, history);
  assert.deepEqual(Object.keys(ours.snapshots).map(Number), history.snapshots);
  t.diagnostic(`weights off by ${off.toExponential(1)} after 500 epochs in ${took.toFixed(0)} ms`);
});

compare("other seeds, rates and batch sizes train as in PyTorch", () => {
  const { contexts, targets, others } = readJson("training"), tensors = readTensors("training");
  others.forEach(({ options, history }, n) => {
    const initial = below(tensors, `others/${n}/initial/`);
    const run = trainBabyGroot({ contexts, targets, vocabSize: 24, initial, ...options });
    for (const [name, want] of Object.entries(below(tensors, `others/${n}/trained/`))) {
      // Each step magnifies rounding, in PyTorch as here.
      close(`${JSON.stringify(options)} ${name}`, run.model.weights[name], want, 1e-7);
    }
    sameHistory(run.history, history);
  });
});

compare("Adam takes torch.optim.Adam's steps", () => {
  const { runs } = readJson("adam"), tensors = readTensors("adam");
  runs.forEach(({ lr, betas, eps, steps }, n) => {
    const parameters = tensors[`${n}/start`].data.slice();
    const adam = new Adam(parameters, { lr, betas, eps });
    for (let step = 0; step < steps; step++) adam.step(tensors[`${n}/gradient ${step}`].data);
    const want = tensors[`${n}/end`];
    close(`run ${n}`, { shape: want.shape, data: parameters }, want, 1e-12);
  });
});

function sameHistory(ours, theirs) {
  for (const name of ["losses", "weightedLosses"]) {
    assert.equal(ours[name].length, theirs[name].length);
    ours[name].forEach((x, i) => assert.ok(Math.abs(x - theirs[name][i]) < 1e-8, `${name}[${i}]`));
  }
  assert.deepEqual(ours.accuracies, theirs.accuracies);
}
