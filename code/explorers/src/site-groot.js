/** Entry for the site's pages about BabyGroot. */

import * as groot from "./instruments/groot.js";
import { start } from "./site.js";

start(groot);
