import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

/** Size of the young generation in a new process, after 60 MB survived many of its collections, which makes V8 enlarge it if allowed. */
async function youngGeneration(options: string): Promise<number> {
  const code = `
    import { mock } from "node:test";
    import { getHeapSpaceStatistics } from "node:v8";
    import { tuneDaemonHeap } from ${JSON.stringify(new URL("daemon-heap.ts", import.meta.url).href)};
    mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
    tuneDaemonHeap(${options});
    mock.timers.tick(5_000);
    let kept = [];
    for (let index = 0; index < 2_000_000; index++) {
      kept.push({ index });
      if (kept.length > 600_000) kept = [];
      if (index % 50_000 === 0) await new Promise((resolve) => setImmediate(resolve)); // observers of collections are called
    }
    console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size);
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["-C", "cox-source", "--input-type=module", "-e", code]);
  return Number(stdout);
}

test("the young generation of a daemon keeps its size, grows to a limit, or grows as V8 decides", async () => {
  const kept = await youngGeneration("{ youngBytes: 0 }");
  const limited = await youngGeneration("{ youngBytes: 3 * 1024 * 1024 }");
  const free = await youngGeneration("");
  assert.ok(kept < limited && limited < free, `${kept}, ${limited} and ${free} bytes`);
});
