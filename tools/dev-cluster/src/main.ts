import { join } from "node:path";
import { runProgram } from "./program.ts";

/** `main.ts <verb> …`: the verbs of `./cox` that are about clusters. */
await runProgram(join(import.meta.dirname, "..", "..", ".."), process.argv.slice(2));
