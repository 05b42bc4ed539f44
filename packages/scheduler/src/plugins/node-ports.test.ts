import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContainerPort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { addPod, newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
import { hasFreePorts, newNodePorts } from "./node-ports.ts";

const using = (name: string, ...ports: Partial<ContainerPort>[]) =>
  newPodInfo(
    aTestPod(name, { spec: { containers: ports.map((port, i) => ({ name: `c${i}`, ports: [{ containerPort: 1, ...port }] })) } }),
  );

for (const { name, taken, wanted, want } of [
  { name: "the same port", taken: [{ hostPort: 80 }], wanted: [{ hostPort: 80 }], want: false },
  { name: "another port", taken: [{ hostPort: 81 }], wanted: [{ hostPort: 80 }], want: true },
  { name: "the port of another protocol", taken: [{ hostPort: 80, protocol: "UDP" }], wanted: [{ hostPort: 80 }], want: true },
  {
    name: "the port of another address",
    taken: [{ hostPort: 80, hostIP: "10.0.0.1" }],
    wanted: [{ hostPort: 80, hostIP: "10.0.0.2" }],
    want: true,
  },
  {
    name: "the port of the same address",
    taken: [{ hostPort: 80, hostIP: "10.0.0.1" }],
    wanted: [{ hostPort: 80, hostIP: "10.0.0.1" }],
    want: false,
  },
  {
    name: "the port of one address, when all are taken",
    taken: [{ hostPort: 80 }],
    wanted: [{ hostPort: 80, hostIP: "10.0.0.1" }],
    want: false,
  },
  {
    name: "the port of all addresses, when one is taken",
    taken: [{ hostPort: 80, hostIP: "10.0.0.1" }],
    wanted: [{ hostPort: 80, hostIP: "0.0.0.0" }],
    want: false,
  },
  {
    name: "a second port, of the second container",
    taken: [{ hostPort: 80 }, { hostPort: 443 }, { hostPort: 8080 }],
    wanted: [{ hostPort: 81 }, { hostPort: 443 }],
    want: false,
  },
  { name: "no port", taken: [{ hostPort: 80 }], wanted: [{}], want: true },
] satisfies { name: string; taken: Partial<ContainerPort>[]; wanted: Partial<ContainerPort>[]; want: boolean }[]) {
  test(`a pod that wants ${name} ${want ? "fits" : "does not fit"}`, () => {
    const node = newNodeInfo(aTestNode("a"));
    addPod(node, using("there", ...taken));
    assert.equal(hasFreePorts(using("new", ...wanted), node), want);
  });
}

test("no node is refused to a pod without host ports, and none need be asked", () => {
  const mayRefuse = (...ports: Partial<ContainerPort>[]) => newNodePorts().mayRefuse?.({} as CycleState, using("p", ...ports)); // cast: it is not read
  assert.deepEqual([mayRefuse({}), mayRefuse({ hostPort: 80 })], [false, true]);
});
