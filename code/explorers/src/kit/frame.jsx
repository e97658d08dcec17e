/** The frame around every explorer, and the panel that spells out the number one points at. */

import { createContext } from "preact";
import { useCallback, useContext, useMemo, useState } from "preact/hooks";
import { explain, symbolOf } from "../provenance.js";
import { exact, number, operand } from "./format.js";
import { memo } from "./memo.jsx";
import { useId } from "./ids.js";

/** What the host offers: title, name, reset(), link() or undefined. */
export const Host = createContext({});

/** The number pointed at: {pointed, point(ref), made}; `made` holds the keys of its operands. */
export const Pointing = createContext({ pointed: null, point: () => {}, made: new Set() });

/** Return the key of a number: "q[2,0]"; its name alone where there is one such number only. */
export function keyOf({ name, index }) {
  return index.length ? `${name}[${index.join(",")}]` : name;
}

/**
 * The frame: title and tools, the explorer, the formula of the number pointed at, the state in a
 * sentence, and everything shown as a table.
 * @param {object} props
 * @param {string} props.sentence what is shown, in one sentence; read aloud when it changes
 * @param {object} [props.pass] {model, seen, …} for `explain`; without it and an explainer nothing can
 *   be pointed at
 * @param {function({name: string, index: number[]}): object|null} [props.explainer] explains numbers
 *   outside the pass as `explain` does (`symbol` may stand for their name), and returns null for others
 * @param {Table[]|function(): Table[]} props.twin the table twin, each table {caption, columns, rows}; a
 *   function is called only where the tables are looked at
 * @param {object} [props.first] the number {name, index} explained until another is pointed at, and
 *   again whenever it changes
 */
export function Frame({ sentence, pass, explainer, twin = [], first = null, children }) {
  const { title, name } = useContext(Host);
  const id = useId();
  return (
    <section class={`gfx gfx-${name}`} aria-labelledby={id}>
      <header class="gfx-head">
        <p class="gfx-title" id={id}>{title}</p>
        <Tools />
      </header>
      <Scope pass={pass} explainer={explainer} first={first}>
        <div class="gfx-body">{children}</div>
      </Scope>
      <p class="gfx-sentence" role="status">{sentence}</p>
      <Twin tables={twin} />
    </section>
  );
}

/**
 * Where numbers can be pointed at, and below them the formula of the one that is. A frame is one such
 * scope; inside it, two models side by side have one each.
 */
export function Scope({ pass, explainer, first = null, children }) {
  const start = first ? keyOf(first) : "";
  const [chosen, choose] = useState({ ref: first, start });
  const point = useCallback((ref) => choose({ ref, start }), [start]);
  const wanted = chosen.start === start ? chosen.ref : first; // a new start, a new number
  const found = useMemo(() => explained(pass, explainer, wanted), [pass, explainer, wanted && keyOf(wanted)]);
  const pointing = useMemo(
    () => ({ pointed: found, point, made: new Set(found ? found.refs.map(keyOf) : []) }),
    [found, point],
  );
  return (
    <Pointing.Provider value={pointing}>
      {children}
      {(pass || explainer) && <Formula found={found} />}
    </Pointing.Provider>
  );
}

/** Return what explains a number, or null if there is no such number. */
function explained(pass, explainer, wanted) {
  if (!wanted) return null;
  try {
    return explainer?.(wanted) ?? (pass ? explain(pass, wanted.name, wanted.index) : null);
  } catch {
    return null;
  }
}

function Tools() {
  const { reset, link } = useContext(Host);
  return (
    <div class="gfx-tools">
      {link && <Copy label="Copy link" text={link} />}
      <button type="button" class="gfx-button" onClick={reset}>Reset</button>
    </div>
  );
}

/**
 * A button that puts a text on the clipboard and says so.
 * @param {{label: string, text: function(): string, name?: string}} props
 */
export function Copy({ label, text, name }) {
  const [said, say] = useState("");
  const copy = async () => say((await copied(text())) ? "Copied" : "Cannot copy here");
  return (
    <button type="button" class="gfx-button" aria-label={name} onClick={copy} onBlur={() => say("")}>
      <span aria-live="polite">{said || label}</span>
    </button>
  );
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedTheOldWay(text);
  }
}

/** Where the clipboard is closed to scripts (an old browser, an embedded page), a selection may do. */
function copiedTheOldWay(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "gfx-offscreen";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** The panel: which number, its rule, and the rule with the operands filled in. */
function Formula({ found }) {
  if (!found) {
    return <div class="gfx-formula gfx-quiet">Point at a number, or move to it with Tab and the arrow keys, to see how it is made.</div>;
  }
  return (
    <div class="gfx-formula" role="group" aria-label="The number pointed at">
      <p class="gfx-formula-rule">
        <b>{found.symbol ?? symbolOf(found.name)}</b> <span class="gfx-mono">{keyOf(found)}</span>
        {found.rule && <span class="gfx-mono gfx-muted"> {found.rule}</span>}
      </p>
      <p class="gfx-formula-filled" tabindex="0" role="group" aria-label="Formula">
        <b class="gfx-value">{number(found.value, found.digits ?? 6)}</b>
        {found.parts.length > 0 && <> = <Parts of={keyOf(found)} parts={found.parts} /></>} <span class="gfx-muted">{found.note}</span>
      </p>
    </div>
  );
}

/** The parts of a formula, operands and folds as buttons; what was unfolded `of` one number is not of the next. */
export function Parts({ of, parts }) {
  return parts.map((part, n) => {
    if (typeof part === "string") return part.replace(/\^$/, "");
    const before = parts[n - 1];
    const raised = typeof before === "string" && before.endsWith("^");
    return raised ? <sup key={n}><Part of={of} part={part} /></sup> : <Part key={n} of={of} part={part} />;
  });
}

function Part({ of, part }) {
  if (part.fold) return <Fold key={of} parts={part.fold} />;
  return part.label ? <Result key={of} {...part} /> : <Operand part={part} />;
}

/** A long stretch of terms, folded until asked for. */
function Fold({ parts }) {
  const [open, setOpen] = useState(false);
  if (open) return <Parts parts={parts} />;
  const held = parts.filter((part) => typeof part === "object").length;
  return (
    <button type="button" class="gfx-ref" aria-label={`Show ${held} more numbers`} onClick={() => setOpen(true)}>
      … {held} more …
    </button>
  );
}

/** A number made on the way, such as a mean; its own formula opens in its place. */
function Result({ label, value, parts }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="gfx-ref" aria-expanded={open} onClick={() => setOpen(!open)}>{label} {operand(value)}</button>
      {open && <> (= <Parts parts={parts} />) </>}
    </>
  );
}

/** One operand, with three digits or as many as it asks for: a button that leads to how it is made. */
function Operand({ part }) {
  const { point } = useContext(Pointing);
  const key = keyOf(part), shown = operand(part.value, part.digits);
  return (
    <button type="button" class="gfx-ref" title={key} aria-label={`${shown}, ${key}`} onClick={() => point(part)}>
      {part.value < 0 ? `(${shown})` : shown}
    </button>
  );
}

/** Everything shown, as tables; drawn again only if they have changed. */
const Twin = memo(function Twin({ tables }) {
  const [open, setOpen] = useState(false);
  if (!tables.length && typeof tables !== "function") return null;
  const wanted = open ? (typeof tables === "function" ? tables() : tables) : [];
  return (
    <details class="gfx-twin" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {wanted.map((table) => <Table key={table.caption} {...table} />)}
    </details>
  );
});

/**
 * A number in a text or a table that can be pointed at.
 * @param {{name: string, index: number[], value: number, digits?: number, show?: function(number): string}} props
 */
export function Value({ name, index, value, digits = 4, show }) {
  const { pointed, point } = useContext(Pointing);
  const ref = { name, index }, key = keyOf(ref);
  const chosen = pointed && keyOf(pointed) === key;
  const tell = () => point(ref);
  return (
    <button type="button" class={chosen ? "gfx-number gfx-pointed" : "gfx-number"} title={key} onPointerEnter={tell} onFocus={tell} onClick={tell}>
      {show ? show(value) : number(value, digits)}
    </button>
  );
}

/** A plain table that scrolls in its own frame. */
export function Table({ caption, columns, rows }) {
  return (
    <div class="gfx-scroll" tabindex="0" role="group" aria-label={caption}>
      <table class="gfx-table">
        <caption>{caption}</caption>
        <thead><tr>{columns.map((column, n) => (column ? <th key={n} scope="col">{column}</th> : <td key={n} />))}</tr></thead>
        <tbody>
          {rows.map((row, n) => (
            <tr key={n}>
              {row.map((cell, m) => (m ? <td key={m}>{shown(cell)}</td> : <th key={m} scope="row">{shown(cell)}</th>))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function shown(cell) {
  return typeof cell === "number" ? (Number.isInteger(cell) ? exact(cell) : number(cell, 4)) : cell;
}
