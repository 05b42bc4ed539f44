import assert from "node:assert/strict";
import { test } from "node:test";
import type { Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
import { newNodeUnschedulable } from "./node-unschedulable.ts";

const key = "node.kubernetes.io/unschedulable";
for (const { name, unschedulable, tolerations, refused } of [
  { name: "a node that is not cordoned", unschedulable: false, tolerations: [], refused: false },
  { name: "a cordoned node", unschedulable: true, tolerations: [], refused: true },
  { name: "a cordoned node that it tolerates", unschedulable: true, tolerations: [{ key, operator: "Exists" }], refused: false },
  {
    name: "a cordoned node of which it tolerates another effect",
    unschedulable: true,
    tolerations: [{ key, operator: "Exists", effect: "NoExecute" }],
    refused: true,
  },
] as { name: string; unschedulable: boolean; tolerations: Toleration[]; refused: boolean }[])
  test(`a pod is ${refused ? "refused" : "accepted"} by ${name}`, () => {
    const node = newNodeInfo(aTestNode("a", { spec: { unschedulable } }));
    const refusal = newNodeUnschedulable().filter?.(new Map(), newPodInfo(aTestPod("new", { spec: { tolerations } })), node);
    const want = refused ? { code: "UnschedulableAndUnresolvable", reasons: ["node(s) were unschedulable"] } : undefined;
    assert.deepEqual(refusal, want);
  });
