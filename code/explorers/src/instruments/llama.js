/** The explorers of the modern decoder: chapters 7 and 8. */

export { modern } from "./modern.jsx";
export { rope } from "./rope.jsx";
export { matmul } from "./matmul.jsx";
export { kvCache } from "./kv-cache.jsx";
