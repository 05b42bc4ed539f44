import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultLevels, defaultSchemas, isMandatory } from "../bootstrap/flow-schemas.ts";
import { type FlowSchema, type PriorityLevel, planFlowControl } from "./plan.ts";

const mandatory = { levels: defaultLevels.filter(isMandatory), schemas: defaultSchemas.filter(isMandatory) };
const limits = { concurrency: 600, requestWaitLimitMs: 15_000 };
const level = (name: string, assuredConcurrencyShares: number): PriorityLevel => ({
  metadata: { name, uid: `uid-${name}` },
  spec: { type: "Limited", limited: { assuredConcurrencyShares, limitResponse: { type: "Reject" } } },
});
const schema = (name: string, levelName: string, matchingPrecedence: number): FlowSchema => ({
  metadata: { name },
  spec: { priorityLevelConfiguration: { name: levelName }, matchingPrecedence },
});
const limitsOf = (levels: ReturnType<typeof planFlowControl>["levels"]) =>
  Object.fromEntries(levels.map(({ name, queueSet }) => [name, queueSet?.concurrencyLimit]));

test("the levels share the sum of both limits by their shares, rounded up; exempt ones take none", () => {
  const { levels } = planFlowControl({ levels: [...defaultLevels], schemas: [] }, mandatory, limits);
  assert.deepEqual(limitsOf(levels), {
    exempt: undefined,
    "catch-all": 13,
    system: 74,
    "node-high": 98,
    "leader-election": 25,
    "workload-high": 98,
    "workload-low": 245,
    "global-default": 49,
  });
});

test("missing mandatory objects are replaced by their defaults", () => {
  const { levels, schemas } = planFlowControl({ levels: [], schemas: [] }, mandatory, limits);
  assert.deepEqual(limitsOf(levels), { exempt: undefined, "catch-all": 600 });
  assert.deepEqual(
    schemas.map(({ metadata }) => metadata.name),
    ["exempt", "catch-all"],
  );
});

test("schemas go by precedence, then by name; those whose level is missing are left out", () => {
  const wanted = {
    levels: [level("a", 1)],
    schemas: [schema("late", "a", 9), schema("b", "a", 5), schema("a", "a", 5), schema("dangling", "gone", 2)],
  };
  const { schemas } = planFlowControl(wanted, mandatory, limits);
  assert.deepEqual(
    schemas.map(({ metadata }) => metadata.name),
    ["exempt", "a", "b", "late", "catch-all"],
  );
});

test("a level that is gone but at work keeps its shares and gets no schema", () => {
  const before = planFlowControl({ levels: [level("old", 5)], schemas: [] }, mandatory, limits);
  const wanted = { levels: [level("new", 10)], schemas: [schema("s", "old", 5)] };
  const gone = before.levels.filter(({ queueSet }) => queueSet !== undefined);
  const { levels, schemas } = planFlowControl(wanted, mandatory, limits, gone);
  assert.deepEqual(limitsOf(levels), { new: 300, exempt: undefined, "catch-all": 150, old: 150 });
  assert.ok(!schemas.some(({ metadata }) => metadata.name === "s"));
});

test("a level that is gone but at work keeps its queues, and a share of the limit of now", () => {
  const queuing = { queues: 8, handSize: 2, queueLengthLimit: 5 };
  const old: PriorityLevel = {
    metadata: { name: "old", uid: "u1" },
    spec: { type: "Limited", limited: { assuredConcurrencyShares: 5, limitResponse: { type: "Queue", queuing } } },
  };
  const before = planFlowControl({ levels: [old], schemas: [] }, mandatory, limits);
  const gone = before.levels.filter(({ name }) => name === "old");
  const { levels } = planFlowControl({ levels: [], schemas: [] }, mandatory, { ...limits, concurrency: 100 }, gone);
  const queueSet = { concurrencyLimit: 50, queuing, requestWaitLimitMs: 15_000 };
  assert.deepEqual(levels.at(-1), { name: "old", uid: "u1", shares: 5, queueSet });
});
