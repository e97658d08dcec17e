/** What both models ask of the token ids and of the weights they are given. */

/**
 * Throw an Error of one sentence unless ids hold 1 … room whole numbers below vocabSize.
 * @param {ArrayLike<number>} ids
 * @param {number} vocabSize
 * @param {number} room places that are free
 * @param {number} window places in all
 */
export function checkIds(ids, vocabSize, room, window) {
  if (ids === null || typeof ids !== "object" || typeof ids.length !== "number") {
    throw new Error("Token ids must be a list of whole numbers, such as [1, 2].");
  }
  if (ids.length === 0) throw new Error("The prompt is empty; give at least one token.");
  if (ids.length > room) {
    const past = room < window ? `, of which ${window - room} are taken` : "";
    throw new Error(`${ids.length} tokens do not fit: the model's window has ${window} places${past}.`);
  }
  for (let i = 0; i < ids.length; i++) {
    if (!Number.isInteger(ids[i])) throw new Error("Token ids must be whole numbers.");
    if (ids[i] < 0 || ids[i] >= vocabSize) {
      throw new Error(`Token id ${ids[i]} is out of range; ids go from 0 to ${vocabSize - 1}.`);
    }
  }
}

/**
 * Throw an Error that names the first weight that is missing, foreign or misshapen.
 * @param {Object<string, number[]>} wanted shapes by name
 * @param {Object<string, import("./tensor.js").Tensor>} found
 */
export function checkWeights(wanted, found) {
  for (const name of [...new Set([...Object.keys(wanted), ...Object.keys(found)])].sort()) {
    if (!Object.hasOwn(found, name)) {
      throw new Error(`The weight ${name} is missing; these weights belong to another model.`);
    }
    if (!Object.hasOwn(wanted, name)) {
      throw new Error(`There is a weight ${name} that this model does not have.`);
    }
    if (String(wanted[name]) !== String(found[name].shape)) {
      throw new Error(
        `${name} has shape [${found[name].shape.join(", ")}], ` +
          `the model needs [${wanted[name].join(", ")}].`,
      );
    }
  }
}

/**
 * Throw an Error unless a value is a whole number from `least` on.
 * @param {string} name
 * @param {*} value
 * @param {number} least
 */
export function needWhole(name, value, least) {
  if (!Number.isSafeInteger(value) || value < least) {
    throw new Error(`${name} = ${String(value)} cannot be: it must be a whole number, ${least} or more.`);
  }
}
