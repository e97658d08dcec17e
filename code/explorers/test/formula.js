/** Formulas of numbers outside a pass, worked out again. */

import assert from "node:assert/strict";

const SIGNS = [
  [/e\^/g, "Math.E**"], [/−/g, "-"], [/·/g, "*"], [/²/g, "**2"], [/\^/g, "**"], [/√(\d+)/g, "Math.sqrt($1)"], [/√\(/g, "Math.sqrt("],
  [/ln\(/g, "Math.log("], [/(cos|sin)\(/g, "Math.$1("],
];

/** Return what the parts of a formula come to. */
export function worked(parts) {
  const text = parts.map((part) => (typeof part === "string" ? part : part.fold ? written(part.fold) : `(${valueOf(part)})`)).join("");
  const formula = SIGNS.reduce((said, [sign, meant]) => said.replace(sign, meant), text);
  assert.match(formula, /^(?:[-+*/() \d.e]|Infinity|Math\.(?:sqrt|log|cos|sin|E))+$/, `no formula: ${formula}`);
  return Function(`return ${formula}`)();
}

function written(parts) {
  return parts.map((part) => (typeof part === "string" ? part : `(${valueOf(part)})`)).join("");
}

/** Return a part's value; that of a result is worked out, and must be what it says. */
function valueOf(part) {
  if (part.parts) near(worked(part.parts), part.value, part.label);
  return part.value;
}

/** Assert that two numbers are the same but for rounding. */
export function near(got, want, where) {
  const off = Math.abs(got - want);
  assert.ok(Object.is(got, want) || off <= 1e-12 * Math.max(1, Math.abs(want)), `${where} is ${want}, its formula gives ${got}`);
}

/**
 * Assert that a number's formula gives it, and follow its operands down to those that are counted or given.
 * @param {function({name: string, index: number[]}): object} explain
 * @param {{name: string, index: number[]}} ref
 * @returns {Set<string>} the names met on the way
 */
export function follow(explain, ref, met = new Set()) {
  const found = explain(ref), where = `${ref.name}[${ref.index}]`;
  assert.deepEqual([found.name, found.index], [ref.name, ref.index], where);
  met.add(ref.name);
  if (found.parts.length) near(worked(found.parts), found.value, where);
  else assert.ok(found.note, `${where} has neither formula nor note`);
  for (const operand of found.refs) {
    assert.ok(Object.is(explain(operand).value, operand.value), `${operand.name}[${operand.index}] in ${where}`);
    if (!met.has(operand.name) || found.parts.length < 40) follow(explain, operand, met);
  }
  return met;
}
