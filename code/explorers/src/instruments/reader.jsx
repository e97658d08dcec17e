/** A trained model at work: the novelist, or one whose files are dropped here, reads, looks back and writes. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { FILES } from "../engine/index.js";
import { readFolder } from "../files.js";
import { useId } from "../kit/ids.js";
import { Reading } from "../reading.js";
import {
  Bars, Button, Frame, Matrix, Row, Slider, Stack, Tokens, Value, WholeNumber, count, number, percent, real, text, usePrompt, whole,
} from "../kit/index.js";

const PROMPT = "The whale";
const LONGEST = 512; // tokens of a text
const BYTES = 4; // of a float32, as models are stored
const SLICE = 12; // milliseconds of reading between two pictures
const LOOKS = 16; // positions that attention is shown for

export const reader = {
  name: "reader",
  title: "A trained model, at work",
  fields: {
    prompt: text(PROMPT),
    written: whole(0, 0, LONGEST),
    temperature: real(0.8, 0, 2),
    seed: whole(0, 0, 2 ** 31 - 1),
    layer: whole(0, 0, 63),
    query: whole(LONGEST, 0, LONGEST), // LONGEST: the last token, whichever that is
  },
  View,
};

let opened = 0; // models so far, so that each begins afresh

function View({ state, set, data }) {
  const [own, setOwn] = useState(null);
  const source = useMemo(() => sourceOf(own ?? data.novelist, own !== null), [own, data]);
  const take = (found) => {
    setOwn(found);
    set({ written: 0, query: LONGEST });
  };
  return <Live key={source.key} source={source} state={state} set={set} take={take} />;
}

/** Return what is shown of a trained model and its tokenizer; `window` is the model's whole one. */
function sourceOf({ model, tokenizer, config }, own) {
  const words = new Map(); // each made once
  const word = (id) => {
    if (!words.has(id)) words.set(id, tokenizer.pieces.has(id) ? seen(tokenizer.decode([id])) : `⟨${id}⟩`);
    return words.get(id);
  };
  const read = (text, _, max) => {
    try {
      const ids = tokenizer.encode(text);
      if (!ids.length) return { error: "Write at least one letter." };
      return ids.length > max ? { error: `${ids.length} tokens do not fit: the model sees ${max} at most.` } : { ids };
    } catch (error) {
      return { error: error.message };
    }
  };
  return { key: (opened += 1), own, model, window: config.max_seq_len, word, join: (ids) => tokenizer.decode(ids), read };
}

/** Return a piece of text with what cannot be seen made visible. */
function seen(piece) {
  return piece.replaceAll(" ", "␣").replaceAll("\n", "↵").replace(/\p{Cc}/gu, "�");
}

function Live({ source, state, set, take }) {
  const { model } = source, { config } = model, window = config.max_seq_len;
  const prompt = usePrompt(state.prompt, source, window, PROMPT, source.read);
  const reading = useMemo(() => new Reading(model, prompt.ids), [model, String(prompt.ids)]);
  reading.choose(state);
  const written = Math.min(state.written, reading.room), length = reading.first + written;
  const done = useWork(reading, length);
  const ids = reading.ids.slice(0, Math.max(reading.first, Math.min(length, reading.read)));
  const held = Math.min(reading.read, length), t = Math.min(state.query, held - 1), layer = Math.min(state.layer, config.n_layers - 1);
  const place = reading.at(t);
  const explainer = useMemo(() => reading.explainer(t, held, BYTES), [reading, place, t, held]);
  const words = useMemo(() => ids.map(source.word), [source, String(ids)]);
  const told = { source, reading, config, ids, words, held, t, layer, place, written, state, set };
  const change = (text) => set({ prompt: text, written: 0, query: LONGEST });
  return (
    <Frame explainer={explainer} sentence={done ? sentence(told) : `Reading: ${held} of ${length} tokens.`} twin={() => twin(told)}>
      <Files source={source} take={take} />
      <FreePrompt value={prompt.text} error={prompt.error} read={(text) => source.read(text, null, window)} onChange={change} />
      <Steps {...told} done={done} />
      <Text {...told} />
      <Row>
        <Slider label="temperature" value={state.temperature} min={0} max={2} step={0.05} show={(value) => number(value, 2)} onChange={(temperature) => set({ temperature })} />
        <WholeNumber label="seed" value={state.seed} min={0} max={2 ** 31 - 1} onChange={(seed) => set({ seed })} />
      </Row>
      <div>
        <p><b>What comes next</b> after {quoted(words[t])}, position {t}:</p>
        <Bars
          label={`The likeliest tokens after ${words[t]}`} role="token" chosen={ids[t + 1]}
          bars={place.order.map((id) => ({ key: id, label: source.word(id), share: place.shares[id], name: "share", index: [id], note: id === ids[t + 1] ? "written" : undefined }))}
        />
      </div>
      {config.n_layers > 1 && <Slider label="block" value={layer} min={0} max={config.n_layers - 1} onChange={(n) => set({ layer: n })} />}
      <Attention {...told} />
      <Cache {...told} />
    </Frame>
  );
}

/** Let a reading work a slice now, and others between pictures, until it is done; return whether it is. */
function useWork(reading, length) {
  const [, again] = useState(0);
  const done = reading.work(length, SLICE);
  useEffect(() => {
    if (done) return undefined;
    const timer = setTimeout(() => again((n) => n + 1));
    return () => clearTimeout(timer);
  });
  return done;
}

function quoted(word) {
  return <b class="gfx-rd-word">{word}</b>;
}

// The files

/** Takes the files of a trained model, chosen or dropped; they stay in the page. */
function Files({ source, take }) {
  const id = useId(), [over, setOver] = useState(false), [news, tell] = useState("");
  const { own, model: { config } } = source;
  const open = async (files) => {
    tell("Reading the files …");
    try {
      take(await readFolder(files));
    } catch (error) {
      tell(error.message);
    }
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    open([...event.dataTransfer.files]);
  };
  const drag = (event) => {
    event.preventDefault();
    setOver(true);
  };
  const size = `${count(config.numParams())} parameters`, parts = `${config.n_layers} blocks of ${config.n_heads} heads, ${count(config.vocab_size)} tokens`;
  const cut = source.window > config.max_seq_len ? `; of its window of ${count(source.window)} this page uses ${config.max_seq_len}` : "";
  return (
    <div class={`gfx-ds-file${over ? " gfx-ds-over" : ""}`} role="group" aria-label="The model's files" onDragOver={drag} onDragLeave={() => setOver(false)} onDrop={drop}>
      {own
        ? <p><b>Your model</b>: {size}, {parts}{cut}.</p>
        : <p><b>The novelist</b>, {size}, trained for this chapter on <i>Moby-Dick</i>: {parts}.</p>}
      <Row>
        <label class="gfx-button gfx-ds-load" for={id}>
          Choose your own model's files
          <input id={id} type="file" multiple accept=".json,.safetensors" onChange={({ currentTarget: box }) => open([...box.files]).then(() => (box.value = ""))} />
        </label>
        {own && <Button onClick={() => take(null)}>Back to the novelist</Button>}
      </Row>
      <p class="gfx-muted">or drop them here: <code>{FILES[0]}</code>, <code>{FILES[1]}</code> and <code>{FILES[2]}</code>, as training or export wrote them. They stay on your machine.</p>
      <p class="gfx-error" role="alert">{news}</p>
    </div>
  );
}

/** A box for any text; what cannot be read stays in the box alone. */
function FreePrompt({ value, error, read, onChange }) {
  const id = useId(), [typed, setTyped] = useState(null); // a text that cannot be read
  const take = (text) => {
    const { ids } = read(text);
    setTyped(ids ? null : text);
    if (ids) onChange(text);
  };
  const problem = typed === null ? error : read(typed).error;
  return (
    <div class="gfx-prompt">
      <label for={id}>Prompt</label>
      <input
        id={id} type="text" value={typed ?? value} autocomplete="off" autocapitalize="none" spellcheck={false} dir="auto" maxLength={400}
        aria-invalid={Boolean(problem)} aria-describedby={`${id}-problem`} onInput={(event) => take(event.currentTarget.value)}
      />
      <p class="gfx-error" id={`${id}-problem`} role="alert">{problem}</p>
    </div>
  );
}

// Writing

function Steps({ reading, written, set, done }) {
  const [playing, play] = useState(false), { room } = reading;
  const next = useRef(null);
  next.current = () => (written < room ? done && set({ written: written + 1, query: LONGEST }) : play(false));
  useEffect(() => {
    if (!playing) return undefined;
    let frame = requestAnimationFrame(function go() {
      frame = requestAnimationFrame(go);
      next.current();
    });
    return () => cancelAnimationFrame(frame);
  }, [playing]);
  const go = (n) => {
    play(false);
    set({ written: n, query: LONGEST });
  };
  const begin = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? go(room) : play(true));
  const { pace } = reading;
  return (
    <div>
      <div class="gfx-row gfx-kv-steps" role="group" aria-label="Writing">
        <Button onClick={() => go(0)} disabled={written === 0}>Start</Button>
        <Button onClick={() => go(written - 1)} disabled={written === 0}>Back</Button>
        <Button onClick={() => go(written + 1)} disabled={written === room}>Step</Button>
        <Button onClick={playing ? () => play(false) : begin} disabled={!playing && written === room}>{playing ? "Stop" : "Play"}</Button>
        <Slider label="tokens written" value={written} min={0} max={room} show={(n) => `${n} of ${room}`} onChange={go} />
      </div>
      <p class="gfx-muted gfx-rd-pace">{pace === undefined ? "Step writes one token, Play goes on until the window is full." : `${number(pace, pace < 10 ? 2 : 0)} ms a token on this machine, the middle of the last ones.`}</p>
    </div>
  );
}

/** The text as it reads, and its tokens, each of which can be looked at. */
function Text({ source, reading, ids, words, t, set }) {
  const prompt = source.join(ids.slice(0, reading.first)), all = source.join(ids);
  const [before, after] = all.startsWith(prompt) ? [prompt, all.slice(prompt.length)] : ["", all];
  const choose = (n) => set({ query: n === ids.length - 1 ? LONGEST : n });
  const box = useRef(null), follows = t === ids.length - 1;
  useLayoutEffect(() => { // what is written last stays in sight
    for (const part of follows ? box.current.children : []) part.scrollTop = part.scrollHeight;
  }, [follows, ids.length]);
  return (
    <div ref={box}>
      <p class="gfx-rd-text" dir="auto" tabindex="0" role="group" aria-label="The text"><span>{before}</span><b>{after}</b></p>
      <div class="gfx-rd-tokens"><Tokens label="Which token is looked at?" words={words} ids={ids} chosen={t} onChoose={choose} /></div>
    </div>
  );
}

// What the model makes of a token

/** Where each head of a block looks from the chosen token. */
function Attention({ config, words, place, layer, t }) {
  const from = Math.max(0, t + 1 - LOOKS), name = `layers.${layer}.attention`;
  const { data } = place.seen[name], size = t + 1, box = useRef(null);
  useLayoutEffect(() => { // the nearest tokens are in sight
    const frame = box.current.querySelector(".gfx-scroll");
    frame.scrollLeft = frame.scrollWidth;
  }, [t]);
  const rows = Array.from({ length: config.n_heads }, (_, h) => ({
    key: `head_${h}`, head: `head ${h}`, role: "attention", scale: 1,
    cells: words.slice(from, size).map((_, n) => ({ name, index: [h, t, from + n], value: data[h * size + from + n] })),
  }));
  return (
    <div ref={box}>
      <p><b>Where it looks</b> from {quoted(words[t])}, in block {layer}, head by head{from > 0 ? `; of ${size} tokens the last ${LOOKS}, the table below has all` : ""}:</p>
      <Stack label={`Attention from position ${t}, block ${layer}`} name={`attention_${layer}`} columns={words.slice(from, size)} rows={rows} />
    </div>
  );
}

/** How full the cache is, and what it holds of the chosen token. */
function Cache({ config, words, place, layer, t, held }) {
  const { max_seq_len: window, kv_heads: heads } = config;
  const kinds = [["key", "k_rotated"], ["value", "v"]];
  return (
    <div>
      <p>
        <b>The cache</b> holds {held} of {window} tokens: <Value name="numbers held" index={[]} value={config.kvCacheValues(held)} show={count} /> numbers,{" "}
        <Value name="bytes held" index={[]} value={config.kvCacheBytes(held, 1, BYTES)} show={count} /> of{" "}
        <Value name="bytes reserved" index={[]} value={config.kvCacheBytes(window, 1, BYTES)} show={count} /> bytes.
      </p>
      <p class="gfx-rd-places" role="img" aria-label={`${held} of ${window} places are taken, position ${t} is looked at`}>
        <span>{"■".repeat(t)}</span><b>◆</b><span>{"■".repeat(held - t - 1)}</span><i>{"·".repeat(window - held)}</i>
      </p>
      <p>What it keeps of {quoted(words[t])}, position {t}, in block {layer}:</p>
      {kinds.flatMap(([role, own]) => Array.from({ length: heads }, (_, head) => (
        <Matrix
          key={`${own}${head}`} name={`layers.${layer}.${own}`} tensor={place.seen[`layers.${layer}.${own}`]} role={role} head={head} from={t}
          title={`${role} head ${head}`} bare
        />
      )))}
    </div>
  );
}

// In words

function likeliest({ place, source }, many) {
  return place.order.slice(0, many).map((id) => `“${source.word(id)}” ${percent(place.shares[id])}`);
}

function sentence(told) {
  const { words, t, held, config, written } = told;
  const wrote = written ? `${written} ${written === 1 ? "token is" : "tokens are"} written; after` : "After";
  return `${wrote} “${words[t]}”, position ${t}, the likeliest are ${likeliest(told, 3).join(", ")}; the cache holds ${held} of ${config.max_seq_len} tokens.`;
}

function twin(told) {
  const { source, place, ids, words, t, layer, config } = told, size = t + 1;
  const { data } = place.seen[`layers.${layer}.attention`];
  const kept = (own) => {
    const { shape: [heads, , D], data: numbers } = place.seen[`layers.${layer}.${own}`];
    return Array.from({ length: heads }, (_, h) => [`${own} ${h}`, ...numbers.slice(h * D, (h + 1) * D)]);
  };
  return [
    { caption: "The text", columns: ["position", "id", "token"], rows: ids.map((id, n) => [n, String(id), words[n]]) },
    {
      caption: `What comes next after position ${t}`, columns: ["token", "id", "z", "share"],
      rows: place.order.map((id) => [source.word(id), String(id), place.logits[id], place.shares[id]]),
    },
    {
      caption: `Attention from position ${t}, block ${layer}`, columns: ["head", ...words.slice(0, size)],
      rows: Array.from({ length: config.n_heads }, (_, h) => [h, ...data.slice(h * size, (h + 1) * size)]),
    },
    { caption: `In the cache of position ${t}, block ${layer}`, columns: ["", ...Array.from({ length: config.head_dim }, (_, c) => String(c))], rows: [...kept("k_rotated"), ...kept("v")] },
  ];
}
