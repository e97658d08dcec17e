/** BabyGroot trains in the page: play, go to any epoch, change the run, leave parts of the model out. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { prefixPairs } from "../engine/index.js";
import { Floor, contextWords } from "../floor.js";
import { explainKept, finiteRows, kept, onPlane, principalPlane } from "../plane.js";
import { explanation } from "../provenance.js";
import { Run } from "../run.js";
import {
  Bars, Button, Choice, Copy, Figures, Frame, Matrix, Plot, Prompt, Row, Slider, Switch, Value, WholeNumber, asPythonDict,
  count, exact, flag, number, percent, real, text, usePrompt, useWidth, whole,
} from "../kit/index.js";

const PROMPT = "<START> i am groot";
const PUBLISHED = 500; // epochs of the published run
const LAST = 600; // enough to see what follows its end
const SEED = 42; // that of the initial weights which the course keeps
const SLICE = 8; // milliseconds of training in a frame, which leaves time to answer the reader
const PAUSE = 100; // milliseconds between two views where training is the slower of the two
const JUMP = 50; // epochs between two views for those who want little motion

/** The parts that can be left out, and what that means. */
const PARTS = {
  mask: "Without the mask a token sees the padding behind it too. The target it cannot see: no context holds it.",
  positions: "Without positions the model knows its last token and, in no order, those before it.",
  residuals: "Without residuals each part puts its result in place of what it read, so what a token was can be lost.",
  normalisation: "Without normalisation nothing brings the vectors back into range from one part to the next.",
};

const RATES = [0.001, 0.003, 0.01, 0.03, 0.1];
const SPEEDS = [[20, "20"], [100, "100"], [Infinity, "as fast as it goes"]];

export const training = {
  name: "training",
  title: "Training, as it happens",
  fields: {
    epoch: whole(0, 0, LAST),
    seed: whole(SEED, 0, 2 ** 31 - 1),
    learning_rate: real(0.01, 0, 1),
    dim: whole(8, 1, 32),
    mask: flag(true),
    positions: flag(true),
    residuals: flag(true),
    normalisation: flag(true),
    prompt: text(PROMPT),
  },
  View,
};

function View({ state, set, data }) {
  const { vocabulary, published } = data;
  const { now, before } = useRuns(state, data);
  const player = usePlayer(now, state.epoch, (epoch) => set({ epoch }));
  const { epoch } = player;
  const change = (patch) => {
    player.stop();
    set({ epoch, ...patch });
  };
  const prompt = usePrompt(state.prompt, vocabulary, now.model.maxLen, PROMPT);
  const pass = useMemo(() => passOf(now, epoch, prompt.ids), [now, epoch, String(prompt.ids)]);
  const map = useMemo(() => mapOf(now, data), [now, data]);
  const explainer = useMemo(() => explainerOf(now, before, epoch, published, map), [now, before, epoch, published, map]);
  const tables = () => twin(now, before, epoch, pass, published, prompt.ids, map.plane);
  const still = useRef(null); // what is read aloud and tabled does not follow every epoch
  if (!player.moving || !still.current) still.current = { tables, sentence: sentence(now, epoch) };
  return (
    <Frame
      pass={pass} explainer={explainer} first={{ name: "loss", index: [] }} twin={still.current.tables}
      sentence={player.moving ? "Training …" : still.current.sentence}
    >
      <Player player={player} run={now} />
      <Loss run={now} before={before} epoch={epoch} published={published} />
      <Log run={now} published={published} />
      <Standing now={now} before={before} epoch={epoch} />
      <Settings state={state} change={change} />
      <Row>
        <WordMap run={now} epoch={epoch} map={map} />
        <Reading pass={pass} prompt={prompt} run={now} vocabulary={vocabulary} set={set} />
      </Row>
      <Row>
        <Copy label={`Copy all ${count(now.model.numParams())} weights as Python`} text={() => asPythonDict("weights", pass.model.weights)} />
      </Row>
    </Frame>
  );
}

// Runs -----------------------------------------------------------------------------------------

/** Return the run that a state asks for, and the one before it, which stays for comparison. */
function useRuns(state, data) {
  const { vocabulary, sentences, maxLen, initial } = data;
  const examples = useMemo(() => prefixPairs(sentences, vocabulary, maxLen), [data]);
  const floor = useMemo(() => new Floor(examples.contexts, examples.targets, vocabulary), [data]);
  const runs = useRef({});
  const key = settings(state);
  if (runs.current.key !== key || runs.current.data !== data) {
    const old = runs.current.data === data ? runs.current : {};
    const options = { ...examples, vocabSize: vocabulary.size, switches: switchesOf(state) };
    const { seed, dim, learning_rate: learningRate } = state;
    const shipped = seed === SEED && fits(initial.weights, [vocabulary.size, dim]);
    const now = new Run({ ...options, seed, dim, learningRate, initial: shipped ? initial.weights : undefined }, floor, key);
    runs.current = { key, data, now, before: old.now?.epochs > 0 ? old.now : old.before };
  }
  return runs.current;
}

function fits(weights, shape) {
  return String(weights["token_embedding.weight"].shape) === String(shape);
}

function switchesOf(state) {
  return Object.fromEntries(Object.keys(PARTS).map((part) => [part, state[part]]));
}

/** Return what makes a run different from others, in words. */
function settings(state) {
  const off = Object.keys(PARTS).filter((part) => !state[part]);
  const parts = off.length ? `, no ${off.join(", no ")}` : "";
  return `seed ${state.seed}, rate ${state.learning_rate}, width ${state.dim}${parts}`;
}

// Playing --------------------------------------------------------------------------------------

/**
 * Train a run up to the epoch asked for, a slice between two frames, and play it.
 * @returns {{epoch: number, moving: boolean, playing: boolean, speed: number}} the epoch shown, and
 *   functions play, stop, go(epoch) and setSpeed
 */
function usePlayer(run, asked, setEpoch) {
  const [speed, setSpeed] = useState(100);
  const [playing, setPlaying] = useState(null);
  const [, draw] = useState(0);
  const shown = useRef(asked);
  const goal = playing?.to ?? asked;
  const epoch = Math.min(playing ? shown.current : asked, run.epochs);
  const moving = Boolean(playing) || run.epochs < asked;
  const stop = () => {
    if (playing) setEpoch(epoch);
    setPlaying(null);
  };
  const go = (to) => {
    setPlaying(null);
    setEpoch(to);
  };
  const play = () => {
    shown.current = epoch;
    setPlaying({ to: epoch < PUBLISHED ? PUBLISHED : LAST });
  };
  useEffect(() => setPlaying(null), [run, asked]); // elsewhere somebody has moved on
  useEffect(() => {
    if (!moving) return undefined;
    const pace = playing ? speed : Infinity, from = epoch;
    let behind = false;
    shown.current = epoch;
    return eachFrame((elapsed, sinceView) => { // a frame trains or draws, never both
      const due = pace < Infinity ? Math.min(goal, from + Math.floor((elapsed * pace) / 1000)) : goal;
      const reached = Math.min(due, run.epochs), done = reached >= goal;
      if (!done && !isTime(shown.current, reached, behind, sinceView)) {
        run.advance(due, SLICE);
        behind = run.epochs < due;
        return "go on";
      }
      shown.current = reached;
      if (done && playing) go(goal);
      else draw((n) => n + 1);
      return done ? "stop" : "seen";
    });
  }, [run, playing, asked, speed, moving]);
  return { epoch, moving, playing: Boolean(playing), speed, play, stop, go, setSpeed };
}

/** Return whether a new view is due. */
function isTime(shown, reached, behind, sinceView) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return Math.floor(reached / JUMP) > Math.floor(shown / JUMP);
  return reached > shown && (!behind || sinceView > PAUSE);
}

/** Call `step(elapsed, sinceView)` before every frame until it says "stop"; return how to end that. */
function eachFrame(step) {
  let start, view, frame = requestAnimationFrame(function next(time) {
    start ??= view ??= time;
    frame = requestAnimationFrame(next);
    const said = step(time - start, time - view);
    if (said === "seen") view = time;
    if (said === "stop") cancelAnimationFrame(frame);
  });
  return () => cancelAnimationFrame(frame);
}

function Player({ player, run }) {
  const { epoch, playing, speed } = player;
  const end = epoch >= LAST;
  return (
    <div class="gfx-training-player">
      <Row>
        <Button pressed={playing} disabled={end && !playing} onClick={playing ? player.stop : player.play}>
          {playing ? "Pause" : epoch === 0 ? "Play" : "Play on"}
        </Button>
        <Button disabled={end || player.moving} onClick={() => player.go(epoch + 1)}>One epoch</Button>
        <Button disabled={epoch === 0} onClick={() => player.go(0)}>Back to the start</Button>
        <span class="gfx-muted gfx-training-took">
          {run.epochs > 0 && `${count(run.epochs)} epochs trained in ${number(run.took / 1000, 2)} s`}
        </span>
      </Row>
      <Slider label="After epoch" value={epoch} min={0} max={LAST} show={count} onChange={player.go} />
      <Choice label="Epochs a second" value={speed} options={SPEEDS} onChange={player.setSpeed} />
    </div>
  );
}

// What is shown --------------------------------------------------------------------------------

function Loss({ run, before, epoch, published }) {
  const now = run.history.losses.map((loss, n) => [n, loss]);
  const old = before?.history.losses.map((loss, n) => [n, loss]) ?? [];
  const most = [...now, ...old].reduce((top, [, loss]) => (loss > top ? loss : top), Math.log(run.model.vocabSize));
  const top = Math.min(Math.ceil(most * 2 + 0.2) / 2, 12);
  const ticks = Array.from({ length: Math.floor(top) + 1 }, (_, n) => n).filter((n) => top < 7 || n % 2 === 0);
  const lines = [{ points: old, role: "muted", dashed: true }, { points: now, role: "loss" }];
  const rings = published.map(({ epoch: x, loss: y }) => ({ x, y, role: "ink", hollow: true, size: 4 }));
  return (
    <div>
      <Plot
        label={`The loss of each epoch so far, ${run.epochs} in all, above the floor of ${number(run.floor.value, 3)}`}
        x={{ min: 0, max: LAST, label: "epoch", ticks: [0, 100, 200, 300, 400, 500, 600] }}
        y={{ min: 0, max: top, label: "loss (nats)", ticks, digits: 0 }}
        levels={[{ y: run.floor.value, text: `floor ${number(run.floor.value, 4)}`, role: "ink" }]}
        lines={lines} points={rings} at={epoch} height={250}
      />
      <p class="gfx-training-legend">
        <span class="gfx-training-now">{run.label}</span>
        {before && <span class="gfx-training-before">{before.label}</span>}
        <span class="gfx-training-ring">published: the log printed with BabyGroot’s first run, every fiftieth epoch</span>
      </p>
    </div>
  );
}

/** The lines of the published log, beside those of this run. */
function Log({ run, published }) {
  const { losses } = run.history;
  const here = published.map(({ epoch }) =>
    epoch < losses.length ? { name: "logged", index: [epoch], value: losses[epoch] } : "",
  );
  const there = published.map(({ epoch, loss }) => ({ name: "published", index: [epoch], value: loss }));
  return (
    <Figures
      label="Losses as logged, in this run and in the published one"
      columns={["epoch", ...published.map(({ epoch }) => String(epoch))]}
      rows={[["here", ...here], ["published", ...there]]}
    />
  );
}

/** How good the model is at the epoch shown, asked as a whole; and the run before. */
function Standing({ now, before, epoch }) {
  const line = (run, prefix) => {
    const at = Math.min(epoch, run.epochs);
    const cell = (name, value, show) => ({ name: prefix + name, index: [], value, show });
    const { loss, right } = run.asked(at);
    return [
      prefix ? "run before" : "this run", cell("epochs", at, count), cell("loss", loss), cell("gap", loss - run.floor.value), cell("right", right, count),
      cell("weights", run.model.numParams(), count),
    ];
  };
  return (
    <Figures
      label="The loss over all examples"
      columns={["", "after epochs", `loss of all ${now.targets.length}`, "above the floor", "right", "weights"]}
      rows={[line(now, ""), ...(before ? [line(before, BEFORE)] : [])]}
    />
  );
}

function Settings({ state, change }) {
  const { seed, learning_rate: rate, dim } = state;
  const rates = [...new Set([...RATES, rate])].sort((a, b) => a - b);
  const off = Object.keys(PARTS).filter((part) => !state[part]);
  return (
    <fieldset class="gfx-training-settings">
      <legend>Another run</legend>
      <Row>
        <WholeNumber label="Seed" value={seed} min={0} max={2 ** 31 - 1} onChange={(value) => change({ seed: value })} />
        <Choice label="Learning rate" value={rate} options={rates.map((value) => [value, String(value)])} onChange={(value) => change({ learning_rate: value })} />
      </Row>
      <Slider label="Width d of the model" value={dim} min={1} max={32} onChange={(value) => change({ dim: value })} />
      <Row label="Parts of the model">
        {Object.keys(PARTS).map((part) => (
          <Switch key={part} label={part} on={state[part]} onChange={(on) => change({ [part]: on })} />
        ))}
      </Row>
      {off.map((part) => <p key={part}>{PARTS[part]}</p>)}
    </fieldset>
  );
}

/** The token vectors on one plane that stays the same from epoch to epoch. */
function WordMap({ run, epoch, map: { plane, reach, sides } }) {
  const [ref, width] = useWidth(330);
  const side = Math.min(width, 360);
  const vectors = tableAt(run, epoch), first = useMemo(() => onPlane(tableAt(run, 0), plane), [run, plane]);
  const places = onPlane(vectors, plane), placed = places.flatMap((place, n) => ([...place, ...first[n]].every(Number.isFinite) ? [n] : []));
  const to = (x) => side / 2 + (Math.max(-1, Math.min(1, x / reach)) * (side - 16)) / 2;
  return (
    <figure class="gfx-training-map" ref={ref}>
      <figcaption>
        <b>E</b>, {places.length} token vectors of {run.model.dim} numbers, seen flat:{" "}
        <Value name="kept" index={[]} value={kept(vectors, plane)} show={(share) => percent(share, 0)} /> of their variance
        {placed.length < places.length && <>; {places.length - placed.length} of them are no numbers and have no place</>}
      </figcaption>
      <svg width={side} height={side} role="img" aria-label="A map of the token vectors; their places are in the table below">
        {placed.map((n) => {
          const [x, y] = places[n], [a, b] = [to(x), to(-y)], [dx, dy, anchor] = sides[n];
          return (
            <g key={n}>
              <line x1={to(first[n][0])} y1={to(-first[n][1])} x2={a} y2={b} />
              <circle cx={a} cy={b} r="3.2" />
              <text x={a + dx} y={b + dy} text-anchor={anchor}>{run.floor.vocabulary.word(n)}</text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

function tableAt(run, epoch) {
  const shape = [run.model.vocabSize, run.model.dim]; // the token embedding comes first
  return { shape, data: run.history.snapshots[epoch].subarray(0, shape[0] * shape[1]) };
}

/** Return the plane of a run's map, how far it reaches, and where words stand beside their points. */
function mapOf(run, { groot, vocabulary }) {
  const drawn = tableAt(run, 0), trained = fits(groot.weights, drawn.shape) ? groot.weights["token_embedding.weight"] : drawn;
  const plane = principalPlane(finiteRows(trained));
  const all = [drawn, trained].map((vectors) => onPlane(vectors, plane));
  const reach = 1.1 * Math.max(1e-9, ...all.flat(2).filter(Number.isFinite).map(Math.abs));
  return { plane, reach, sides: sidesOf(all.map((places) => places.map((place) => place.map((x) => x / reach))), vocabulary.words) };
}

const SIDES = [
  [6, 4, "start"], [-6, 4, "end"], [0, -7, "middle"], [0, 14, "middle"],
  [5, -4, "start"], [-5, -4, "end"], [5, 12, "start"], [-5, 12, "end"],
];
const HALF = 165; // pixels from the map's middle to its edge, where sides are chosen

/**
 * Return for each word a side of its point that it keeps while the point moves: the one on which it covers the
 * fewest others, both where the words begin and where they end.
 * @param {number[][][]} maps places [x, y] of all words, -1 to 1, on each of the maps
 */
function sidesOf(maps, words) {
  const dots = maps.map((places) => places.map(([x, y]) => [x * HALF - 4, -y * HALF - 4, x * HALF + 4, -y * HALF + 4]));
  const boxes = words.map((word, n) => SIDES.map((side) => maps.map((places) => boxAt(places[n], side, 6.4 * word.length))));
  const chosen = words.map(() => 0);
  const cost = (n, side) => boxes[n][side].reduce((sum, box, m) => {
    const labels = chosen.map((other, k) => (k === n ? 0 : covered(box, boxes[k][other][m])));
    const edge = 1e3 * (Math.max(-box[0], box[2]) > HALF);
    return sum + edge + labels.reduce((a, b) => a + b) + dots[m].reduce((a, dot) => a + covered(box, dot), 0);
  }, 0);
  for (let round = 0; round < 4; round++) { // each word in turn, given the sides of all others
    words.forEach((_, n) => {
      const costs = SIDES.map((_, side) => cost(n, side));
      chosen[n] = costs.indexOf(Math.min(...costs));
    });
  }
  return chosen.map((side) => SIDES[side]);
}

/** Return the box [left, top, right, bottom] of a word of some width beside its place. */
function boxAt([x, y], [dx, dy, anchor], wide) {
  const left = x * HALF + dx - { start: 0, middle: wide / 2, end: wide }[anchor];
  return [left, -y * HALF + dy - 9, left + wide, -y * HALF + dy + 2];
}

/** Return the area that two boxes share; what has no place covers nothing. */
function covered(a, b) {
  const along = (n) => Math.max(0, Math.min(a[n + 2], b[n + 2]) - Math.max(a[n], b[n]));
  return along(0) * along(1) || 0;
}

/** What the model of the epoch shown makes of a prompt: where it looks, and what it expects next. */
function Reading({ pass, prompt, run, vocabulary, set }) {
  const words = prompt.ids.map((id) => vocabulary.word(id)), last = words.length - 1;
  return (
    <div class="gfx-training-reading">
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={run.model.maxLen} onChange={(text) => set({ prompt: text })} />
      <Matrix name="attention" tensor={pass.seen.attention} role="attention" rows={words} columns={words} scale={1} />
      <p>What follows? Bars: the model. Strokes: the corpus, where it holds this context.</p>
      <Bars label={`What follows ${words[last]}`} role="attention" bars={expected(pass, prompt.ids, run, vocabulary)} />
    </div>
  );
}

const SHOWN = 6; // of the tokens that may follow

/** Return bars for the likeliest next tokens, with the corpus's own shares if it has such a context. */
function expected({ seen }, ids, run, vocabulary) {
  const last = ids.length - 1, V = vocabulary.size;
  const row = seen.probabilities.data.subarray(last * V, (last + 1) * V);
  const c = run.floor.find([...ids, ...Array(run.model.maxLen - ids.length).fill(0)]);
  const order = Array.from(row.keys()).sort((a, b) => row[b] - row[a]).slice(0, SHOWN);
  return order.map((w) => ({
    key: w, label: vocabulary.word(w), share: row[w], name: "probabilities", index: [last, w],
    stroke: c < 0 ? undefined : run.floor.follows(c, w) / run.floor.counts[c].total,
  }));
}

// Explaining -----------------------------------------------------------------------------------

const BEFORE = "before.";

function passOf(run, epoch, ids) {
  const model = run.at(epoch), { switches } = run;
  return { model, switches, seen: model.trace(ids, { switches }) };
}

/** Return what explains the numbers of both runs, of the map, and the published ones. */
function explainerOf(now, before, epoch, published, { plane }) {
  const of = (run, prefix) => ({ name, index }) => {
    const at = Math.min(epoch, run.epochs);
    return prefixed(name === "gap" ? gap(run, at) : run.explain({ name, index }, at), prefix);
  };
  const [explainNow, explainBefore] = [of(now, ""), before && of(before, BEFORE)];
  const spread = explainKept("token_embedding.weight", tableAt(now, epoch), plane);
  return ({ name, index }) => {
    if (name === "published") return asPublished(published, index);
    if (!name.startsWith(BEFORE)) return spread({ name, index }) ?? explainNow({ name, index });
    return explainBefore({ name: name.slice(BEFORE.length), index });
  };
}

function gap(run, epoch) {
  const { value } = run.explain({ name: "loss", index: [] }, epoch);
  const parts = [{ name: "loss", index: [], value }, " − ", run.floor.ref("floor")];
  return explanation({ name: "gap", index: [] }, value - run.floor.value, { parts });
}

function asPublished(published, [epoch]) {
  const { loss } = published.find((line) => line.epoch === epoch);
  const note = "as the published training log printed it, with four decimals; seed 42, learning rate 0.01";
  return explanation({ name: "published", index: [epoch] }, loss, { digits: 4, note });
}

/** Return an explanation whose numbers are those of another run. */
function prefixed(found, prefix) {
  if (!found || !prefix) return found;
  const renamed = (part) => {
    if (typeof part === "string") return part;
    return part.fold ? { fold: part.fold.map(renamed) } : { ...part, name: prefix + part.name };
  };
  return { ...renamed(found), parts: found.parts.map(renamed), refs: found.refs.map(renamed) };
}

// In words and as tables -----------------------------------------------------------------------

function sentence(run, epoch) {
  const { loss, right } = run.asked(epoch), N = run.targets.length, best = ceiling(run.floor);
  const far = `${number(loss - run.floor.value, 4)} above the floor of ${number(run.floor.value, 4)}`;
  return (
    `After ${count(epoch)} ${epoch === 1 ? "epoch" : "epochs"} (${run.label}) the loss over all ${N} examples is ` +
    `${number(loss, 4)}, ${far}, with ${right} next tokens right; no model gets more than ${best}.`
  );
}

function ceiling({ counts }) {
  return counts.reduce((sum, { followers }) => sum + Math.max(...followers.values()), 0);
}

function twin(run, before, epoch, pass, published, ids, plane) {
  const { vocabulary } = run.floor, words = ids.map((id) => vocabulary.word(id));
  const logs = [run, ...(before ? [before] : [])];
  const longest = Math.max(...logs.map(({ epochs }) => epochs));
  const printed = new Map(published.map((line) => [line.epoch, line.loss]));
  const places = onPlane(tableAt(run, epoch), plane);
  const next = pass.seen.probabilities.data.subarray(-vocabulary.size);
  return [
    {
      caption: "Logged loss of each epoch",
      columns: ["epoch", ...logs.map(({ label }) => label), "published"],
      rows: Array.from({ length: longest }, (_, n) => [
        String(n), ...logs.map(({ history }) => (n < history.losses.length ? exact(history.losses[n]) : "")), printed.get(n) ?? "",
      ]),
    },
    { caption: `Attention of “${contextWords(ids, vocabulary)}”`, columns: ["token", ...words], rows: words.map((word, t) => [word, ...pass.seen.attention.data.subarray(t * words.length, (t + 1) * words.length)]) },
    { caption: "Probability of the next token", columns: ["token", "probability"], rows: vocabulary.words.map((word, w) => [word, next[w]]) },
    { caption: "Places on the map", columns: ["token", "across", "up"], rows: vocabulary.words.map((word, w) => [word, ...places[w]]) },
    ...Object.entries(pass.model.weights).map(([name, tensor]) => weightTable(name, tensor)),
  ];
}

/** Return a table of a weight's numbers with all their digits. */
function weightTable(name, { shape, data }) {
  const columns = shape.at(-1), rows = [];
  for (let i = 0; i < data.length; i += columns) {
    rows.push([shape.length > 1 ? `row ${i / columns}` : "all", ...Array.from(data.subarray(i, i + columns), exact)]);
  }
  return { caption: name, columns: ["", ...Array.from({ length: columns }, (_, c) => String(c))], rows };
}
