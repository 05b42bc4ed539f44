/**
 * Loaded into every process of a test run (`--import`): one module is read from another file. The tree itself stays as it is.
 * COX_MUTANT_URL is the module's address, COX_MUTANT_SOURCE the file that holds its text.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const url = process.env["COX_MUTANT_URL"];
const path = process.env["COX_MUTANT_SOURCE"];
if (url !== undefined && path !== undefined) {
  registerHooks({
    load(asked, context, next) {
      if (asked !== url) return next(asked, context);
      return { format: "module-typescript", source: readFileSync(path, "utf8"), shortCircuit: true };
    },
  });
}
