/**
 * Write the bundles that the package ships, from one source: classic scripts for the site, which
 * also run from disk (one for each part of the book, so that no page loads more than it needs), an ES
 * module for notebooks, and the style sheet of both.
 * `node build.js [folder]` writes somewhere else, as the test of their freshness does.
 */

import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const target = process.argv[2] ?? join(here, "../glassformer/explorers/static");

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "inline",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

await Promise.all([
  build({
    ...common, entryPoints: ["groot", "llama", "own"].map((part) => `src/site-${part}.js`), format: "iife", outdir: target,
  }),
  build({ ...common, entryPoints: ["src/notebook.js"], format: "esm", outfile: join(target, "notebook.js") }),
  build({ ...common, entryPoints: ["src/style.css"], outfile: join(target, "explorers.css") }),
]);
