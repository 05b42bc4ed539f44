import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
import { addPod, cloneNodeInfo, newNodeInfo, newPodInfo, removePod } from "./node-info.ts";

const asking = (name: string, requests: Record<string, string>, hostPort?: number): Container => ({
  name,
  image: "i",
  resources: { requests },
  ...(hostPort !== undefined && { ports: [{ containerPort: 80, hostPort }] }),
});
const podOf = (name: string, containers: Container[], initContainers: Container[] = []): Pod =>
  aTestPod(name, { spec: { containers, initContainers } });

test("changes of a cloned NodeInfo do not affect the original", () => {
  const info = newNodeInfo(aTestNode("a"));
  const term = { topologyKey: "zone", labelSelector: {} };
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
  const first = podOf("first", [asking("c", { cpu: "1", memory: "1Gi", "example.com/gpu": "1" }, 80)]);
  addPod(info, newPodInfo({ ...first, spec: { ...first.spec, affinity } }));
  const stateOf = ({ requested, nonZeroRequested, usedPorts, pods, podsWithAffinity, refusing, version }: typeof info) => ({
    ...structuredClone({ requested, nonZeroRequested, usedPorts, refusing, version }),
    pods: [...pods.keys()],
    podsWithAffinity: [...podsWithAffinity].map(({ pod }) => pod.metadata.name),
  });
  const before = stateOf(info);
  const copy = cloneNodeInfo(info);
  assert.deepEqual(stateOf(copy), before);
  removePod(copy, "first");
  const second = podOf("second", [asking("c", { "example.com/gpu": "3" }, 81)]);
  addPod(copy, newPodInfo({ ...second, spec: { ...second.spec, affinity } }));
  addPod(copy, newPodInfo(podOf("third", [asking("c", {})])));
  assert.deepEqual(stateOf(info), before);
  assert.deepEqual([copy.requested.scalars.get("example.com/gpu"), copy.requested.milliCpu], [3, 0]);
  assert.deepEqual(
    [...copy.podsWithAffinity].map(({ pod }) => pod.metadata.name),
    ["second"],
  );
});

test("init containers run one after the other, before the others: the largest counts where it asks for more", () => {
  const inits = [asking("i1", { cpu: "3", memory: "1" }), asking("i2", { cpu: "2", "example.com/gpu": "2" })];
  const { requests } = newPodInfo(podOf("p", [asking("a", { cpu: "1", memory: "2" }), asking("b", { memory: "2" })], inits));
  assert.deepEqual([requests.milliCpu, requests.memory, requests.scalars.get("example.com/gpu")], [3000, 4, 2]);
});

test("a pod that is removed leaves the node as it was, but for its version; one that is added again counts once", () => {
  const info = newNodeInfo(aTestNode("a"));
  const pod = newPodInfo(podOf("p", [asking("c", { cpu: "1" }), asking("d", {})]));
  const amounts = (): number[] => [info.requested.milliCpu, info.nonZeroRequested.milliCpu, info.nonZeroRequested.memory];
  addPod(info, pod);
  addPod(info, pod);
  const once = 400 * 2 ** 20;
  assert.deepEqual(amounts(), [1000, 1100, once]);
  const { version } = info;
  removePod(info, "p");
  assert.deepEqual(amounts(), [0, 0, 0]);
  assert.notEqual(info.version, version, "what was counted for the former version no longer holds");
});

test("a host port stays in use at the addresses of the remaining pods", () => {
  const info = newNodeInfo(aTestNode("a"));
  for (const hostIP of ["10.0.0.1", "10.0.0.2"]) {
    const ports = [{ containerPort: 80, hostPort: 80, hostIP }];
    addPod(info, newPodInfo(podOf(hostIP, [{ name: "c", image: "i", ports }])));
  }
  removePod(info, "10.0.0.1");
  assert.deepEqual([...(info.usedPorts.get("TCP/80") ?? [])], ["10.0.0.2"]);
  removePod(info, "10.0.0.2");
  assert.deepEqual([...info.usedPorts.keys()], []);
});

test("requests count for scoring with defaults for what a container does not request, the larger init container and the overhead", () => {
  const nonZero = (containers: Container[], initContainers: Container[] = [], overhead: Record<string, string> = {}) =>
    newPodInfo(aTestPod("p", { spec: { containers, initContainers, overhead } })).nonZero;
  const mebibyte = 2 ** 20;
  assert.deepEqual(nonZero([asking("a", {})]), { milliCpu: 100, memory: 200 * mebibyte });
  assert.deepEqual(nonZero([asking("a", { cpu: "0", memory: "0" })]), { milliCpu: 0, memory: 0 }, "an explicit 0 is no default");
  const inits = [asking("i", { cpu: "2", memory: "1Gi" })];
  assert.deepEqual(nonZero([asking("a", { cpu: "1", memory: "1Mi" })], inits), { milliCpu: 2_000, memory: 1024 * mebibyte });
  assert.deepEqual(nonZero([asking("a", { cpu: "1", memory: "1Mi" })], [], { cpu: "250m", memory: "1Mi" }), {
    milliCpu: 1_250,
    memory: 2 * mebibyte,
  });
});

test("the ephemeral storage of the largest init container counts where it is more", () => {
  const inits = ["1Gi", "3Gi"].map((size, i) => asking(`i${i}`, { "ephemeral-storage": size }));
  const { requests } = newPodInfo(podOf("p", [asking("a", { "ephemeral-storage": "2Gi" })], inits));
  assert.equal(requests.ephemeralStorage, 3 * 2 ** 30);
});

test("host ports are kept apart by protocol, and an empty address means all", () => {
  const ports = [
    { containerPort: 53, hostPort: 53, protocol: "UDP" as const, hostIP: "" },
    { containerPort: 53, hostPort: 53, hostIP: "10.0.0.1" },
    { containerPort: 80 },
  ];
  const { hostPorts } = newPodInfo(aTestPod("p", { spec: { containers: [{ name: "c", ports }] } }));
  assert.deepEqual(
    Array.from(hostPorts, ([port, addresses]) => [port, [...addresses].join()]),
    [
      ["UDP/53", "0.0.0.0"],
      ["TCP/53", "10.0.0.1"],
    ],
  );
});
