/** All explorers by name. */

import * as groot from "./groot.js";
import * as llama from "./llama.js";
import { byName } from "../kit/fields.js";

export const instruments = byName({ ...groot, ...llama });
