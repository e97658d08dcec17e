/** Writing with a KV cache and without: two lanes, the same text, and what each of them computes. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FAULTS, argmax, softmaxInPlace, tensor } from "../engine/index.js";
import { Lanes, TOLERANCE, total } from "../lanes.js";
import { symbolOf } from "../provenance.js";
import { memo } from "../kit/memo.jsx";
import { cellOf, walkedByKeys } from "../kit/matrix.jsx";
import {
  Button, Choice, Figures, Frame, Matrix, Prompt, Row, Slider, Value, choice, count, exact, number, percent, text,
  usePrompt, whole,
} from "../kit/index.js";

const PROMPT = "the cat sat";
const BYTES = 4; // of a float32, as the model is shipped
const TEMPO = 500; // milliseconds a step while it plays
const MOST = 64; // positions, or words, that a table shows
const SLICE = 4; // milliseconds that are measured at once, so that the page stays awake
const REPEATS = 9;

const LANES = [
  ["recompute", "Recompute", "reads everything again for every token"],
  ["cache", "Cache", "keeps keys and values, reads what is new"],
];

const FAULT_WORDS = {
  none: ["none", ""],
  "position 0": ["position 0", "Each pass numbers its tokens from 0, so every decoded token is turned as if it were the first."],
  "first rows": ["first rows of the mask", "A later piece gets the mask's first rows, where the last belong. It takes a piece of two tokens or more that is not the first."],
  "no mask": ["no mask", "Pieces of several tokens are not masked: their tokens see what comes after them."],
};

export const kvCache = {
  name: "kv-cache",
  title: "With a cache and without",
  fields: {
    prompt: text(PROMPT),
    new_tokens: whole(6, 1, MOST),
    step: whole(0, 0, 2 * MOST),
    chunk: whole(0, 0, MOST),
    fault: choice("none", ["none", ...FAULTS]),
  },
  View,
};

function View({ state, set, data }) {
  const { tiny: model, tinyVocabulary: vocabulary } = data, window = model.config.max_seq_len;
  const prompt = usePrompt(state.prompt, vocabulary, window, PROMPT);
  const { chunk } = state, fault = state.fault === "none" ? null : state.fault;
  const lanes = useMemo(
    () => new Lanes(model, prompt.ids, { chunk: Math.min(chunk, prompt.ids.length), fault }),
    [model, String(prompt.ids), chunk, fault],
  );
  const newTokens = Math.min(state.new_tokens, lanes.room), steps = lanes.first + newTokens - 1;
  const step = Math.min(state.step, steps);
  const shown = useMemo(() => ({ after: lanes.after(step), compared: lanes.compared(step) }), [lanes, step]);
  const explainer = useMemo(() => lanes.explainer(step, BYTES), [lanes, step]);
  const told = { lanes, step, steps, newTokens, vocabulary, ...shown };
  return (
    <Frame explainer={explainer} sentence={sentence(told)} twin={() => twin(told)}>
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={window} onChange={(text) => set({ prompt: text })} />
      <Row>
        <Slider label="tokens to write" value={newTokens} min={1} max={Math.min(MOST, lanes.room)} onChange={(n) => set({ new_tokens: n })} />
        <Slider label="prompt in pieces of" value={chunk < prompt.ids.length ? chunk : 0} min={0} max={prompt.ids.length - 1} show={(n) => (n ? String(n) : "all")} onChange={(n) => set({ chunk: n })} />
      </Row>
      <Choice label="Fault in the cached lane" value={state.fault} options={Object.entries(FAULT_WORDS).map(([name, [label]]) => [name, label])} onChange={(name) => set({ fault: name })} />
      {fault && <p>{FAULT_WORDS[fault][1]}</p>}
      <Steps step={step} steps={steps} onStep={(n) => set({ step: n })} />
      {LANES.map(([name, label, what]) => <Lane key={name} {...told} name={name} label={label} what={what} />)}
      <Row>
        <Costs {...told} />
        <Time key={newTokens} lanes={lanes} newTokens={newTokens} />
      </Row>
      <Slots {...told} />
      <Agreement {...told} />
    </Frame>
  );
}

// Steps

function Steps({ step, steps, onStep }) {
  const [playing, play] = useState(false);
  const next = useRef(null);
  next.current = () => (step < steps ? onStep(step + 1) : play(false));
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => next.current(), TEMPO);
    return () => clearInterval(timer);
  }, [playing]);
  const begin = () => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) onStep(steps);
    else play(step < steps);
  };
  const go = (n) => {
    play(false);
    onStep(n);
  };
  return (
    <div class="gfx-row gfx-kv-steps" role="group" aria-label="Steps">
      <Button onClick={() => go(0)} disabled={step === 0}>Start</Button>
      <Button onClick={() => go(step - 1)} disabled={step === 0}>Back</Button>
      <Button onClick={() => go(step + 1)} disabled={step === steps}>Step</Button>
      <Button onClick={playing ? () => play(false) : begin} disabled={!playing && step === steps}>{playing ? "Pause" : "Play to the end"}</Button>
      <Slider label="step" value={step} min={0} max={steps} show={(n) => `${n} of ${steps}`} onChange={go} />
    </div>
  );
}

// Lanes

/** One lane: its text, what it has read in this step, what it kept, what it wrote. */
function Lane({ after, name, label, what, lanes, step, vocabulary }) {
  const { passes, text } = after[name], last = stepPass(after, name, lanes, step);
  const parts = name === "cache" ? text.findIndex((id, n) => id !== after.recompute.text[n]) : -1;
  const read = passes.reduce((most, { start, ids }) => Math.max(most, start + ids.length), 0);
  const role = (n) => {
    if (last && n >= last.start && n < last.start + last.ids.length) return "read";
    if (n < read && name === "cache") return "kept";
    return last && last.wrote !== null && n === text.length - 1 ? "written" : "waits";
  };
  return (
    <div class="gfx-kv-lane" role="group" aria-label={label}>
      <p><b>{label}</b> <span class="gfx-muted">{what}</span></p>
      <ol class="gfx-kv-text">
        {text.map((id, n) => (
          <li key={n} class={`gfx-kv-token gfx-kv-${role(n)}`}>
            {vocabulary.word(id)}<span>{parts >= 0 && n >= parts ? `≠ ${role(n)}` : role(n)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Return the pass that a lane made in this very step, if it made one. */
function stepPass(after, name, lanes, step) {
  if (step === 0 || (name === "recompute" && step < lanes.first)) return undefined;
  return after[name].passes.at(-1);
}

function Costs({ after, lanes, step }) {
  const cell = (name, value, index = [], mark = "") => ({ name, index, value, mark, show: count });
  const here = LANES.map(([name]) => stepPass(after, name, lanes, step));
  const passCell = (lane, n) => cell(`${lane}: pass`, here[n].multiplications, [after[lane].passes.length - 1]);
  const sums = LANES.map(([name]) => total(after[name].passes));
  const rows = [
    ["tokens read in this step", ...here.map((pass) => (pass ? String(pass.ids.length) : "none"))],
    ["multiplications in this step", ...LANES.map(([lane], n) => (here[n] ? passCell(lane, n) : "none"))],
    ["multiplications so far", ...LANES.map(([lane], n) => cell(`${lane}: all passes`, sums[n]))],
  ];
  return (
    <div>
      <Figures label="What both lanes computed" columns={["counted", "recompute", "cache"]} rows={rows} />
      {sums[0] > 0 && (
        <p>
          Recomputing took <Value name="times as many" index={[]} value={sums[0] / sums[1]} show={(n) => `${number(n, 1)} times`} /> the
          multiplications of the lane with the cache.
        </p>
      )}
    </div>
  );
}

// Time

/** Measures both lanes on the reader's machine, in short slices, when asked to. */
function Time({ lanes, newTokens }) {
  const [asked, ask] = useState(null); // the lanes for which the reader wants times
  const [times, setTimes] = useState(null);
  useEffect(() => {
    if (asked !== lanes) return undefined;
    let timer;
    const run = measuring(lanes, newTokens);
    const go = () => {
      const { done, value } = run.next();
      if (done) setTimes({ lanes, ...value });
      else timer = setTimeout(go);
    };
    timer = setTimeout(go);
    return () => clearTimeout(timer);
  }, [asked, lanes]);
  const known = times?.lanes === lanes, busy = asked === lanes && !known;
  return (
    <div class="gfx-kv-time">
      <Button onClick={() => ask(lanes)} disabled={busy || known}>{busy ? "Measuring …" : "Measure the time on your machine"}</Button>
      {known && (
        <p role="status">
          On your machine, in this page, all {newTokens} tokens take {number(times.recompute, 3)} ms recomputed
          and {number(times.cache, 3)} ms with the cache (the shortest of {REPEATS} measurements each).
        </p>
      )}
    </div>
  );
}

/** Measure in slices; return milliseconds of each lane for its whole text. */
function* measuring(lanes, newTokens) {
  const shortest = { recompute: Infinity, cache: Infinity };
  for (let n = 0; n <= REPEATS; n++) {
    for (const name of Object.keys(shortest)) {
      const time = slice(() => lanes.run(name, newTokens));
      if (n > 0) shortest[name] = Math.min(shortest[name], time); // the first warms up
      yield;
    }
  }
  return shortest;
}

/** Return milliseconds a call, over as many calls as fill a slice of time. */
function slice(call) {
  const start = performance.now();
  let calls = 0, now = start;
  while (now - start < SLICE) {
    call();
    calls += 1;
    now = performance.now();
  }
  return (now - start) / calls;
}

// The cache

/** The cache: a place for each block, key head and position, of keys and of values; one can be opened. */
function Slots({ after, lanes, step, newTokens, vocabulary }) {
  const { model: { config }, prompt } = lanes;
  const [chosen, choose] = useState({ n: 0 });
  const [block, setBlock] = useState(0);
  const width = Math.min(config.max_seq_len, Math.max(16, prompt.length + newTokens));
  const blocks = config.n_layers * config.kv_heads <= 8 ? Array.from({ length: config.n_layers }, (_, n) => n) : [Math.min(block, config.n_layers - 1)];
  const lines = blocks.flatMap((layer) => ["key", "value"].flatMap((kind) =>
    Array.from({ length: config.kv_heads }, (_, head) => ({ layer, kind, head }))));
  const held = after.cache.passes.reduce((sum, { ids }) => sum + ids.length, 0);
  const fresh = step ? after.cache.passes.at(-1).start : 0; // where this step's places begin
  const words = after.cache.text.slice(0, held).map((id) => vocabulary.word(id));
  const n = Math.min(chosen.n, lines.length * width - 1);
  return (
    <div>
      <p>
        <b>The cache</b> holds {held} of {config.max_seq_len} tokens: <Value name="numbers held" index={[]} value={config.kvCacheValues(held)} show={count} /> numbers,{" "}
        <Value name="bytes held" index={[]} value={config.kvCacheBytes(held, 1, BYTES)} show={count} /> of <Value name="bytes reserved" index={[]} value={config.kvCacheBytes(config.max_seq_len, 1, BYTES)} show={count} /> bytes.
      </p>
      {blocks.length < config.n_layers && <Slider label="block" value={blocks[0]} min={0} max={config.n_layers - 1} onChange={setBlock} />}
      <Places lines={lines} width={width} held={held} fresh={fresh} words={words} chosen={n} choose={choose} />
      <p class="gfx-muted gfx-kv-legend"><span>+ new in this step</span><span>■ kept</span><span>· empty</span></p>
      <Slot {...lines[Math.floor(n / width)]} position={n % width} held={held} lanes={lanes} word={words[n % width]} />
    </div>
  );
}

const Places = memo(function Places({ lines, width, held, fresh, words, chosen, choose }) {
  const touch = (event) => {
    const n = cellOf(event.target);
    if (n !== null) choose({ n });
  };
  const move = walkedByKeys(lines.length, width);
  return (
    <div class="gfx-scroll">
      <table class="gfx-kv-places" role="grid" aria-label="Places of the cache" onFocusIn={touch} onClick={touch} onKeyDown={move}>
        <thead>
          <tr><th scope="col">block, head</th>{Array.from({ length: width }, (_, n) => <th key={n} scope="col" title={words[n]}>{n}</th>)}</tr>
        </thead>
        <tbody>
          {lines.map(({ layer, kind, head }, r) => (
            <tr key={r} class={`gfx-kv-${kind}`}>
              <th scope="row">{layer}, {kind} {head}</th>
              {Array.from({ length: width }, (_, c) => {
                const n = r * width + c, what = c >= held ? "empty" : c >= fresh ? "new" : "kept";
                return (
                  <td key={c} data-n={n} class={`gfx-kv-${what}${n === chosen ? " gfx-pointed" : ""}`} tabIndex={n === chosen ? 0 : -1} aria-label={`${what}${c < held ? `, ${words[c]}` : ""}`}>
                    {{ empty: "·", new: "+", kept: "■" }[what]}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

/** What one place holds. */
function Slot({ layer, kind, head, position, held, lanes: { cache }, word }) {
  if (position >= held) return <p class="gfx-muted gfx-kv-slot">Block {layer}, {kind} head {head}, position {position}: empty.</p>;
  const [K, longest, D] = (kind === "key" ? cache.keys : cache.values)[layer].shape;
  const { data } = (kind === "key" ? cache.keys : cache.values)[layer];
  const there = Array.from({ length: K }, (_, h) => Array.from(data.subarray((h * longest + position) * D, (h * longest + position + 1) * D)));
  return (
    <div class="gfx-kv-slot">
      <Matrix
        name={`layers.${layer}.${kind === "key" ? "k_rotated" : "v"}`} tensor={tensor([K, 1, D], there.flat())} role={kind}
        head={head} from={position} bare title={<>Block {layer}, {kind} head {head}, position {position}: <b>{word}</b></>}
      />
    </div>
  );
}

// Where they differ

/** Both lanes' logits, position by position, and word by word where they first differ. */
function Agreement({ compared, vocabulary, lanes }) {
  if (!compared.length) return <p class="gfx-muted">Once a token is written, both lanes are compared here.</p>;
  const first = compared.find(({ distance }) => !(distance <= TOLERANCE)) ?? compared.at(-1);
  const shown = compared.slice(-MOST);
  const rows = shown.map(({ position, again, kept, distance }) => [
    `${position} ${vocabulary.word(lanes.texts.cache[position])}`,
    says("recompute.probabilities", position, again, vocabulary), says("probabilities", position, kept, vocabulary),
    { name: "distance", index: [position], value: distance, show: (value) => number(value, 2), mark: distance <= TOLERANCE ? "" : "gfx-kv-apart" },
  ]);
  return (
    <Row>
      <div>
        <p><b>Do they agree?</b> What comes next, after each word:</p>
        <Figures label="What both lanes say" columns={["after", "recompute", "cache", "largest |Δz|"]} rows={rows} />
      </div>
      <Words at={first} vocabulary={vocabulary} word={vocabulary.word(lanes.texts.cache[first.position])} />
    </Row>
  );
}

function Words({ at: { position, again, kept, distance }, vocabulary, word }) {
  const shares = [probabilities(again), probabilities(kept)];
  const order = vocabulary.words.map((_, id) => id).sort((a, b) => shares[0][b] - shares[0][a] || a - b).slice(0, 8);
  const rows = order.map((id) => [
    vocabulary.word(id),
    { name: "recompute.logits", index: [position, id], value: again[id] },
    { name: "logits", index: [position, id], value: kept[id] },
    { name: "recompute.probabilities", index: [position, id], value: shares[0][id], show: percent },
    { name: "probabilities", index: [position, id], value: shares[1][id], show: percent },
  ]);
  const z = symbolOf("logits"), p = symbolOf("probabilities");
  return (
    <div>
      <p>{distance <= TOLERANCE ? "They agree" : <b>They first differ</b>} after <b>{word}</b>, position {position}:</p>
      <Figures label={`Logits and probabilities after ${word}, position ${position}`} columns={["next", `${z} recompute`, `${z} cache`, `${p} recompute`, `${p} cache`]} rows={rows} />
    </div>
  );
}

function probabilities(logits) {
  const shares = Float64Array.from(logits);
  softmaxInPlace(shares, 0, shares.length);
  return shares;
}

/** Return the figure of the likeliest word: its share. */
function says(name, position, logits, vocabulary) {
  const shares = probabilities(logits), id = argmax(shares);
  return { name, index: [position, id], value: shares[id], show: (share) => `${vocabulary.word(id)} ${percent(share)}` };
}

// In words

function sentence({ lanes, step, after, compared, vocabulary }) {
  const { recompute, cache } = after, written = Math.max(0, step - lanes.first + 1);
  if (step === 0) return "Nothing is read yet: press Step, or Play.";
  const held = cache.passes.reduce((sum, { ids }) => sum + ids.length, 0);
  if (!written) return `The lane with the cache has read ${held} of the prompt's ${lanes.prompt.length} tokens, in pieces; nothing is written yet.`;
  const words = (text) => text.slice(lanes.prompt.length).map((id) => vocabulary.word(id)).join(" ");
  const [again, kept] = [words(recompute.text), words(cache.text)];
  const wrote = again === kept ? `Both lanes wrote “${again}”` : `Recomputing wrote “${again}”, the cache “${kept}”`;
  const apart = compared.find(({ distance }) => !(distance <= TOLERANCE));
  const most = Math.max(...compared.map(({ distance }) => distance));
  const agree = apart
    ? `their logits differ from position ${apart.position} on, by up to ${number(most, 2)}`
    : "their logits agree to rounding";
  const counts = `${count(total(recompute.passes))} multiplications against ${count(total(cache.passes))} with the cache`;
  return `${wrote}; ${agree}; ${counts}.`;
}

function twin({ step, steps, after, compared, vocabulary }) {
  const word = (id) => (id === null ? "" : vocabulary.word(id));
  const passes = LANES.map(([name, label]) => ({
    caption: `${label}: its passes`,
    columns: ["pass", "reads", "from position", "writes", "multiplications"],
    rows: after[name].passes.map(({ ids, start, wrote, multiplications }, n) => [
      n + 1, ids.map(word).join(" "), start, word(wrote), multiplications,
    ]),
  }));
  const logits = (lane, key) => ({
    caption: `Logits, ${lane}`,
    columns: ["position", ...vocabulary.words],
    rows: compared.map((line) => [line.position, ...line[key]]),
  });
  return [...passes, logits("recompute", "again"), logits("cache", "kept"), {
    caption: `Distance of the logits after step ${step} of ${steps}`,
    columns: ["position", "largest |Δz|", "at"],
    rows: compared.map(({ position, distance, word: id }) => [position, exact(distance), vocabulary.word(id)]),
  }];
}
