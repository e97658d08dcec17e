/** Entry for the site's pages about the reader's own model. */

import * as own from "./instruments/own.js";
import { start } from "./site.js";

start(own);
