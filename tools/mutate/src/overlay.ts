/**
 * Loader hook in every process of a test run (`--import`): replaces the source of one module; files are not changed.
 * COX_MUTANT_URL is the module's URL, COX_MUTANT_SOURCE the file with the replacement.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const url = process.env["COX_MUTANT_URL"];
const path = process.env["COX_MUTANT_SOURCE"];
if (url !== undefined && path !== undefined) {
  registerHooks({
    load(requested, context, next) {
      if (requested !== url) return next(requested, context);
      return { format: "module-typescript", source: readFileSync(path, "utf8"), shortCircuit: true };
    },
  });
}
