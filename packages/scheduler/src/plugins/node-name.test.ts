import assert from "node:assert/strict";
import { test } from "node:test";
import { newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
import { newNodeName } from "./node-name.ts";

for (const { nodeName, mayRefuse, want } of [
  { nodeName: undefined, mayRefuse: false, want: undefined },
  { nodeName: "", mayRefuse: false, want: undefined },
  { nodeName: "a", mayRefuse: true, want: undefined },
  { nodeName: "b", mayRefuse: true, want: "UnschedulableAndUnresolvable: node(s) didn't match the requested node name" },
])
  test(`a pod that asks for node ${JSON.stringify(nodeName)} is ${want === undefined ? "accepted" : "refused"} by node a`, () => {
    const pod = newPodInfo(aTestPod("new", { spec: nodeName === undefined ? {} : { nodeName } }));
    const plugin = newNodeName();
    const refusal = plugin.filter?.(new Map(), pod, newNodeInfo(aTestNode("a")));
    assert.equal(refusal && `${refusal.code}: ${refusal.reasons.join()}`, want);
    assert.equal(plugin.mayRefuse?.(new Map(), pod), mayRefuse);
  });
