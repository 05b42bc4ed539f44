import assert from "node:assert/strict";
import { test } from "node:test";
import { aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { podFromTemplate, slowStartBatch } from "./pod-control.ts";

for (const { name, count, failAt, want } of [
  { name: "does nothing for nothing", count: 0, failAt: -1, want: { succeeded: 0, calls: 0 } },
  { name: "does all in growing batches", count: 10, failAt: -1, want: { succeeded: 10, calls: 10 } },
  { name: "stops after the first call when it fails", count: 10, failAt: 0, want: { succeeded: 0, calls: 1 } },
  { name: "finishes the batch in which one fails", count: 10, failAt: 4, want: { succeeded: 6, calls: 7 } },
]) {
  test(`slow start ${name}`, async () => {
    let calls = 0;
    const { succeeded, error } = await slowStartBatch(count, async (index) => {
      calls++;
      if (index === failAt) throw new Error("refused");
    });
    assert.deepEqual({ succeeded, calls }, want);
    assert.equal(error !== undefined, failAt >= 0);
  });
}

test("makes a pod of the template, named after its owner and owned by it", () => {
  const replicaSet = aReplicaSet({ name: "web", namespace: "shop" });
  const ref = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web-uid", controller: true };
  const pod = podFromTemplate(
    replicaSet,
    { metadata: { labels: { app: "web" }, annotations: { a: "b" } }, spec: { containers: [] } },
    ref,
  );
  assert.deepEqual(pod.metadata, {
    generateName: "web-",
    namespace: "shop",
    labels: { app: "web" },
    annotations: { a: "b" },
    ownerReferences: [ref],
  });
});
