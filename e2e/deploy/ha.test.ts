import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { canLimitWrites } from "../framework/disk-image.ts";
import { MachineCluster } from "./cluster.ts";
import { makeClockShiftable } from "./ha/clock.ts";
import { ClusterClients } from "./ha/cluster-clients.ts";
import { controlPlane, kinds, targets } from "./ha/faults.ts";
import { createPods, runsOn, runTwice } from "./ha/pods.ts";
import { runRound } from "./ha/round.ts";
import { tableOf } from "./ha/table.ts";
import { whyNoMachine } from "./machine.ts";

/**
 * Three machines of the control plane and two nodes under faults of one part after the other, while clients write, read and watch, and
 * a pod is evicted. COX_TEST_FAULT: only those whose names match it.
 */
const skip = whyNoMachine() ?? (process.env["COX_TEST_LONG"] === undefined ? "a long form: COX_TEST_LONG" : undefined);
const chosen = new RegExp(process.env["COX_TEST_FAULT"] ?? "");
const nodes = ["n1", "n2"];

describe("high availability of three control planes and two nodes", { skip }, () => {
  let cluster: MachineCluster;
  let clients: ClusterClients;
  const rows: Parameters<typeof tableOf>[0][number][] = [];

  before(async () => {
    cluster = await MachineCluster.start({ withDisks: canLimitWrites() });
    await cluster.boot(...controlPlane, ...nodes);
    for (const name of [...controlPlane, ...nodes]) await makeClockShiftable(cluster.machine(name));
    await cluster.init("cp1");
    const [first = "", ...others] = controlPlane;
    await cluster.joinControlPlane(first, ...others);
    await cluster.joinNodes(first, ...nodes);
    await cluster.whenReady(first, ...controlPlane, ...nodes);
    // Before etcd is compacted: they read its whole history.
    clients = await ClusterClients.start(cluster, controlPlane);
    await createPods(cluster, first);
  });
  after(async () => {
    await clients?.stop();
    await cluster?.remove();
  });

  for (const kind of kinds)
    for (const target of targets) {
      const name = `${kind.name} of ${target.name}`;
      if (!chosen.test(name) || (kind.sparesEtcd && target.isEtcd)) continue;
      const whyNot = kind.needsDisks && !canLimitWrites() ? "needs the blkio controller of cgroup v1" : false;
      test(`${name}: no acknowledged write is lost, no container runs twice, and evictions go on`, {
        skip: whyNot,
      }, async (t) => {
        const result = await runRound(cluster, clients, target, kind);
        const row = { kind: kind.name, target: target.name, result };
        rows.push(row);
        t.diagnostic(tableOf([row]).at(-1) as string);
        assert.deepEqual(result.broken, []);
        assert.deepEqual(runTwice(runsOn(cluster, nodes)), []);
        assert.ok(result.acknowledged > 0);
      });
    }

  test("the figures", (t) => {
    assert.ok(rows.length > 0);
    for (const line of tableOf(rows)) t.diagnostic(line);
  });
});
