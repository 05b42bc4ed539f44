import assert from "node:assert/strict";
import { test } from "node:test";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import { openStatuses } from "./open-statuses.ts";

/** The API server and the agent's cache have this pod. */
function opened(stored: NodePod) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.put(pods, stored);
  const lister = {
    get: (key: string) => (key === `${stored.metadata.namespace}/${stored.metadata.name}` ? stored : undefined),
    list: () => [stored],
  };
  const informer = { lister } as unknown as SharedInformer<Pod>;
  const { status } = openStatuses({
    api: { client, pods: informer },
    node: { registered: () => ({ metadata: { name: "n1" }, spec: {} }) },
    clock,
    log: discardLogger,
  });
  return { status, written: () => client.objects<Pod>(pods)[0]?.status?.phase, writes: () => client.writes.length };
}
const pod = (uid: string): NodePod => aNodePod({}, { name: "web", uid }, { phase: "Pending" });

test("a pod's status is written", async () => {
  const { status, written } = opened(pod("uid-1"));
  status.set(pod("uid-1"), { phase: "Running" });
  await settle();
  assert.equal(written(), "Running");
});

test("a recreated pod does not get the status of the ended one of its name", async () => {
  const { status, written, writes } = opened(pod("uid-2"));
  status.set(pod("uid-1"), { phase: "Succeeded" });
  await settle();
  await status.finish(pod("uid-1"));
  assert.deepEqual([written(), writes()], ["Pending", 0]);
  assert.equal(status.get("uid-1"), undefined, "nothing is left to be written");
  status.set(pod("uid-2"), { phase: "Running" });
  await settle();
  assert.equal(written(), "Running");
});
