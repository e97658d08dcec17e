/** Every number of one forward pass of BabyGroot on one page, from ids to probabilities. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  MOST_CHANGES, changedModel, countMoved, fitting, indexOf, isChange, kept, nudged, placeOf, sameRef,
  stepTo, typedNumber, withChange,
} from "../changes.js";
import { argmax } from "../engine/index.js";
import { huesOf, largest, stepOf } from "../kit/colour.js";
import { Parts } from "../kit/frame.jsx";
import {
  Bars, Button, Copy, Frame, Pointing, Prompt, Switch, asPython, count, flag, keyOf, list, number, percent, same, shape,
  text, usePrompt,
} from "../kit/index.js";
import { cellOf, destination } from "../kit/matrix.jsx";
import { memo } from "../kit/memo.jsx";
import { explain, symbolOf, term } from "../provenance.js";

const PROMPT = "<START> i am groot";
const STEP = 0.1; // of one nudge
const LIKELIEST = 12; // bars
const PALE = 1.26; // weights do not reach the full hue: what flows stands out from what was learned

const E = "token_embedding.weight", P = "position_embedding.weight", HEAD = "head";
const attn = (name) => `transformer.attn.${name}`, norm = (n) => `transformer.norm${n}`, ffn = (n) => `transformer.ffn.${n}`;

/** A matrix of the picture: its name, what stands above it, its colour, and how it is laid out. */
const block = (name, title, role, more) => ({ name, title, role, ...more });

/** A weight [out, in] lies on its side, so that its columns stand above the numbers they make. */
const layer = (weights, [W, b, made], result, role, more) => [
  block(`${weights}.weight`, W, role, { turned: true }), block(`${weights}.bias`, b, role), block(result, made, role, more),
];
const stream = (name, title, more) => block(name, title, "residual", more);
const square = (name, title, role, more) => block(name, title, role, { columns: "words", ...more });

/** The pass from top to bottom: lines of stages, each with a sentence and columns of matrices. */
const LINES = [
  [{
    title: "Tokens", line: "enters", says: "Each word is looked up in the vocabulary: the model sees its number, the id, and nothing else.",
    columns: [[block("ids", "ids", "token", { columns: "words", digits: 0, scale: Infinity, single: true })]],
  }],
  [{
    title: "Embeddings", line: "starts", says: "The id picks a row of the token table E, the place a row of the position table P; their sum starts the residual stream.",
    columns: [
      [block(E, "E, the rows in use", "token", { rowsOf: "ids" }), block("token_embedding", "Eₜ", "token")],
      [block(P, "P", "position", { rows: "places" }), block("position_embedding", "+ Pₜ", "position")],
      [stream("h0", "= H₀")],
    ],
  }],
  [{
    title: "Queries, keys, values", line: "branch", says: "Three matrices read each row of H₀: what a token looks for, what it offers to be found by, what it hands over.",
    columns: [
      layer(attn("q"), ["W_Qᵀ", "+ b_Q", "Q = H₀ W_Qᵀ + b_Q"], "q", "query"),
      layer(attn("k"), ["W_Kᵀ", "+ b_K", "K = H₀ W_Kᵀ + b_K"], "k", "key"),
      layer(attn("v"), ["W_Vᵀ", "+ b_V", "V = H₀ W_Vᵀ + b_V"], "v", "value"),
    ],
  }],
  [
    {
      title: "Scores", line: "branch", says: "Each query meets each key in a dot product; the mask hides what comes later.",
      columns: [[square("scores", "Q Kᵀ / √d", "scores")], [square("masked_scores", "masked", "scores")]],
    },
    {
      title: "Attention", line: "branch", says: "Softmax makes each row shares that sum to one.",
      columns: [[square("attention", "A", "attention", { scale: 1 })]],
    },
    {
      title: "Context", line: "branch", bare: true, says: "Each token gathers the values, each by its share.",
      columns: [[block("context", "A V", "context")]],
    },
  ],
  [{
    title: "Residual and norm", line: "joins", says: "What attention gathered is added to the stream; a norm brings each row to mean 0 and variance 1, then scales and shifts it.",
    columns: [
      [stream("h0", "H₀, again", { echo: true })],
      [stream("r1", "+ A V = R₁")],
      [stream(`${norm(1)}.weight`, "· γ₁"), stream(`${norm(1)}.bias`, "+ β₁"), stream("n1", "N₁ = norm(R₁)")],
    ],
  }],
  [{
    title: "Feed-forward network", line: "branch", says: "Each row on its own: sixteen hidden units, those below zero switched off, and back to eight numbers.",
    columns: [
      [...layer(ffn(0), ["W₁ᵀ", "+ b₁", "N₁ W₁ᵀ + b₁"], "ffn_hidden", "residual"), stream("ffn_activation", "ReLU: below zero becomes 0")],
      layer(ffn(2), ["W₂ᵀ", "+ b₂", "F = ReLU(…) W₂ᵀ + b₂"], "ffn_out", "residual"),
    ],
  }],
  [{
    title: "Residual and norm again", line: "joins", says: "The network's answer joins the stream, and a second norm prepares it for the head.",
    columns: [
      [stream("n1", "N₁, again", { echo: true })],
      [stream("r2", "+ F = R₂")],
      [stream(`${norm(2)}.weight`, "· γ₂"), stream(`${norm(2)}.bias`, "+ β₂"), stream("h_out", "H_out = norm(R₂)")],
    ],
  }],
  [{
    title: "Logits and probabilities", line: "ends", says: "The head compares each row with every word's own column: a score, the logit; softmax turns the scores into probabilities.",
    columns: [[
      ...layer(HEAD, ["W_headᵀ", "+ b_head", "z = H_out W_headᵀ + b_head"], "logits", "residual"),
      block("probabilities", "p = softmax(z)", "attention", { scale: 1 }),
    ]],
  }],
];
const STAGES = LINES.flat();
const BLOCKS = STAGES.flatMap(({ columns }) => columns.flat()).filter(({ echo }) => !echo);
const IN_WORDS = ["logits", "probabilities", `${HEAD}.weight`, `${HEAD}.bias`]; // their columns are words

export const everything = {
  name: "everything",
  title: "Every number of one pass",
  fields: {
    prompt: text(PROMPT),
    name: text("probabilities"),
    index: list([3, 2], Number.isInteger, 4),
    changes: list([], isChange, MOST_CHANGES),
    difference: flag(false),
  },
  View,
};

function View({ state, set, data }) {
  const { groot, vocabulary } = data;
  const prompt = usePrompt(state.prompt, vocabulary, groot.maxLen, PROMPT);
  const [pass, base] = usePasses(groot, prompt.ids, state.changes);
  const changes = useMemo(() => fitting(groot, state.changes), [groot, state.changes]);
  const names = useMemo(() => wordsOf(prompt.ids, vocabulary, groot), [String(prompt.ids), vocabulary, groot]);
  const held = heldIn(pass.numbers, state);
  const [peeked, peek] = useState(null);
  const [walked, walk] = useState([]);
  const trail = trailTo(walked, held, pass.numbers);
  const found = useMemo(() => explain(pass, held.name, held.index), [pass, keyOf(held)]);
  const glimpse = useMemo(() => peeked && explained(pass, peeked), [pass, peeked && keyOf(peeked)]);
  const map = useRef(null), panel = useRef(null), wish = useRef(null);

  useLayoutEffect(() => {
    const { current } = wish;
    wish.current = null;
    if (!current) return;
    bringIntoView(map.current, panel.current, held, pass.numbers);
    if (current.keyboard) focusFirst(panel.current);
  });

  const go = (ref, { keyboard = byKeyboard(panel.current) } = {}) => {
    walk(stepTo(trail, found.refs, ref));
    peek(null);
    wish.current = { keyboard };
    set({ name: ref.name, index: ref.index });
  };
  const change = (ref, value) => {
    if (!isFull(changes, ref)) set({ changes: withChange(groot, state.changes, ref, value) });
  };
  const now = useRef(null); // what the hands below need of the last drawing
  now.current = { go, peek, change, numbers: pass.numbers, own: base.numbers };
  const hands = useMemo(() => handsOf(now), []);
  const pointing = useMemo(() => ({ pointed: null, point: (ref) => now.current.go(ref), made: new Set() }), []);
  const marks = useMarks(pass.numbers, { found, glimpse, trail, changes });

  const before = changes.length ? base : null;
  const picture = { numbers: pass.numbers, base: before?.numbers, difference: state.difference, marks, names };
  return (
    <Frame sentence={sentence(pass, base, changes, vocabulary, prompt.text)} twin={() => twin(pass.numbers, names)}>
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={groot.maxLen} onChange={(text) => set({ prompt: text })} />
      <Changes changes={changes} difference={state.difference} set={set} go={go} change={change} />
      <Pointing.Provider value={pointing}>
        <div class="gfx-ev-map" ref={map} {...hands}>
          {LINES.map((stages, n) => <Line key={n} stages={stages} first={STAGES.indexOf(stages[0])} {...picture} />)}
          <Likeliest now={pass.seen.probabilities} before={before?.seen.probabilities} vocabulary={vocabulary} />
          <Thread trail={trail} numbers={pass.numbers} />
        </div>
        <Panel
          panel={panel} map={map} found={glimpse ?? found} held={held} trail={trail} go={go} change={change} full={isFull(changes, held)}
          base={base.numbers} numbers={pass.numbers}
        />
      </Pointing.Provider>
    </Frame>
  );
}

/** Return whether there is no room for a change of one more weight. */
function isFull(changes, ref) {
  return changes.length >= MOST_CHANGES && !changes.some((change) => sameRef(change, ref));
}

// What is computed

/** Return the pass of the model with its changes, and the pass of the model as it was. */
function usePasses(model, ids, changes) {
  const base = useMemo(() => passOf(model, ids), [model, String(ids)]);
  const last = useRef(base);
  const pass = useMemo(() => passOf(changedModel(model, changes), ids, last.current.numbers, base.numbers), [base, changes]);
  last.current = pass;
  return [pass, base];
}

/** Return a pass, and its numbers with the weights; tensors that earlier passes had are taken from those. */
function passOf(model, ids, ...earlier) {
  const same = (tensors) => earlier.reduce((now, before) => kept(before, now), tensors);
  const seen = same(model.trace(ids));
  return { model, seen, numbers: { ...same(model.weights), ...seen } };
}

/** Return the number the state holds, or the likeliest next word if this pass has no such number. */
function heldIn(numbers, { name, index }) {
  if (Object.hasOwn(numbers, name) && placeOf(numbers[name], index) >= 0) return { name, index };
  const { shape: [T, V], data } = numbers.probabilities;
  return { name: "probabilities", index: [T - 1, argmax(data.subarray((T - 1) * V))] };
}

/** Return the trail that was walked, if it leads to what is held and this pass has all of it. */
function trailTo(walked, held, numbers) {
  const whole = walked.every(({ name, index }) => placeOf(numbers[name], index) >= 0);
  return whole && walked.length && sameRef(walked[walked.length - 1], held) ? walked : [held];
}

/** Return how a number is made, or null if it is gone. */
function explained(pass, ref) {
  return placeOf(pass.numbers[ref.name], ref.index) < 0 ? null : explain(pass, ref.name, ref.index);
}

/** Return the labels of rows and columns. */
function wordsOf(ids, vocabulary, { dim, maxLen }) {
  const numbered = (n) => Array.from({ length: n }, (_, i) => String(i));
  const rows = [...new Set(ids)];
  return {
    ids: rows, dims: numbered(2 * dim), places: numbered(maxLen), vocabulary: vocabulary.words,
    words: ids.map((id) => vocabulary.word(id)), rows: rows.map((id) => vocabulary.word(id)),
  };
}

/**
 * Return, for each tensor that has marked numbers, where they are: the one that is held, the one pointed
 * at, the operands of both, those on the trail, those changed. What is as it was is the same object.
 */
function useMarks(numbers, { found, glimpse, trail, changes }) {
  const last = useRef({}), marks = {};
  const mark = (kind, refs) => {
    for (const { name, index } of refs) {
      marks[name] ??= {};
      (marks[name][kind] ??= []).push(placeOf(numbers[name], index));
    }
  };
  mark("held", [found]);
  mark("made", found.refs);
  if (glimpse) mark("pointed", [glimpse]);
  if (glimpse) mark("lit", glimpse.refs);
  mark("trail", trail);
  mark("edited", changes);
  for (const name of Object.keys(marks)) if (same(marks[name], last.current[name])) marks[name] = last.current[name];
  return (last.current = marks);
}

// Hands: the mouse, a finger, the keys

/** Return the listeners of the picture; its cells say by data attributes which number they are. */
function handsOf(now) {
  const refAt = (target) => {
    const place = cellOf(target);
    if (place === null) return null;
    const { name } = target.closest("table").dataset;
    return { name, index: indexOf(now.current.numbers[name], place) };
  };
  const glance = (event) => {
    const between = cellOf(event.target) === null && event.target.closest("table"); // the gap between two cells
    if (event.pointerType !== "touch" && !between) now.current.peek(refAt(event.target));
  };
  const enter = (event) => {
    const cell = event.target.closest("[data-n]");
    if (!cell) return;
    cell.closest("table").querySelector('[tabindex="0"]').tabIndex = -1; // Tab comes back to this one
    cell.tabIndex = 0;
    if (cell.matches(":focus-visible")) now.current.peek(refAt(cell));
  };
  const press = (event) => {
    const ref = refAt(event.target);
    if (!ref || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { "+": STEP, "=": STEP, "-": -STEP }[event.key], { numbers, own, change } = now.current;
    if (event.key === "Enter" || event.key === " ") now.current.go(ref, { keyboard: true });
    else if (step && isWeight(ref.name)) change(ref, nudged(valueAt(numbers, ref), step, valueAt(own, ref)));
    else if (!walkTo(event)) return;
    event.preventDefault();
  };
  return {
    onPointerOver: glance,
    onPointerLeave: () => now.current.peek(null),
    onFocusIn: enter,
    onFocusOut: () => now.current.peek(null),
    onKeyDown: press,
    onClick: (event) => {
      const ref = refAt(event.target);
      if (ref) now.current.go(ref, { keyboard: false });
    },
  };
}

/** Move from cell to cell in a matrix; return whether the key meant that. */
function walkTo({ key, target }) {
  const cells = [...target.closest("table").querySelectorAll("[data-n]")];
  const width = target.parentElement.querySelectorAll("[data-n]").length;
  const to = destination(key, cells.indexOf(target.closest("[data-n]")), cells.length / width, width);
  if (to !== null) cells[to].focus();
  return to !== null;
}

function valueAt(numbers, { name, index }) {
  return numbers[name].data[placeOf(numbers[name], index)];
}

function isWeight(name) {
  return /\.(weight|bias)$/.test(name);
}

/** Return whether the keyboard is at work in an element. */
function byKeyboard(element) {
  const { activeElement } = document;
  return Boolean(element?.contains(activeElement) && activeElement.matches(":focus-visible"));
}

/** Focus what leads on from the number in the panel: its first operand, its editor, or the way back. */
function focusFirst(panel) {
  const first = panel.querySelector(".gfx-ev-formula :is(.gfx-ref, input)") ?? panel.querySelector(".gfx-ev-back");
  first.focus({ preventScroll: true });
}

/** Return the cell of a number: of two that show the same, the one in view, else the first. */
function cellFor(map, { name, index }, numbers) {
  const cells = [...map.querySelectorAll(`table[data-name="${name}"] [data-n="${placeOf(numbers[name], index)}"]`)];
  return cells.find((cell) => isInView(cell, innerHeight)) ?? cells[0];
}

function isInView(cell, floor) {
  const { top, bottom, height } = cell.getBoundingClientRect();
  return height > 0 && top >= 64 && bottom <= floor; // the site's header lies over the top
}

/** Scroll to a number, and only if it cannot be seen already. */
function bringIntoView(map, panel, ref, numbers) {
  const cell = cellFor(map, ref, numbers);
  const floor = Math.min(innerHeight, panel.getBoundingClientRect().top);
  cell?.scrollIntoView({ block: isInView(cell, floor) ? "nearest" : "center", inline: "nearest" });
}

// The picture

function Line({ stages, first, ...picture }) {
  return (
    <div class="gfx-ev-line">
      {stages.map((stage, n) => <Stage key={stage.title} stage={stage} place={first + n + 1} {...picture} />)}
    </div>
  );
}

function Stage({ stage, place, numbers, base, difference, marks, names }) {
  return (
    <section class={`gfx-ev-stage gfx-ev-${stage.line}`} aria-label={stage.title}>
      <p class="gfx-ev-title"><b><span class="gfx-ev-place">{place}</span> {stage.title}</b> <span class="gfx-muted">{stage.says}</span></p>
      <div class="gfx-ev-columns">
        {stage.columns.map((blocks, n) => (
          <div key={n} class={n || stage.bare ? "gfx-ev-column gfx-ev-bare" : "gfx-ev-column"}>
            {blocks.map((one, m) => (
              <Block key={one.name} {...one} top={m === 0} tensor={numbers[one.name]} before={base?.[one.name]} difference={difference} marks={marks[one.name]} names={names} />
            ))}
          </div>
        ))}
      </div>
    </section>
  );
}

/** One matrix: what it is called, and its cells. Drawn again only if its numbers or marks have changed. */
const Block = memo(function Block({ top, names, ...props }) {
  const { name, title, role, turned, rowsOf, columns, single, echo, tensor } = props;
  const plan = layOut(tensor.shape, turned, rowsOf && names[rowsOf]), inWords = IN_WORDS.includes(name);
  const square = Boolean(columns) && !single, headed = top || Boolean(columns), upright = inWords || square;
  const heads = columns ? names[columns] : inWords ? names.vocabulary : names.dims;
  return (
    <figure
      class={`gfx-ev-block${isWeight(name) ? " gfx-ev-weight" : ""}${echo ? " gfx-ev-echo" : ""}${square ? " gfx-ev-square" : ""}`}
      style={{ "--n": plan.width, "--rows": plan.height, "--head": headed ? (upright ? "58px" : "15px") : "0px" }}
    >
      <figcaption>
        <b style={{ color: `var(--gf-${role})` }}>{title}</b> {!square && <span class="gfx-muted">{shape(tensor.shape)}</span>}
        {!echo && <Copy label="copy" name={`Copy ${name} as Python`} text={() => asPython(name, tensor)} />}
      </figcaption>
      <Cells {...props} plan={plan} heads={headed ? heads : null} upright={upright} sides={sidesOf(props, plan.height, names)} />
    </figure>
  );
});

/** Return the labels of a matrix's rows. */
function sidesOf({ name, rowsOf, rows, single }, height, names) {
  if (rowsOf) return names.rows;
  if (rows) return names[rows];
  if (single) return ["id"];
  if (!isWeight(name)) return names.words;
  return height > 1 ? names.dims : [symbolOf(name)];
}

/** Return the order in which a tensor's numbers are shown, row after row, and the rows' number and width. */
function layOut(sizes, turned, only) {
  const [height, width] = sizes.length === 1 ? [1, sizes[0]] : sizes;
  if (turned) return { height: width, width: height, order: cells(width, height, (r, c) => c * width + r) };
  const rows = only ?? Array.from({ length: height }, (_, r) => r);
  return { height: rows.length, width, order: cells(rows.length, width, (r, c) => rows[r] * width + c) };
}

function cells(height, width, placeAt) {
  return Array.from({ length: height * width }, (_, n) => placeAt(Math.floor(n / width), n % width));
}

function Cells({ name, tensor, before, difference, plan, heads, upright, sides, role, digits = 2, scale, echo, single, marks = {} }) {
  const { order, width, height } = plan, differs = difference && before && !single;
  const shown = differs ? tensor.data.map((value, n) => value - before.data[n]) : tensor.data;
  const full = (differs ? undefined : scale) ?? largest(shown) * (isWeight(name) ? PALE : 1);
  const [low, high] = huesOf(differs ? "scores" : role);
  const marksAt = (place) => Object.keys(marks).map((mark) => (marks[mark].includes(place) ? ` gfx-${mark}` : "")).join("");
  const cell = (place, n) => {
    const value = shown[place], still = !before || Object.is(tensor.data[place], before.data[place]);
    const hidden = name === "masked_scores" && value === -1e9;
    const step = hidden || !full ? 0 : stepOf(Math.abs(value) / full);
    const text = differs ? signed(value, digits, still) : cellText(value, digits);
    const kind = `${hidden ? "gfx-hidden" : value < 0 ? "gfx-low" : "gfx-high"} gfx-s${step}${still ? (differs ? " gfx-still" : "") : " gfx-moved"}${text.length > 5 ? " gfx-long" : ""}`;
    return <td key={place} data-n={place} class={kind + marksAt(place)} tabIndex={n ? -1 : 0}>{text}</td>;
  };
  return (
    <table
      class="gfx-ev-grid" role="grid" aria-label={`${echo ? "again: " : ""}${name} ${shape(tensor.shape)}`} data-name={name}
      style={{ "--low": `var(--gf-${low})`, "--high": `var(--gf-${high})` }}
    >
      <colgroup><col class="gfx-ev-side" /><col span={width} /></colgroup>
      {heads && <thead><tr><td class="gfx-ev-side" />{Array.from({ length: width }, (_, c) => <th key={c} scope="col" class={upright ? "gfx-upright" : undefined}><span>{heads[c]}</span></th>)}</tr></thead>}
      <tbody>
        {Array.from({ length: height }, (_, r) => (
          <tr key={r}>
            <th scope="row" class="gfx-ev-side">{sides[r]}</th>
            {order.slice(r * width, (r + 1) * width).map((place, c) => cell(place, r * width + c))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Return a number as `number` writes it; the usual ones by a shorter way, since there are many. */
function cellText(value, digits) {
  if (!(Math.abs(value) < 999)) return compact(value, digits);
  const text = value.toFixed(digits);
  return text.startsWith("-") ? (Number(text) === 0 ? text.slice(1) : `−${text.slice(1)}`) : text;
}

/** Return a large number in few letters: it has one narrow cell. */
function compact(value, digits) {
  if (!Number.isFinite(value) || value === -1e9) return number(value, digits);
  return Math.abs(value) < 9999 ? number(value, 0).replace(",", "") : value.toExponential(0).replaceAll("-", "−").replace("e+", "e");
}

/** Return a difference with its sign, or 0 for a number that did not move. */
function signed(value, digits, still) {
  if (still) return "0";
  return value > 0 ? `+${cellText(value, digits)}` : cellText(value, digits);
}

/** The likeliest words to come, at the last position. */
const Likeliest = memo(function Likeliest({ now, before, vocabulary }) {
  const { shape: [T, V], data } = now, start = (T - 1) * V;
  const rank = (w) => (Number.isNaN(data[start + w]) ? Infinity : data[start + w]);
  const order = Array.from({ length: V }, (_, w) => w).sort((a, b) => rank(b) - rank(a) || a - b);
  const bars = order.slice(0, LIKELIEST).map((w) => ({
    key: w, label: vocabulary.word(w), share: data[start + w], note: before && `was ${percent(before.data[start + w])}`,
    name: "probabilities", index: [T - 1, w],
  }));
  return (
    <section class="gfx-ev-stage gfx-ev-next" aria-label="The next word">
      <p class="gfx-ev-title"><b><span class="gfx-ev-place">{STAGES.length + 1}</span> The next word</b> <span class="gfx-muted">The last row of p, ranked: what comes after the prompt.</span></p>
      <Bars label="Probabilities of the next word" bars={bars} />
    </section>
  );
});

/** A line through the picture from number to number, along the trail. */
function Thread({ trail, numbers }) {
  const [path, draw] = useState(null), own = useRef(null), way = trail.map(keyOf).join(" ");
  useLayoutEffect(() => {
    const map = own.current.parentElement;
    const redraw = () => draw(trail.length > 1 ? threadThrough(map, trail, numbers) : null);
    redraw();
    const watch = new ResizeObserver(redraw);
    watch.observe(map);
    map.addEventListener("scroll", redraw, true);
    return () => {
      watch.disconnect();
      map.removeEventListener("scroll", redraw, true);
    };
  }, [way, String(numbers.ids.shape)]);
  return <svg class="gfx-ev-thread" ref={own} aria-hidden="true">{path && <path d={path} />}</svg>;
}

/** Return the way as an SVG path: up from cell to cell, or in an arc below a row. */
function threadThrough(map, trail, numbers) {
  const from = map.getBoundingClientRect();
  const boxes = trail.map((ref) => cellFor(map, ref, numbers)?.getBoundingClientRect()).filter((box) => box?.height);
  return boxes.slice(1).map((box, n) => {
    const last = boxes[n], level = Math.abs(box.top - last.top) < box.height, down = box.top > last.top;
    const x0 = last.left + last.width / 2 - from.left, x1 = box.left + box.width / 2 - from.left;
    const y0 = (level || down ? last.bottom : last.top) - from.top, y1 = (level || !down ? box.bottom : box.top) - from.top;
    const [a, b] = level ? [y0 + 9, y1 + 9] : [(y0 + y1) / 2, (y0 + y1) / 2];
    return `M${x0} ${y0}C${x0} ${a} ${x1} ${b} ${x1} ${y1}`;
  }).join("");
}

// What surrounds it

/** The weights that are changed, each with a way to it and a way to take it back. */
function Changes({ changes, difference, set, go, change }) {
  if (!changes.length) {
    return <p class="gfx-muted gfx-ev-hint">Point at a number: what made it lights up. Click it, and follow it back. Matrices marked <span class="gfx-ev-pen">✎</span> were learned: click one of their numbers and change it.</p>;
  }
  return (
    <div class="gfx-ev-changes" role="group" aria-label="Changed weights">
      {changes.map(({ name, index, value, before }) => {
        const symbol = term(name, ...index);
        return (
          <span key={symbol} class="gfx-ev-change">
            <button type="button" class="gfx-ref" title="Go to this weight" onClick={() => go({ name, index })}>{symbol} {number(before)} → {number(value)}</button>
            <button type="button" class="gfx-ref" aria-label={`Restore ${symbol}`} onClick={() => change({ name, index }, before)}>×</button>
          </span>
        );
      })}
      <Button onClick={() => set({ changes: [] })}>Restore all</Button>
      <Switch label="show the difference" on={difference} onChange={(on) => set({ difference: on })} />
    </div>
  );
}

/** Always in view: the trail, how the number is made, and for a weight the means to change it. */
function Panel({ panel, map, found, held, trail, go, change, full, base, numbers }) {
  const { name, index, value } = found, isHeld = sameRef(found, held), before = valueAt(base, found);
  const back = trail[trail.length - 2];
  const press = (event) => {
    if (event.key === "Escape") cellFor(map.current, held, numbers)?.focus();
    else if (event.key === "Backspace" && back && event.target.tagName !== "INPUT") go(back, { keyboard: true });
    else return;
    event.preventDefault();
  };
  return (
    <div class="gfx-ev-panel" ref={panel} role="group" aria-label="How this number is made" onKeyDown={press}>
      <Trail trail={trail} back={back} go={go} />
      <div class="gfx-formula gfx-ev-formula" tabindex="0" role="group" aria-label="Formula">
        <p class="gfx-formula-rule">
          <b>{symbolOf(name)}</b> <span class="gfx-mono">{keyOf(found)}</span>
          {found.parts.length > 0 && <span class="gfx-mono gfx-muted"> {found.rule}</span>}
        </p>
        <p class="gfx-formula-filled">
          <b class="gfx-value">{number(value, 6)}</b>
          {found.parts.length > 0 && <> = <Parts of={keyOf(found)} parts={found.parts} /></>} <span class="gfx-muted">{found.note}</span>
          {!Object.is(before, value) && <span class="gfx-muted gfx-ev-was"> (was {number(before, 6)}, so {signed(value - before, 6)})</span>}
        </p>
        {isWeight(name) && isHeld && <Editor key={keyOf(found)} symbol={term(name, ...index)} value={value} before={before} full={full} onChange={(to) => change({ name, index }, to)} />}
      </div>
    </div>
  );
}

function Trail({ trail, back, go }) {
  const row = useRef(null);
  useEffect(() => {
    row.current.scrollLeft = row.current.scrollWidth;
  }, [trail.length]);
  return (
    <nav class="gfx-ev-trail" aria-label="The way here">
      <button type="button" class="gfx-button gfx-ev-back" disabled={!back} onClick={() => go(back)}>Back</button>
      <ol ref={row}>
        {trail.map((ref, n) => (
          <li key={keyOf(ref)}>
            {n > 0 && <span aria-hidden="true">← </span>}
            <button type="button" class="gfx-ref" aria-current={n === trail.length - 1 ? "step" : undefined} onClick={() => go(ref)}>{term(ref.name, ...ref.index)}</button>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** A weight that can be typed, nudged and restored. */
function Editor({ symbol, value, before, full, onChange }) {
  const [typed, setTyped] = useState(null); // what is being typed, until it is left
  const wrong = typed !== null && typedNumber(typed) === null;
  const type = (text) => {
    setTyped(text);
    const to = typedNumber(text);
    if (to !== null) onChange(to);
  };
  const nudge = (step) => {
    setTyped(null);
    onChange(nudged(value, step, before));
  };
  const press = (event) => {
    const step = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
    if (!step || full) return;
    event.preventDefault();
    nudge(step);
  };
  if (full) return <p class="gfx-error">{MOST_CHANGES} changed weights are the most; restore one first.</p>;
  return (
    <p class="gfx-ev-editor">
      <Button label={`${symbol} down by ${STEP}`} onClick={() => nudge(-STEP)}>−</Button>
      <input
        type="text" inputMode="text" autocomplete="off" spellcheck={false} size={12} maxLength={40} aria-label={`Value of ${symbol}`} aria-invalid={wrong}
        value={typed ?? plain(value)} onInput={(event) => type(event.currentTarget.value)} onBlur={() => setTyped(null)} onKeyDown={press}
      />
      <Button label={`${symbol} up by ${STEP}`} onClick={() => nudge(STEP)}>+</Button>
      <Button disabled={Object.is(value, before)} onClick={() => { setTyped(null); onChange(before); }}>Restore</Button>
      {wrong && <span class="gfx-error" role="alert">“{typed}” is no number; NaN and ∞ are, for this.</span>}
    </p>
  );
}

/** Return a number with all its digits, as it may be typed again. */
function plain(value) {
  return Number.isFinite(value) ? String(value).replace("-", "−") : number(value);
}

function sentence(pass, base, changes, vocabulary, prompt) {
  const next = likeliest(pass), total = Object.values(pass.seen).reduce((sum, { data }) => sum + data.length, 0);
  const says = Number.isNaN(next.share) ? "no word: the probabilities are NaN" : `${vocabulary.word(next.word)}, with ${percent(next.share)}`;
  const comes = `After “${prompt}” comes ${says}.`;
  if (!changes.length) return `${comes} ${count(total)} numbers lead there, made with ${count(pass.model.numParams())} weights.`;
  const { moved, lost } = countMoved(base.seen, pass.seen), was = likeliest(base);
  const nan = lost ? `, ${count(lost)} of them to NaN` : "";
  return `${comes} ${changes.length === 1 ? "One weight is" : `${changes.length} weights are`} changed: ${count(moved)} of ${count(total)} numbers moved${nan}; before, it was ${vocabulary.word(was.word)}, with ${percent(was.share)}.`;
}

function likeliest({ seen: { probabilities: { shape: [T, V], data } } }) {
  const row = data.subarray((T - 1) * V), word = argmax(row);
  return { word, share: row[word] };
}

function twin(numbers, names) {
  return BLOCKS.map(({ name, columns, rowsOf }) => {
    const tensor = numbers[name], { order, width } = layOut(tensor.shape, false, rowsOf && names[rowsOf]);
    const heads = columns ? names[columns] : name.startsWith(`${HEAD}.weight`) || !IN_WORDS.includes(name) ? names.dims : names.vocabulary;
    const height = order.length / width;
    const sides = rowsOf ? names.rows : name === `${HEAD}.weight` ? names.vocabulary : height === names.words.length && !isWeight(name) ? names.words : names.dims;
    const rows = Array.from({ length: height }, (_, r) => [height === 1 ? name : sides[r], ...order.slice(r * width, (r + 1) * width).map((place) => tensor.data[place])]);
    return { caption: `${symbolOf(name)}: ${name} ${shape(tensor.shape)}`, columns: ["", ...heads.slice(0, width)], rows };
  });
}
