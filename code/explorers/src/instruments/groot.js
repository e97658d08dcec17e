/** The explorers of BabyGroot: chapters 1 to 6 and the landing page. */

export { tokens } from "./tokens.jsx";
export { training } from "./training.jsx";
export { embedding } from "./embedding.jsx";
export { attention } from "./attention.jsx";
export { block } from "./block.jsx";
export { sampling } from "./sampling.jsx";
export { everything } from "./everything.jsx";
