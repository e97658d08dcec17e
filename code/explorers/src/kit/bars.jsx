/** Probabilities as ranked bars, each with its word and its share in figures. */

import { useContext } from "preact/hooks";
import { percent } from "./format.js";
import { Pointing, Value } from "./frame.jsx";

/**
 * @param {object} props
 * @param {{label: string, share: number, note?: string, key?: *, off?: boolean, name?: string,
 *   index?: number[], stroke?: number}[]} props.bars `name` and `index` say which number a share is, so
 *   that it can be pointed at; `stroke` is another share, drawn across the bar
 * @param {string} props.label what the bars are, for those who cannot see them
 * @param {string} [props.role] a palette role
 * @param {*} [props.chosen] key of the bar that is marked
 * @param {function(*): void} [props.onChoose] makes the bars buttons; gets the bar's key
 */
export function Bars({ bars, label, role = "attention", chosen, onChoose }) {
  const { point } = useContext(Pointing);
  const pointing = ({ name, index }) => {
    const tell = name && (() => point({ name, index }));
    return { onPointerEnter: tell, onFocus: tell };
  };
  return (
    <ol class="gfx-bars" aria-label={label} style={{ "--hue": `var(--gf-${role})` }}>
      {bars.map((bar) => (
        <li key={bar.key ?? bar.label} class={bar.off ? "gfx-off" : undefined}>
          {onChoose ? (
            <button type="button" class="gfx-bar" aria-pressed={bar.key === chosen} onClick={() => onChoose(bar.key)} {...pointing(bar)}>
              <Bar {...bar} name={undefined} />
            </button>
          ) : (
            <div class={bar.key !== undefined && bar.key === chosen ? "gfx-bar gfx-chosen" : "gfx-bar"}><Bar {...bar} /></div>
          )}
        </li>
      ))}
    </ol>
  );
}

function Bar({ label, share, note, name, index, stroke }) {
  const wide = (part) => `${Number.isFinite(part) ? Math.min(Math.max(part, 0), 1) * 100 : 0}%`;
  return (
    <>
      <span class="gfx-bar-label">{label}</span>
      <span class="gfx-bar-track">
        <span class="gfx-bar-fill" style={{ width: wide(share) }} />
        {stroke !== undefined && <span class="gfx-bar-stroke" style={{ left: wide(stroke) }} />}
      </span>
      <span class="gfx-bar-value">{name ? <Value name={name} index={index} value={share} show={percent} /> : percent(share)}{note && <span class="gfx-muted"> {note}</span>}</span>
    </>
  );
}
