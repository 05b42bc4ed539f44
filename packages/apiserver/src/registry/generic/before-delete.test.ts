import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { beforeDelete } from "./before-delete.ts";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

const definition = { group: "", kind: "Pod" } as ResourceDefinition;
const strategy = { gracePeriod: (_: KubeObject, requested?: number) => requested } as unknown as Strategy;
const ctx = { now: Date.parse("2022-01-01T00:00:00Z") } as StrategyContext;

for (const { asked, left, want } of [
  { asked: 30, want: "2022-01-01T00:00:30Z" },
  { asked: 0, want: "2022-01-01T00:00:00Z" },
  // The duration in nanoseconds overflows 64 bits.
  { asked: 9_223_372_036_854_775_807n, want: "2021-12-31T23:59:59Z" },
  { asked: 100_000_000_000_000, want: "2028-05-08T04:07:00Z" },
  { asked: 5, left: 30, want: "2021-12-31T23:59:35Z" },
  { asked: 5, left: 9_223_372_036_854_775_807n, want: "2022-01-01T00:00:06Z" },
]) {
  test(`${asked} s of grace ${left === undefined ? "" : `instead of ${left} s `}end ${want}`, () => {
    const marks = left === undefined ? {} : { deletionTimestamp: "2022-01-01T00:00:00Z", deletionGracePeriodSeconds: left };
    const object = { metadata: { name: "a", ...marks } } as KubeObject;
    const deletion = beforeDelete(definition, strategy, ctx, object, { gracePeriodSeconds: asked as number });
    assert.equal(deletion.type === "graceful" && deletion.object.metadata.deletionTimestamp, want);
    assert.equal(deletion.type === "graceful" && deletion.object.metadata.deletionGracePeriodSeconds, asked);
  });
}
