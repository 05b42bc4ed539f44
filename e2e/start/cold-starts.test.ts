import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { newOwnCluster, type OwnCluster, removeOwnCluster } from "../framework/own-cluster.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Repeats `./cox up` without any state: each time the node becomes Ready and a pod runs. More starts find only rarer races. */
const isLong = Boolean(process.env["COX_TEST_LONG"]);
const quietStarts = isLong ? 16 : 2;
const busyStarts = isLong ? 4 : 1;
const longestBusySeconds = 180;
let cluster: OwnCluster;

before(async () => {
  cluster = await newOwnCluster(mkdtempSync(join(tmpdir(), "cox-cold-")));
});
after(() => removeOwnCluster(cluster));

/** Keeps every core busy with one process each until the test ends. */
function keepCoresBusy(t: TestContext): void {
  const program = `const end = Date.now() + ${longestBusySeconds * 1000}; while (Date.now() < end);`;
  for (let core = 0; core < availableParallelism(); core++) {
    const child = spawn(process.execPath, ["-e", program], { stdio: "ignore" });
    t.after(() => void child.kill("SIGKILL"));
  }
}

for (const busy of [false, true]) {
  const starts = busy ? busyStarts : quietStarts;
  for (let start = 1; start <= starts; start++) {
    test(`cold start ${start} of ${starts}${busy ? " with a busy process for each core" : ""}`, async (t) => {
      if (busy) keepCoresBusy(t);
      const output = await cluster.mustCox("up");
      assert.doesNotMatch(output, / ended: /, "no process has to be started twice");
      await cluster.kubectl("run", "hello", "--image=busybox:1.36", "--restart=Never", "--command", "--", "true");
      await waitFor("the pod to have run", async () => {
        const phase = await cluster.kubectl("get", "pod", "hello", "-o", "jsonpath={.status.phase}");
        return phase === "Succeeded";
      });
      await cluster.mustCox("down", "--purge");
    });
  }
}
