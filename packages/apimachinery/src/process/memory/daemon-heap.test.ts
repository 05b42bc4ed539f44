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
    }
    console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size);
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["-C", "cox-source", "--input-type=module", "-e", code]);
  return Number(stdout);
}

test("a daemon with a small heap keeps its initial young generation, a larger one lets it grow", async () => {
  const [small, other] = [await youngGeneration("{ staysSmall: true }"), await youngGeneration("")];
  assert.ok(small * 2 <= other, `${small} and ${other} bytes`);
});
