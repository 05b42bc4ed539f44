/** Runs all rows of all daemon benchmarks with small sizes; with COX_TEST_LONG only, because they start clusters. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { measureScale } from "../scale/bench-scale.ts";
import { benchCluster } from "./cluster-idle.ts";
import { benchControllers } from "./controllers.ts";
import { benchNode } from "./node.ts";
import type { RowReport } from "./report.ts";
import { benchScheduler } from "./scheduler.ts";

const main = join(import.meta.dirname, "..", "main.ts");
const skip = process.env["COX_TEST_LONG"] === undefined && "a long form, which starts clusters";

/** Checks that each row has processed its objects and that usage of the daemon was measured. */
function assertMeasured(reports: readonly RowReport[], count: number): void {
  assert.equal(reports.length, count);
  for (const { name, ours } of reports) {
    assert.ok(ours.operations > 0 && ours.seconds > 0, name);
    assert.ok(ours.residentMb > 10, `${name}: ${JSON.stringify(ours)}`);
  }
}

test("measures all rows of the scheduler", { skip }, async () => {
  const argv = ["--quick", "--json", "--nodes", "4", "--pods", "12", "--preemptors", "2", "--waiting", "2"];
  assertMeasured(await benchScheduler(argv), 4);
});

test("measures all rows of the controller manager", { skip }, async () => {
  const few = ["deployments", "services", "endpoints", "lost-nodes"].flatMap((flag) => [`--${flag}`, "2"]);
  const more = ["replicas", "completions", "objects", "dependents"].flatMap((flag) => [`--${flag}`, "4"]);
  assertMeasured(await benchControllers(["--quick", "--json", ...few, ...more]), 9);
});

test("measures all rows of the kubelet", { skip }, async () => {
  assertMeasured(await benchNode(["--quick", "--json"]), 10);
});

test("measures all daemons of an idle cluster", { skip }, async () => {
  assertMeasured(await benchCluster(["--quick", "--json"]), 5);
});

test("measures a cluster that keeps objects, and all of its figures", { skip }, async () => {
  const sizes = {
    pods: 40,
    nodes: 2,
    namespaces: 2,
    watchers: 2,
    settleSeconds: 0,
    churn: 5,
    atOnce: 2,
    seconds: 3,
    podBytes: 2_000,
  };
  const figures = await measureScale(sizes, () => {});
  assert.deepEqual([figures.endedWatches, figures.unbound], [0, 0]);
  for (const value of [figures.getP99, figures.listP99, figures.scheduleP99, figures.mostServerMb]) assert.ok(value > 0);
});

test("measures all rows of Services", { skip }, () => {
  // A separate process, because it moves itself to a network namespace.
  const args = ["-C", "cox-source", main, "services", "--quick", "--json"];
  const { reports } = JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as { reports: RowReport[] };
  assertMeasured(reports, 4);
});
