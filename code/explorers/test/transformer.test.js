import assert from "node:assert/strict";
import { KVCache, Transformer, generate, write } from "../src/engine/index.js";
import { below, close, compare, readJson, readTensors, sameTrace, worst } from "./fixtures.js";

const models = () =>
  readJson("transformer").models.map(({ config, ...others }, m) => {
    const tensors = readTensors(`transformer_${m}`);
    const model = new Transformer(config, below(tensors, "weights/"));
    return { ...others, model, tensors, where: `model ${m}` };
  });

compare("every intermediate of the Transformer is PyTorch's, in one pass and in pieces", (t) => {
  for (const { model, prompts, tensors, where } of models()) {
    prompts.forEach(({ ids, names, pieces }, p) => {
      const full = model.trace(ids);
      sameTrace(`${where}, ids ${ids}`, full, names, below(tensors, `${p}/full/`));
      const cache = new KVCache(model.config);
      let start = 0;
      pieces.forEach((size, n) => {
        const counter = { multiplications: 0 };
        const seen = model.trace(ids.slice(start, start + size), { cache, counter });
        const want = below(tensors, `${p}/piece ${n}/`);
        sameTrace(`${where}, ids ${ids}, piece ${n} of ${pieces}`, seen, names, want);
        const here = full.logits.data.slice(start * model.vocabSize, (start + size) * model.vocabSize);
        close(`${where}, cached and full`, seen.logits, { shape: [size, model.vocabSize], data: here });
        assert.equal(counter.multiplications, model.config.multiplications(size, start));
        start += size;
        assert.equal(cache.length, start);
        assert.equal(cache.room, model.config.max_seq_len - start);
      });
      assert.equal(start, ids.length);
    });
  }
  t.diagnostic(`largest relative difference ${worst.value.toExponential(1)}, in ${worst.where}`);
});

compare("each classic fault throws the logits as far as in Python", () => {
  let thrown = 0;
  for (const { model, faults, prompts, tensors, where } of models()) {
    for (const { fault, prompt, pieces } of faults) {
      const cache = new KVCache(model.config);
      const { ids } = prompts[prompt];
      let start = 0;
      pieces.forEach((size, n) => {
        const logits = model.forward(ids.slice(start, start + size), { cache, fault });
        const want = tensors[`${prompt}/${fault}/${n}`];
        close(`${where}, ${fault}, piece ${n}`, logits, want);
        const right = below(tensors, `${prompt}/full/`).logits.data.subarray(start * logits.shape[1]);
        thrown += logits.data.some((x, i) => Math.abs(x - right[i]) > 1e-6);
        start += size;
      });
    }
  }
  assert.ok(thrown > 0, "no fault changed anything");
});

compare("the Transformer writes what PyTorch writes, with cache and without", () => {
  for (const { model, written } of models()) {
    for (const { ids, text } of written) {
      const count = text.length - ids.length;
      assert.deepEqual(generate(model, ids, count), text);
      assert.deepEqual(generate(model, ids, count, { useCache: false }), text);
    }
  }
});

compare("multiplications are counted exactly, with cache and without", () => {
  const { model, written } = models()[0];
  const { config } = model, { ids, text } = written[0];
  for (const useCache of [true, false]) {
    const counter = { multiplications: 0 };
    const made = [...write(model, ids, text.length - ids.length, { useCache, counter })];
    let want = config.multiplications(ids.length);
    for (let n = 1; n < made.length; n++) {
      const held = ids.length + n - 1;
      want += useCache ? config.multiplications(1, held) : config.multiplications(held + 1);
    }
    assert.equal(counter.multiplications, want);
  }
});
