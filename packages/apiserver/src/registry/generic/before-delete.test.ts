import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { beforeDelete, markAsDeleting } from "./before-delete.ts";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

const definition = { group: "", kind: "Pod" } as ResourceDefinition;
const strategy = { gracePeriod: (_: KubeObject, requested?: number) => requested } as unknown as Strategy;
const now = Date.parse("2022-01-01T00:00:00Z");
const ctx = { now: () => now } as StrategyContext;

for (const { requests, left, want } of [
  { requests: 30, want: "2022-01-01T00:00:30Z" },
  { requests: 0, want: "2022-01-01T00:00:00Z" },
  // The duration in nanoseconds overflows 64 bits.
  { requests: 9_223_372_036_854_775_807n, want: "2021-12-31T23:59:59Z" },
  { requests: 100_000_000_000_000, want: "2028-05-08T04:07:00Z" },
  { requests: 5, left: 30, want: "2021-12-31T23:59:35Z" },
  { requests: 5, left: 9_223_372_036_854_775_807n, want: "2022-01-01T00:00:06Z" },
]) {
  test(`${requests} s of grace ${left === undefined ? "" : `instead of ${left} s `}end ${want}`, () => {
    const marks = left === undefined ? {} : { deletionTimestamp: "2022-01-01T00:00:00Z", deletionGracePeriodSeconds: left };
    const object = { metadata: { name: "a", ...marks } } as KubeObject;
    const deletion = beforeDelete(definition, strategy, ctx, object, { gracePeriodSeconds: requests as number });
    assert.equal(deletion.type === "graceful" && deletion.object.metadata.deletionTimestamp, want);
    assert.equal(deletion.type === "graceful" && deletion.object.metadata.deletionGracePeriodSeconds, requests);
  });
}

for (const { name, metadata, options, want } of [
  {
    name: "a first deletion",
    metadata: {},
    options: { gracePeriodSeconds: 30 },
    want: { grace: 30, generation: 4, at: "00:00:30" },
  },
  {
    name: "one that is hurried",
    metadata: { left: 30 },
    options: { gracePeriodSeconds: 10 },
    want: { grace: 10, generation: 3, at: "00:00:10" },
  },
  {
    name: "one that is made to end at once",
    metadata: { left: 30 },
    options: { gracePeriodSeconds: 0 },
    want: { grace: 0, generation: 3, at: "00:00:00" },
  },
  { name: "the same again", metadata: { left: 30 }, options: { gracePeriodSeconds: 30 }, want: "pending" },
  { name: "one that is to take longer", metadata: { left: 30 }, options: { gracePeriodSeconds: 31 }, want: "pending" },
  { name: "one that says nothing", metadata: { left: 30 }, options: {}, want: "pending" },
  { name: "one that was marked and failed", metadata: { left: 0 }, options: { gracePeriodSeconds: 30 }, want: "now" },
  { name: "a first one without grace of its strategy", metadata: {}, options: {}, want: "now" },
] as const) {
  test(`the grace of ${name}`, () => {
    const marks =
      "left" in metadata
        ? { deletionTimestamp: `2022-01-01T00:00:${metadata.left || "00"}Z`, deletionGracePeriodSeconds: metadata.left }
        : {};
    const object = { metadata: { name: "a", generation: 3, ...marks } } as KubeObject;
    const before = structuredClone(object);
    const deletion = beforeDelete(definition, strategy, ctx, object, options);
    assert.deepEqual(object, before);
    if (deletion.type !== "graceful") return assert.equal(deletion.type, want);
    const { deletionTimestamp: at, deletionGracePeriodSeconds: grace, generation } = deletion.object.metadata;
    assert.deepEqual({ grace, generation, at: at?.slice(11, 19) }, want);
  });
}

test("marking an object increments its generation once; an object without a generation gets none", () => {
  const marked = markAsDeleting({ metadata: { name: "a", generation: 3 } }, now);
  const again = markAsDeleting(marked, now + 60_000);
  assert.deepEqual([marked.metadata.generation, again.metadata.generation], [4, 4]);
  assert.equal(again.metadata.deletionTimestamp, "2022-01-01T00:00:00Z");
  const ahead = markAsDeleting({ metadata: { name: "a", deletionTimestamp: "2022-01-01T00:01:00Z" } }, now);
  assert.equal(ahead.metadata.deletionTimestamp, "2022-01-01T00:00:00Z", "no later than now");
  const begun = { name: "a", generation: 3, deletionTimestamp: "2022-01-01T00:00:00Z" };
  assert.equal(
    markAsDeleting({ metadata: begun }, now).metadata.generation,
    4,
    "the grace, not the time, says that it was marked",
  );
  assert.equal(markAsDeleting({ metadata: { ...begun, deletionGracePeriodSeconds: 5 } }, now).metadata.generation, 3);
  assert.equal("generation" in markAsDeleting({ metadata: { name: "a" } }, now).metadata, false);
});

test("a deletion that is held to a uid and a version is held to both", () => {
  const object = { metadata: { name: "a", uid: "u", resourceVersion: "7" } } as KubeObject;
  const held = (uid: string, resourceVersion: string) => () =>
    beforeDelete(definition, strategy, ctx, object, { preconditions: { uid, resourceVersion } });
  assert.doesNotThrow(held("u", "7"));
  assert.throws(held("u", "6"), /the ResourceVersion in the precondition \(6\) does not match/);
  assert.throws(held("v", "7"), /the UID in the precondition \(v\) does not match/);
});
