import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aNodePod } from "../testing/builders.ts";
import { rejectedStatus } from "./pod-status.ts";
import { newStatusManager } from "./status-manager.ts";

function managing(pod: Pod) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.put(pods, pod);
  let stored: Pod = pod;
  /** The Pods for which the server's object was looked for. */
  const looked: Pod[] = [];
  const apiPodOf = (of: Pod): Pod => {
    looked.push(of);
    return stored;
  };
  const status = newStatusManager({ client, clock, log: discardLogger, apiPodOf });
  /** Updates the agent's cache from the server. */
  const hear = async (change: Partial<NonNullable<Pod["status"]>> = {}): Promise<void> => {
    await settle();
    const { name = "", namespace = "" } = pod.metadata;
    stored = await client.get<Pod>(pods, { namespace, name });
    stored = { ...stored, status: { ...stored.status, ...change } };
  };
  return { clock, client, status, hear, looked };
}

test("a status is written once, and again when another has overwritten it", async () => {
  const pod = aNodePod({}, {}, { phase: "Pending" });
  const { client, status, hear } = managing(pod);
  status.set(pod, { phase: "Running" });
  await hear();
  status.set(pod, { phase: "Running" });
  status.resync();
  await settle();
  assert.deepEqual(
    client.writes.map(({ verb, subresource }) => `${verb} ${subresource}`),
    ["patch status"],
  );
  await hear({ phase: "Unknown" });
  status.resync("uid-1");
  await settle();
  assert.equal(client.writes.length, 2);
  status.stop();
});

test("a qosClass that the server keeps for a rejected pod causes no repeated writes", async () => {
  const pod = aNodePod({}, {}, { phase: "Pending", qosClass: "BestEffort" });
  const { client, status, hear } = managing(pod);
  status.set(pod, rejectedStatus(pod, { reason: "OutOfcpu", message: "no" }, 0));
  await hear({ qosClass: "BestEffort" });
  status.resync();
  await settle();
  assert.equal(client.writes.length, 1);
  status.stop();
});

test("a pod started before the end of one with its uid was written keeps its status", async () => {
  const pod = aNodePod({}, {}, { phase: "Running" });
  const { clock, client, status, hear } = managing(pod);
  let isAway = true;
  client.react("patch", "pods", () => {
    if (isAway) throw new Error("connect ECONNREFUSED");
    return undefined;
  });
  status.set(pod, { phase: "Failed" });
  void status.finish(pod);
  status.set(pod, { phase: "Pending" });
  isAway = false;
  await clock.advance(1_000);
  await hear();
  assert.equal(status.get("uid-1")?.phase, "Pending");
  const written = await client.get<Pod>(pods, { namespace: "default", name: "web" });
  assert.equal(written.status?.phase, "Pending");
  status.stop();
});

test("a status write in progress is not repeated by a comparison with the server", async () => {
  const pod = aNodePod({}, {}, { phase: "Pending" });
  const { client, status } = managing(pod);
  status.set(pod, { phase: "Running" });
  status.resync();
  status.resync("uid-1");
  await settle();
  assert.equal(client.writes.length, 1);
  status.stop();
});

test("a status is written to the pod's current object", async () => {
  const asked: (string | undefined)[] = [];
  const apiPodOf = ({ metadata }: Pod): undefined => void asked.push(metadata.annotations?.["hash"]);
  const clock = newFakeClock();
  const status = newStatusManager({ client: newFakeClient({ clock }), clock, log: discardLogger, apiPodOf });
  const podOf = (hash: string) => aNodePod({}, { annotations: { hash } });
  status.set(podOf("one"), { phase: "Running" });
  await settle();
  status.set(podOf("two"), { phase: "Running" });
  status.resync();
  assert.deepEqual(asked, ["one", "two"]);
  status.stop();
});

test("a pod's last status is written to the object of the pod as it is when it ends", async () => {
  const pod = aNodePod({}, {}, { phase: "Pending" });
  const { client, status, looked, hear } = managing(pod);
  status.set(pod, { phase: "Running" });
  await hear();
  const ending = { ...pod, metadata: { ...pod.metadata, resourceVersion: "7" } };
  await status.finish(ending);
  assert.deepEqual([...new Set(looked.map(({ metadata }) => metadata.resourceVersion))], [pod.metadata.resourceVersion, "7"]);
  assert.equal(client.writes.length, 1, "which has it already");
  status.stop();
});
