import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { conflict, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { CustomResourceDefinition } from "./definitions.ts";
import { newStatusControllers } from "./status-controllers.ts";
import { nonStructuralSchema } from "./status-rules.ts";
import { customResourceStatusStrategy } from "./strategy.ts";

type Handler = Parameters<SharedInformer<CustomResourceDefinition>["addHandler"]>[0];

const definition = (plural: string, resourceVersion: string, names = plural): CustomResourceDefinition => ({
  metadata: { name: `${plural}.example.com`, uid: plural, resourceVersion },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: names, kind: names, singular: names, listKind: `${names}List` },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
});

/** The controllers over a fixed list of definitions that does not reflect their writes. */
function controllers(...listed: CustomResourceDefinition[]) {
  const handlers: Handler[] = [];
  const informer = {
    lister: { list: () => listed, get: (name: string) => listed.find(({ metadata }) => metadata.name === name) },
    synced: true,
    waitForSync: async () => undefined,
    addHandler: (handler: Handler) => {
      handlers.push(handler);
      return () => undefined;
    },
  } as unknown as SharedInformer<CustomResourceDefinition>;
  const written: CustomResourceDefinition[] = [];
  const failures: Error[] = [];
  const client = {
    async update(_: unknown, object: CustomResourceDefinition) {
      written.push(object);
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return { ...object, metadata: { ...object.metadata, resourceVersion: `${100 + written.length}` } };
    },
  } as unknown as Client;
  const clock = newFakeClock();
  const show = (one: CustomResourceDefinition): void => {
    for (const handler of handlers) handler.added?.(one);
  };
  const status = newStatusControllers({ client, definitions: informer, clock, log: discardLogger });
  return { clock, status, written, failures, show };
}

test("runs until its signal is aborted", async () => {
  const { status } = controllers();
  const stop = new AbortController();
  let isOver = false;
  const running = status.run(stop.signal).then(() => {
    isOver = true;
  });
  for (let turn = 0; turn < 10; turn++) await new Promise((next) => setImmediate(next));
  assert.equal(isOver, false);
  stop.abort();
  await running;
});

test("a name is given to one definition alone, also while the list does not show who has it yet", async () => {
  const listed = [definition("as", "1", "things"), definition("bs", "2", "things")];
  const { status, written, show } = controllers(...listed);
  const stop = new AbortController();
  const running = status.run(stop.signal);
  for (const one of listed) show(one);
  const accepted = () =>
    written.flatMap(
      ({ status: has }) => has?.conditions?.filter(({ type }) => type === "NamesAccepted").map((one) => one.status) ?? [],
    );
  await waitFor(() => accepted().length >= 2, { what: "both to be decided" });
  assert.deepEqual(accepted().toSorted(), ["False", "True"]);
  stop.abort();
  await running;
});

test("names of another group are free", async () => {
  const other = definition("as", "1", "things");
  other.spec.group = "other.com";
  const listed = [other, definition("bs", "2", "things")];
  const { status, written, show } = controllers(...listed);
  const stop = new AbortController();
  const running = status.run(stop.signal);
  for (const one of listed) show(one);
  await waitFor(() => written.length >= 2, { what: "both to be decided" });
  for (const one of written) assert.equal(one.status?.conditions?.find(({ type }) => type === "NamesAccepted")?.status, "True");
  stop.abort();
  await running;
});

test("a conflict or a deleted definition is left to the next event; other errors are retried", async () => {
  const resource = { group: "apiextensions.k8s.io", resource: "customresourcedefinitions" };
  for (const { failure, tries } of [
    { failure: conflict(resource, "as", "changed"), tries: 1 },
    { failure: notFound(resource, "as"), tries: 1 },
    { failure: serviceUnavailable("etcd is away"), tries: 2 },
  ]) {
    const one = definition("as", "1");
    const { clock, status, written, failures, show } = controllers(one);
    failures.push(failure);
    const stop = new AbortController();
    const running = status.run(stop.signal);
    show(one);
    await waitFor(() => written.length > 0, { what: "the first try" });
    for (let turn = 0; turn < 20; turn++) await clock.advance(1_000);
    assert.equal(written.length, tries, failure.message);
    stop.abort();
    await running;
  }
});

test("a condition goes with what it was about, the others stay, also in a definition that is being deleted", async () => {
  const one = definition("as", "1");
  one.metadata.deletionTimestamp = "2022-01-01T00:00:00Z";
  const state = { status: "True", reason: "x", message: "x", lastTransitionTime: "2022-01-01T00:00:00Z" } as const;
  one.status = {
    acceptedNames: one.spec.names,
    conditions: [
      { type: "NonStructuralSchema", ...state },
      { type: "Established", ...state },
    ],
    storedVersions: ["v1"],
  } as never;
  const { status, written, show } = controllers(one);
  const stop = new AbortController();
  const running = status.run(stop.signal);
  show(one);
  await waitFor(() => written.length > 0, { what: "the status to be written" });
  assert.deepEqual(
    written[0]?.status?.conditions?.map(({ type }) => type),
    ["Established"],
  );
  stop.abort();
  await running;
});

test("a violation in a second version is reported, whatever the first one has", () => {
  const one = definition("a", "1");
  const violating = {
    name: "v2",
    served: true,
    storage: false,
    schema: { openAPIV3Schema: { type: "object", properties: { x: {} } } },
  };
  one.spec.versions = [{ name: "v1", served: true, storage: true }, violating] as never;
  const condition = atOnce(nonStructuralSchema(one));
  assert.equal(condition?.reason, "Violations");
  assert.match(condition?.message ?? "", /^spec\.versions\[1\]\.schema\.openAPIV3Schema\.properties\[x\]\.type: Required value/);
});

test("a status update takes the status and nothing else from the request", () => {
  const strategy = customResourceStatusStrategy({
    ...{ namespaced: true, schema: undefined, hasStatus: true, scale: undefined, checkRules: undefined },
  });
  const current = { apiVersion: "x/v1", kind: "X", metadata: { name: "a" }, spec: { size: 1 }, status: { ready: false } };
  const next = {
    apiVersion: "x/v1",
    kind: "X",
    metadata: { name: "a", labels: { a: "b" } },
    spec: {},
    other: 1,
    status: { ready: true },
  };
  strategy.prepareForUpdate?.(next, current, {} as never);
  assert.deepEqual(next, { ...current, status: { ready: true } });
  assert.notEqual(next.metadata, current.metadata, "the stored object's metadata is changed later");
});

const accepted = (plural: string, conditions: object[]): CustomResourceDefinition => {
  const one = definition(plural, "1");
  one.status = { acceptedNames: one.spec.names, conditions, storedVersions: ["v1"] } as never;
  return one;
};
const since = "2021-01-01T00:00:00Z";
const hasNames = {
  type: "NamesAccepted",
  status: "True",
  reason: "NoConflicts",
  message: "no conflicts found",
  lastTransitionTime: since,
};

test("a definition that is served is established, soon or after a time, and only once its names are accepted", async () => {
  for (const { conditions, delayMs, writes } of [
    { conditions: [hasNames], delayMs: 0, writes: 1 },
    { conditions: [hasNames], delayMs: 5_000, writes: 1 },
    { conditions: [{ ...hasNames, status: "False" }], delayMs: 0, writes: 0 },
    { conditions: [], delayMs: 0, writes: 0 },
    { conditions: [hasNames, { ...hasNames, type: "Established" }], delayMs: 0, writes: 0 },
  ]) {
    const { clock, status, written } = controllers(accepted("as", conditions));
    const stop = new AbortController();
    const running = status.run(stop.signal);
    status.establish("as.example.com", delayMs);
    for (let turn = 0; turn < 20; turn++) await new Promise((next) => setImmediate(next));
    assert.equal(written.length, delayMs > 0 ? 0 : writes);
    await clock.advance(delayMs);
    if (writes > 0) await waitFor(() => written.length > 0, { what: "the condition" });
    assert.equal(written.length, writes);
    assert.deepEqual(
      written[0]?.status?.conditions?.slice(1).map(({ type, status: is, reason, message }) => [type, is, reason, message]),
      writes > 0 ? [["Established", "True", "InitialNamesAccepted", "the initial names have been accepted"]] : undefined,
    );
    stop.abort();
    await running;
  }
});

test("a group of the project has a condition about its approval, which another group loses", async () => {
  const approved = accepted("as", [hasNames]);
  approved.spec.group = "x.k8s.io";
  const left = accepted("bs", [hasNames, { ...hasNames, type: "KubernetesAPIApprovalPolicyConformant" }]);
  const { status, written, show } = controllers(approved, left);
  const stop = new AbortController();
  const running = status.run(stop.signal);
  show(approved);
  show(left);
  await waitFor(() => written.length >= 2, { what: "both statuses" });
  const types = Object.fromEntries(
    written.map(({ metadata, status: is }) => [metadata.name, is?.conditions?.map(({ type }) => type)]),
  );
  assert.deepEqual(types, {
    "as.example.com": ["NamesAccepted", "KubernetesAPIApprovalPolicyConformant"],
    "bs.example.com": ["NamesAccepted"],
  });
  stop.abort();
  await running;
});

test("a definition whose status says all that is to be said is not written", async () => {
  const { clock, status, written, show } = controllers(accepted("as", [hasNames]));
  const stop = new AbortController();
  const running = status.run(stop.signal);
  show(accepted("as", [hasNames]));
  for (let turn = 0; turn < 10; turn++) await clock.advance(1_000);
  assert.deepEqual(written, []);
  stop.abort();
  await running;
});
