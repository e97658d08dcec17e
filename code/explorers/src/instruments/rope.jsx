/** Rotary positions: turn pairs of a query and a key, move both, and see what their product knows. */

import { useMemo } from "preact/hooks";
import { row, tensor } from "../engine/index.js";
import { explainTurning, scoreByDistance, turnBoth } from "../turning.js";
import {
  Button, Choice, Figures, Frame, Matrix, Plot, Prompt, Row, Slider, Tokens, choice, number, text, usePrompt, whole,
} from "../kit/index.js";

const PROMPT = "the cat sat on the mat";
const FARTHEST = 63; // a position; turning needs no table that ends
const SIZE = 112, MIDDLE = SIZE / 2, RADIUS = 42; // of a dial, in pixels

export const rope = {
  name: "rope",
  title: "Rotary positions",
  fields: {
    prompt: text(PROMPT),
    layer: whole(0, 0, 63),
    head: whole(0, 0, 63),
    query: whole(5, 0, 63),
    key: whole(1, 0, 63),
    query_at: whole(5, 0, FARTHEST),
    key_at: whole(1, 0, FARTHEST),
    turned: choice("all", ["none", "one", "all"]),
    pair: whole(0, 0, 63),
  },
  View,
};

function View({ state, set, data }) {
  const { tiny, tinyVocabulary: vocabulary } = data, { config } = tiny;
  const prompt = usePrompt(state.prompt, vocabulary, config.max_seq_len, PROMPT);
  const pass = useMemo(() => ({ model: tiny, seen: tiny.trace(prompt.ids) }), [tiny, String(prompt.ids)]);
  const chosen = useMemo(() => chosenVectors(pass, config, state, prompt.ids), [pass, state]);
  const { both, options, curve, origin } = chosen;
  const explainer = useMemo(() => explainTurning(both, origin), [chosen]);
  const words = prompt.ids.map((id) => vocabulary.word(id));
  const { query, key, pair } = chosen;
  const distance = state.query_at - state.key_at;
  const score = both.product / Math.sqrt(config.head_dim);
  const move = (by) => set({ query_at: state.query_at + by, key_at: state.key_at + by });
  return (
    <Frame
      pass={pass} explainer={explainer} first={{ name: "score", index: [] }} twin={() => twin(both, curve)}
      sentence={`The query of ${words[query]} at position ${state.query_at} meets the key of ${words[key]} at ${state.key_at}, ${apart(distance)}: score ${number(score, 4)}${state.turned === "none" ? ", the same at any distance, since no pair is turned" : ", the same wherever the two stand at this distance"}.`}
    >
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={config.max_seq_len} onChange={(text) => set({ prompt: text })} />
      <Row>
        <div><p class="gfx-label">Query of</p><Tokens label="Query of" words={words} ids={prompt.ids} chosen={query} onChoose={(n) => set({ query: n })} /></div>
        <div><p class="gfx-label">Key of</p><Tokens label="Key of" words={words} ids={prompt.ids} chosen={key} onChoose={(n) => set({ key: n })} /></div>
      </Row>
      <Row>
        <Slider label="query stands at" value={state.query_at} min={0} max={FARTHEST} onChange={(at) => set({ query_at: at })} />
        <Slider label="key stands at" value={state.key_at} min={0} max={FARTHEST} onChange={(at) => set({ key_at: at })} />
      </Row>
      <Row label="Move both">
        <Button onClick={() => move(-1)} disabled={Math.min(state.query_at, state.key_at) === 0}>both one back</Button>
        <Button onClick={() => move(1)} disabled={Math.max(state.query_at, state.key_at) === FARTHEST}>both one on</Button>
        <Button onClick={() => move(10)} disabled={Math.max(state.query_at, state.key_at) > FARTHEST - 10}>both ten on</Button>
      </Row>
      <Row>
        <Choice label="Turn" value={state.turned} options={[["none", "no pair"], ["one", `pair ${pair} alone`], ["all", "all pairs"]]} onChange={(turned) => set({ turned })} />
        {config.n_layers > 1 && <Numbered label="Block" count={config.n_layers} value={chosen.layer} onChange={(layer) => set({ layer })} />}
        {config.n_heads > 1 && <Numbered label="Head" count={config.n_heads} value={chosen.head} onChange={(head) => set({ head })} />}
      </Row>
      <div class="gfx-rope-dials" role="group" aria-label="Pairs">
        {both.pairs.map((_, n) => <Dial key={n} pair={n} both={both} chosen={n === pair} onChoose={() => set({ pair: n })} />)}
      </div>
      <Figures label="What each pair gives to the product" columns={["pair", "radians a position", "query turned by", "key turned by", "q′ · k′ of the pair"]} rows={both.pairs.map(pairRow)} />
      <Row>
        <Vector name="q′" values={both.qTurned} role="query" pair={pair} />
        <Vector name="k′" values={both.kTurned} role="key" pair={pair} />
      </Row>
      <Curve curve={curve} distance={distance} score={score} all={options.all} />
    </Frame>
  );
}

/** Return what the state chooses, each choice within what the model has. */
function chosenVectors(pass, config, state, ids) {
  const within = (n, count) => Math.min(n, count - 1);
  const layer = within(state.layer, config.n_layers), head = within(state.head, config.n_heads);
  const query = within(state.query, ids.length), key = within(state.key, ids.length);
  const pair = within(state.pair, config.head_dim / 2);
  const shared = Math.floor((head * config.kv_heads) / config.n_heads);
  const names = [`layers.${layer}.q`, `layers.${layer}.k`];
  const q = row(pass.seen[names[0]], head * ids.length + query);
  const k = row(pass.seen[names[1]], shared * ids.length + key);
  const options = {
    all: state.turned === "all", theta: config.rope_theta,
    turned: (n) => state.turned === "all" || (state.turned === "one" && n === pair),
  };
  const both = turnBoth(q, k, { ...options, queryAt: state.query_at, keyAt: state.key_at });
  const origin = {
    q: (i) => ({ name: names[0], index: [head, query, i], value: q[i] }),
    k: (i) => ({ name: names[1], index: [shared, key, i], value: k[i] }),
  };
  const curve = scoreByDistance(q, k, options, FARTHEST);
  return { layer, head, query, key, pair, options, both, origin, curve };
}

function Numbered({ label, count, value, onChange }) {
  const options = Array.from({ length: count }, (_, n) => [n, String(n)]);
  return <Choice label={label} value={value} options={options} onChange={onChange} />;
}

/** A pair of numbers as an arrow: the query's and the key's, where they were and where they turned to. */
function Dial({ pair, both, chosen, onChoose }) {
  const i = 2 * pair;
  const longest = Math.max(1e-9, ...[both.q, both.k].map((x) => Math.hypot(x[i], x[i + 1])).filter(Number.isFinite));
  const tip = (x) => [x[i], x[i + 1]].map((value, n) => MIDDLE + ((n ? -1 : 1) * value * RADIUS) / longest);
  const query = tip(both.qTurned), key = tip(both.kTurned);
  return (
    <button type="button" class="gfx-rope-dial" aria-pressed={chosen} onClick={onChoose}>
      <svg width={SIZE} height={SIZE} aria-hidden="true">
        <circle cx={MIDDLE} cy={MIDDLE} r={RADIUS} class="gfx-rope-ring" />
        <path d={`M${MIDDLE} ${MIDDLE - RADIUS}V${MIDDLE + RADIUS}M${MIDDLE - RADIUS} ${MIDDLE}H${MIDDLE + RADIUS}`} class="gfx-rope-ring" />
        <Arrow to={tip(both.q)} role="query" faint />
        <Arrow to={tip(both.k)} role="key" faint />
        <Arrow to={query} role="query" />
        <Arrow to={key} role="key" />
        <Letter of={query} other={key} role="query">q′</Letter>
        <Letter of={key} other={query} role="key">k′</Letter>
      </svg>
      <span>pair {pair}</span>
    </button>
  );
}

function Arrow({ to: [x, y], role, faint }) {
  if (!Number.isFinite(x + y)) return null;
  const hue = `var(--gf-${role})`;
  return (
    <g>
      <line x1={MIDDLE} y1={MIDDLE} x2={x} y2={y} stroke={hue} stroke-width={faint ? 1.2 : 2.4} stroke-dasharray={faint ? "3 3" : undefined} />
      {!faint && <circle cx={x} cy={y} r="3" fill={hue} />}
    </g>
  );
}

/** An arrow's name, beside its tip: on the side away from the other arrow, so that neither is covered. */
function Letter({ of: [x, y], other, role, children }) {
  if (!Number.isFinite(x + y)) return null;
  const across = x - MIDDLE, down = y - MIDDLE, length = Math.hypot(across, down) || 1;
  const side = across * (other[1] - MIDDLE) - down * (other[0] - MIDDLE) > 0 ? 1 : -1;
  const at = [x + (2 * across + 10 * side * down) / length, y + (2 * down - 10 * side * across) / length];
  return <text x={at[0]} y={at[1]} fill={`var(--gf-${role})`}>{children}</text>;
}

function pairRow({ speed, queryAngle, keyAngle, product }, n) {
  const cell = (name, value, digits) => ({ name, index: [n], value, show: (x) => number(x, digits) });
  return [
    `${n}`, cell("speed", speed, 4), cell("query angle", queryAngle, 3), cell("key angle", keyAngle, 3),
    cell("pair product", product, 4),
  ];
}

function Vector({ name, values, role, pair }) {
  const lit = [2 * pair, 2 * pair + 1].map((i) => `${name}[${i}]`);
  const columns = Array.from(values, (_, i) => String(i));
  return <Matrix name={name} tensor={tensor([values.length], values)} role={role} columns={columns} lit={lit} title={name} digits={3} />;
}

function Curve({ curve, distance, score, all }) {
  const scores = curve.map(([, y]) => y).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...scores), Math.max(0, ...scores)];
  const room = Math.max((high - low) * 0.1, 1e-3), digits = high - low < 0.2 ? 3 : 2;
  const note = all ? "Score by distance: one curve, for all positions." : "Score by distance, the key at 0. Where a pair is not turned, it adds the same at every distance.";
  return (
    <figure>
      <figcaption class="gfx-muted">{note}</figcaption>
      <Plot
        label={`Score by distance from ${-FARTHEST} to ${FARTHEST}; at ${distance} it is ${number(score, 4)}.`} height={200}
        x={{ min: -FARTHEST, max: FARTHEST, label: "query − key", ticks: [-60, -40, -20, 0, 20, 40, 60] }}
        y={{ min: low - room, max: high + room, label: "q′ · k′ / √d", ticks: [low, (low + high) / 2, high], digits }}
        lines={[{ points: curve, role: "scores_high" }]} at={distance} points={[{ x: distance, y: score, role: "scores_high", size: 5 }]}
      />
    </figure>
  );
}

function apart(distance) {
  const n = Math.abs(distance);
  return n === 0 ? "the same place" : `${n} ${distance > 0 ? "before" : "after"} it`;
}

function twin(both, curve) {
  const numbers = Array.from(both.q, (_, i) => [i, both.q[i], both.qTurned[i], both.k[i], both.kTurned[i]]);
  return [
    { caption: "Query and key, number by number", columns: ["i", "q", "q′", "k", "k′"], rows: numbers },
    { caption: "Pairs", columns: ["pair", "speed", "query angle", "key angle", "product"], rows: both.pairs.map((p, n) => [n, p.speed, p.queryAngle, p.keyAngle, p.product]) },
    { caption: "Score by distance", columns: ["distance", "score"], rows: curve },
  ];
}
