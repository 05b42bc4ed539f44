import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

/** Runs in a separate process with a known heap and event loop. */
function run(body: string): string {
  const code = `import { releaseStartMemory } from ${JSON.stringify(new URL("start-memory.ts", import.meta.url).href)}; ${body}`;
  const { stdout, stderr } = spawnSync(process.execPath, [...process.execArgv, "--input-type=module", "-e", code], {
    encoding: "utf8",
    timeout: 120_000,
  });
  assert.equal(stderr, "");
  return stdout.trim();
}

test("an idle process releases the memory of its start", () => {
  const out = run(`
    let junk = Array.from({ length: 200_000 }, (_, i) => ({ i }));
    const size = () => process.memoryUsage().heapTotal;
    const before = size();
    junk = undefined;
    releaseStartMemory();
    const poll = setInterval(() => { if (size() < before / 2) { clearInterval(poll); console.log("less", typeof gc); } }, 100);
    setTimeout(() => process.exit(), 60_000).unref();
  `);
  assert.equal(out, "less undefined");
});

test("a busy or large process does not collect", () => {
  const out = run(`
    const held = Array.from({ length: 3_000_000 }, (_, i) => ({ i }));
    let released = 0;
    releaseStartMemory(() => released++);
    setTimeout(() => console.log(released, held.length), 2_500);
  `);
  assert.equal(out, "0 3000000");
});
