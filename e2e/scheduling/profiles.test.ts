import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/events/v1";
import { eventsV1, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "../framework/wait-for.ts";
import { startScheduling } from "./scheduler-process.ts";

test("one process serves two scheduler names, each by its profile, and no other", async (t) => {
  const profiles = [
    { schedulerName: "spreading" },
    {
      schedulerName: "packing",
      pluginConfig: [
        {
          name: "NodeResourcesFit",
          args: { scoringStrategy: { type: "MostAllocated", resources: [{ name: "cpu", weight: 1 }] } },
        },
      ],
      plugins: { score: { disabled: [{ name: "*" }], enabled: [{ name: "NodeResourcesFit", weight: 1 }] } },
    },
  ];
  const cluster = await startScheduling(t, { profiles });
  await cluster.server.client.create(serviceAccounts, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "default", namespace: "default" },
  });
  await cluster.addNode("a", "8");
  await cluster.addNode("b", "8");
  const nodeOf = (name: string) => waitFor(`${name} to have a node`, async () => (await cluster.pod(name)).spec.nodeName);
  await cluster.addPod("foreign", "1");
  await cluster.addPod("first", "4", { schedulerName: "spreading" });
  const first = await nodeOf("first");
  await cluster.addPod("packed", "1", { schedulerName: "packing" });
  assert.equal(await nodeOf("packed"), first);
  await cluster.addPod("spread", "1", { schedulerName: "spreading" });
  assert.notEqual(await nodeOf("spread"), first);
  assert.equal((await cluster.pod("foreign")).spec.nodeName, undefined);
  const reported = await waitFor("events", async () => {
    const { items } = await cluster.server.client.list<Event>(eventsV1, { namespace: "default" });
    assert.ok(items.every(({ regarding }) => regarding?.name !== "foreign"));
    // A scheduler that sees the pod before the node reports an event.
    const scheduled = items.filter(({ reason }) => reason === "Scheduled");
    return scheduled.length === 3 ? scheduled : undefined;
  });
  assert.deepEqual(
    reported
      .map(({ regarding, reason, action, reportingController }) => [regarding?.name, reason, action, reportingController])
      .sort(),
    [
      ["first", "Scheduled", "Binding", "spreading"],
      ["packed", "Scheduled", "Binding", "packing"],
      ["spread", "Scheduled", "Binding", "spreading"],
    ],
  );
  for (const { eventTime, reportingInstance, deprecatedSource, deprecatedCount } of reported) {
    assert.match(String(eventTime), /\.\d{6}Z$/);
    assert.match(String(reportingInstance), /^(spreading|packing)-./);
    assert.deepEqual([deprecatedSource, deprecatedCount], [{}, undefined]);
  }
});
