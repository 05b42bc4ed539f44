import { globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { castProblems, unexplainedCasts } from "./casts.ts";
import { check, importsOf } from "./check.ts";
import { closureProblems, largeClosures } from "./closures.ts";
import { conventionProblems } from "./conventions.ts";
import { describeCycle, importCycles } from "./cycles.ts";
import { unusedExports } from "./exports.ts";
import { withTables } from "./tables.ts";

/**
 * Checks imports against the module plan (rules.ts) and for cycles, exports for use, closures for length, casts for reasons,
 * files and names against the conventions, and the generated tables of ARCHITECTURE.md; exit code 1 when there are problems. `--write` updates the tables.
 */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const files = globSync(["packages/*/src/**/*.{ts,tsx}", "tools/machines/src/**/*.ts"], { cwd: root }).map((path) => ({
  path,
  imports: importsOf(readFileSync(join(root, path), "utf8")),
}));
const problems = check(files);
// Tools and end-to-end tests have no module plan, but must have no cycles.
const others = globSync(["tools/*/src/**/*.{ts,tsx}", "e2e/**/*.{ts,tsx}"], {
  cwd: root,
  exclude: (path) => path.includes("node_modules"),
})
  .filter((path) => !path.startsWith("tools/machines/"))
  .map((path) => ({ path, imports: importsOf(readFileSync(join(root, path), "utf8")) }));
const withOthers = [...files, ...others];
const cycles = importCycles(withOthers);
for (const line of [...problems, ...cycles.map((cycle) => describeCycle(cycle, withOthers))]) console.error(line);

const everywhere = globSync("{packages,tools,e2e,examples}/**/*.{ts,tsx}", {
  cwd: root,
  exclude: (path) => /node_modules|\/dist/.test(path),
});
const unused = unusedExports(everywhere.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })));
for (const line of unused) console.error(`${line} is exported, and no other file mentions it`);

const isProgram = (path: string): boolean => /^(?:packages|tools)\/[^/]+\/src\/.*(?<!\.test|\.generated)\.tsx?$/.test(path);
const programs = everywhere.filter(isProgram).map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
// What end-to-end tests run on is a program too; tests themselves may hold their state in a closure.
const supports = everywhere.filter((path) => /^(?:e2e|examples)\/.*(?<!\.test)\.tsx?$/.test(path));
const supportTexts = supports.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
const tooLarge = closureProblems(largeClosures([...programs, ...supportTexts]));
const unconventional = conventionProblems(everywhere.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })));
const casts = castProblems(unexplainedCasts(programs));
for (const line of [...tooLarge, ...unconventional, ...casts]) console.error(line);

const document = join(root, "ARCHITECTURE.md");
const written = readFileSync(document, "utf8");
const wanted = withTables(written);
if (process.argv.includes("--write")) writeFileSync(document, wanted);
else if (wanted !== written) {
  console.error("ARCHITECTURE.md: its tables are not those of rules.ts; run node tools/check-layers/src/main.ts --write");
  process.exitCode = 1;
}
console.log(`${withOthers.length} files, ${problems.length} imports against the module plan, ${cycles.length} import cycles`);
if (problems.length + cycles.length + unused.length + tooLarge.length + unconventional.length + casts.length > 0)
  process.exitCode = 1;
