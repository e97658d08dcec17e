/** Probabilities as ranked bars, each with its word and its share in figures. */

import { percent } from "./format.js";

/**
 * @param {object} props
 * @param {{label: string, share: number, note?: string, key?: *, off?: boolean}[]} props.bars
 * @param {string} props.label what the bars are, for those who cannot see them
 * @param {string} [props.role] a palette role
 * @param {*} [props.chosen] key of the bar that is marked
 * @param {function(*): void} [props.onChoose] makes the bars buttons; gets the bar's key
 */
export function Bars({ bars, label, role = "attention", chosen, onChoose }) {
  return (
    <ol class="gfx-bars" aria-label={label} style={{ "--hue": `var(--gf-${role})` }}>
      {bars.map((bar) => (
        <li key={bar.key ?? bar.label} class={bar.off ? "gfx-off" : undefined}>
          {onChoose ? (
            <button type="button" class="gfx-bar" aria-pressed={bar.key === chosen} onClick={() => onChoose(bar.key)}>
              <Bar {...bar} />
            </button>
          ) : (
            <div class={bar.key !== undefined && bar.key === chosen ? "gfx-bar gfx-chosen" : "gfx-bar"}><Bar {...bar} /></div>
          )}
        </li>
      ))}
    </ol>
  );
}

function Bar({ label, share, note }) {
  const width = Number.isFinite(share) ? Math.min(Math.max(share, 0), 1) * 100 : 0;
  return (
    <>
      <span class="gfx-bar-label">{label}</span>
      <span class="gfx-bar-track"><span class="gfx-bar-fill" style={{ width: `${width}%` }} /></span>
      <span class="gfx-bar-value">{percent(share)}{note && <span class="gfx-muted"> {note}</span>}</span>
    </>
  );
}
