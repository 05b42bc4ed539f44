import { join } from "node:path";
import { runProgram } from "./program.ts";

/** `main.ts <command> …`: the commands of `./cox` that manage clusters. */
await runProgram(join(import.meta.dirname, "..", "..", ".."), process.argv.slice(2));
