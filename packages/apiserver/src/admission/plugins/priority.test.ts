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

/** @param cached classes in the cache; those in `stored` are known to the API only */
function aPlugin(
  cached: KubeObject[],
  stored: KubeObject[] = [],
  { gates = { NonPreemptingPriority: true }, client = newFakeClient() } = {},
) {
  client.put(priorityClasses, ...stored);
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const lister = { list: () => cached, get: (name: string) => cached.find(({ metadata }) => metadata.name === name) };
  return priority({
    client,
    featureEnabled: (gate: string) => gates[gate as keyof typeof gates],
    informers: { ...informers, for: () => ({ synced: true, lister }) },
  } as unknown as PluginContext);
}

/** A new pod's spec after admission. */
async function specOf(spec: object, cached: KubeObject[], stored: KubeObject[] = []) {
  const object = { metadata: { name: "web" }, spec: { ...spec } as Record<string, unknown> };
  const resource = { group: "", version: "v1", resource: "pods" };
  const attributes = { operation: "CREATE", resource, subresource: "", name: "web", object };
  await aPlugin(cached, stored).admit?.(attributes as unknown as AdmissionAttributes);
  return object.spec;
}

/** The class and priority of a new pod. */
async function admitted(spec: object, cached: KubeObject[], stored: KubeObject[] = []) {
  const { priorityClassName, priority: value } = await specOf(spec, cached, stored);
  return [priorityClassName, value];
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

test("a class that cannot be read is an error, and not a class that does not exist", async () => {
  const client = newFakeClient();
  client.react("get", "priorityclasses", () => {
    throw new Error("etcd is away");
  });
  const object = { metadata: { name: "web" }, spec: { priorityClassName: "new" } };
  const resource = { group: "", version: "v1", resource: "pods" };
  const attributes = { operation: "CREATE", resource, subresource: "", name: "web", object };
  const admit = async () => aPlugin([], [], { client }).admit?.(attributes as unknown as AdmissionAttributes);
  await assert.rejects(admit, { message: "etcd is away" });
});

const patient = { ...aClass("patient", 5), preemptionPolicy: "Never" };
const usual = { ...aClass("usual", 3, true), preemptionPolicy: "Never" };
for (const { name, spec, want } of [
  { name: "of a class", spec: { priorityClassName: "patient" }, want: "Never" },
  { name: "of the default class", spec: {}, want: "Never" },
  {
    name: "of a class that names it too",
    spec: { priorityClassName: "patient", preemptionPolicy: "Never", priority: 5 },
    want: "Never",
  },
  { name: "of a class without one", spec: { priorityClassName: "silent", preemptionPolicy: "Never" }, want: "Never" },
]) {
  test(`a pod ${name} has the policy of preemption ${want}`, async () => {
    const { preemptionPolicy } = await specOf(spec, [patient, usual, aClass("silent", 1)]);
    assert.equal(preemptionPolicy, want);
  });
}

test("a pod preempts others without any class, and may not choose another policy or priority than its class has", async () => {
  assert.equal((await specOf({}, []))["preemptionPolicy"], "PreemptLowerPriority");
  await assert.rejects(specOf({ priorityClassName: "patient", preemptionPolicy: "PreemptLowerPriority" }, [patient]), {
    message:
      'pods "web" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; ' +
      "priority admission controller computed Never from the given PriorityClass name",
  });
  await assert.rejects(
    specOf({ priority: 4 }, [usual]),
    /the integer value of priority \(4\) must not be provided .* computed 3 /,
  );
});

for (const { name, operation, wanted, refused } of [
  { name: "the creation of a second default", operation: "CREATE", wanted: aClass("other", 1, true), refused: true },
  { name: "the creation of a class with the default's name", operation: "CREATE", wanted: usual, refused: true },
  { name: "an update that makes a second default", operation: "UPDATE", wanted: aClass("other", 1, true), refused: true },
  { name: "an update of the default itself", operation: "UPDATE", wanted: usual, refused: false },
  { name: "the creation of a class that is no default", operation: "CREATE", wanted: aClass("other", 1), refused: false },
]) {
  test(`${name} is ${refused ? "refused" : "taken"}`, async () => {
    const resource = { group: "scheduling.k8s.io", version: "v1", resource: "priorityclasses" };
    const attributes = { operation, resource, subresource: "", name: wanted.metadata.name, object: wanted };
    const answer = async () => aPlugin([patient, usual]).validate?.(attributes as unknown as AdmissionAttributes);
    if (refused) await assert.rejects(answer, /PriorityClass usual is already marked as default/);
    else await answer();
  });
}

test("without NonPreemptingPriority a pod keeps the policy of preemption that it asks for, which the registry drops", async () => {
  const spec: Record<string, unknown> = { priorityClassName: "patient", preemptionPolicy: "PreemptLowerPriority" };
  const object = { metadata: { name: "web" }, spec };
  const resource = { group: "", version: "v1", resource: "pods" };
  const attributes = { operation: "CREATE", resource, subresource: "", name: "web", object };
  const plugin = aPlugin([patient], [], { gates: { NonPreemptingPriority: false } });
  await plugin.admit?.(attributes as unknown as AdmissionAttributes);
  assert.deepEqual([spec["priority"], spec["preemptionPolicy"]], [5, "PreemptLowerPriority"]);
});

for (const { name, next, want } of [
  { name: "that leaves both out keeps them", next: {}, want: { priority: 5, preemptionPolicy: "Never" } },
  {
    name: "that names others is left as it is, for validation",
    next: { priority: 6, preemptionPolicy: "PreemptLowerPriority" },
    want: { priority: 6, preemptionPolicy: "PreemptLowerPriority" },
  },
]) {
  test(`an update of a pod's priority and policy of preemption ${name}`, async () => {
    const [object, oldObject] = [{ spec: { ...next } }, { spec: { priority: 5, preemptionPolicy: "Never" } }];
    const resource = { group: "", version: "v1", resource: "pods" };
    const attributes = { operation: "UPDATE", resource, subresource: "", name: "web", object, oldObject };
    await aPlugin([patient]).admit?.(attributes as unknown as AdmissionAttributes);
    assert.deepEqual(object.spec, want);
  });
}
