import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { conflict, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { customResourceCleanupFinalizer } from "../registry/apiextensions/customresourcedefinitions/strategy.ts";
import type { CustomResourceDefinition } from "./definitions.ts";
import { newFinalizer } from "./finalizer.ts";

interface Given {
  readonly finalizers?: string[];
  /** Of each write of the status. */
  readonly failure?: Error;
  readonly established?: string;
  readonly served?: boolean;
  /** Replaces the list of instances. */
  readonly listed?: () => Promise<never>;
}

/** Runs the controller for one definition that is being deleted. @param left namespaces of its instances */
function started(
  t: { after(fn: () => void): void },
  left: string[],
  remove: (namespace: string) => void,
  { finalizers = [customResourceCleanupFinalizer], failure, established = "True", served = true, listed }: Given = {},
) {
  const definition = {
    metadata: {
      name: "widgets.example.com",
      deletionTimestamp: "2022-01-01T00:00:00Z",
      finalizers,
    },
    spec: { group: "example.com" },
    status: { conditions: [{ type: "Established", status: established }] },
  } as unknown as CustomResourceDefinition;
  let enqueue: ((one: CustomResourceDefinition) => void) | undefined;
  const definitions = {
    lister: { list: () => [definition], get: () => definition },
    synced: true,
    waitForSync: async () => undefined,
    addHandler: (handler: { added?: (one: CustomResourceDefinition) => void }) => {
      enqueue = handler.added;
      return () => undefined;
    },
  } as unknown as SharedInformer<CustomResourceDefinition>;
  const written: CustomResourceDefinition[] = [];
  const client = {
    async update(_: unknown, object: CustomResourceDefinition) {
      written.push(object);
      if (failure !== undefined) throw failure;
      return object;
    },
  } as unknown as Client;
  const asked: string[] = [];
  const store = {
    list: listed ?? (async () => ({ entries: left.map((namespace) => ({ object: () => ({ metadata: { namespace } }) })) })),
    async deleteCollection({ namespace }: { namespace: string }) {
      asked.push(namespace);
      remove(namespace);
    },
  };
  const clock = newFakeClock();
  const controller = newFinalizer({
    client,
    definitions,
    storeOf: () => (served ? (store as never) : undefined),
    featureEnabled: () => false,
    clock,
    log: discardLogger,
  });
  const stop = new AbortController();
  t.after(() => stop.abort());
  void controller.run(stop.signal);
  enqueue?.(definition);
  const last = () => written.at(-1);
  const condition = () => last()?.status?.conditions?.find(({ type }) => type === "Terminating");
  const message = () => condition()?.message;
  return { asked, clock, left, last, condition, message, writes: () => written.length };
}

test("instances of all namespaces are deleted though one cannot be, and the failures are named", async (t) => {
  const { asked, clock, last, message } = started(t, ["a", "b", "c"], (namespace) => {
    if (namespace !== "b") throw new Error(`no ${namespace}`);
  });
  await waitFor(() => message() === "could not issue all deletes: [no a, no c]");
  assert.deepEqual(asked, ["a", "b", "c"]);
  assert.deepEqual(last()?.metadata.finalizers, [customResourceCleanupFinalizer]);
  await waitFor(() => clock.waiting > 0, { what: "the next attempt to be planned" });
  await clock.advance(1_000);
  await waitFor(() => asked.length >= 6, { what: "the next attempt" });
});

test("the definition stays until no instance is left, also of those that were made meanwhile", async (t) => {
  const left = ["a"];
  const { clock, last, message } = started(t, left, () => left.splice(0, 1, "late"));
  await waitFor(() => clock.nextDue === clock.now() + 5_000);
  await clock.advance(5_000);
  assert.notEqual(message(), "removed all instances");
  left.length = 0;
  await clock.advance(5_000);
  await waitFor(() => message() === "removed all instances");
  assert.deepEqual(last()?.metadata.finalizers, []);
});

test("instances that do not go are waited for a minute, then the failure is named and the definition stays", async (t) => {
  const { clock, last, message } = started(t, ["a"], () => undefined);
  await waitFor(() => clock.nextDue === clock.now() + 5_000);
  for (let s = 0; s < 55; s += 5) await clock.advance(5_000);
  clock.setOn(3_600_000); // a clock that is set ends no wait
  await clock.advance(4_999);
  assert.equal(message(), "CustomResource deletion is in progress");
  await clock.advance(1);
  await waitFor(() => message()?.includes("timed out waiting for the condition") === true);
  assert.deepEqual(last()?.metadata.finalizers, [customResourceCleanupFinalizer]);
});

test("a definition that has only other finalizers is not changed", async (t) => {
  const { asked, clock, writes } = started(t, ["a"], () => undefined, { finalizers: ["other.example.com"] });
  for (let s = 0; s < 20; s++) await clock.advance(1_000);
  assert.deepEqual([asked, writes()], [[], 0]);
});

test("other finalizers and conditions of the definition stay", async (t) => {
  const finalizers = ["a.example.com", customResourceCleanupFinalizer, "b.example.com"];
  const { last, message } = started(t, [], () => undefined, { finalizers });
  await waitFor(() => message() === "removed all instances");
  assert.deepEqual(last()?.metadata.finalizers, ["a.example.com", "b.example.com"]);
  hasFields(last()?.status?.conditions, [
    { type: "Established", status: "True" },
    { type: "Terminating", status: "False", reason: "InstanceDeletionCompleted" },
  ]);
});

test("a definition that another writer has changed is left to the next event; other failures are retried", async (t) => {
  const resource = { group: "apiextensions.k8s.io", resource: "customresourcedefinitions" };
  for (const { failure, retried } of [
    { failure: conflict(resource, "widgets.example.com", "changed"), retried: false },
    { failure: notFound(resource, "widgets.example.com"), retried: false },
    { failure: serviceUnavailable("etcd is away"), retried: true },
  ]) {
    const { clock, writes } = started(t, ["a"], () => undefined, { failure });
    await waitFor(() => writes() > 0, { what: "the first attempt" });
    for (let s = 0; s < 20; s++) await clock.advance(1_000);
    assert.equal(writes() > 1, retried, failure.message);
  }
});

test("a definition that was never established has no instances to delete", async (t) => {
  const { asked, last, condition, message } = started(t, ["a"], () => undefined, { established: "False" });
  await waitFor(() => message() === "resource was never established");
  assert.deepEqual([asked, condition()?.status, condition()?.reason], [[], "False", "NeverEstablished"]);
  assert.deepEqual(last()?.metadata.finalizers, []);
});

for (const { name, given, want } of [
  {
    name: "that is not served",
    given: { served: false },
    want: "could not get client: widgets.example.com is not served",
  },
  {
    name: "whose instances cannot be listed",
    given: { listed: () => Promise.reject(new Error("etcd is away")) },
    want: "could not list instances: etcd is away",
  },
]) {
  test(`a definition ${name} keeps its finalizer and is tried again`, async (t) => {
    const { clock, last, condition, message, writes } = started(t, ["a"], () => undefined, given);
    await waitFor(() => message() === want);
    assert.deepEqual([condition()?.status, condition()?.reason], ["True", "InstanceDeletionFailed"]);
    assert.deepEqual(last()?.metadata.finalizers, [customResourceCleanupFinalizer]);
    const before = writes();
    await waitFor(() => clock.waiting > 0, { what: "the next attempt to be planned" });
    await clock.advance(1_000);
    await waitFor(() => writes() > before, { what: "the next attempt" });
  });
}

test("a failure to delete in one namespace is named alone", async (t) => {
  const { message } = started(t, ["a", "b"], (namespace) => {
    if (namespace === "b") throw new Error("no b");
  });
  await waitFor(() => message() === "could not issue all deletes: no b");
});
