/** The host on the site: a model of four methods, whose state a link can hold. */

import { cleaned, same } from "./fields.js";

const PAUSE = 250; // milliseconds between two changes of the address: browsers limit their number

export class PageModel {
  /**
   * @param {string} id of the element on the page, which is also the name of a link to it
   * @param {{fields: object}} instrument
   * @param {{state?: object, data: object}} given by the page; a part that is null is a shared one
   */
  constructor(id, { fields }, { state = {}, data }) {
    this.id = id;
    this.fields = fields;
    this.standard = cleaned(fields, (name) => state[name]);
    const linked = fromFragment(location.hash, id);
    this.linked = linked !== null;
    const values = this.linked ? cleaned(fields, (name) => linked.get(name) ?? this.standard[name]) : this.standard;
    const shared = globalThis.glassformerParts ?? {};
    const parts = Object.entries(data).map(([name, part]) => [name, part ?? shared[name]]);
    this.values = { ...values, data: Object.fromEntries(parts) };
    this.listeners = new Map();
    this.timer = null;
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (same(this.values[name], value)) return;
    this.values[name] = value;
    this.listeners.get(`change:${name}`)?.forEach((listener) => listener());
  }

  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }

  off(event, listener) {
    this.listeners.get(event)?.delete(listener);
  }

  /** Write the state into the page's address, so that it can be linked and comes back on reload. */
  save_changes() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      try {
        history.replaceState(history.state, "", this.link(this.values));
      } catch {
        // An embedded page may not change its address; everything else works.
      }
    }, PAUSE);
  }

  /** Return the address of this explorer in a state; what is as the page has it is left out. */
  link(state) {
    const query = new URLSearchParams();
    for (const name of Object.keys(this.fields)) {
      const value = state[name];
      if (!same(value, this.standard[name])) query.set(name, typeof value === "object" ? JSON.stringify(value) : value);
    }
    return `${location.href.split("#")[0]}#${this.id}${query.size ? `?${query}` : ""}`;
  }
}

/** Return the values that a fragment holds for an explorer, or null if it is about something else. */
function fromFragment(hash, id) {
  const [name, query] = hash.slice(1).split(/\?(.*)/s);
  return name === id && query ? new URLSearchParams(query) : null;
}
