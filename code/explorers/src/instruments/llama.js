/** The explorers of the modern decoder and of the reader's own: chapters 7 to 9. */

export { modern } from "./modern.jsx";
export { rope } from "./rope.jsx";
export { matmul } from "./matmul.jsx";
export { kvCache } from "./kv-cache.jsx";
export { designer } from "./designer.jsx";
export { reader } from "./reader.jsx";
