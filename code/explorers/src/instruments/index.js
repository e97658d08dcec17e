/** All explorers by name. */

import { attention } from "./attention.jsx";
import { block } from "./block.jsx";
import { tokens } from "./tokens.jsx";
import { training } from "./training.jsx";
import { embedding } from "./embedding.jsx";
import { everything } from "./everything.jsx";
import { kvCache } from "./kv-cache.jsx";
import { modern } from "./modern.jsx";
import { rope } from "./rope.jsx";

export const instruments = Object.fromEntries([attention, block, tokens, training, embedding, everything, kvCache, modern, rope].map((instrument) => [instrument.name, instrument]));
