/**
 * An explorer in its host: a notebook's widget or the site's page. Both give a model of four methods,
 * `get`, `set`, `on`/`off` and `save_changes`, and here its values become an explorer's state.
 */

import { Component, render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { cleaned, same } from "./fields.js";
import { loaded } from "./data.js";
import { Host } from "./frame.jsx";
import { Place } from "./ids.js";

/**
 * Show an instrument in an element; return a function that takes it away and leaves nothing behind.
 * @param {object} instrument name, title, fields, View; see `src/instruments`
 * @param {object} model
 * @param {HTMLElement} element
 * @param {{link?: function(object): string}} [options] `link` gives the address of a view, if it has one
 * @returns {function(): void}
 */
export function mount(instrument, model, element, { link } = {}) {
  element.classList.add("gfx-host");
  const place = `gfx${Math.random().toString(36).slice(2, 10)}-`;
  const root = <Root instrument={instrument} model={model} link={link} />;
  render(<Place.Provider value={place}>{root}</Place.Provider>, element);
  return () => {
    render(null, element);
    element.classList.remove("gfx-host");
  };
}

function Root({ instrument, model, link }) {
  const [state, setState] = useState(() => read(instrument, model));
  const [beginning] = useState(model.standard ?? state); // what a reset leads back to
  const [parts, setParts] = useState(() => model.get("data"));
  const [round, setRound] = useState(0); // a reset starts everything afresh, what is remembered too

  useEffect(() => {
    const names = Object.keys(instrument.fields);
    const follow = () => setState((old) => kept(old, read(instrument, model)));
    const reload = () => setParts(model.get("data"));
    names.forEach((name) => model.on(`change:${name}`, follow));
    model.on("change:data", reload);
    return () => {
      names.forEach((name) => model.off(`change:${name}`, follow));
      model.off("change:data", reload);
    };
  }, [instrument, model]);

  const write = (patch) => {
    for (const [name, value] of Object.entries(patch)) model.set(name, value);
    model.save_changes();
    setState((old) => kept(old, read(instrument, model)));
  };
  const set = (patch) => write(cleanPatch(instrument.fields, patch));
  const reset = () => {
    write(beginning);
    setRound(round + 1);
  };
  const host = { title: instrument.title, name: instrument.name, reset, link: link && (() => link(state)) };
  return (
    <Host.Provider value={host}>
      <Guard key={round} reset={reset} parts={parts}>
        <Loaded instrument={instrument} parts={parts} state={state} set={set} />
      </Guard>
    </Host.Provider>
  );
}

function Loaded({ instrument, parts, state, set }) {
  const data = useMemo(() => loaded(parts), [parts]);
  return <instrument.View state={state} set={set} data={data} />;
}

/** Shows a sentence instead of an explorer that cannot go on. */
class Guard extends Component {
  state = { error: null };

  static getDerivedStateFromError(error) {
    return { error };
  }

  componentDidUpdate(before) {
    if (this.state.error && before.parts !== this.props.parts) this.setState({ error: null });
  }

  render({ children, reset }, { error }) {
    if (!error) return children;
    return (
      <div class="gfx" role="alert">
        <p class="gfx-error">This explorer cannot show that: {error.message}</p>
        <button type="button" class="gfx-button" onClick={reset}>Start again</button>
      </div>
    );
  }
}

function read(instrument, model) {
  return cleaned(instrument.fields, (name) => model.get(name));
}

function cleanPatch(fields, patch) {
  const values = Object.entries(patch).map(([name, value]) => [name, fields[name].clean(value)]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** Return the old state if the new one says the same, so that nothing is drawn again. */
function kept(old, now) {
  return Object.keys(now).every((name) => same(old[name], now[name])) ? old : now;
}
