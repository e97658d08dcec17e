/** Small controls: native elements, so that keyboard, touch and screen readers know them. */

import { useId } from "./ids.js";

/** A slider with its value. `show` writes the value for people. */
export function Slider({ label, value, min, max, step = 1, show = String, onChange }) {
  const id = useId();
  return (
    <div class="gfx-slider">
      <label for={id}>{label}</label>
      <input
        id={id} type="range" min={min} max={max} step={step} value={value} aria-valuetext={show(value)}
        onInput={(event) => onChange(Number(event.currentTarget.value))}
      />
      <output for={id} aria-live="off">{show(value)}</output>
    </div>
  );
}

/** A box to tick. */
export function Switch({ label, on, onChange }) {
  return (
    <label class="gfx-switch">
      <input type="checkbox" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

/** A few options of which one holds; options are [value, label] pairs. */
export function Choice({ label, value, options, onChange }) {
  const name = useId();
  return (
    <fieldset class="gfx-choice">
      <legend>{label}</legend>
      <div class="gfx-choice-options">
        {options.map(([option, text]) => (
          <label key={option} class="gfx-option">
            <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** One of many options, as a list that drops down. */
export function Select({ label, value, options, onChange }) {
  const id = useId();
  return (
    <div class="gfx-select">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => <option key={option} value={option}>{text}</option>)}
      </select>
    </div>
  );
}

/** A box for a whole number; what does not fit stays in the box alone. */
export function WholeNumber({ label, value, min, max, onChange }) {
  const id = useId();
  const take = ({ currentTarget: box }) => box.value !== "" && box.validity.valid && onChange(Number(box.value));
  return (
    <div class="gfx-whole">
      <label for={id}>{label}</label>
      <input id={id} type="number" inputmode="numeric" min={min} max={max} step={1} value={value} onInput={take} />
    </div>
  );
}

/** A button. */
export function Button({ children, onClick, disabled, pressed, label }) {
  return (
    <button type="button" class="gfx-button" aria-label={label} aria-pressed={pressed} disabled={disabled} onClick={onClick}>
      {children}
    </button>
  );
}

/** Things side by side, wrapped where the screen is narrow. */
export function Row({ children, label }) {
  return <div class="gfx-row" role={label && "group"} aria-label={label}>{children}</div>;
}
