import assert from "node:assert/strict";
import { test } from "node:test";
import { type ScoredAmounts, scoreOf, weighted } from "../testing/score-of.ts";

for (const { name, want, ...amounts } of [
  {
    name: "balanced use is better",
    taken: { cpu: "2", memory: "1Gi" },
    wanted: { cpu: "1", memory: "1Gi" },
    want: 75,
  },
  {
    name: "an empty node scores by the request alone",
    taken: { cpu: "0", memory: "0" },
    wanted: { cpu: "1", memory: "1Gi" },
    want: 93,
  },
  {
    name: "balance: a container without requests counts as nothing, not with the defaults of other scores",
    node: { cpu: "1", memory: "400Mi" },
    taken: {},
    wanted: {},
    want: 100,
  },
  {
    name: "balance: what is requested beyond the whole of a node counts as the whole",
    node: { cpu: "1", memory: "1Gi" },
    taken: { cpu: "1", memory: "0" },
    wanted: { cpu: "1", memory: "1Gi" },
    want: 100,
  },
  {
    name: "balance: a resource that the node does not have is left out",
    args: { NodeResourcesBalancedAllocation: { resources: weighted("cpu", "memory", "example.com/gpu") } },
    taken: { cpu: "0", memory: "0" },
    wanted: { cpu: "2", memory: "0" },
    want: 75,
  },
  {
    name: "balance of three resources is their standard deviation",
    args: { NodeResourcesBalancedAllocation: { resources: weighted("cpu", "memory", "ephemeral-storage") } },
    node: { "ephemeral-storage": "8Gi" },
    taken: { cpu: "0", memory: "0" },
    wanted: { cpu: "1", memory: "4Gi", "ephemeral-storage": "6Gi" },
    want: 79,
  },
] as (ScoredAmounts & { name: string; want: number })[]) {
  test(name, () => assert.equal(scoreOf("NodeResourcesBalancedAllocation", amounts), want));
}
