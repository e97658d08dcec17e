/** Rows of numbers one below the other, whatever tensors they come from; each can be pointed at. */

import { useContext, useMemo, useState } from "preact/hooks";
import { huesOf, stepOf } from "./colour.js";
import { asPythonDict, number } from "./format.js";
import { Copy, Pointing, keyOf } from "./frame.jsx";
import { cellOf } from "./matrix.jsx";
import { memo } from "./memo.jsx";

/**
 * One stop for Tab; arrow keys lead from cell to cell.
 * @param {object} props
 * @param {string} props.label what the rows are
 * @param {string} props.name under which the rows are copied as Python
 * @param {string[]} props.columns heads
 * @param {string[]} [props.asides] heads of what stands beside the rows
 * @param {{key: string, head: *, cells: Ref[], asides?: Ref[], role: string, scale: number, mark?: string,
 *   show?: function(Ref): string, told?: function(Ref): string}[]} props.rows `cells` are spread over the
 *   columns; `show` writes a cell, `told` says it to those who cannot see it; `mark` is a class of the row
 */
export function Stack(props) {
  const { pointed, point, made } = useContext(Pointing);
  const { label, name, rows } = props;
  const marked = useMemo(() => ` ${[...made].join(" ")} `, [made]);
  const code = () => asPythonDict(name, Object.fromEntries(rows.map(({ key, cells }) => [key, numbers(cells)])));
  return (
    <figure class="gfx-matrix gfx-stack">
      <figcaption><span>{label}</span> <Copy label="copy" name={`Copy ${label} as Python`} text={code} /></figcaption>
      <Grid {...props} point={point} pointed={pointed ? keyOf(pointed) : ""} made={marked} />
    </figure>
  );
}

function numbers(cells) {
  return { shape: [cells.length], data: cells.map(({ value }) => value) };
}

const Grid = memo(function Grid({ label, columns, asides = [], rows, point, pointed, made }) {
  const [active, setActive] = useState(0);
  const places = useMemo(() => laidOut(rows), [rows]);
  const wide = Math.max(...rows.map(({ cells }) => cells.length)); // in the narrowest cells
  const focused = Math.min(active, places.length - 1);
  const at = (event) => {
    const n = cellOf(event.target);
    if (n === null) return;
    if (event.type !== "pointerover") setActive(n);
    point(places[n].ref);
  };
  const move = (event) => {
    const n = cellOf(event.target), to = n === null ? null : leads(event.key, places, n);
    if (to === null) return;
    event.preventDefault();
    event.currentTarget.querySelector(`[data-n="${to}"]`).focus();
  };
  const markOf = (ref) => {
    const key = keyOf(ref);
    return (key === pointed ? " gfx-pointed" : "") + (made.includes(` ${key} `) ? " gfx-made" : "");
  };
  return (
    <div class="gfx-scroll">
      <table class="gfx-grid" role="grid" aria-label={label} style={{ "--n": columns.length, "--m": asides.length }} onPointerOver={at} onFocusIn={at} onClick={at} onKeyDown={move}>
        <colgroup>
          <col class="gfx-stack-head" />
          {Array.from({ length: wide }, (_, c) => <col key={c} style={{ width: `${(3 * columns.length) / wide}rem` }} />)}
          {asides.map((aside) => <col key={aside} class="gfx-stack-aside" />)}
        </colgroup>
        <thead>
          <tr>
            <td />
            {columns.map((column, c) => <th key={c} scope="col" colSpan={wide / columns.length}>{column}</th>)}
            {asides.map((aside) => <th key={aside} scope="col">{aside}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((line, r) => (
            <Line key={line.key} line={line} span={wide / line.cells.length} first={places.findIndex((place) => place.r === r)} focused={focused} markOf={markOf} />
          ))}
        </tbody>
      </table>
    </div>
  );
});

function Line({ line, span, first, focused, markOf }) {
  const { head, cells, asides = [], role, scale, mark, show = written, told } = line, [low, high] = huesOf(role);
  return (
    <tr class={mark} style={{ "--low": `var(--gf-${low})`, "--high": `var(--gf-${high})` }}>
      <th scope="row">{head}</th>
      {cells.map((ref, c) => {
        const step = scale ? stepOf(Math.abs(ref.value) / scale) : 0, n = first + c;
        const kind = `${ref.value < 0 ? "gfx-low" : "gfx-high"}${step === 100 ? " gfx-deep" : ""}`;
        return (
          <td key={c} data-n={n} colSpan={span} class={kind + markOf(ref)} style={{ "--p": `${step}%` }} tabIndex={n === focused ? 0 : -1} aria-label={told?.(ref)}>
            {show(ref)}
          </td>
        );
      })}
      {asides.map((ref, c) => {
        const n = first + cells.length + c;
        return (
          <td key={`a${c}`} data-n={n} class={`gfx-aside${markOf(ref)}`} tabIndex={n === focused ? 0 : -1}>{written(ref)}</td>
        );
      })}
    </tr>
  );
}

const written = ({ value }) => number(value);

/** Return the cells of all rows, each with its row and the share of the width where its middle is. */
function laidOut(rows) {
  return rows.flatMap(({ cells, asides = [] }, r) => [
    ...cells.map((ref, c) => ({ ref, r, middle: (c + 0.5) / cells.length })),
    ...asides.map((ref, c) => ({ ref, r, middle: 1.5 + c })),
  ]);
}

/** Return the place that a key leads to, or null if the key means nothing here. */
function leads(key, places, n) {
  const { r, middle } = places[n];
  const inside = (to) => (places[to]?.r === r ? to : n);
  const above = (row) => {
    let best = n;
    places.forEach((place, to) => {
      const off = Math.abs(place.middle - middle);
      if (place.r === row && (places[best].r !== row || off < Math.abs(places[best].middle - middle))) best = to;
    });
    return best;
  };
  const own = () => places.findIndex((place) => place.r === r);
  const to = {
    ArrowLeft: () => inside(n - 1), ArrowRight: () => inside(n + 1), ArrowUp: () => above(r - 1), ArrowDown: () => above(r + 1),
    Home: own, End: () => own() + places.filter((place) => place.r === r).length - 1,
  }[key];
  return to ? to() : null;
}
