import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
import { ClusterCache } from "./cluster-cache.ts";
import { newPodInfo } from "./node-info.ts";

const withImages = (name: string, ...names: string[]): Node => {
  const node = aTestNode(name);
  return { ...node, status: { ...node.status, images: [{ names, sizeBytes: 1 }] } };
};

test("nodes that have an image are counted through changes of nodes and their end, each once", () => {
  const cache = new ClusterCache(newFakeClock());
  const count = (): number[] => ["x", "y"].map((image) => cache.snapshot().nodesWithImage(image));
  cache.setNode(withImages("a", "x", "x", "y"));
  cache.setNode(withImages("b", "x"));
  assert.deepEqual(count(), [2, 1]);
  cache.setNode(withImages("a", "y"));
  assert.deepEqual(count(), [1, 1]);
  const node = withImages("c", "z");
  const second = { names: ["y:1", "y:2"], sizeBytes: 2 };
  cache.setNode({ ...node, status: { ...node.status, images: [...(node.status?.images ?? []), second] } });
  assert.deepEqual(
    [...(cache.snapshot().get("c")?.images ?? [])],
    [
      ["z", 1],
      ["y:1", 2],
      ["y:2", 2],
    ],
  );
  cache.setPod(aTestPod("web", { on: "a" }));
  cache.removeNode(aTestNode("a"));
  cache.removeNode(aTestNode("a"));
  assert.deepEqual(count(), [1, 0]);
  cache.setNode(withImages("a", "y"));
  assert.deepEqual(count(), [1, 1]);
});

test("a pod whose binding ended counts until the API shows it, for at most 15 minutes", async () => {
  const clock = newFakeClock();
  const cache = new ClusterCache(clock);
  cache.setNode(aTestNode("a"));
  const [lost, alsoLost, shown, binding] = ["lost", "lost too", "shown", "binding"].map((name) => aTestPod(name)) as [
    Pod,
    Pod,
    Pod,
    Pod,
  ];
  for (const pod of [binding, lost, alsoLost, shown]) cache.assume(newPodInfo(pod), "a");
  for (const pod of [lost, alsoLost, shown]) cache.finishBinding(pod);
  cache.setPod(aTestPod("shown", { on: "a" }));
  const names = (): string[] => [...(cache.snapshot().get("a")?.pods.keys() ?? [])].sort();
  clock.setOn(3_600_000);
  await clock.advance(15 * 60_000 - 1);
  assert.deepEqual(names(), ["binding", "lost", "lost too", "shown"]);
  await clock.advance(1);
  assert.deepEqual(names(), ["binding", "shown"]);
  assert.equal(cache.counts.assumedPods, 1);
});

test("a pod that the API shows before its binding is answered does not expire", async () => {
  const clock = newFakeClock();
  const cache = new ClusterCache(clock);
  cache.setNode(aTestNode("a"));
  const pod = aTestPod("web");
  cache.assume(newPodInfo(pod), "a");
  cache.setPod(aTestPod("web", { on: "a" }));
  cache.finishBinding(pod);
  await clock.advance(16 * 60_000);
  assert.equal(cache.snapshot().get("a")?.pods.size, 1);
});

test("an assumed pod that is deleted is assumed no longer", () => {
  const cache = new ClusterCache(newFakeClock());
  cache.setNode(aTestNode("a"));
  const pod = aTestPod("web");
  cache.assume(newPodInfo(pod), "a");
  cache.removePod(pod);
  assert.equal(cache.isAssumed(pod), false);
  assert.deepEqual(cache.counts, { nodes: 1, pods: 0, assumedPods: 0 });
});

test("pods of a node that was removed and added again are still counted on it", () => {
  const cache = new ClusterCache(newFakeClock());
  cache.setNode(aTestNode("a"));
  cache.setPod(aTestPod("web", { on: "a", cpu: "3" }));
  cache.removeNode(aTestNode("a"));
  assert.equal(cache.snapshot().get("a"), undefined);
  assert.deepEqual(cache.snapshot().nodes, []);
  cache.setNode(aTestNode("a"));
  assert.equal(cache.snapshot().get("a")?.requested.milliCpu, 3_000);
});

test("an assumed pod that the API shows on another node counts only there", () => {
  const cache = new ClusterCache(newFakeClock());
  for (const name of ["a", "b"]) cache.setNode(aTestNode(name));
  const used = (): number[] => ["a", "b"].map((name) => cache.snapshot().get(name)?.requested.milliCpu ?? -1);
  const pod = aTestPod("web", { cpu: "2" });
  cache.assume(newPodInfo(pod), "a");
  assert.deepEqual([used(), cache.isAssumed(pod)], [[2_000, 0], true]);
  cache.setPod(aTestPod("web", { cpu: "2", on: "b" }));
  assert.deepEqual([used(), cache.isAssumed(pod)], [[0, 2_000], false]);
  cache.forget(pod);
  assert.deepEqual(used(), [0, 2_000], "a late failure of its binding takes nothing back");
});

test("a pod that changes in place is counted once, with what it asks for now", () => {
  const cache = new ClusterCache(newFakeClock());
  cache.setNode(aTestNode("a"));
  cache.setPod(aTestPod("web", { on: "a", cpu: "3" }));
  cache.setPod(aTestPod("web", { on: "a", cpu: "1" }));
  assert.equal(cache.snapshot().get("a")?.requested.milliCpu, 1_000);
  cache.removePod(aTestPod("web", { on: "a", cpu: "1" }));
  cache.removePod(aTestPod("web", { on: "a", cpu: "1" }));
  assert.deepEqual([cache.snapshot().get("a")?.requested.milliCpu, cache.counts.pods], [0, 0]);
});

test("an assumed pod that is forgotten, removed or assumed elsewhere leaves ports, affinity and amounts as they were", () => {
  const cache = new ClusterCache(newFakeClock());
  for (const name of ["a", "b"]) cache.setNode(aTestNode(name));
  const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "web" } } };
  const spec = {
    containers: [
      { name: "main", ports: [{ containerPort: 80, hostPort: 80 }], resources: { requests: { "example.com/gpu": "2" } } },
    ],
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
  } as never;
  const pod = newPodInfo(aTestPod("web", { spec }));
  const state = () => {
    const { havingAffinity, havingRequiredAntiAffinity, get } = cache.snapshot();
    const of = (name: string) => [
      get(name)?.usedPorts.get("TCP/80")?.size ?? 0,
      get(name)?.requested.scalars.get("example.com/gpu") ?? 0,
    ];
    return [
      ...of("a"),
      ...of("b"),
      havingAffinity()
        .map(({ name }) => name)
        .join(),
      havingRequiredAntiAffinity().length,
    ];
  };
  cache.assume(pod, "a");
  assert.deepEqual(state(), [1, 2, 0, 0, "a", 1]);
  cache.assume(pod, "b");
  assert.deepEqual(state(), [0, 0, 1, 2, "b", 1]);
  cache.forget(pod.pod);
  assert.deepEqual(state(), [0, 0, 0, 0, "", 0]);
});

test("a binding that was finished and then shown does not expire with the one before", async () => {
  const clock = newFakeClock();
  const cache = new ClusterCache(clock);
  cache.setNode(aTestNode("a"));
  const pod = aTestPod("web");
  cache.assume(newPodInfo(pod), "a");
  cache.finishBinding(pod);
  await clock.advance(14 * 60_000);
  cache.assume(newPodInfo(pod), "a");
  await clock.advance(14 * 60_000);
  assert.equal(cache.snapshot().get("a")?.pods.size, 1, "assumed anew, its time has not begun");
  cache.finishBinding(pod);
  await clock.advance(14 * 60_000);
  assert.equal(cache.snapshot().get("a")?.pods.size, 1);
  await clock.advance(60_000);
  assert.equal(cache.snapshot().get("a")?.pods.size, 0);
});

test("nodes are ordered round-robin over zones, also after one moved to another zone or was removed", () => {
  const cache = new ClusterCache(newFakeClock());
  const inZone = (name: string, zone: string) => aTestNode(name, { labels: { "topology.kubernetes.io/zone": zone } });
  for (const [name, zone] of [
    ["a", "x"],
    ["b", "x"],
    ["c", "y"],
  ] as const)
    cache.setNode(inZone(name, zone));
  const order = () =>
    cache
      .snapshot()
      .nodes.map(({ name }) => name)
      .join("");
  assert.equal(order(), "acb");
  cache.setNode(inZone("b", "z"));
  assert.equal(order(), "abc");
  cache.removeNode(aTestNode("b"));
  assert.equal(order(), "ac");
});

test("a removed node with pods with affinity is not in the snapshot's lists until it is added again", () => {
  const cache = new ClusterCache(newFakeClock());
  for (const name of ["a", "b"]) cache.setNode(aTestNode(name));
  const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "web" } } };
  const spec = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
  for (const name of ["a", "b"]) cache.setPod(aTestPod(`web-${name}`, { on: name, spec }));
  const having = () => {
    const { havingAffinity, havingRequiredAntiAffinity } = cache.snapshot();
    return [havingAffinity, havingRequiredAntiAffinity].map((infos) =>
      infos()
        .map(({ name }) => name)
        .join(),
    );
  };
  assert.deepEqual(having(), ["a,b", "a,b"]);
  cache.removeNode(aTestNode("a"));
  assert.deepEqual(having(), ["b", "b"]);
  cache.setNode(aTestNode("a"));
  assert.deepEqual(having(), ["a,b", "a,b"]);
  cache.removePod(aTestPod("web-a", { on: "a" }));
  assert.deepEqual(having(), ["b", "b"]);
});

test("a pod that requests more than a number holds exactly leaves the sums of the others as they were", () => {
  const cache = new ClusterCache(newFakeClock());
  cache.setNode(aTestNode("n"));
  const gpu = (count: string) => ({ containers: [{ name: "c", resources: { requests: { "example.com/gpu": count } } }] });
  cache.setPod(aTestPod("one", { on: "n", cpu: "1" }));
  cache.setPod(aTestPod("two", { on: "n", spec: gpu("3") }));
  const sums = () => structuredClone([cache.snapshot().get("n")?.requested, cache.snapshot().get("n")?.nonZeroRequested]);
  const before = sums();
  for (const [name, options] of Object.entries({ cpu: { cpu: "9223372036854775" }, gpu: { spec: gpu("9223372036854775807") } })) {
    const most = aTestPod(name, { on: "n", ...options });
    cache.setPod(most);
    cache.removePod(most);
    assert.deepEqual(sums(), before, name);
  }
});

test("nothing is kept of a node that is gone, once its pods are gone too", () => {
  const cache = new ClusterCache(newFakeClock());
  const made = () => {
    cache.setNode(aTestNode("a"));
    return cache.snapshot().get("a");
  };
  const first = made();
  cache.removeNode(aTestNode("a"));
  const second = made();
  assert.notEqual(second, first);
  const pod = aTestPod("web", { on: "a" });
  cache.setPod(pod);
  cache.removeNode(aTestNode("a"));
  assert.equal(made(), second, "its pod is there still");
  cache.removeNode(aTestNode("a"));
  cache.removePod(pod);
  assert.notEqual(made(), second);
});
