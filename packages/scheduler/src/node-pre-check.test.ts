import assert from "node:assert/strict";
import { test } from "node:test";
import { addPod, newNodeInfo, newPodInfo } from "./cache/node-info.ts";
import { fitsAtAll } from "./node-pre-check.ts";
import { aTestNode, aTestPod, type NodeOptions, type TestPodOptions } from "./testing/test-cluster.ts";

const onPort = (hostPort: number) => ({ containers: [{ name: "c", image: "i", ports: [{ containerPort: 1, hostPort }] }] });
const tainted = (effect: string): NodeOptions => ({ spec: { taints: [{ key: "k", value: "v", effect }] } });

for (const { name, node, pod, want } of [
  { name: "of which there is enough", pod: {}, want: true },
  { name: "that asks for more than is free", pod: { cpu: "4" }, want: false },
  { name: "of the node's own name", pod: { spec: { nodeName: "a" } }, want: true },
  { name: "of another node's name", pod: { spec: { nodeName: "b" } }, want: false },
  { name: "that selects the node", pod: { spec: { nodeSelector: { "kubernetes.io/hostname": "a" } } }, want: true },
  { name: "that selects another node", pod: { spec: { nodeSelector: { "kubernetes.io/hostname": "b" } } }, want: false },
  { name: "whose host port is free", pod: { spec: onPort(81) }, want: true },
  { name: "whose host port is taken", pod: { spec: onPort(80) }, want: false },
  { name: "that does not tolerate NoSchedule", node: tainted("NoSchedule"), pod: {}, want: false },
  { name: "that does not tolerate NoExecute", node: tainted("NoExecute"), pod: {}, want: false },
  { name: "that does not tolerate PreferNoSchedule", node: tainted("PreferNoSchedule"), pod: {}, want: true },
  {
    name: "that tolerates the taint",
    node: tainted("NoSchedule"),
    pod: { spec: { tolerations: [{ key: "k", operator: "Exists" }] } },
    want: true,
  },
] as { name: string; node?: NodeOptions; pod: TestPodOptions; want: boolean }[]) {
  test(`a change of a node ${want ? "may help" : "does not help"} a pod ${name}`, () => {
    const info = newNodeInfo(aTestNode("a", node));
    addPod(info, newPodInfo(aTestPod("there", { on: "a", spec: onPort(80) })));
    addPod(info, newPodInfo(aTestPod("busy", { on: "a", cpu: "1" })));
    assert.equal(fitsAtAll(newPodInfo(aTestPod("new", pod)), info), want);
  });
}
