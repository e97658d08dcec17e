/** The explorers of the reader's own model: chapters 9 and 10. */

export { designer } from "./designer.jsx";
export { reader } from "./reader.jsx";
