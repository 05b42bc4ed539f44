import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";

const root = resolve(import.meta.dirname, "..", "..", "..");
// Outside of the repository, because oxlint skips files that .gitignore excludes.
const folder = mkdtempSync(join(tmpdir(), "cox-promises-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const b = `export async function work(): Promise<number> { return 1; }
export interface Thing { run(): Promise<void>; take(fn: () => void): void }
`;
/** One violation per line. */
const cases = [
  "work();",
  "thing.run();",
  "waitFor(() => true);",
  "delay(1);",
  "Promise.all([work()]);",
  "work().then(() => 1);",
  'emitter.on("x", async () => { await work(); });',
  "setTimeout(async () => { await work(); }, 1);",
  "[1].forEach(async () => { await work(); });",
  "if (work()) thing.take(() => {});",
  "thing.take(async () => {});",
];
const a = `import { setTimeout as delay } from "node:timers/promises"; import type { EventEmitter } from "node:events"; import { waitFor } from ${JSON.stringify(join(root, "packages/apimachinery/src/testing/wait-for.ts"))}; import { type Thing, work } from "./b.ts"; export function seeded(thing: Thing, emitter: EventEmitter): void {
${cases.join("\n")}
void delay; void waitFor; void emitter; }
`;

test("forgotten and misused promises from other files, other packages and Node are found", () => {
  writeFileSync(join(folder, "a.ts"), a);
  writeFileSync(join(folder, "b.ts"), b);
  const rules = JSON.parse(readFileSync(join(root, ".oxlintrc.json"), "utf8")) as object;
  writeFileSync(join(folder, "rules.json"), JSON.stringify({ ...rules, ignorePatterns: [] }));
  const config = {
    extends: join(root, "tsconfig.check.json"),
    include: ["."],
    compilerOptions: { typeRoots: [join(root, "node_modules/@types")] },
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const args = ["--config", join(folder, "rules.json"), "--tsconfig", join(folder, "tsconfig.json"), "--format", "unix", folder];
  const { stdout, stderr, status } = spawnSync(join(root, "node_modules/.bin/oxlint"), args, { cwd: root, encoding: "utf8" });
  const found = new Set([...stdout.matchAll(/a\.ts:(\d+):/g)].map(([, line]) => Number(line) - 2));
  assert.equal(status, 1, stderr);
  assert.deepEqual(
    cases.filter((_, index) => !found.has(index)),
    [],
    stdout,
  );
});
