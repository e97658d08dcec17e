/** Entry for the site's pages about the modern decoder. */

import * as llama from "./instruments/llama.js";
import { start } from "./site.js";

start(llama);
