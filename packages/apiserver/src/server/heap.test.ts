import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { isCollectionDue } from "./heap.ts";

/** Runs in a separate process with a known heap and event loop. */
function run(body: string): string {
  const code = `import { collectBetweenRequests, tendHeap } from ${JSON.stringify(new URL("heap.ts", import.meta.url).href)}; ${body}`;
  const { stdout, stderr } = spawnSync(process.execPath, [...process.execArgv, "--input-type=module", "-e", code], {
    encoding: "utf8",
    timeout: 120_000,
  });
  assert.equal(stderr, "");
  return stdout.trim();
}

for (const { name, idle, utilization, expected } of [
  {
    name: "a young generation that fills up is collected while no request runs",
    idle: true,
    utilization: 0.3,
    expected: "collected",
  },
  { name: "it is left to V8 while one runs", idle: false, utilization: 0.3, expected: "left" },
  { name: "it is left to V8 where the loop has little rest", idle: true, utilization: 0.8, expected: "left" },
]) {
  test(name, () => {
    const out = run(`
      // As it really is it depends on what else the machine has to do.
      performance.eventLoopUtilization = () => ({ idle: 0, active: 0, utilization: ${utilization} });
      const requests = { idle: ${idle}, onIdle() {} };
      let collected = 0;
      collectBetweenRequests(requests, () => collected++);
      let turns = 0;
      let junk;
      const poll = setInterval(() => {
        junk = Array.from({ length: 5_000 }, (_, i) => ({ i }));
        requests.onIdle();
        if (collected === 0 && ++turns < 500) return;
        clearInterval(poll);
        console.log(collected > 0 ? "collected" : "left");
      }, 5);
    `);
    assert.equal(out, expected);
  });
}

test("a young generation that was collected is collected again when it is full", () => {
  const out = run(`
    performance.eventLoopUtilization = () => ({ idle: 0, active: 0, utilization: 0.3 });
    const requests = { idle: true, onIdle() {} };
    let collected = 0;
    collectBetweenRequests(requests, () => collected++);
    let turns = 0;
    let junk;
    const poll = setInterval(() => {
      junk = Array.from({ length: 5_000 }, (_, i) => ({ i }));
      requests.onIdle();
      if (collected < 2 && ++turns < 500) return;
      clearInterval(poll);
      console.log(collected);
    }, 5);
  `);
  assert.equal(out, "2");
});

for (const { name, busy, share, want } of [
  { name: "a quiet server waits until its young generation is nearly full", busy: 0.01, share: 0.6, want: false },
  { name: "a quiet server collects a nearly full young generation", busy: 0.01, share: 0.75, want: true },
  { name: "a server with some requests collects earlier", busy: 0.1, share: 0.4, want: true },
  { name: "a server with some requests does not collect a nearly empty young generation", busy: 0.1, share: 0.2, want: false },
  { name: "a busy server leaves collecting to V8", busy: 0.6, share: 0.75, want: false },
]) {
  test(name, () => assert.equal(isCollectionDue(share, busy), want));
}

test("a gigabyte of Buffers in place of others takes few major collections", () => {
  const out = run(`
    import { PerformanceObserver } from "node:perf_hooks";
    tendHeap({ started: Promise.resolve(), requests: { idle: false } });
    await new Promise(setImmediate);
    const objects = Array.from({ length: 400_000 }, (_, i) => ({ i, of: [i] }));
    const buffers = Array.from({ length: 1_600 }, () => Buffer.allocUnsafeSlow(65_536));
    let majors = 0;
    const count = (list) => { for (const { detail } of list.getEntries()) if (detail.kind === 4) majors++; };
    new PerformanceObserver(count).observe({ entryTypes: ["gc"] });
    for (let i = 0; i < 16_000; i++) {
      buffers[i % buffers.length] = Buffer.allocUnsafeSlow(65_536);
      if (i % 100 === 0) await new Promise(setImmediate);
    }
    setTimeout(() => console.log(majors, objects.length), 50);
  `);
  const [majors, objects] = out.split(" ").map(Number);
  assert.equal(objects, 400_000);
  assert.ok(majors! <= 5, `${majors} major collections; with a limit of V8's own for Buffers there are 10`);
});
