import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { defaultNode } from "./defaults.ts";

for (const { name, status, want } of [
  { name: "of its capacity", status: { capacity: { cpu: "4" } }, want: { cpu: "4" } },
  { name: "that it reports", status: { capacity: { cpu: "4" }, allocatable: { cpu: "3" } }, want: { cpu: "3" } },
  { name: "that it reports as nothing", status: { capacity: { cpu: "4" }, allocatable: {} }, want: {} },
  { name: "of nothing without a capacity", status: {}, want: undefined },
]) {
  test(`a node has the allocatable resources ${name}`, () => {
    const node = { metadata: { name: "n" }, spec: {}, status } as Node;
    defaultNode(node);
    assert.deepEqual(node.status?.allocatable, want);
    if (want) assert.notEqual(node.status?.allocatable, node.status?.capacity);
  });
}

for (const { name, spec, want } of [
  { name: "the one", spec: { podCIDR: "10.0.0.0/24" }, want: ["10.0.0.0/24", "10.0.0.0/24"] },
  {
    name: "the first of several",
    spec: { podCIDRs: ["10.0.0.0/24", "fd00::/64"] },
    want: ["10.0.0.0/24", "10.0.0.0/24,fd00::/64"],
  },
  {
    name: "all where they agree",
    spec: { podCIDR: "10.0.0.0/24", podCIDRs: ["10.0.0.0/24", "fd00::/64"] },
    want: ["10.0.0.0/24", "10.0.0.0/24,fd00::/64"],
  },
  {
    name: "the one that is not the first of several",
    spec: { podCIDR: "fd00::/64", podCIDRs: ["10.0.0.0/24", "fd00::/64"] },
    want: ["fd00::/64", "fd00::/64"],
  },
  {
    name: "the one where they differ",
    spec: { podCIDR: "10.0.1.0/24", podCIDRs: ["10.0.0.0/24", "fd00::/64"] },
    want: ["10.0.1.0/24", "10.0.1.0/24"],
  },
]) {
  test(`of the ranges of a node's pods counts ${name}`, () => {
    const node = { metadata: { name: "n" }, spec } as Node;
    defaultNode(node);
    assert.deepEqual([node.spec.podCIDR, node.spec.podCIDRs?.join()], want);
  });
}
