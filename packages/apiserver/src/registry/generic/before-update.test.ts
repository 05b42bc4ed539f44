import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject, ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { beforeUpdate } from "./before-update.ts";
import type { Strategy } from "./strategy.ts";
import { ctx, definitionOf } from "./testing.ts";

const stored: ObjectMeta = {
  ...{ name: "a", namespace: "web", uid: "u", resourceVersion: "5", generation: 3 },
  creationTimestamp: "2026-01-01T00:00:00Z",
};
const deleting = { ...stored, deletionTimestamp: "2026-01-02T00:00:00Z", deletionGracePeriodSeconds: 30 };

/** @returns the metadata after an update to `next`, or the fields that it is refused for */
function updated(next: Partial<ObjectMeta>, current: ObjectMeta = stored, strategy: Partial<Strategy> = {}) {
  const [object, before] = [{ metadata: { ...next } } as KubeObject, { metadata: structuredClone(current) }];
  try {
    atOnce(beforeUpdate(definitionOf(), { namespaceScoped: true, ...strategy }, ctx(), object, before));
  } catch (err) {
    assert.ok(err instanceof StatusError, String(err));
    return err.status.details?.causes?.map(({ field }) => field);
  }
  assert.deepEqual(before.metadata, current, "the stored object stays as it is");
  return object.metadata;
}

const bare = { name: "a", namespace: "web", resourceVersion: "5" };
for (const { name, next, current, want } of [
  { name: "keeps what the client leaves out", next: bare, want: stored },
  {
    name: "keeps times and generation, whatever the client says",
    next: { ...stored, generation: 9, creationTimestamp: "2000-01-01T00:00:00Z" },
    want: stored,
  },
  { name: "takes the namespace of the request", next: { ...stored, namespace: "" }, want: stored },
  {
    name: "drops a link and a cluster name",
    next: { ...stored, selfLink: "/x", clusterName: "c" } as Partial<ObjectMeta>,
    want: stored,
  },
  { name: "keeps the begin of a deletion and its grace", next: bare, current: deleting, want: deleting },
  {
    name: "cannot move the begin of a deletion",
    next: { ...deleting, deletionTimestamp: "2030-01-01T00:00:00Z" },
    current: deleting,
    want: deleting,
  },
  {
    name: "cannot change the grace of a deletion",
    next: { ...deleting, deletionGracePeriodSeconds: 5 },
    current: deleting,
    want: ["metadata.deletionGracePeriodSeconds"],
  },
  {
    name: "cannot begin a deletion",
    next: { ...stored, deletionTimestamp: "2026-01-02T00:00:00Z" },
    want: ["metadata.deletionTimestamp"],
  },
  { name: "cannot change the uid", next: { ...stored, uid: "v" }, want: ["metadata.uid"] },
  {
    name: "cannot add a finalizer to what is being deleted",
    next: { ...deleting, finalizers: ["a/b"] },
    current: deleting,
    want: ["metadata.finalizers"],
  },
] as { name: string; next: Partial<ObjectMeta>; current?: ObjectMeta; want: unknown }[]) {
  test(`an update ${name}`, () => assert.deepEqual(updated(next, current), want));
}

test("warnings come with an update that is accepted, not with one that is refused", () => {
  const warnings: string[] = [];
  const context = { ...ctx(), warn: (text: string) => void warnings.push(text) };
  const strategy: Strategy = { namespaceScoped: true, warningsOnUpdate: () => ["it is old"] };
  const update = (next: Partial<ObjectMeta>) =>
    atOnce(beforeUpdate(definitionOf(), strategy, context, { metadata: { ...next } }, { metadata: { ...stored } }));
  assert.throws(() => update({ ...stored, uid: "v" }), { code: 422 });
  assert.deepEqual(warnings, []);
  update(stored);
  assert.deepEqual(warnings, ["it is old"]);
});

test("an object without a generation gets none from a client", () => {
  const { generation: _, ...without } = stored;
  assert.deepEqual(updated({ ...without, generation: 4 }, without), without);
});

test("entries of managed fields survive a strategy that takes the stored metadata, none when the client has none", () => {
  const entry = { manager: "m", operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: {} } as const;
  const current = { ...stored, managedFields: [{ ...entry, manager: "stored" }] };
  const strategy: Partial<Strategy> = {
    prepareForUpdate(next, { metadata }) {
      next.metadata = metadata;
    },
  };
  assert.deepEqual(updated({ ...stored, managedFields: [entry] }, current, strategy), { ...stored, managedFields: [entry] });
  assert.deepEqual(updated(stored, current, strategy), stored);
});
