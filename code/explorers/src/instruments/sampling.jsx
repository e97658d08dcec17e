/** What BabyGroot could write next: the distribution, the draw, the text so far, the tree of all others. */

import { useContext, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { END } from "../engine/index.js";
import { largest } from "../kit/colour.js";
import { cellOf, destination } from "../kit/matrix.jsx";
import { memo } from "../kit/memo.jsx";
import {
  Button, Copy, Frame, Pointing, Prompt, Row, Slider, Value, WholeNumber, asPythonDict, count, keyOf, number, percent,
  real, text, usePrompt, whole,
} from "../kit/index.js";
import { Writing, branches, pathRef, shareRef, why } from "../writing.js";

const PROMPT = "<START> groot likes";
const MOST = 40; // tokens that can be written
const LETTERS = 400; // that the text may have
const FIRST = 8; // tokens of the ranking that are shown at once
const HOTTEST = 5;
const ROOT = 3; // tokens back from the end where the tree begins

export const sampling = {
  name: "sampling",
  title: "The next token",
  fields: {
    prompt: text(PROMPT),
    temperature: real(1, 0, HOTTEST),
    top_k: whole(0, 0, 10_000),
    top_p: real(1, 0.01, 1),
    seed: whole(0, 0, 2 ** 31 - 1),
    written: text(""),
    back: whole(0, 0, MOST),
  },
  View,
};

function View({ state, set, data }) {
  const { groot, vocabulary } = data;
  const prompt = usePrompt(state.prompt, vocabulary, groot.maxLen, PROMPT);
  const traces = useMemo(() => new Map(), [groot]);
  const { temperature, top_k: topK, top_p: topP, seed } = state;
  const writing = useMemo(
    () => new Writing(groot, prompt.ids, { temperature, topK, topP, seed }, vocabulary, traces),
    [groot, String(prompt.ids), temperature, topK, topP, seed, vocabulary, traces],
  );
  const ends = useMemo(() => endsOf(vocabulary), [vocabulary]);
  const { written, error } = useMemo(() => readWritten(state.written, vocabulary, ends), [state.written, vocabulary, ends]);
  const over = written.length > 0 && ends(written.at(-1)), full = written.length >= MOST;
  const back = Math.min(over || full ? Math.max(state.back, 1) : state.back, written.length);
  const place = writing.at(written.slice(0, written.length - back));
  const explainer = useMemo(() => writing.explainer(place.path), [writing, place]);
  const go = (path) => {
    const text = vocabulary.decode(path);
    if (text.length <= LETTERS) set({ written: text, back: 0 });
  };
  const told = { writing, place, written, back, over, full, ends, vocabulary, go, set };
  return (
    <Frame pass={place} explainer={explainer} sentence={sentence(told)} twin={() => twin(told)} first={{ name: "share", index: [place.best] }}>
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={groot.maxLen} onChange={(text) => set({ prompt: text, written: "", back: 0 })} />
      <Text {...told} error={error} />
      <Choices state={state} size={vocabulary.size} set={set} />
      <Pens {...told} />
      <Ranking {...told} />
      <Ruler {...told} />
      <Tree {...told} prompt={String(prompt.ids)} />
    </Frame>
  );
}

function endsOf(vocabulary) {
  const end = vocabulary.has(END) ? vocabulary.id(END) : -1;
  return (token) => token === end;
}

/** Return the ids of what was written, up to its end, and what is wrong with a text that cannot be read. */
function readWritten(text, vocabulary, ends) {
  try {
    const ids = vocabulary.encode(text).slice(0, MOST), end = ids.findIndex(ends);
    return { written: end < 0 ? ids : ids.slice(0, end + 1) };
  } catch (error) {
    return { written: [], error: `What was written cannot be read. ${error.message}` };
  }
}

// The text

/** The prompt, what was written, and the place that is looked at. */
function Text({ writing, place, written, back, over, full, vocabulary, set, error }) {
  const { prompt, model } = writing, looked = prompt.length + written.length - back;
  const unread = looked - place.ids.length; // tokens that have left the window
  const kind = (n) => (n >= unread && n < looked ? "gfx-sampling-read" : "gfx-sampling-unread");
  return (
    <div class="gfx-sampling-text">
      <div class="gfx-chain" role="group" aria-label="The text: choose a written token to look at its place">
        {prompt.map((id, n) => <span key={n} class={`gfx-token ${kind(n)}`}><span>{vocabulary.word(id)}</span><span class="gfx-token-id">prompt</span></span>)}
        {written.map((id, n) => {
          const at = prompt.length + n;
          return (
            <button key={at} type="button" class={`gfx-token gfx-sampling-written ${kind(at)}`} aria-pressed={at === looked} onClick={() => set({ back: written.length - n })}>
              <span>{vocabulary.word(id)}</span><span class="gfx-token-id">{shareOr(writing.at(written.slice(0, n)), id)}</span>
            </button>
          );
        })}
        {!over && !full && (
          <button type="button" class="gfx-token gfx-sampling-next" aria-pressed={back === 0} onClick={() => set({ back: 0 })}>
            <span>?</span><span class="gfx-token-id">next</span>
          </button>
        )}
      </div>
      <p class="gfx-error" role="alert">{error}</p>
      <p>
        {over && <><b>{END} is written: here writing stops.</b> Take another token instead, or start again. </>}
        {full && !over && <><b>{MOST} tokens are written: enough.</b> </>}
        {unread > 0
          ? <>The model has {model.maxLen} positions, so its window has slid: for this place it reads the last {place.ids.length} tokens, framed.</>
          : <span class="gfx-muted">For this place the model reads all {place.ids.length} tokens before it; its window holds {model.maxLen}.</span>}
      </p>
    </div>
  );
}

/** Return the share a written token has by the choices that hold now, or that they cut it. */
function shareOr(place, id) {
  return place.cut(place.rank.get(id)) ? "cut" : percent(place.shares[id]);
}

function Choices({ state, size, set }) {
  const { temperature, top_k: k, top_p: p, seed } = state;
  return (
    <div class="gfx-sampling-choices">
      <Slider label="temperature τ" value={temperature} min={0} max={HOTTEST} step={0.05} show={(t) => (t === 0 ? "0, greedy" : number(t))} onChange={(temperature) => set({ temperature })} />
      <Slider label="top-k" value={Math.min(k, size)} min={0} max={size} show={(n) => (n ? String(n) : "off")} onChange={(n) => set({ top_k: n })} />
      <Slider label="top-p" value={p} min={0.01} max={1} step={0.01} show={(x) => (x < 1 ? number(x) : "off")} onChange={(top_p) => set({ top_p })} />
      <WholeNumber label="seed" value={seed} min={0} max={2 ** 31 - 1} onChange={(seed) => set({ seed })} />
    </div>
  );
}

function Pens({ writing, place, written, back, over, full, ends, vocabulary, go }) {
  const off = (over || full) && back <= 1 && place.path.length === written.length - 1 && written.length > 0;
  const on = (choose) => go(writing.on(place.path, choose, ends, MOST));
  return (
    <div class="gfx-row gfx-sampling-pens" role="group" aria-label="Write">
      <Button disabled={off} onClick={() => go([...place.path, place.best])}>Likeliest: {vocabulary.word(place.best)}</Button>
      <Button disabled={off} onClick={() => go([...place.path, place.drawn])}>Draw: {vocabulary.word(place.drawn)}</Button>
      <Button disabled={off} onClick={() => on((at) => at.best)}>Likeliest to the end</Button>
      <Button disabled={off} onClick={() => on((at) => at.drawn)}>Draw to the end</Button>
      <Button disabled={!written.length} onClick={() => go(written.slice(0, -1))}>Take one back</Button>
      <Button disabled={!written.length} onClick={() => go([])}>Start again</Button>
    </div>
  );
}

// What may come next

const COLUMNS = ["token", "bar", "share", "probability", "logit z", "note"];

/** All tokens ranked: before and after reshaping, and what is cut. A token that is clicked is written. */
function Ranking({ place, written, back, vocabulary, go }) {
  const [all, showAll] = useState(false);
  const { pointed, point } = useContext(Pointing), { writing } = place;
  const shown = all ? place.order.length : Math.min(FIRST, place.order.length);
  const code = () => asPythonDict("next_token", Object.fromEntries(
    ["logits", "probabilities", "shares"].map((name) => [name, { shape: [place[name].length], data: place[name] }]),
  ));
  const cut = place.kept < place.byK ? "top-p" : "top-k";
  return (
    <figure class="gfx-matrix">
      <figcaption>
        <span>What may come after <b>{vocabulary.decode(place.text.slice(-1))}</b>; click a word to write it</span>
        <Copy label="copy" name="Copy the distribution as Python" text={code} />
      </figcaption>
      <Tokens
        place={place} shown={shown} vocabulary={vocabulary} taken={back ? written[place.path.length] : -1} point={point}
        pointed={pointed ? keyOf(pointed) : ""} onChoose={(token) => go([...place.path, token])}
      />
      <p class="gfx-muted gfx-sampling-legend">bar: share to draw from; upright line: probability before</p>
      {shown < place.order.length || all ? (
        <Button onClick={() => showAll(!all)}>{all ? `Show the first ${FIRST}` : `Show all ${count(place.order.length)}`}</Button>
      ) : null}
      {writing.temperature !== 0 && place.kept < place.order.length && (
        <p class="gfx-sampling-cuts">
          {place.byK < place.order.length && <>top-k keeps the {place.byK} likeliest. </>}
          {cut === "top-p" && (
            <>top-p {number(writing.topP)} keeps {place.kept}: together they have <Value name="mass" index={[place.kept]} value={place.mass(place.kept)} show={percent} />
              {place.kept > 1 && <>, and without the last of them <Value name="mass" index={[place.kept - 1]} value={place.mass(place.kept - 1)} show={percent} /></>}. </>
          )}
          What stays is scaled to sum to one.
        </p>
      )}
    </figure>
  );
}

const WIDTH = 4; // cells of a row that can be pointed at

const Tokens = memo(function Tokens({ place, shown, vocabulary, taken, pointed, point, onChoose }) {
  const [active, setActive] = useState(0);
  const refsOf = (rank) => {
    const w = place.order[rank];
    const share = { name: "share", index: [w], value: place.shares[w] };
    const own = (name) => ({ name, index: [place.last, w], value: place[name][w] });
    return [share, share, own("probabilities"), own("logits")];
  };
  const at = (event) => {
    const n = cellOf(event.target);
    if (n === null) return;
    if (event.type !== "pointerover") setActive(n);
    point(refsOf(Math.floor(n / WIDTH))[n % WIDTH]);
  };
  const move = (event) => {
    const to = destination(event.key, cellOf(event.target), shown, WIDTH);
    if (to === null) return;
    event.preventDefault();
    event.currentTarget.querySelector(`[data-n="${to}"]`).focus();
  };
  const focused = Math.min(active, shown * WIDTH - 1), widest = largest([...place.probabilities, ...place.shares]);
  const wide = (share) => ({ width: `${(100 * share) / (widest || 1)}%` });
  return (
    <div class="gfx-scroll">
      <table class="gfx-table gfx-figures gfx-sampling-tokens" role="grid" aria-label="What may come next" onPointerOver={at} onFocusIn={at} onClick={at} onKeyDown={move}>
        <thead><tr>{COLUMNS.map((column, n) => <th key={n} scope="col">{column}</th>)}</tr></thead>
        <tbody>
          {place.order.slice(0, shown).map((w, rank) => {
            const [, ...cells] = refsOf(rank), cut = place.cut(rank), n = rank * WIDTH, word = vocabulary.word(w);
            return (
              <tr key={rank} class={cut ? "gfx-sampling-cut" : undefined}>
                <th scope="row">
                  <button type="button" class="gfx-chip" data-n={n} tabIndex={n === focused ? 0 : -1} aria-label={`Write ${word}`} onClick={() => onChoose(w)}>{cut ? <s>{word}</s> : word}</button>
                </th>
                <td>
                  <span class="gfx-sampling-bar" aria-hidden="true">
                    <span class="gfx-bar-fill" style={wide(place.shares[w])} /><span class="gfx-sampling-was" style={wide(place.probabilities[w])} />
                  </span>
                </td>
                {cells.map((ref, c) => {
                  const own = n + 1 + c, kind = keyOf(ref) === pointed ? "gfx-figure gfx-pointed" : "gfx-figure";
                  return <td key={c} data-n={own} class={kind} tabIndex={own === focused ? 0 : -1}>{c < 2 ? percent(ref.value) : number(ref.value)}</td>;
                })}
                <td class="gfx-muted">{[cut && `cut: ${cut}`, w === taken && "written", rank === place.drawnRank && place.writing.temperature !== 0 && "drawn"].filter(Boolean).join(", ")}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
});

// The draw

/** The shares laid end to end from 0 to 1, and where the uniform number falls. */
function Ruler({ place, vocabulary }) {
  const { writing, order, drawnRank, uniform } = place, n = place.path.length, word = vocabulary.word(place.drawn);
  if (writing.temperature === 0) return <p>At temperature 0 nothing is drawn: the likeliest token is taken.</p>;
  const bits = [];
  for (let rank = 0, left = 0; rank < place.kept; rank++) {
    const share = place.shares[order[rank]];
    bits.push({ rank, left, share });
    left += share;
  }
  const at = `${100 * uniform}%`;
  return (
    <div class="gfx-sampling-draw">
      <p>
        <b>The draw.</b> The shares are laid end to end, and seed {writing.seed} gives for this place the number{" "}
        <Value name="uniform" index={[n]} value={uniform} />, as likely anywhere between 0 and 1. It falls between{" "}
        <Value name="reach" index={[drawnRank]} value={place.reach(drawnRank)} /> and{" "}
        <Value name="reach" index={[drawnRank + 1]} value={place.reach(drawnRank + 1)} />: <b>{word}</b>.
      </p>
      <div class="gfx-sampling-ruler" role="img" aria-label={`Shares from 0 to 1; ${number(uniform, 4)} falls on ${word}`}>
        <span class="gfx-sampling-mark" style={{ left: at }} />
        {bits.filter(({ share }) => share > 1e-4).map(({ rank, left, share }) => (
          <span key={rank} class={rank === drawnRank ? "gfx-sampling-bit gfx-sampling-hit" : "gfx-sampling-bit"} style={{ left: `${100 * left}%`, width: `${100 * share}%` }}>
            {share > 0.08 && vocabulary.word(order[rank])}
          </span>
        ))}
      </div>
      <div class="gfx-sampling-scale gfx-muted" aria-hidden="true"><span>0</span><span>0.5</span><span>1</span></div>
    </div>
  );
}

// The tree

/** Return the paths that were written since the prompt began, each as a text of ids. */
function useTried(prompt, written) {
  const tried = useRef({ prompt, paths: new Set() });
  if (tried.current.prompt !== prompt) tried.current = { prompt, paths: new Set() };
  written.forEach((_, n) => tried.current.paths.add(String(written.slice(0, n + 1))));
  return tried.current.paths;
}

function Tree({ writing, written, ends, vocabulary, go, prompt }) {
  const tried = useTried(prompt, written);
  const [turned, turn] = useState({}); // paths that the reader opened or closed
  const [active, setActive] = useState("");
  const { pointed, point } = useContext(Pointing);
  const root = written.slice(0, Math.max(0, written.length - ROOT));
  const isOn = (path) => path.every((token, n) => written[n] === token);
  const opened = (path) => turned[path] ?? (isOn(path) || (path.length === written.length + 1 && isOn(path.slice(0, -1))));
  const rows = branches(writing, root, { opened, tried, ends });
  const focused = Math.max(0, rows.findIndex(({ path }) => String(path) === active));
  const tree = useRef(null);
  useLayoutEffect(() => { // the focus stays with its path, wherever that is now
    if (tree.current.contains(document.activeElement)) tree.current.querySelector(`[data-row="${focused}"]`).focus();
  }, [focused]);
  const keys = (event) => {
    const n = Number(event.target.dataset.row), row = rows[n];
    const to = {
      ArrowDown: n + 1, ArrowUp: n - 1, Home: 0, End: rows.length - 1,
      ArrowRight: row.open ? n + 1 : n, ArrowLeft: row.open ? n : rows.findLastIndex(({ level }, m) => m < n && level < row.level),
    }[event.key];
    if (to === undefined && ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    if (to === undefined) go(row.path);
    else if (event.key === "ArrowRight" && !row.open && !row.leaf) turn({ ...turned, [row.path]: true });
    else if (event.key === "ArrowLeft" && row.open) turn({ ...turned, [row.path]: false });
    else event.currentTarget.querySelector(`[data-row="${to}"]`)?.focus();
  };
  return (
    <div>
      <p class="gfx-sampling-root">
        <b>What could be written</b> <span class="gfx-muted">after</span> {vocabulary.decode([...writing.prompt, ...root])}{" "}
        <span class="gfx-muted">(token, its share, and how likely all of it is; Enter or a click goes there)</span>
      </p>
      <div ref={tree} class="gfx-sampling-tree" role="tree" aria-label="What could be written" onKeyDown={keys}>
        {rows.map(({ path, token, level, place, of, leaf, open }, n) => {
          const share = shareRef(writing, path.slice(0, -1), token), whole = pathRef(writing, path), on = isOn(path) && path.length <= written.length;
          const told = on ? "written" : tried.has(String(path)) ? "tried" : leaf ? "ends" : "";
          return (
            <div
              key={n} role="treeitem" aria-level={level} aria-posinset={place} aria-setsize={of} aria-expanded={leaf ? undefined : open}
              aria-selected={on} data-row={n} tabIndex={n === focused ? 0 : -1} class={`gfx-sampling-branch${on ? " gfx-sampling-on" : ""}`}
              style={{ "--level": level - 1 }} onClick={() => go(path)} onPointerEnter={() => point(whole)}
              onFocus={() => {
                setActive(String(path));
                point(whole);
              }}
            >
              <span
                class="gfx-sampling-twist" aria-hidden="true" onClick={leaf ? undefined : (event) => {
                  event.stopPropagation();
                  turn({ ...turned, [path]: !open });
                }}
              >
                {leaf ? "■" : open ? "▾" : "▸"}
              </span>
              <span class="gfx-sampling-word">{vocabulary.word(token)}</span>
              <span class={markOf(share, pointed)} onPointerEnter={() => point(share)} onPointerLeave={() => point(whole)}>{percent(share.value)}</span>
              <span class="gfx-sampling-bar" aria-hidden="true"><span class="gfx-bar-fill" style={{ width: `${100 * whole.value}%` }} /></span>
              <span class={markOf(whole, pointed)}>{percent(whole.value)}</span>
              <span class="gfx-muted">{told}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function markOf(ref, pointed) {
  return pointed && keyOf(pointed) === keyOf(ref) ? "gfx-sampling-share gfx-pointed" : "gfx-sampling-share";
}

// In words

function sentence({ place, over, full, written, vocabulary }) {
  const { writing, order, shares, kept } = place;
  const told = order.slice(0, Math.min(3, kept)).map((w) => `${vocabulary.word(w)} ${percent(shares[w])}`).join(", ");
  const draw = writing.temperature === 0 ? "temperature 0 takes the likeliest" : `seed ${writing.seed} draws ${vocabulary.word(place.drawn)}`;
  const stop = over ? `The text is “${vocabulary.decode([...writing.prompt, ...written])}” and is over. ` : full ? "The text is as long as it may be. " : "";
  return `${stop}After “${vocabulary.decode(place.text)}” ${kept} of ${order.length} tokens can be drawn: ${told}${kept > 3 ? ", …" : ""}; ${draw}.`;
}

function twin({ writing, place, written, ends, vocabulary }) {
  const { order, logits, probabilities, shares } = place;
  const cutWords = (rank) => (place.cut(rank) ? `cut: ${why(place, place.cut(rank))}` : "stays");
  const ids = [...writing.prompt, ...written], first = writing.prompt.length;
  return [
    {
      caption: `What may come after “${vocabulary.decode(place.text)}”`, columns: ["token", "id", "logit", "probability", "share", "up to", "note"],
      rows: order.map((w, rank) => [vocabulary.word(w), String(w), logits[w], probabilities[w], shares[w], place.reach(rank + 1), cutWords(rank)]),
    },
    {
      caption: "The text", columns: ["position", "token", "share"],
      rows: ids.map((id, n) => [String(n), vocabulary.word(id), n < first ? "prompt" : writing.at(written.slice(0, n - first)).shares[id]]),
    },
    {
      caption: "The draw", columns: ["uniform number", "token"],
      rows: writing.temperature === 0 ? [] : [[String(place.uniform), vocabulary.word(place.drawn)]],
    },
    {
      caption: "What could be written", columns: ["text", "likelihood"],
      rows: branches(writing, [], { opened: ({ length }) => length < 2, tried: new Set(), ends }).map(({ path }) => [vocabulary.decode(path), writing.likelihood(path)]),
    },
  ];
}
