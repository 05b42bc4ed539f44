import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { setMaxOpenFiles, setOomScoreAdj } from "./process-limits.ts";

function sleeper(t: TestContext): number {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  t.after(() => void child.kill("SIGKILL"));
  return child.pid ?? 0;
}

test("the limit of open files is set as configured, and a limit above the kernel's is an error", async (t) => {
  const pid = sleeper(t);
  await setMaxOpenFiles(pid, 64); // lower than the current limit: raising it may not be permitted, even as root in a container
  assert.match(await readFile(`/proc/${pid}/limits`, "utf8"), /^Max open files +64 +64 /m);
  await assert.rejects(setMaxOpenFiles(pid, 2 ** 40));
});

test("a process gets its oom_score_adj", async (t) => {
  const pid = sleeper(t);
  const own = Number(await readFile("/proc/self/oom_score_adj", "utf8"));
  const higher = Math.min(own + 1, 1000); // raising the score is always permitted, lowering it is not
  await setOomScoreAdj(pid, higher);
  assert.equal(Number(await readFile(`/proc/${pid}/oom_score_adj`, "utf8")), higher);
});
