import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { cpuSeconds, cpuSecondsWithChildren, residentMb, togetherKb, togetherMb } from "./process-usage.ts";

const mapping = (at: string, file: string, rss: number, anonymous: number): string =>
  `${at}-ffff r-xp 00000000 ${file}\nSize:  100 kB\nRss: ${rss} kB\nPss: 1 kB\nAnonymous: ${anonymous} kB\n`;

test("pages of one file mapped twice count once; anonymous ones count in each process", () => {
  const first =
    mapping("10", "fd:01 7 /bin/node", 30, 0) + mapping("20", "fd:01 7 /bin/node", 12, 2) + mapping("30", "00:00 0", 50, 50);
  const second =
    mapping("10", "fd:01 7 /bin/node", 20, 0) + mapping("20", "fd:01 8 /lib/c.so", 5, 0) + mapping("30", "00:00 0", 9, 9);
  assert.equal(togetherKb([first]), 30 + 10 + 2 + 50);
  assert.equal(togetherKb([second, first]), 30 + 10 + 2 + 50 + 5 + 9);
});

test("two processes of one program use less memory together than the sum of both, and more than one", async (t) => {
  const children = [0, 1].map(() => spawn(process.execPath, ["-e", "setInterval(() => {}, 1e9); console.log(1)"]));
  t.after(() => children.map((child) => child.kill("SIGKILL")));
  await Promise.all(children.map((child) => once(child.stdout, "data")));
  const pids = children.map(({ pid }) => pid as number);
  const [first = 0, second = 0] = pids.map(residentMb);
  const together = togetherMb(pids);
  assert.ok(together < first + second - 10, `${together} of ${first} and ${second}`);
  assert.ok(together > Math.max(first, second), `${together} of ${first} and ${second}`);
});

test("the CPU time of children that have ended counts where it is asked for", () => {
  const others = (): number => cpuSecondsWithChildren(process.pid) - cpuSeconds(process.pid);
  const before = others();
  spawnSync(process.execPath, ["-e", "while (process.cpuUsage().user < 100_000);"]);
  assert.ok(others() - before >= 0.09, `${others()} after ${before}`);
});
