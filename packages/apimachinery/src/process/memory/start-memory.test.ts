import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

/** Runs in a separate process with a known heap and event loop. */
function run(body: string, ...flags: string[]): string {
  const code = `import { releaseMemory, releaseStartMemory } from ${JSON.stringify(new URL("start-memory.ts", import.meta.url).href)}; ${body}`;
  const { stdout, stderr } = spawnSync(process.execPath, [...process.execArgv, ...flags, "--input-type=module", "-e", code], {
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

test("after a release V8 reduces the heap no further, until it has grown again", () => {
  const out = run(
    `
    const { constants, PerformanceObserver } = await import("node:perf_hooks");
    let majors = 0;
    new PerformanceObserver((list) => {
      majors += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length;
    }).observe({ entryTypes: ["gc"] });
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const until = async (condition) => { while (!condition()) await wait(20); };
    releaseMemory(4_000);
    await until(() => majors > 0);
    const released = majors;
    await wait(3_500);
    console.log(majors - released);
    await wait(1_000);
    let junk = Array.from({ length: 300_000 }, (_, i) => ({ i, more: [i] }));
    await wait(100);
    junk = undefined;
    const before = process.memoryUsage().heapTotal;
    await until(() => process.memoryUsage().heapTotal < before / 2);
    console.log("less");
    process.exit();
  `,
    // V8's waits, which are 8 and 30 s
    "--memory-reducer-delay-ms=100",
    "--gc-memory-reducer-start-delay-ms=0",
  );
  assert.equal(out, "0\nless");
});
