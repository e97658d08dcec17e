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
    const linked = this.linkedState();
    this.linked = linked !== null;
    const shared = globalThis.glassformerParts ?? {};
    const parts = Object.entries(data).map(([name, part]) => [name, part ?? shared[name]]);
    this.values = { ...(linked ?? this.standard), data: Object.fromEntries(parts) };
    this.listeners = new Map();
    this.timer = null;
  }

  /** Return the state that the page's address holds for this explorer, or null if it holds none. */
  linkedState() {
    const linked = fromFragment(location.hash, this.id);
    if (!linked) return null;
    const fits = ([name, field]) => {
      const value = linked.get(name);
      return [name, (value === null ? undefined : field.clean(value)) ?? this.standard[name]];
    };
    return Object.fromEntries(Object.entries(this.fields).map(fits));
  }

  /** Take the state of an address that was opened while the page was already there. */
  follow() {
    const linked = this.linkedState();
    if (!linked) return false;
    for (const [name, value] of Object.entries(linked)) this.set(name, value);
    return true;
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
