import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { namespaceTerminating } from "../testing/terminating.ts";
import { createPod, deletePod, podFromTemplate, slowStartBatch } from "./pod-control.ts";

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

test("the outcome of a creation or deletion is an event on the owner, a pod that was gone already is none", async () => {
  const client = newFakeClient();
  const events: string[] = [];
  const recorder: EventRecorder = {
    event: ({ name, metadata }: { name?: string; metadata?: { name?: string } }, type, reason, message) =>
      void events.push(`${metadata?.name ?? name}: ${type} ${reason} ${message}`),
    flush: () => Promise.resolve(),
  };
  const owner = aReplicaSet({ name: "web" });
  const ref = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web-uid", controller: true };
  const ctx = { client, recorder, turns: newUnlimitedTurns() };
  const template = { metadata: {}, spec: { containers: [] } };
  const { signal } = new AbortController();
  await createPod(ctx, owner, template, ref, signal, "own-");
  const [pod] = client.objects<Pod>(pods) as [Pod];
  const { name } = pod.metadata;
  assert.match(name ?? "", /^own-/);
  let answer: Error | undefined = forbidden(pods, "x", "not now");
  for (const verb of ["create", "delete"] as const)
    client.react(verb, "pods", () => {
      if (answer !== undefined) throw answer;
    });
  await assert.rejects(createPod(ctx, owner, template, ref, signal), /not now/);
  await assert.rejects(deletePod(ctx, owner, pod, signal), /not now/);
  answer = undefined;
  assert.equal(await deletePod(ctx, owner, pod, signal), true);
  assert.equal(await deletePod(ctx, owner, pod, signal), false);
  answer = namespaceTerminating(pods);
  await assert.rejects(createPod(ctx, owner, template, ref, signal), /being terminated/);
  const refusal = 'pods "x" is forbidden: not now';
  assert.deepEqual(events, [
    `web: Normal SuccessfulCreate Created pod: ${name}`,
    `web: Warning FailedCreate Error creating: ${refusal}`,
    `web: Warning FailedDelete Error deleting: ${refusal}`,
    `web: Normal SuccessfulDelete Deleted pod: ${name}`,
  ]);
});

test("a pod has the finalizers of its template, and no dash after a name that leaves no room for it", () => {
  const ref = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web-uid", controller: true };
  const made = (name: string) =>
    podFromTemplate(aReplicaSet({ name }), { metadata: { finalizers: ["example.com/x"] }, spec: { containers: [] } }, ref)
      .metadata;
  assert.deepEqual(made("web").finalizers, ["example.com/x"]);
  assert.deepEqual(
    [252, 253].map((length) => made("n".repeat(length)).generateName?.length),
    [253, 253],
  );
});
