import assert from "node:assert/strict";
import { BabyGroot, LastTokenPass, generate } from "../src/engine/index.js";
import { below, close, compare, readJson, readTensors, sameTrace, worst } from "./fixtures.js";

compare("every intermediate of BabyGroot is PyTorch's", (t) => {
  const { models } = readJson("baby_groot"), tensors = readTensors("baby_groot");
  models.forEach(({ prompts, switches }, m) => {
    const model = BabyGroot.fromWeights(below(tensors, `${m}/weights/`));
    prompts.forEach(({ ids, names }, p) => {
      const want = below(tensors, `${m}/${p}/`);
      sameTrace(`model ${m}, ids ${ids}`, model.trace(ids, { switches }), names, want);
      close("forward", model.forward(ids, { switches }), want.logits);
    });
  });
  t.diagnostic(`largest relative difference ${worst.value.toExponential(1)}, in ${worst.where}`);
});

compare("every gradient of BabyGroot is autograd's", (t) => {
  const { batches } = readJson("gradients"), tensors = readTensors("gradients");
  worst.value = 0;
  batches.forEach(({ contexts, targets, loss, switches }, n) => {
    const model = BabyGroot.fromWeights(below(tensors, `${n}/weights/`));
    const pass = new LastTokenPass(model, switches);
    let sum = 0;
    contexts.forEach((context, i) => {
      pass.forward(context);
      sum += pass.loss(targets[i]);
      pass.backward(targets[i], 1 / contexts.length);
    });
    assert.ok(Math.abs(sum / contexts.length - loss) <= 1e-10 * Math.max(loss, 1), `loss of batch ${n}`);
    const want = below(tensors, `${n}/gradients/`);
    const largest = Math.max(...Object.values(want).flatMap(({ data }) => [...data].map(Math.abs)));
    let start = 0;
    for (const [name, shape] of Object.entries(model.shapes)) {
      const data = pass.gradients.subarray(start, (start += want[name].data.length));
      if (name.endsWith("k.bias")) {
        // Exactly 0 in theory: softmax does not see what is added to a whole row.
        data.forEach((x) => assert.ok(Math.abs(x) <= 1e-10 * largest, `batch ${n} ${name} is ${x}`));
      } else close(`batch ${n} ${name}`, { shape, data }, want[name]);
    }
  });
  t.diagnostic(`largest relative difference ${worst.value.toExponential(1)}, in ${worst.where}`);
});

compare("BabyGroot writes what PyTorch writes, its window sliding", () => {
  const { models } = readJson("baby_groot"), tensors = readTensors("baby_groot");
  models.forEach(({ written }, m) => {
    const model = BabyGroot.fromWeights(below(tensors, `${m}/weights/`));
    for (const { ids, text } of written) assert.deepEqual(generate(model, ids, 8), text);
  });
});
