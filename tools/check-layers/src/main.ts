import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { check, importsOf } from "./check.ts";

/** Prints every import that points against the room plan; exit code 1 when there is one. */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const files = globSync("packages/*/src/**/*.ts", { cwd: root }).map((path) => ({
  path,
  imports: importsOf(readFileSync(join(root, path), "utf8")),
}));
const problems = check(files);
for (const problem of problems) console.error(problem);
console.log(`${files.length} files, ${problems.length} imports against the room plan`);
process.exitCode = problems.length === 0 ? 0 : 1;
