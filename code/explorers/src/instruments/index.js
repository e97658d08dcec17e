/** All explorers by name. */

import * as groot from "./groot.js";
import * as llama from "./llama.js";
import * as own from "./own.js";
import { byName } from "../kit/fields.js";

export const instruments = byName({ ...groot, ...llama, ...own });
