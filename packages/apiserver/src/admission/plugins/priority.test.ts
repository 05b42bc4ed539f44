import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { priorityClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { priority } from "./priority.ts";

const aClass = (name: string, value: number, globalDefault = false) => ({ metadata: { name }, value, globalDefault });

/** The priority and class of a new pod. @param cached classes in the cache; those in `stored` are known to the API only */
async function admitted(spec: object, cached: KubeObject[], stored: KubeObject[] = []) {
  const client = newFakeClient();
  client.put(priorityClasses, ...stored);
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const lister = { list: () => cached, get: (name: string) => cached.find(({ metadata }) => metadata.name === name) };
  const plugin = priority({
    client,
    informers: { ...informers, for: () => ({ synced: true, lister }) },
  } as unknown as PluginContext);
  const object = { metadata: { name: "web" }, spec: { ...spec } } as unknown as KubeObject & { spec: Record<string, unknown> };
  const resource = { group: "", version: "v1", resource: "pods" };
  await plugin.admit?.({ operation: "CREATE", resource, subresource: "", object } as unknown as AdmissionAttributes);
  return [object.spec["priorityClassName"], object.spec["priority"]];
}

test("of two default classes the one of the lower value counts, in whatever order they come", async () => {
  const both = [aClass("high", 9, true), aClass("low", 3, true), aClass("none", 1)];
  assert.deepEqual(await admitted({}, both), ["low", 3]);
  assert.deepEqual(await admitted({}, both.toReversed()), ["low", 3]);
});

test("a class that the cache does not have yet is read from the API", async () => {
  assert.deepEqual(await admitted({ priorityClassName: "new" }, [], [aClass("new", 7)]), ["new", 7]);
  await assert.rejects(admitted({ priorityClassName: "gone" }, []), /no PriorityClass with name gone was found/);
});
