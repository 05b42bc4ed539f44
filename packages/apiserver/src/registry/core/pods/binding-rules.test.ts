import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import type { DeleteOptions, Preconditions } from "@coxswain/apimachinery/objects/meta/types";
import type { Binding, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { SubresourceCall } from "../../generic/resource.ts";
import { createBinding } from "../bindings/create.ts";
import { bind, createPodBinding } from "./binding.ts";
import { createEviction } from "./eviction.ts";

/** Validation that happens before the pod is read. */
const call = (body: object | undefined): SubresourceCall<never> =>
  ({ body, name: "p", namespace: "default", admit: async () => {} }) as unknown as SubresourceCall<never>;

for (const { name, run, want } of [
  { name: "a binding of nothing", run: () => createPodBinding(call(undefined)), want: "not a Binding object" },
  {
    name: "a binding of another pod",
    run: () => createPodBinding(call({ metadata: { name: "q" }, target: { name: "n" } })),
    want: "name in URL does not match name in Binding object",
  },
  {
    name: "a binding to no node",
    run: () => createPodBinding(call({ metadata: { name: "p" }, target: {} })),
    want: "target.name: Required value",
  },
  {
    name: "a binding to what is no node",
    run: () => createPodBinding(call({ metadata: { name: "p" }, target: { kind: "Pod" } })),
    want: '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]',
  },
  {
    name: "a binding of no pod",
    run: () => createPodBinding({ ...call({ metadata: {}, target: { name: "n" } }), name: "" }),
    want: "Name parameter required.",
  },
  {
    name: "a binding to an empty kind of no name",
    run: () => createPodBinding(call({ metadata: { name: "p" }, target: { kind: "", name: "" } })),
    want: "target.name: Required value",
  },
  { name: "an eviction of nothing", run: () => createEviction(call(undefined)), want: "not a Eviction object" },
  {
    name: "an eviction of another pod",
    run: () => createEviction(call({ metadata: { name: "q" } })),
    want: "name in URL does not match name in Eviction object",
  },
]) {
  test(`refuses ${name}`, async () => {
    await assert.rejects(run, { message: want });
  });
}

const refusal = new Error("refused by admission");
for (const { name, create } of [
  { name: "binding", create: createPodBinding },
  { name: "eviction", create: createEviction },
]) {
  test(`${name === "binding" ? "a" : "an"} ${name} that admission refuses changes nothing`, async () => {
    const services = {
      store: () => assert.fail("a store was used"),
      now: () => 0,
    };
    const refused = {
      ...call({ metadata: { name: "p" }, target: { name: "n" } }),
      services,
      admit: () => Promise.reject(refusal),
    };
    await assert.rejects(create(refused as unknown as SubresourceCall<never>), refusal);
  });
}

for (const preconditions of [{}, { uid: "u" }, { resourceVersion: "7" }, { uid: "u", resourceVersion: "7" }]) {
  test(`a binding holds only for the pod that it names: ${JSON.stringify(preconditions)}`, async () => {
    const seen: unknown[] = [];
    const storage = { guaranteedUpdate: async (_key: string, _change: unknown, options: object) => seen.push(options) };
    const body = { metadata: { name: "p", ...preconditions }, target: { name: "n" } };
    await createPodBinding({ ...call(body), services: { store: () => ({ storage }) } } as unknown as SubresourceCall<Binding>);
    hasFields(seen, [{ preconditions }]);
    assert.deepEqual((seen[0] as { preconditions: object }).preconditions, preconditions);
  });
}

test("a dry run of a binding writes nothing, and each binding ends with its request", async () => {
  const seen: object[] = [];
  const storage = { guaranteedUpdate: async (_key: string, _change: unknown, options: object) => seen.push(options) };
  const ctx = { signal: "its signal" };
  for (const dryRun of [true, false]) {
    const posted = call({ metadata: { name: "p" }, target: { name: "n" } });
    const services = { store: () => ({ storage }) };
    await createPodBinding({ ...posted, services, ctx, dryRun } as unknown as SubresourceCall<Binding>);
  }
  assert.deepEqual(seen, [
    { dryRun: true, signal: ctx, preconditions: {} },
    { dryRun: false, signal: ctx, preconditions: {} },
  ]);
});

test("a binding without a pod in its path is that of the pod that it names", async () => {
  const keys: string[] = [];
  const storage = { guaranteedUpdate: async (key: string) => keys.push(key) };
  const body = { metadata: { name: "q" }, target: { name: "n" } };
  const posted = { ...call(body), name: "", services: { store: () => ({ storage }) } };
  await createBinding(posted as unknown as SubresourceCall<Binding>);
  assert.deepEqual(keys, ["default/q"]);
});

/** Evicts a pod whose deletion conflicts with another writer's change for the first `conflicts` times. */
async function evict(
  pod: { metadata?: object; status?: object },
  conflicts: number,
  { given, dryRun = false }: { given?: Preconditions | undefined; dryRun?: boolean | undefined } = {},
) {
  const deletions: DeleteOptions["preconditions"][] = [];
  let taken = 0;
  let refused = "";
  const object = { ...pod, metadata: { name: "p", uid: "u", resourceVersion: "7", labels: { app: "a" }, ...pod.metadata } };
  const pods = {
    get: async () => ({ object: () => object }),
    delete: async (_ctx: unknown, _name: string, { preconditions }: DeleteOptions) => {
      deletions.push(preconditions);
      if (deletions.length <= conflicts) throw conflict({ group: "", resource: "pods" }, "p", "it changed");
    },
  };
  const status = { currentHealthy: 2, desiredHealthy: 2, disruptionsAllowed: 1 };
  const budget = { metadata: { name: "b" }, spec: { selector: {} }, status };
  const budgets = {
    list: async () => ({ entries: [{ key: "default/b", object: () => budget }] }),
    storage: {
      guaranteedUpdate: async (_key: string, _change: unknown, options: { dryRun: boolean }) => {
        if (!options.dryRun) taken++;
      },
    },
  };
  const services = { store: (group: string) => (group === "" ? pods : budgets), now: () => 0, featureEnabled: () => false };
  const body = { metadata: { name: "p" }, ...(given && { deleteOptions: { preconditions: given } }) };
  const outcome = await createEviction({ ...call(body), services, ctx: {}, dryRun } as unknown as SubresourceCall).then(
    () => 201,
    (err: { code: number; message: string }) => {
      refused = err.message;
      return err.code;
    },
  );
  return { outcome, deletions, taken, refused };
}

const notReady = { status: { phase: "Running" } };
const ready = { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } };
const pending = { status: { phase: "Pending" } };
const examined = { resourceVersion: "7" };
for (const { name, pod, conflicts = 0, given, dryRun, want } of [
  {
    name: "a ready pod is evicted if it is still that pod",
    pod: ready,
    want: { outcome: 201, deletions: [{ uid: "u" }], taken: 1 },
  },
  {
    name: "a ready pod that was replaced stays",
    pod: ready,
    conflicts: 1,
    want: { outcome: 409, deletions: [{ uid: "u" }], taken: 1 },
  },
  {
    name: "a ready pod is evicted only at the resource version that the client names",
    pod: ready,
    given: { resourceVersion: "5" },
    want: { outcome: 201, deletions: [{ uid: "u", resourceVersion: "5" }], taken: 1 },
  },
  {
    name: "an unready pod is evicted at the resource version at which it was unready",
    pod: notReady,
    want: { outcome: 201, deletions: [examined], taken: 0 },
  },
  {
    name: "an unready pod that changed is tried later",
    pod: notReady,
    conflicts: 1,
    want: { outcome: 429, deletions: [examined], taken: 0 },
  },
  {
    name: "an unready pod is evicted at no other resource version than the client names",
    pod: notReady,
    conflicts: 1,
    given: { resourceVersion: "5" },
    want: { outcome: 409, deletions: [{ resourceVersion: "5" }], taken: 0 },
  },
  {
    name: "a pending pod that changed twice is examined again",
    pod: pending,
    conflicts: 2,
    want: { outcome: 201, deletions: [examined, examined, examined], taken: 0 },
  },
  {
    name: "a pending pod that always changes is given up after 20 attempts",
    pod: pending,
    conflicts: 99,
    want: { outcome: 409, deletions: Array(20).fill(examined), taken: 0 },
  },
  {
    name: "a pod that is being deleted already is not counted twice",
    pod: { ...ready, metadata: { deletionTimestamp: "2022-01-01T00:00:00Z" } },
    want: { outcome: 201, deletions: [{}], taken: 0 },
  },
  {
    name: "a dry run takes no disruption",
    pod: ready,
    dryRun: true,
    want: { outcome: 201, deletions: [{ uid: "u" }], taken: 0 },
  },
  {
    name: "a pod without labels belongs to no budget",
    pod: { ...ready, metadata: { labels: {} } },
    want: { outcome: 201, deletions: [{}], taken: 0 },
  },
] as { name: string; pod: object; conflicts?: number; given?: Preconditions; dryRun?: boolean; want: object }[]) {
  test(`evicting: ${name}`, async () => {
    const { refused: _, ...done } = await evict(pod, conflicts, { given, dryRun });
    assert.deepEqual(done, want);
  });
}

test("evicting: a conflict with the client's own preconditions is reported as it is, another one as one of the pod", async () => {
  const conflicting = 'Operation cannot be fulfilled on pods "p": it changed';
  assert.equal((await evict(notReady, 1, { given: { resourceVersion: "5" } })).refused, conflicting);
  assert.equal((await evict(ready, 1)).refused, `Operation cannot be fulfilled on pods "p": ${conflicting}`);
});

const since = "2022-01-01T00:00:00Z";
const bindingTime = "2022-01-01T00:01:00Z";
for (const { name, before, want } of [
  {
    name: "that has none, as of now",
    before: [],
    want: [{ type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: bindingTime }],
  },
  {
    name: "that could not be scheduled, as of now and without the reason of that",
    before: [
      { type: "Other", status: "False", reason: "R" },
      { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "m", lastTransitionTime: since },
    ],
    want: [
      { type: "Other", status: "False", reason: "R" },
      { type: "PodScheduled", status: "True", lastTransitionTime: bindingTime },
    ],
  },
  {
    name: "that counted as scheduled already, since then",
    before: [{ type: "PodScheduled", status: "True", lastTransitionTime: since }],
    want: [{ type: "PodScheduled", status: "True", lastTransitionTime: since }],
  },
]) {
  test(`a binding marks a pod ${name}, as scheduled`, () => {
    const pod = {
      metadata: { name: "p", annotations: { a: "b", c: "d" } },
      spec: { containers: [] },
      status: { conditions: before },
    };
    const stored = structuredClone(pod);
    const binding: Binding = { metadata: { name: "p", annotations: { c: "e" } }, target: { name: "n" } };
    const bound = bind(pod as unknown as Pod, binding, Date.parse(bindingTime));
    assert.deepEqual(bound.status?.conditions, want);
    assert.deepEqual([bound.spec.nodeName, bound.metadata.annotations], ["n", { a: "b", c: "e" }]);
    assert.deepEqual(pod, stored, "the stored pod");
  });
}
