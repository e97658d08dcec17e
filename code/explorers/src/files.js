/** Files that a reader chooses or drops: data that stays in the page. */

import { FILES, MOST_PARAMS, readTrained } from "./engine/index.js";

const MOST_BYTES = { "config.json": 2 ** 16, "model.safetensors": 8 * MOST_PARAMS + 2 ** 20, "tokenizer.json": 2 ** 24 };

/**
 * Return the text of a file's bytes; an Error says that it is no text.
 * @param {ArrayBuffer} buffer
 * @param {string} name how the sentence calls the file
 */
export function decoded(buffer, name) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(buffer);
  } catch {
    throw new Error(`${name} is not UTF-8 text; save it as UTF-8.`);
  }
}

/**
 * Return the trained model and its tokenizer that files hold; an Error says in a sentence why not.
 * @param {Iterable<File>} files others among them are left alone
 */
export async function readFolder(files) {
  const named = new Map(Array.from(files, (file) => [file.name, file]));
  const missing = FILES.filter((name) => !named.has(name));
  if (missing.length) {
    throw new Error(`There is no ${missing.join(", no ")} among them; choose or drop the folder's three files together.`);
  }
  const [config, weights, tokenizer] = await Promise.all(FILES.map((name) => contents(named.get(name))));
  return readTrained({ config: decoded(config, FILES[0]), weights, tokenizer: decoded(tokenizer, FILES[2]) });
}

async function contents(file) {
  const most = MOST_BYTES[file.name];
  if (file.size > most) throw new Error(`${file.name} is larger than ${Math.floor(most / 1024).toLocaleString("en")} KiB, the most that is read here.`);
  try {
    return await file.arrayBuffer();
  } catch {
    throw new Error(`${file.name} cannot be read; choose it once more.`);
  }
}
