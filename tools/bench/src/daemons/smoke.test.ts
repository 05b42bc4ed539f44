import assert from "node:assert/strict";
import { test } from "node:test";
import { benchControllers } from "./controllers.ts";
import type { RowReport } from "./report.ts";
import { benchScheduler } from "./scheduler.ts";

/** Each row did its work, and the daemon's share of it was seen. */
function assertMeasured(reports: readonly RowReport[], count: number): void {
  assert.equal(reports.length, count);
  for (const { name, ours } of reports) {
    assert.ok(ours.operations > 0 && ours.seconds > 0, name);
    assert.ok(ours.apiCalls > 0 && ours.residentMb > 10, `${name}: ${JSON.stringify(ours)}`);
  }
}

test("measures all rows of the scheduler", async () => {
  const argv = ["--quick", "--json", "--nodes", "4", "--pods", "12", "--preemptors", "2", "--waiting", "2"];
  assertMeasured(await benchScheduler(argv), 4);
});

test("measures the rows of Deployments with the controller manager", async () => {
  const argv = ["--quick", "--json", "--only", "Deployment", "--replicas", "4", "--deployments", "2"];
  assertMeasured(await benchControllers(argv), 3);
});
