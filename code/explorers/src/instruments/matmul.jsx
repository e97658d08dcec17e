/** Any matrix product of both models, cell by cell: a row meets a column, and the sum builds. */

import { useContext, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { argmax, row as rowOf } from "../engine/index.js";
import { Filled, NAMES, PRODUCTS, productOf } from "../products.js";
import { symbolOf } from "../provenance.js";
import { huesOf, stepOf } from "../kit/colour.js";
import { cellOf, destination, walkedByKeys } from "../kit/matrix.jsx";
import { memo } from "../kit/memo.jsx";
import {
  Button, Choice, Figures, Frame, Matrix, Plot, Pointing, Prompt, Row, Select, Slider, Value, choice, exact, keyOf, number,
  percent, readPrompt, shape, text, usePrompt, whole,
} from "../kit/index.js";

const PROMPTS = { groot: "<START> i am groot", tiny: "the cat sat on the mat" };
const MODELS = [["groot", "BabyGroot"], ["tiny", "LLaMA-style"]];
const PRESETS = [
  ["Q Kᵀ → causal softmax", { which: "groot", product: "scores" }],
  ["A V", { which: "groot", product: "context" }],
  ["x W_Qᵀ, BabyGroot", { which: "groot", product: "q" }],
  ["x W_Qᵀ, LLaMA-style", { which: "tiny", product: "q" }],
  ["hidden × head", { which: "tiny", product: "logits" }],
];
const MOST = 64; // rows, or columns, of a factor that are shown at once
const PRINTED = 10; // columns of a factor up to which its numbers stand in their cells

export const matmul = {
  name: "matmul",
  title: "A product, cell by cell",
  fields: {
    which: choice("groot", MODELS.map(([name]) => name)),
    prompt: text(PROMPTS.groot),
    product: choice("scores", NAMES),
    layer: whole(0, 0, 63),
    head: whole(0, 0, 63),
    row: whole(2, 0, 10000),
    column: whole(1, 0, 10000),
    terms: whole(3, 0, 10000),
  },
  View: (props) => <View key={props.state.which} {...props} />, // each model has its own words
};

function View({ state, set, data }) {
  const { which } = state, model = data[which], [vocabulary, longest] = reading(data, which);
  const prompt = usePrompt(state.prompt, vocabulary, longest, PROMPTS[which]);
  const { n_layers: layers = 1, n_heads: heads = 1 } = model.config ?? {};
  const layer = Math.min(state.layer, layers - 1), head = Math.min(state.head, heads - 1);
  const pass = useMemo(() => ({ model, seen: model.trace(prompt.ids) }), [model, String(prompt.ids)]);
  const filled = useMemo(() => new Filled(productOf(pass, state.product, layer, head)), [pass, state.product, layer, head]);
  const { product } = filled, headed = ["scores", "context"].includes(product.name);
  const row = Math.min(state.row, product.rows - 1), column = Math.min(state.column, product.columns - 1);
  const terms = Math.min(state.terms, product.inner);
  const words = prompt.ids.map((id) => vocabulary.word(id));
  const explainer = useMemo(() => (ref) => filled.explain(ref), [filled]);
  const at = { filled, product, row, column, terms, words, columns: columnWords(product, words, vocabulary) };
  const choose = (wanted) => {
    const other = wanted.which !== which, { ids = [0] } = other ? readPrompt(PROMPTS[wanted.which], ...reading(data, wanted.which)) : prompt;
    set({ ...wanted, ...(other && { prompt: PROMPTS[wanted.which] }), ...(wanted.product === "logits" && likeliest(data[wanted.which], ids)) });
  };
  const start = terms ? { name: "sum", index: [row, column, terms - 1] } : { name: "product", index: [row, column] };
  return (
    <Frame pass={pass} explainer={explainer} first={start} sentence={sentence(at)} twin={() => twin(at)}>
      <div class="gfx-row gfx-mm-presets" role="group" aria-label="Presets">
        {PRESETS.map(([label, preset]) => (
          <Button key={label} pressed={preset.which === which && preset.product === product.name} onClick={() => choose(preset)}>{label}</Button>
        ))}
      </div>
      <Row>
        <Choice label="Model" value={which} options={MODELS} onChange={(name) => choose({ which: name, product: product.name })} />
        <Select label="Product" value={product.name} options={PRODUCTS[which]} onChange={(name) => choose({ which, product: name })} />
        {layers > 1 && product.name !== "logits" && <Choice label="Block" value={layer} options={numbered(layers)} onChange={(n) => set({ layer: n })} />}
        {heads > 1 && headed && <Choice label="Head" value={head} options={numbered(heads)} onChange={(n) => set({ head: n })} />}
      </Row>
      <Prompt value={prompt.text} error={prompt.error} vocabulary={vocabulary} max={longest} onChange={(text) => set({ prompt: text })} />
      <div class="gfx-row gfx-mm-steps" role="group" aria-label="Terms">
        <Button onClick={() => set({ terms: 0 })} disabled={terms === 0}>None</Button>
        <Button onClick={() => set({ terms: terms - 1 })} disabled={terms === 0}>− 1 term</Button>
        <Button onClick={() => set({ terms: terms + 1 })} disabled={terms === product.inner}>+ 1 term</Button>
        <Button onClick={() => set({ terms: product.inner })} disabled={terms === product.inner}>All</Button>
        <Slider label="terms added" value={terms} min={0} max={product.inner} show={(n) => `${n} of ${product.inner}`} onChange={(n) => set({ terms: n })} />
      </div>
      <Crossing {...at} set={set} />
      {product.name === "scores" && <Softmax pass={pass} names={product.names} head={head} row={row} words={words} />}
    </Frame>
  );
}

/** Return the words that a model reads, and how many at once. */
function reading(data, which) {
  return which === "groot" ? [data.vocabulary, data.groot.maxLen] : [data.tinyVocabulary, data.tiny.config.max_seq_len];
}

function numbered(count) {
  return Array.from({ length: count }, (_, n) => [n, String(n)]);
}

/** Return the cell to begin with in a model's logits: the likeliest word after the third token. */
function likeliest(model, ids) {
  const row = Math.min(2, ids.length - 1);
  return { row, column: argmax(rowOf(model.forward(ids), row)) };
}

function columnWords({ name, columns }, words, vocabulary) {
  if (name === "scores") return words;
  return name === "logits" ? vocabulary.words : Array.from({ length: columns }, (_, n) => String(n));
}

// The product

/** The right factor above the result, the left one beside it, so that row and column meet in their cell. */
function Crossing({ filled, product, row, column, terms, words, columns, set }) {
  const { rows, inner, names, roles } = product, now = terms - 1;
  const [across, down, through] = [part(product.columns, column), part(rows, row), part(inner, Math.max(now, 0))];
  const partial = filled.sum(row, column, terms);
  const left = useMemo(() => ({ cells: cut(filled.left, down, through), full: most(filled.left) }), [filled, down[0], through[0]]);
  const right = useMemo(() => ({ cells: cut(filled.right, through, across), full: most(filled.right) }), [filled, through[0], across[0]]);
  const result = useMemo(() => ({ cells: cut(filled.cells, down, across), full: most(filled.cells) }), [filled, down[0], across[0]]);
  const numbers = Array.from({ length: through[1] - through[0] }, (_, n) => String(through[0] + n));
  const own = words.slice(...down), heads = columns.slice(...across);
  const met = product.columns <= 2 * PRINTED ? " gfx-mm-met" : ""; // cells of all three in one size
  const transposed = names[0].endsWith("attention") ? "" : "ᵀ";
  return (
    <div class={`gfx-mm${met}`}>
      <Sum filled={filled} row={row} column={column} terms={terms} />
      <Cells
        class="gfx-mm-right" title={<><b>{symbolOf(names[1])}{transposed}</b> <span class="gfx-mono gfx-muted">{names[1]}</span></>} of={names[1]} {...right} role={roles[1]}
        sizes={[inner, product.columns]} rows={numbers} columns={heads} printed={inner <= PRINTED && product.columns <= 2 * PRINTED} litColumn={column - across[0]} current={[now - through[0], column - across[0]]}
      />
      <Cells
        class="gfx-mm-left" title={<><b>{symbolOf(names[0])}</b> <span class="gfx-mono gfx-muted">{names[0]}</span></>} of={names[0]} {...left} role={roles[0]}
        sizes={[rows, inner]} rows={own} columns={numbers} printed={inner <= PRINTED} litRow={row - down[0]} current={[row - down[0], now - through[0]]}
      />
      <Cells
        class="gfx-mm-result" title={<><b>their product</b> <span class="gfx-mono gfx-muted">{product.result ? names[2] : "row · column"}</span></>} of="product" {...result} role={roles[2]}
        sizes={[rows, product.columns]} rows={own} columns={heads} printed={product.columns <= 2 * PRINTED} chosen={[row - down[0], column - across[0]]} partial={terms < inner ? partial : null}
        onChoose={(r, c) => set({ row: down[0] + r, column: across[0] + c })}
      />
    </div>
  );
}

/** Return from where to where n rows or columns are shown: around the chosen one where they are many. */
function part(n, chosen) {
  const start = n <= MOST ? 0 : Math.min(Math.max(chosen - MOST / 2, 0), n - MOST);
  return [start, Math.min(n, start + MOST)];
}

function cut(cells, rows, columns) {
  return cells.slice(...rows).map((line) => line.slice(...columns));
}

function most(cells) {
  let found = 0;
  for (const line of cells) {
    for (const { value } of line) if (Number.isFinite(value)) found = Math.max(found, Math.abs(value));
  }
  return found;
}

/** A factor or the result. One stop for Tab; in the result, arrow keys choose the cell. */
function Cells(props) {
  const { pointed, point } = useContext(Pointing);
  const places = useMemo(() => new Map(props.cells.flatMap((line, r) => line.map((ref, c) => [keyOf(ref), [r, c]]))), [props.cells]);
  const at = (pointed && places.get(keyOf(pointed))) || [-1, -1];
  return (
    <figure class={`gfx-matrix ${props.class}`}>
      <figcaption><span>{props.title}</span> <span class="gfx-mono gfx-muted">{shape(props.sizes)}</span></figcaption>
      <Grid {...props} title={undefined} pointed={at} point={point} />
    </figure>
  );
}

const Grid = memo(function Grid({ of, cells, full, role, rows, columns, printed, litRow, litColumn, current = [], chosen, partial = null, pointed, sizes, point, onChoose }) {
  const [active, setActive] = useState([0, 0]);
  const box = useScrollTo(chosen ?? current);
  useLitColumn(box, litColumn);
  const width = columns.length, [low, high] = huesOf(role);
  const focus = chosen ?? [Math.min(active[0], cells.length - 1), Math.min(active[1], width - 1)];
  const touch = (event) => {
    const n = cellOf(event.target);
    if (n === null) return;
    const r = Math.floor(n / width), c = n % width;
    if (event.type === "pointerover") point(cells[r][c]);
    else if (onChoose) onChoose(r, c);
    else {
      setActive([r, c]);
      point(cells[r][c]);
    }
  };
  const move = walkedByKeys(cells.length, width);
  return (
    <div class="gfx-scroll" ref={box}>
      <table
        class={printed ? "gfx-grid" : "gfx-grid gfx-small"} role="grid" aria-label={`${of} ${shape(sizes)}`} style={{ "--low": `var(--gf-${low})`, "--high": `var(--gf-${high})` }}
        onPointerOver={touch} onFocusIn={onChoose ? undefined : touch} onClick={touch} onKeyDown={onChoose ? chosenBy(cells.length, width, onChoose) : move}
      >
        {printed && <thead><tr><td />{columns.map((word, c) => <th key={c} scope="col">{word}</th>)}</tr></thead>}
        <tbody>
          {cells.map((line, r) => (
            <Line
              key={r} line={line} from={r * width} word={rows[r]} full={full} printed={printed} lit={r === litRow}
              current={current[0] === r ? current[1] : -1} chosen={chosen?.[0] === r ? chosen[1] : -1} partial={chosen?.[0] === r ? partial : null}
              pointed={pointed[0] === r ? pointed[1] : -1} focus={focus[0] === r ? focus[1] : -1}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
});

/** Return a ref to a frame that scrolls sideways to the cell that is looked at. */
function useScrollTo([r, c]) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const frame = box.current, cell = frame.querySelectorAll("tbody tr")[r]?.querySelectorAll("td")[c];
    if (!cell || frame.scrollWidth <= frame.clientWidth) return;
    const from = cell.offsetLeft, to = from + cell.offsetWidth;
    if (from < frame.scrollLeft || to > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = from - frame.clientWidth / 2;
  }, [r, c]);
  return box;
}

/** Frame the cells of a column: by hand, as drawing every row again would take longer than a frame. */
function useLitColumn(box, column) {
  useLayoutEffect(() => {
    if (column === undefined) return undefined;
    const cells = Array.from(box.current.querySelectorAll("tbody tr"), (row) => row.cells[column + 1]).filter(Boolean);
    cells.forEach((cell) => cell.classList.add("gfx-lit"));
    return () => cells.forEach((cell) => cell.classList.remove("gfx-lit"));
  });
}

/** Return what arrow keys do in the result: they choose the cell they lead to. */
function chosenBy(height, width, onChoose) {
  return (event) => {
    const to = destination(event.key, cellOf(event.target), height, width);
    if (to === null) return;
    event.preventDefault();
    onChoose(Math.floor(to / width), to % width);
    event.currentTarget.querySelector(`[data-n="${to}"]`).focus();
  };
}

const Line = memo(function Line({ line, from, word, full, printed, lit, current, chosen, partial, pointed, focus }) {
  return (
    <tr>
      <th scope="row">{word}</th>
      {line.map((ref, c) => {
        const value = c === chosen && partial !== null ? partial : ref.value;
        const step = full ? stepOf(Math.abs(value) / full) : 0, shown = number(value);
        const marks = [
          value < 0 ? "gfx-low" : "gfx-high", step === 100 && "gfx-deep", lit && "gfx-lit",
          c === current && "gfx-made", (c === chosen || c === pointed) && "gfx-pointed",
        ];
        return (
          <td key={c} data-n={from + c} class={marks.filter(Boolean).join(" ")} style={{ "--p": `${step}%` }} tabIndex={c === focus ? 0 : -1} aria-label={printed ? undefined : shown} aria-selected={c === chosen || undefined}>
            {printed ? shown : null}
          </td>
        );
      })}
    </tr>
  );
});

// The sum

/** The terms added so far, their sum as it grew, and what becomes of it. */
function Sum({ filled, row, column, terms }) {
  const { product } = filled, box = useRef(null), done = terms === product.inner;
  const rows = useMemo(
    () => filled.terms(row, column, terms).map((cells, i) => [String(i), ...cells]),
    [filled, row, column, terms],
  );
  useLayoutEffect(() => {
    const scroll = box.current?.querySelector(".gfx-scroll");
    if (scroll) scroll.scrollTop = scroll.scrollHeight;
  }, [rows]);
  const heads = ["term", symbolOf(product.names[0]), symbolOf(product.names[1]), "product", "sum"];
  return (
    <div class="gfx-mm-sum" ref={box}>
      {terms ? <Figures label="Terms added" columns={heads} rows={rows} /> : <p class="gfx-muted">No term is added yet.</p>}
      <p class="gfx-mm-then">
        {terms} of {product.inner} terms: <Value {...(done ? filled.whole(row, column) : rows.at(-1)?.[4] ?? { name: "product", index: [row, column], value: 0 })} />
        {done && product.then.map(([label, refOf]) => {
          const ref = refOf(row, column);
          return <span key={label}> {label} → <Value {...ref} show={label === "softmax" ? percent : undefined} /></span>;
        })}
      </p>
      <Growth filled={filled} row={row} column={column} terms={terms} />
    </div>
  );
}

/** The sum as it grew, term by term. */
function Growth({ filled, row, column, terms }) {
  const { inner } = filled.product;
  const sums = useMemo(() => [0, ...filled.terms(row, column, inner).map(([, , , { value }]) => value)], [filled, row, column]);
  const finite = sums.filter(Number.isFinite), min = Math.min(...finite), max = Math.max(...finite);
  const pad = 0.08 * (max - min) || 1;
  const points = sums.slice(0, terms + 1).map((value, n) => [n, value]);
  return (
    <Plot
      label={`The sum after each of ${terms} terms of ${inner}`} height={130} lines={[{ points, role: "attention" }]}
      points={[{ x: terms, y: sums[terms], role: "attention", size: 4 }]}
      x={{ min: 0, max: inner, label: "terms", ticks: [0, inner] }} y={{ min: min - pad, max: max + pad, label: "sum", ticks: [...new Set([min, max])] }}
    />
  );
}

/** What becomes of all scores: masked, then each row as shares. */
function Softmax({ pass, names, head, row, words }) {
  const here = names[2].slice(0, -"scores".length);
  return (
    <Row>
      {["scores", "masked_scores", "attention"].map((own) => {
        const name = here + own, tensor = pass.seen[name], index = tensor.shape.length === 3 ? [head, row] : [row];
        return (
          <Matrix
            key={own} name={name} tensor={tensor} head={head} rows={words} columns={words} role={own === "attention" ? "attention" : "scores"}
            scale={own === "attention" ? 1 : undefined} lit={words.map((_, c) => keyOf({ name, index: [...index, c] }))}
          />
        );
      })}
    </Row>
  );
}

// In words

function sentence({ filled, product, row, column, terms, words, columns }) {
  const total = filled.sum(row, column, product.inner), so = filled.sum(row, column, terms);
  const where = `Row ${words[row]} of ${symbolOf(product.names[0])} meets column ${columns[column]} of ${symbolOf(product.names[1])}`;
  const sums = terms < product.inner
    ? `${terms} of ${product.inner} products add up to ${number(so, 4)}, all to ${number(total, 4)}`
    : `its ${product.inner} products add up to ${number(total, 4)}`;
  const then = terms < product.inner ? [] : product.then.map(([label, ref]) => {
    const { value } = ref(row, column);
    return `${label}: ${label === "softmax" ? percent(value) : number(value, 4)}`;
  });
  return `${[`${where}: ${sums}`, ...then].join("; ")}.`;
}

function twin({ filled, product, row, column, words, columns }) {
  const terms = filled.terms(row, column, product.inner);
  return [
    {
      caption: `Row ${words[row]} times column ${columns[column]}, all terms`,
      columns: ["term", symbolOf(product.names[0]), symbolOf(product.names[1]), "product", "sum so far"],
      rows: terms.map((refs, i) => [i, ...refs.map(({ value }) => exact(value))]),
    },
    {
      caption: "The product",
      columns: ["row", ...columns],
      rows: filled.cells.map((line, r) => [words[r], ...line.map(({ value }) => exact(value))]),
    },
  ];
}
