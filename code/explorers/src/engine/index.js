/** The engine: both models in float64, as in Python, without PyTorch, and models of the reader's own. */

export * from "./tensor.js";
export * from "./arithmetic.js";
export * from "./random.js";
export * from "./safetensors.js";
export * from "./data.js";
export * from "./config.js";
export * from "./baby_groot.js";
export * from "./gradients.js";
export * from "./adam.js";
export * from "./training.js";
export * from "./transformer.js";
export * from "./sampling.js";
export * from "./bytepair.js";
export * from "./trained.js";
