/** A table of figures of different kinds, each of which can be pointed at. */

import { useContext, useState } from "preact/hooks";
import { number } from "./format.js";
import { Pointing, keyOf } from "./frame.jsx";
import { cellOf, walkedByKeys } from "./matrix.jsx";
import { memo } from "./memo.jsx";

/**
 * One stop for Tab; arrow keys lead from cell to cell.
 * @param {object} props
 * @param {string} props.label what the table shows
 * @param {string[]} props.columns heads, that of the row heads first
 * @param {Array[]} props.rows the head of a row, then its cells: texts, or numbers {name, index, value} with
 *   `show`, a function that writes the number, and `mark`, a class; of four decimals if it is not given
 */
export function Figures(props) {
  const { pointed, point } = useContext(Pointing);
  return <Grid {...props} point={point} pointed={pointed && keyOf(pointed)} />;
}

const Grid = memo(function Grid({ label, columns, rows, point, pointed }) {
  const [active, setActive] = useState(0);
  const width = columns.length - 1, last = rows.length * width - 1;
  const at = (event) => {
    const n = cellOf(event.target);
    if (n === null) return;
    if (event.type !== "pointerover") setActive(n);
    const cell = rows[Math.floor(n / width)][(n % width) + 1];
    if (cell?.name) point(cell);
  };
  const move = walkedByKeys(rows.length, width);
  return (
    <div class="gfx-scroll">
      <table class="gfx-table gfx-figures" role="grid" aria-label={label} onPointerOver={at} onFocusIn={at} onClick={at} onKeyDown={move}>
        <thead><tr>{columns.map((column, n) => (column ? <th key={n} scope="col">{column}</th> : <td key={n} />))}</tr></thead>
        <tbody>
          {rows.map(([head, ...cells], r) => (
            <tr key={r}>
              <th scope="row">{head}</th>
              {cells.map((cell, c) => {
                const n = r * width + c;
                return (
                  <td key={c} data-n={n} class={classOf(cell, pointed)} tabIndex={n === Math.min(active, last) ? 0 : -1}>
                    {cell?.name ? (cell.show ? cell.show(cell.value) : number(cell.value, 4)) : cell}
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

function classOf(cell, pointed) {
  if (!cell?.name) return undefined;
  return `gfx-figure ${cell.mark ?? ""}${keyOf(cell) === pointed ? " gfx-pointed" : ""}`;
}
