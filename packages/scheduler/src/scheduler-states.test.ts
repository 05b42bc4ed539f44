import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PersistentVolume, PersistentVolumeClaim, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { bindCompleted, selectedNode } from "@coxswain/apimachinery/volumes/annotations";
import type { Extender } from "./extenders/extender.ts";
import { startScheduler } from "./testing/running-scheduler.ts";
import { aTestNode, aTestPod, type NodeOptions } from "./testing/test-cluster.ts";

type Bench = Awaited<ReturnType<typeof startScheduler>>;

/** Number of events that report a pod as unschedulable. */
const refusals = ({ events }: Bench, name = "web"): number =>
  events.filter((event) => event.startsWith(`${name} Warning FailedScheduling`)).length;

const anExtender = (more: Partial<Extender>): Extender => ({
  name: "http://extender",
  ignorable: false,
  binds: false,
  preempts: false,
  isInterested: () => true,
  filter: async (_, feasible) => ({ feasible, failed: new Map(), unresolvable: new Map() }),
  prioritize: async () => new Map(),
  preempt: async (_, candidates) => candidates,
  bind: async () => {},
  ...more,
});

const withClaim = { spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] as Volume[] } };
const aClaim = (volumeName?: string): PersistentVolumeClaim => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "data", namespace: "default", uid: "claim", ...(volumeName && { annotations: { [bindCompleted]: "yes" } }) },
  spec: {
    storageClassName: "slow",
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    ...(volumeName && { volumeName }),
  },
  status: { phase: volumeName === undefined ? "Pending" : "Bound" },
});
const aVolume = (zone?: string): PersistentVolume => {
  const terms = [{ matchExpressions: [{ key: "zone", operator: "In", values: [zone ?? ""] }] }];
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "pv" },
    spec: {
      storageClassName: "slow",
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      ...(zone !== undefined && { nodeAffinity: { required: { nodeSelectorTerms: terms } } }),
    },
    status: { phase: "Available" },
  };
};
const aClass = (volumeBindingMode: string, zone?: string): StorageClass => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "slow" },
  provisioner: "example.com/disk",
  volumeBindingMode,
  ...(zone !== undefined && { allowedTopologies: [{ matchLabelExpressions: [{ key: "zone", values: [zone] }] }] }),
});
const inA: NodeOptions = { labels: { zone: "a" } };
const tainted: NodeOptions = { spec: { taints: [{ key: "k", value: "v", effect: "NoSchedule" }] } };

for (const { name, node, pod, before = () => {}, event } of [
  { name: "a claim that is made", pod: withClaim, event: ({ client }) => client.put(persistentVolumeClaims, aClaim("pv")) },
  {
    name: "a claim that is bound",
    pod: withClaim,
    before: ({ client }) => client.put(persistentVolumeClaims, aClaim()),
    event: ({ client }) => client.put(persistentVolumeClaims, aClaim("pv")),
  },
  {
    name: "a volume that is made",
    pod: withClaim,
    before({ client }) {
      client.put(persistentVolumeClaims, aClaim("pv"));
      client.remove(persistentVolumes, "pv");
    },
    event: ({ client }) => client.put(persistentVolumes, aVolume()),
  },
  {
    name: "a volume that is of another zone now",
    pod: withClaim,
    before({ client }) {
      client.put(persistentVolumeClaims, aClaim("pv"));
      client.put(persistentVolumes, aVolume("b"));
    },
    event: ({ client }) => client.put(persistentVolumes, aVolume("a")),
  },
  { name: "a node whose taint is taken away", node: tainted, event: ({ names }) => names.node("a", inA) },
  { name: "a node that is uncordoned", node: { spec: { unschedulable: true } }, event: ({ names }) => names.node("a", inA) },
  { name: "a node that grows", node: { cpu: "500m" }, event: ({ names }) => names.node("a", { ...inA, cpu: "2" }) },
  {
    name: "a node that is given a label",
    pod: { spec: { nodeSelector: { disk: "ssd" } } },
    event: ({ names }) => names.node("a", { labels: { disk: "ssd" } }),
  },
  {
    name: "a pod that is deleted",
    before: ({ names }) => names.pod("other", { on: "a", cpu: "4" }),
    event: ({ client }) => client.remove(pods, "default/other"),
  },
] as {
  name: string;
  node?: NodeOptions;
  pod?: object;
  before?: (bench: Bench) => void;
  event: (bench: Bench) => void;
}[]) {
  test(`a waiting pod is woken by ${name}`, async (t) => {
    const bench = await startScheduler(t);
    const { client, step, names } = bench;
    names.node("a", { ...inA, ...node });
    client.put(persistentVolumes, aVolume());
    before(bench);
    await step();
    names.pod("web", pod);
    await step(2_000);
    assert.deepEqual([names.where("web"), refusals(bench)], [undefined, 1]);
    event(bench);
    await step(2_000);
    assert.equal(names.where("web"), "a");
  });
}

for (const { name, node, change, want } of [
  { name: "the first", node: "a", change: {}, want: "a" },
  { name: "the second", node: "b", change: { cpu: "4" }, want: "b" },
])
  test(`a pod rejected by nodes for different reasons is woken by a change of ${name} of them`, async (t) => {
    const { step, names } = await startScheduler(t);
    names.node("a", tainted);
    names.node("b", { cpu: "500m" });
    names.pod("web");
    await step(2_000);
    names.node(node, change);
    await step(2_000);
    assert.equal(names.where("web"), want);
  });

for (const { name, first, later, want } of [
  { name: "a class that waits for its consumer", later: aClass("WaitForFirstConsumer"), want: "a" },
  { name: "a class that does not", later: aClass("Immediate"), want: undefined },
  {
    name: "a class that is allowed elsewhere now",
    first: aClass("WaitForFirstConsumer", "b"),
    later: aClass("WaitForFirstConsumer", "a"),
    want: "a",
  },
] as { name: string; first?: StorageClass; later: StorageClass; want: string | undefined }[]) {
  test(`a pod whose claim is to be provisioned is ${want === undefined ? "not " : ""}woken by ${name}`, async (t) => {
    const bench = await startScheduler(t);
    const { client, step, names } = bench;
    names.node("a", inA);
    client.put(persistentVolumeClaims, aClaim());
    if (first !== undefined) client.put(storageClasses, first);
    names.pod("web", withClaim);
    await step(2_000);
    assert.equal(refusals(bench), 1);
    client.put(storageClasses, later);
    await step(2_000);
    const { annotations } = client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data")?.metadata ?? {};
    assert.deepEqual([annotations?.[selectedNode], refusals(bench)], [want, 1]);
  });
}

test("a pod is woken only by events that may help against its last rejection", async (t) => {
  let away = false;
  const filter: Extender["filter"] = async (_, feasible) => {
    if (away) throw new Error("extender is away");
    return { feasible, failed: new Map(), unresolvable: new Map() };
  };
  const bench = await startScheduler(t, { extenders: [anExtender({ filter })] });
  const { client, step, names } = bench;
  names.node("a", { cpu: "1" });
  names.pod("web", { cpu: "2" });
  await step(2_000);
  client.put(storageClasses, aClass("WaitForFirstConsumer"));
  await step(2_000);
  assert.equal(refusals(bench), 1, "a class does not help against too few CPUs");
  away = true;
  names.node("a", { cpu: "2" });
  await step(4_000);
  assert.equal(refusals(bench), 2);
  away = false;
  client.remove(storageClasses, "slow");
  client.put(storageClasses, aClass("WaitForFirstConsumer"));
  await step(4_000);
  assert.equal(names.where("web"), "a", "after a failure anything may help");
});

for (const { name, change } of [
  { name: "deleted", change: ({ client }) => client.remove(pods, "default/web") },
  { name: "given a node by somebody else", change: ({ names }) => names.pod("web", { on: "a" }) },
  {
    name: "made anew for another scheduler",
    change({ client }) {
      client.remove(pods, "default/web");
      client.put(pods, aTestPod("web", { metadata: { uid: "second" }, spec: { schedulerName: "another" } }));
    },
  },
] as { name: string; change: (bench: Bench) => void }[]) {
  test(`a pod that is ${name} during its cycle gets no event about that failure`, async (t) => {
    const answer = Promise.withResolvers<never>();
    const bench = await startScheduler(t, { extenders: [anExtender({ filter: () => answer.promise })] });
    bench.names.node("a");
    bench.names.pod("web");
    await bench.step();
    change(bench);
    await bench.step();
    const { length } = bench.client.writes;
    answer.reject(new Error("extender is away"));
    await bench.step(61_000);
    assert.deepEqual([bench.events, bench.client.writes.length], [[], length]);
  });
}

test("a pod deleted during an extender's preemption call evicts no pod", async (t) => {
  const answer = Promise.withResolvers<void>();
  const preempt: Extender["preempt"] = async (_, candidates) => answer.promise.then(() => candidates);
  const { client, step, names } = await startScheduler(t, { extenders: [anExtender({ preempts: true, preempt })] });
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  client.remove(pods, "default/urgent");
  await step();
  answer.resolve();
  await step();
  assert.equal(names.where("old"), "a");
});

test("a nomination to a deleted node is cleared, and reserves nothing on a smaller node of the same name", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  client.react("delete", "pods", () => ({}));
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  assert.equal(names.status("urgent")?.nominatedNodeName, "a");
  client.remove(pods, "default/old");
  client.remove(nodes, "a");
  await step(2_000);
  await step(2_000);
  assert.equal(names.status("urgent")?.nominatedNodeName, undefined);
  names.node("a", { cpu: "2" });
  names.pod("lesser", { cpu: "2", priority: 0 });
  await step(4_000);
  assert.equal(names.where("lesser"), "a");
});

test("a cleared nomination reserves nothing, also when the status cannot be written", async (t) => {
  const { client, step, names } = await startScheduler(t);
  client.react("delete", "pods", () => ({}));
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  client.react("patch", "pods", () => {
    throw new Error("away");
  });
  client.remove(nodes, "a");
  client.remove(pods, "default/old");
  await step(2_000);
  await step(2_000);
  assert.equal(names.status("urgent")?.nominatedNodeName, "a");
  names.node("a", { cpu: "2" });
  names.pod("lesser", { cpu: "2", priority: 0 });
  await step(4_000);
  assert.equal(names.where("lesser"), "a");
});

test("a nomination written by another scheduler or an earlier process is kept", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a");
  names.pod("old", { on: "a", cpu: "4" });
  await step();
  names.pod("web", { cpu: "4" });
  await step();
  names.pod("web", { cpu: "4", status: { nominatedNodeName: "a" } });
  await step();
  client.remove(pods, "default/old");
  names.pod("lesser", { cpu: "4", priority: -1 });
  await step();
  assert.equal(names.where("lesser"), undefined, "the other one is still backing off");
  await step(1_000);
  assert.equal(names.where("web"), "a");
});

test("a pod that another scheduler binds to another node keeps no reservation", async (t) => {
  const { client, step, names } = await startScheduler(t);
  client.react("delete", "pods", () => ({}));
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10, on: "b", status: { nominatedNodeName: "a" } });
  client.remove(pods, "default/old");
  names.pod("lesser", { cpu: "4", priority: 0 });
  await step(2_000);
  assert.equal(names.where("lesser"), "a");
});

test("the deletion of an unscheduled pod moves no pod from the unschedulable queue", async (t) => {
  const bench = await startScheduler(t);
  const { client, step, names } = bench;
  names.node("a", { cpu: "1" });
  for (const name of ["web", "other"]) names.pod(name, { cpu: "2" });
  await step(2_000);
  client.remove(pods, "default/other");
  await step(2_000);
  assert.equal(refusals(bench), 1);
});

test("a node whose condition changes may help after a failure, its heartbeat does not", async (t) => {
  let away = true;
  const filter: Extender["filter"] = async (_, feasible) => {
    if (away) throw new Error("extender is away");
    return { feasible, failed: new Map(), unresolvable: new Map() };
  };
  const bench = await startScheduler(t, { extenders: [anExtender({ filter })] });
  const { client, step, names } = bench;
  const put = (status: string, lastHeartbeatTime: string): void => {
    const node = { apiVersion: "v1", kind: "Node", ...aTestNode("a") };
    const conditions = [{ type: "Ready", status, lastHeartbeatTime }];
    client.put(nodes, { ...node, status: { ...node.status, conditions } });
  };
  put("False", "2022-01-01T00:00:00Z");
  names.pod("web");
  await step(2_000);
  away = false;
  put("False", "2022-01-01T00:00:10Z");
  await step(4_000);
  assert.deepEqual([refusals(bench), names.where("web")], [1, undefined]);
  put("True", "2022-01-01T00:00:20Z");
  await step(4_000);
  assert.equal(names.where("web"), "a");
});

test("a pod whose binding fails loses the nomination it had", async (t) => {
  const { client, step, names } = await startScheduler(t);
  client.react("delete", "pods", () => ({}));
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  assert.equal(names.status("urgent")?.nominatedNodeName, "a");
  client.react("create", "pods", ({ subresource }) => {
    if (subresource === "binding") throw new Error("no luck");
    return undefined;
  });
  client.remove(pods, "default/old");
  await step(2_000);
  assert.deepEqual([names.where("urgent"), names.status("urgent")?.nominatedNodeName], [undefined, undefined]);
});

test("a change of a pod that is being bound does not bring back the nomination it no longer needs", async (t) => {
  const { client, step, names } = await startScheduler(t);
  client.react("delete", "pods", () => ({}));
  client.react("create", "pods", ({ subresource, name }) =>
    subresource === "binding" && name === "urgent" ? new Promise(() => {}) : undefined,
  );
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  names.node("b");
  await step(2_000);
  names.pod("urgent", { cpu: "4", priority: 10, labels: { changed: "yes" }, status: { nominatedNodeName: "a" } });
  client.remove(pods, "default/old");
  names.pod("lesser", { cpu: "4", priority: 0 });
  await step(2_000);
  assert.equal(names.where("lesser"), "a");
});

test("a bound pod that the API never shows stops counting after 15 minutes", async (t) => {
  const { client, step, names } = await startScheduler(t);
  client.react("create", "pods", ({ subresource, name }) => (subresource === "binding" && name === "lost" ? {} : undefined));
  names.node("a");
  names.pod("lost", { cpu: "4" });
  await step();
  names.pod("web", { cpu: "4" });
  await step(14 * 60_000);
  assert.equal(names.where("web"), undefined);
  await step(3 * 60_000);
  assert.equal(names.where("web"), "a");
});

test("a volume that changes during an extender call fails the cycle, and the node's resources are free", async (t) => {
  const answer = Promise.withResolvers<ReadonlyMap<string, number>>();
  const prioritize: Extender["prioritize"] = (pod) => (pod.metadata.name === "web" ? answer.promise : Promise.resolve(new Map()));
  const bench = await startScheduler(t, { extenders: [anExtender({ prioritize })] });
  const { client, events, step, names } = bench;
  for (const name of ["a", "b"]) names.node(name, { labels: { zone: name } });
  names.pod("full", { on: "b", cpu: "3" });
  client.put(storageClasses, aClass("WaitForFirstConsumer"));
  client.put(persistentVolumeClaims, aClaim());
  client.put(persistentVolumes, aVolume());
  await step();
  names.pod("web", { cpu: "1", ...withClaim });
  await step();
  client.put(persistentVolumes, { ...aVolume(), metadata: { name: "pv", labels: { changed: "yes" } } });
  await step();
  answer.resolve(new Map([["a", 10]]));
  await step();
  assert.match(events.join("\n"), /^web Warning FailedScheduling Scheduling: .*"VolumeBinding".* is out of sync/);
  names.pod("next", { cpu: "4" });
  await step(2_000);
  assert.equal(names.where("next"), "a");
});

for (const { name, extenders } of [
  { name: "the next cycle begins with the node where the last one stopped", extenders: [] },
  { name: "the next cycle begins there, too, when an extender filters the nodes", extenders: [anExtender({})] },
]) {
  test(name, async (t) => {
    const { step, names } = await startScheduler(t, { percentageOfNodesToScore: 1, extenders });
    for (let i = 0; i <= 100; i++) names.node(`n${String(i).padStart(3, "0")}`, { cpu: i === 100 ? "400" : "4" });
    await step();
    names.pod("first");
    await step();
    names.pod("second");
    await step();
    assert.deepEqual([names.where("first"), names.where("second")], ["n000", "n100"]);
  });
}

test("a status that cannot be written is logged, unless the pod is gone", async (t) => {
  const bench = await startScheduler(t);
  const { client, errors, step, names } = bench;
  let failure: Error = notFound(pods, "web");
  client.react("patch", "pods", () => {
    throw failure;
  });
  names.pod("web");
  await step();
  assert.deepEqual([refusals(bench), errors], [1, []]);
  failure = new Error("away");
  names.pod("other");
  await step();
  assert.deepEqual(errors, ["cannot update the status of a pod that does not fit"]);
});

test("a binding that fails is no longer counted as running", async (t) => {
  const { client, registry, step, names } = await startScheduler(t);
  client.react("create", "pods", ({ subresource }) => {
    if (subresource === "binding") throw new Error("no luck");
    return undefined;
  });
  names.node("a");
  names.pod("web");
  await step();
  assert.match(await registry.render(), /^scheduler_scheduler_goroutines\{work="binding"\} 0$/m);
});

test("a failed preemption is logged, and the pod's condition has the reasons of the nodes", async (t) => {
  const { client, events, errors, step, names } = await startScheduler(t);
  client.react("delete", "pods", () => {
    throw new Error("away");
  });
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  assert.deepEqual(errors, ["running a postFilter plugin failed"]);
  const message = "0/1 nodes are available: 1 Insufficient cpu.";
  assert.deepEqual(events, [`urgent Warning FailedScheduling Scheduling: ${message}`]);
  assert.equal(names.status("urgent")?.conditions?.[0]?.message, message);
});

test("a message is truncated to the maximum length of an event", async (t) => {
  const { client, events, step, names } = await startScheduler(t);
  const before = 'binding rejected: running Bind plugin "DefaultBinder": '.length;
  client.react("create", "pods", ({ subresource, name }) => {
    if (subresource === "binding") throw new Error("x".repeat((name === "fits" ? 1024 : 1025) - before));
    return undefined;
  });
  names.node("a");
  for (const name of ["fits", "long"]) names.pod(name);
  await step();
  const [fits = "", long = ""] = events.toSorted().map((event) => event.slice(event.indexOf(": ") + 2));
  assert.deepEqual([fits.length, fits.at(-1), long.length, long.slice(-5)], [1024, "x", 1024, "x ..."]);
});

test("a stopped scheduler leaves no timer", async (t) => {
  const { clock, step, end, names } = await startScheduler(t);
  names.node("a");
  names.pod("web");
  await step(2_000);
  await end();
  await step();
  assert.equal(clock.waiting, 0);
});

test("a node that becomes schedulable and larger in one update wakes pods that wait for a schedulable node", async (t) => {
  const { client, step, names } = await startScheduler(t);
  client.put(nodes, aTestNode("a", { cpu: "4", spec: { unschedulable: true } }));
  client.put(pods, aTestPod("web"));
  await step(2000);
  assert.equal(names.where("web"), undefined);
  client.put(nodes, aTestNode("a", { cpu: "8" }));
  await step(2000);
  assert.equal(names.where("web"), "a");
});

test("a node that changes does not wake pods that do not fit beside those on it", async (t) => {
  const bench = await startScheduler(t);
  const { client, step } = bench;
  client.put(nodes, aTestNode("a", { cpu: "2" }));
  client.put(pods, aTestPod("there", { on: "a", cpu: "2" }), aTestPod("web"));
  await step(2000);
  assert.equal(refusals(bench), 1);
  client.put(nodes, aTestNode("a", { cpu: "2", labels: { touched: "yes" } }));
  client.put(nodes, aTestNode("a", { cpu: "2500m" }));
  await step(11_000);
  assert.equal(refusals(bench), 1);
});

test("large pods are not compared with each node and pod that changes, but tried again", async (t) => {
  const bench = await startScheduler(t);
  const { client, step } = bench;
  client.put(nodes, aTestNode("a", { labels: { zone: "z" } }));
  const nodeSelector = Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`k${i}`, "v"]));
  const terms = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ topologyKey: "zone", labelSelector: { matchLabels: { [`k${i}`]: "v" } } }));
  const near = (count: number) => ({ podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms(count) } });
  client.put(
    pods,
    aTestPod("elsewhere", { spec: { nodeSelector } }),
    aTestPod("near", { spec: { affinity: near(300) } }),
    aTestPod("small", { spec: { affinity: near(2) } }),
  );
  await step(2000);
  const tried = () => ["elsewhere", "near", "small"].map((name) => refusals(bench, name));
  assert.deepEqual(tried(), [1, 1, 1]);
  client.put(pods, aTestPod("other", { on: "a" }));
  await step(2000);
  assert.deepEqual(tried(), [1, 2, 1]);
  client.put(nodes, aTestNode("a", { labels: { zone: "z", touched: "yes" } }));
  await step(6000);
  assert.deepEqual(tried(), [2, 3, 2]);
});

test("a pod that is gone for a moment while its node is chosen, as of a server that lags, is not looked at again while it is bound", async (t) => {
  let looks = 0;
  const change = Promise.withResolvers<void>();
  const extender = anExtender({
    binds: true,
    filter: async (_, feasible) => {
      looks++;
      await change.promise;
      return { feasible, failed: new Map(), unresolvable: new Map() };
    },
    bind: () => new Promise(() => {}),
  });
  const { client, step, names } = await startScheduler(t, { extenders: [extender] });
  names.node("a");
  names.node("b");
  await step();
  names.pod("web");
  await step();
  client.remove(pods, "default/web");
  await step();
  names.pod("web");
  await step();
  change.resolve();
  await step(2_000);
  assert.equal(looks, 1);
});

test("a pod that has no node any more, as after a restore, leaves its place to pods that wait", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a");
  names.pod("former", { on: "a", cpu: "4" });
  await step();
  names.pod("web", { cpu: "4", priority: 10, spec: { preemptionPolicy: "Never" } });
  await step(2_000);
  assert.equal(names.where("web"), undefined);
  client.put(pods, aTestPod("former", { cpu: "4" }));
  await step(2_000);
  assert.deepEqual([names.where("web"), names.where("former")], ["a", undefined]);
});
