/**
 * The fields of an explorer's state. They may come from Python, from a link or from the reader, and
 * are data in each case: `clean` returns a value that fits, or undefined.
 *
 * @typedef {{default: *, clean: function(*): *}} Field
 */

const LONGEST = 400; // letters of a text that are kept

/** What is on and what is off, as Python and links write it. */
const FLAGS = new Map([true, "true", 1, "1"].map((on) => [on, true]).concat([false, "false", 0, "0"].map((off) => [off, false])));

/** @returns {Field} a text */
export const text = (standard = "") => ({
  default: standard,
  clean: (value) => (typeof value === "string" ? value.slice(0, LONGEST) : undefined),
});

/** @returns {Field} a whole number from min to max; one outside becomes the nearer end */
export const whole = (standard, min, max) => ({
  default: standard,
  clean: (value) => within(Math.round(toNumber(value)), min, max),
});

/** @returns {Field} a number from min to max; one outside becomes the nearer end */
export const real = (standard, min, max) => ({
  default: standard,
  clean: (value) => within(toNumber(value), min, max),
});

/** @returns {Field} true or false */
export const flag = (standard) => ({
  default: standard,
  clean: (value) => FLAGS.get(value),
});

/** @returns {Field} one of a few texts */
export const choice = (standard, options) => ({
  default: standard,
  options,
  clean: (value) => (options.includes(value) ? value : undefined),
});

/** @returns {Field} a list of at most `longest` values, each of which `keep` accepts */
export const list = (standard, keep, longest = 64) => ({
  default: standard,
  clean(value) {
    const items = typeof value === "string" ? parsed(value) : value;
    return Array.isArray(items) && items.length <= longest && items.every(keep) ? items : undefined;
  },
});

/**
 * Return the state that values give, one for each field; what does not fit becomes the default.
 * @param {Object<string, Field>} fields
 * @param {function(string): *} read returns the value of a name, or undefined
 * @returns {Object<string, *>}
 */
export function cleaned(fields, read) {
  const state = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = read(name);
    state[name] = (value === undefined || value === null ? undefined : field.clean(value)) ?? field.default;
  }
  return state;
}

/**
 * Return instruments by the names that Python and pages know them by.
 * @param {Object<string, {name: string}>} exported
 */
export function byName(exported) {
  return Object.fromEntries(Object.values(exported).map((instrument) => [instrument.name, instrument]));
}

/** Return whether two values of a field are the same. */
export function same(a, b) {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function toNumber(value) {
  return typeof value === "number" ? value : typeof value === "string" && value.trim() ? Number(value) : NaN;
}

function within(value, min, max) {
  return Number.isNaN(value) ? undefined : Math.min(max, Math.max(min, value));
}

function parsed(value) {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}
