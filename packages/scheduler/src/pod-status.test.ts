import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { PodStatuses } from "./pod-status.ts";
import { aTestPod } from "./testing/test-cluster.ts";

const nowMs = Date.UTC(2022, 0, 1);
const now = "2022-01-01T00:00:00Z";
const earlier = "2021-01-01T00:00:00Z";
const refusal = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "full", lastProbeTime: null };
const refusedAt = (lastTransitionTime: string, more: object = {}) => ({ ...refusal, lastTransitionTime, ...more });
const other = { type: "Ready", status: "False", reason: "Unschedulable", message: "full" };

for (const { name, status, state = {}, want } of [
  { name: "the first refusal", status: {}, want: { conditions: [refusedAt(now)] } },
  { name: "one like the last", status: { conditions: [other, refusedAt(earlier)] }, want: undefined },
  { name: "one beside another condition", status: { conditions: [other] }, want: { conditions: [refusedAt(now)] } },
  {
    name: "another message",
    status: { conditions: [refusedAt(earlier, { message: "no nodes" })] },
    want: { conditions: [refusedAt(earlier)] },
  },
  {
    name: "another reason",
    status: { conditions: [refusedAt(earlier, { reason: "SchedulerError" })] },
    want: { conditions: [refusedAt(earlier)] },
  },
  {
    name: "one after the pod was scheduled",
    status: { conditions: [refusedAt(earlier, { status: "True" })] },
    want: { conditions: [refusedAt(now)] },
  },
  {
    name: "a nomination",
    status: { conditions: [refusedAt(earlier)] },
    state: { nominatedNode: "a" },
    want: { nominatedNodeName: "a" },
  },
  {
    name: "the nomination that it has",
    status: { conditions: [refusedAt(earlier)], nominatedNodeName: "a" },
    state: { nominatedNode: "a" },
    want: undefined,
  },
  {
    name: "a nomination that is over",
    status: { conditions: [refusedAt(earlier)], nominatedNodeName: "a" },
    state: { nominatedNode: "" },
    want: { nominatedNodeName: null },
  },
  {
    name: "nothing of its nomination",
    status: { conditions: [refusedAt(earlier)], nominatedNodeName: "a" },
    want: undefined,
  },
  {
    name: "no nomination, which it has not",
    status: { conditions: [refusedAt(earlier)] },
    state: { nominatedNode: "" },
    want: undefined,
  },
] as { name: string; status: object; state?: { nominatedNode?: string }; want: object | undefined }[]) {
  test(`a pod gets ${name} with ${want === undefined ? "no request" : JSON.stringify(want)}`, async () => {
    const client = newFakeClient();
    const pod = aTestPod("web", { status });
    client.put(pods, pod);
    const statuses = new PodStatuses(client, discardLogger);
    statuses.refuse(pod, { reason: "Unschedulable", message: "full", nominatedNode: state.nominatedNode, nowMs });
    await statuses.written(pod);
    const sent = client.writes.map(({ subresource, sent: body }) => [subresource, body]);
    assert.deepEqual(sent, want === undefined ? [] : [["status", { metadata: { uid: "web" }, status: want }]]);
  });
}

test("a nomination is cleared only if there is one", async () => {
  const client = newFakeClient();
  const nominated = aTestPod("web", { status: { nominatedNodeName: "a" } });
  client.put(pods, nominated);
  const statuses = new PodStatuses(client, discardLogger);
  await statuses.clearNomination(aTestPod("web"));
  assert.deepEqual(client.writes, []);
  await statuses.clearNomination(nominated);
  assert.equal(client.object<Pod>(pods, "default/web")?.status?.nominatedNodeName, undefined);
});
