/** All explorers by name. */

import { attention } from "./attention.jsx";

export const instruments = Object.fromEntries([attention].map((instrument) => [instrument.name, instrument]));
