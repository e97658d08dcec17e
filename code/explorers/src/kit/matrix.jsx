/** A matrix with every number in its cell, coloured as in the figures; any cell can be pointed at. */

import { useContext, useMemo, useState } from "preact/hooks";
import { huesOf, largest, stepOf } from "./colour.js";
import { asPython, number, shape } from "./format.js";
import { Copy, Pointing, keyOf } from "./frame.jsx";
import { memo } from "./memo.jsx";
import { symbolOf } from "../provenance.js";

/**
 * @param {object} props
 * @param {string} props.name the tensor's trace name or weight name, by which its numbers are explained
 * @param {import("../engine/tensor.js").Tensor} props.tensor [columns], [rows, columns] or [heads, rows, columns]
 * @param {string} props.role a palette role
 * @param {string[]} [props.rows] labels
 * @param {string[]} [props.columns] labels
 * @param {number} [props.head] which head of a tensor of three dimensions
 * @param {number} [props.from] position of the first row, where a cache held earlier ones
 * @param {string} [props.title] instead of symbol and name
 * @param {number} [props.scale] magnitude of the full hue; the largest present if not given
 * @param {number|number[]} [props.digits] of every number, or of each column's
 * @param {string[]} [props.lit] keys of cells to frame, such as "q[2,0]"
 * @param {boolean} [props.upright] whether the one column is a vector [rows] that stands upright
 * @param {boolean} [props.bare] no copy button
 * @param {boolean} [props.printed] false for small cells that show their colour alone
 * @param {function(number[]): void} [props.onChoose] is told the index of a cell that is clicked, or
 *   entered with Enter or the space bar
 */
export function Matrix(props) {
  const { pointed, point, made } = useContext(Pointing);
  const { name, tensor, lit = NONE } = props;
  const marks = useMemo(() => {
    const here = (key) => key.startsWith(`${name}[`);
    return {
      pointed: pointed?.name === name ? keyOf(pointed) : "",
      made: [...made].filter(here).join(" "),
      lit: lit.join(" "),
    };
  }, [pointed, made, name, lit]);
  const said = props.upright ? { ...tensor, shape: tensor.shape.slice(0, 1) } : tensor;
  return (
    <figure class="gfx-matrix">
      <figcaption>
        <span>{props.title ?? (<><b>{symbolOf(name)}</b> <span class="gfx-mono gfx-muted">{name}</span></>)}</span>{" "}
        <span class="gfx-mono gfx-muted">{shape(said.shape)}</span>
        {!props.bare && <Copy label="copy" name={`Copy ${name} as Python`} text={() => asPython(name, said)} />}
      </figcaption>
      <Grid {...props} {...marks} point={point} />
    </figure>
  );
}

const NONE = [];

/** The cells. Drawn again only if its numbers or marks have changed. */
const Grid = memo(function Grid(props) {
  const { name, tensor, role, rows, columns, head = 0, from = 0, scale, digits = 2, printed = true, point, onChoose } = props;
  const [height, width, start] = layout(tensor, head);
  const [active, setActive] = useState(0); // the one cell that Tab reaches
  const full = scale ?? largest(tensor.data);
  const indexOf = (n) => indexAt(tensor.shape, head, n, width, from);
  const focused = Math.min(active, height * width - 1);
  const [low, high] = huesOf(role);

  const touch = (event) => {
    const n = cellOf(event.target);
    if (n === null) return;
    if (event.type !== "pointerover") setActive(n);
    point({ name, index: indexOf(n) });
    if (event.type === "click") onChoose?.(indexOf(n));
  };
  const move = (event) => {
    const n = cellOf(event.target), to = destination(event.key, n, height, width);
    const enters = onChoose && n !== null && [" ", "Enter"].includes(event.key);
    if (to !== null || enters) event.preventDefault();
    if (enters) onChoose(indexOf(n));
    if (to === null) return;
    const cells = event.currentTarget.querySelectorAll("[data-n]");
    setActive(to);
    cells[to].focus();
  };
  const line = (r) => (
    <tr key={r}>
      {rows && <th scope="row">{rows[r]}</th>}
      {Array.from({ length: width }, (_, c) => {
        const n = r * width + c, value = tensor.data[start + n];
        return <Cell key={c} n={n} value={value} full={full} digits={digits[c] ?? digits} printed={printed} marks={marksOf(props, keyOf({ name, index: indexOf(n) }))} focused={n === focused} />;
      })}
    </tr>
  );
  return (
    <div class="gfx-scroll">
      <table
        class={printed ? "gfx-grid" : "gfx-grid gfx-small"} role="grid" aria-label={`${name} ${shape(tensor.shape)}`} onPointerOver={touch}
        onFocusIn={touch} onClick={touch} onKeyDown={move}
        style={{ "--low": `var(--gf-${low})`, "--high": `var(--gf-${high})` }}
      >
        {columns && (
          <thead><tr>{rows && <td />}{columns.map((column, c) => <th key={c} scope="col">{column}</th>)}</tr></thead>
        )}
        <tbody>{Array.from({ length: height }, (_, r) => line(r))}</tbody>
      </table>
    </div>
  );
});

function Cell({ n, value, full, digits, printed, marks, focused }) {
  const hidden = value <= -1e8;
  const step = hidden || !full ? 0 : stepOf(Math.abs(value) / full);
  const kind = `${hidden ? "gfx-hidden" : value < 0 ? "gfx-low" : "gfx-high"}${step === 100 ? " gfx-deep" : ""}${marks}`;
  return (
    <td data-n={n} class={kind} style={{ "--p": `${step}%` }} tabIndex={focused ? 0 : -1} aria-label={printed ? undefined : number(value, digits)}>
      {printed && number(value, digits)}
    </td>
  );
}

function marksOf({ pointed, made, lit }, key) {
  const has = (keys) => keys !== "" && ` ${keys} `.includes(` ${key} `);
  return (key === pointed ? " gfx-pointed" : "") + (has(made) ? " gfx-made" : "") + (has(lit) ? " gfx-lit" : "");
}

/** Return rows, columns and the place of the first number shown. */
function layout({ shape: sizes }, head) {
  if (sizes.length === 1) return [1, sizes[0], 0];
  const [height, width] = sizes.slice(-2);
  return [height, width, sizes.length === 3 ? head * height * width : 0];
}

function indexAt(sizes, head, n, width, from) {
  const row = from + Math.floor(n / width), column = n % width;
  return [[column], [row, column], [head, row, column]][sizes.length - 1];
}

/** Return the number of the cell that an event is about, or null. */
export function cellOf(target) {
  const cell = target.closest?.("[data-n]");
  return cell ? Number(cell.dataset.n) : null;
}

/**
 * Return what a grid of numbered cells does on a key: the focus goes to the cell that it leads to.
 * @param {number} height
 * @param {number} width
 */
export function walkedByKeys(height, width) {
  return (event) => {
    const to = destination(event.key, cellOf(event.target), height, width);
    if (to === null) return;
    event.preventDefault();
    event.currentTarget.querySelector(`[data-n="${to}"]`).focus();
  };
}

/** Return the cell that a key leads to, or null if the key means nothing here. */
export function destination(key, n, height, width) {
  if (n === null) return null;
  const r = Math.floor(n / width), c = n % width;
  const to = {
    ArrowUp: [Math.max(r - 1, 0), c], ArrowDown: [Math.min(r + 1, height - 1), c],
    ArrowLeft: [r, Math.max(c - 1, 0)], ArrowRight: [r, Math.min(c + 1, width - 1)],
    Home: [r, 0], End: [r, width - 1],
  }[key];
  return to ? to[0] * width + to[1] : null;
}
