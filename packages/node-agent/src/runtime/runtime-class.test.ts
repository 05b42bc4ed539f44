import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuntimeClass } from "@coxswain/apimachinery/objects/schema/kinds/node/v1";
import { runtimeClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { aNodePod } from "../testing/builders.ts";
import { runtimeHandler } from "./runtime-class.ts";

const wanting = (runtimeClassName?: string) => aNodePod({ ...(runtimeClassName !== undefined && { runtimeClassName }) });

test("a pod runs with the handler of its RuntimeClass, others with the default one", async () => {
  const client = newFakeClient({ clock: newFakeClock() });
  client.put<RuntimeClass>(runtimeClasses, {
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: "safe" },
    handler: "kata",
  });
  assert.equal(await runtimeHandler(client, wanting("safe")), "kata");
  client.clearActions();
  assert.deepEqual([await runtimeHandler(client, wanting()), await runtimeHandler(client, wanting(""))], ["", ""]);
  assert.deepEqual(client.actions, []);
  assert.equal(await runtimeHandler(undefined, wanting("safe")), "", "without an API server");
});

test("a RuntimeClass that does not exist is named, and one that cannot be read is another error", async () => {
  const client = newFakeClient({ clock: newFakeClock() });
  await assert.rejects(runtimeHandler(client, wanting("none")), {
    message: 'failed to get sandbox runtime: no runtime for "none" is configured',
  });
  client.react("get", "runtimeclasses", () => {
    throw new Error("connect ECONNREFUSED");
  });
  await assert.rejects(runtimeHandler(client, wanting("none")), /^Error: connect ECONNREFUSED$/);
});
