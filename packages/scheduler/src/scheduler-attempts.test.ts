import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  csiDrivers,
  namespaces,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { aNamespace } from "@coxswain/apimachinery/testing/builders";
import { bindCompleted } from "@coxswain/apimachinery/volumes/annotations";
import type { Extender } from "./extenders/extender.ts";
import { startScheduler } from "./testing/running-scheduler.ts";
import { aTestPod } from "./testing/test-cluster.ts";

type Bench = Awaited<ReturnType<typeof startScheduler>>;

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

const aClass = (volumeBindingMode: string) => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "slow" },
  provisioner: "example.com/disk",
  volumeBindingMode,
});
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
});
const aVolume = (labels: Record<string, string> = {}): PersistentVolume => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv", labels },
  spec: { storageClassName: "slow", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] },
  status: { phase: "Available" },
});
const withClaim = { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] as Volume[] };

test("a failed binding wakes the pods that wait for the resources that it had", async (t) => {
  const { client, step, names } = await startScheduler(t);
  const held = Promise.withResolvers<never>();
  client.react("create", "pods", ({ subresource, name }) =>
    subresource === "binding" && name === "web" ? held.promise : undefined,
  );
  names.node("a");
  names.pod("web", { cpu: "4" });
  await step();
  names.pod("next", { cpu: "4" });
  await step(5_000);
  assert.equal(names.where("next"), undefined);
  held.reject(new Error("no luck"));
  await step();
  assert.equal(names.where("next"), "a");
});

test("no pod waits for the status of another one to be written, and its own next attempt does", async (t) => {
  const { client, step, names } = await startScheduler(t);
  const held = Promise.withResolvers<object>();
  client.react("patch", "pods", ({ name }) => (name === "large" ? held.promise : undefined));
  names.node("a");
  names.pod("large", { cpu: "40" });
  await step();
  names.pod("web", { cpu: "1" });
  await step();
  assert.equal(names.where("web"), "a");
  names.node("b", { cpu: "40" });
  await step(5_000);
  assert.equal(names.where("large"), undefined);
  held.resolve({});
  await step();
  assert.equal(names.where("large"), "b");
});

test("sixteen statuses are written at a time, and the next one when the first of them is", async (t) => {
  const { client, step, names } = await startScheduler(t);
  const answers: (() => void)[] = [];
  client.react("patch", "pods", () => new Promise<object>((resolve) => answers.push(() => resolve({}))));
  names.node("a");
  for (let i = 0; i < 20; i++) names.pod(`large-${i}`, { cpu: "40" });
  await step();
  assert.equal(answers.length, 16);
  answers[0]?.();
  await step();
  assert.equal(answers.length, 17);
});

test("a nomination whose write has no answer yet is cleared after it by a more important pod", async (t) => {
  const { client, step, names } = await startScheduler(t);
  const held = Promise.withResolvers<undefined>();
  const sent: unknown[] = [];
  client.react("delete", "pods", () => ({}));
  client.react("patch", "pods", ({ name, sent: body }) => {
    if (name !== "urgent") return undefined;
    sent.push((body as { status: { nominatedNodeName?: string | null } }).status.nominatedNodeName);
    return sent.length === 1 ? held.promise : {};
  });
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  names.pod("first", { cpu: "4", priority: 20 });
  await step();
  assert.deepEqual(sent, ["a"]);
  held.resolve(undefined);
  await step();
  assert.deepEqual(sent, ["a", null]);
});

test("after an unexpected failure any event may help, whatever refused the pod before", async (t) => {
  const bench = await startScheduler(t);
  const { client, step, names } = bench;
  names.node("a", { cpu: "1" });
  const pod = aTestPod("web", { cpu: "2" });
  client.put(pods, pod);
  await step(2_000);
  assert.equal(refusals(bench), 1);
  client.put(pods, { ...pod, spec: { ...pod.spec, containers: undefined as never } });
  await step(5_000);
  const before = refusals(bench);
  assert.ok(before >= 2, "it is malformed now");
  client.put(storageClasses, aClass("WaitForFirstConsumer"));
  await step(10_000);
  assert.equal(refusals(bench), before + 1, "a class does not help against too few CPUs");
});

test("a pod whose volumes cannot be reserved loses its nomination", async (t) => {
  const answer = Promise.withResolvers<void>();
  const filter: Extender["filter"] = async (_, feasible) => {
    await answer.promise;
    return { feasible, failed: new Map(), unresolvable: new Map() };
  };
  const { client, events, step, names } = await startScheduler(t, { extenders: [anExtender({ filter })] });
  client.react("delete", "pods", () => ({}));
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  client.put(storageClasses, aClass("WaitForFirstConsumer"));
  client.put(persistentVolumeClaims, aClaim());
  client.put(persistentVolumes, aVolume());
  await step();
  names.pod("urgent", { cpu: "4", priority: 10, spec: withClaim });
  await step();
  assert.equal(names.status("urgent")?.nominatedNodeName, "a");
  client.remove(pods, "default/old");
  await step(1_000);
  client.put(persistentVolumes, aVolume({ changed: "yes" }));
  await step();
  answer.resolve();
  await step();
  assert.match(events.at(-1) ?? "", /^urgent Warning FailedScheduling .* is out of sync/);
  assert.equal(names.status("urgent")?.nominatedNodeName, undefined);
});

test("with thousands of pods that fit nowhere the event loop runs between them", async (t) => {
  let now = 0;
  let iterations = 0;
  const turns = new Turns(
    () => (now += 10),
    (run) => {
      iterations++;
      setImmediate(run);
    },
  );
  const bench = await startScheduler(t, { turns });
  for (let i = 0; i < 20; i++) bench.names.pod(`web${i}`);
  await bench.step();
  assert.equal(bench.events.length, 20);
  assert.ok(iterations >= 10, `${iterations}`);
});

test("a failed pod waits for the configured first back-off, then twice as long up to the configured maximum", async (t) => {
  const { client, clock, step, names } = await startScheduler(t, { podInitialBackoffMs: 5_000, podMaxBackoffMs: 7_000 });
  const at: number[] = [];
  client.react("create", "pods", ({ subresource }) => {
    if (subresource !== "binding") return undefined;
    at.push(clock.monotonic());
    throw new Error("no luck");
  });
  names.node("a");
  names.pod("web");
  for (let seconds = 0; seconds < 30; seconds++) await step(1_000);
  const waits = at.slice(1).map((ms, i) => ms - (at[i] as number));
  assert.deepEqual(waits.slice(0, 3), [5_000, 7_000, 7_000]);
});

for (const { isOn, want } of [
  { isOn: true, want: "nominated" },
  { isOn: false, want: "large" },
]) {
  test(`${isOn ? "with" : "without"} PreferNominatedNode a nominated pod is bound to ${want}`, async (t) => {
    const { step, names } = await startScheduler(t, { gates: { PreferNominatedNode: isOn } });
    names.node("nominated", { cpu: "4" });
    names.node("large", { cpu: "400" });
    await step();
    names.pod("web", { status: { nominatedNodeName: "nominated" } });
    await step();
    assert.equal(names.where("web"), want);
  });
}

test("a pod that is bound to its nominated node does not change where the next cycle begins", async (t) => {
  const { step, names } = await startScheduler(t, { percentageOfNodesToScore: 1 });
  for (let i = 0; i <= 100; i++) names.node(`n${String(i).padStart(3, "0")}`, { cpu: i === 100 ? "400" : "4" });
  await step();
  names.pod("first");
  await step();
  names.pod("nominated", { status: { nominatedNodeName: "n050" } });
  await step();
  names.pod("second");
  await step();
  assert.deepEqual(["first", "nominated", "second"].map(names.where), ["n000", "n050", "n100"]);
});

test("the nomination of another scheduler's pod reserves nothing, also when the pod changes", async (t) => {
  const { step, names } = await startScheduler(t);
  const foreign = { cpu: "4", priority: 10, spec: { schedulerName: "somebody-else" } };
  names.node("a");
  names.pod("foreign", { ...foreign, status: { nominatedNodeName: "a" } });
  await step();
  names.pod("foreign", { ...foreign, status: { nominatedNodeName: "a" }, labels: { changed: "yes" } });
  await step();
  names.pod("web", { cpu: "4" });
  await step();
  assert.equal(names.where("web"), "a");
});

test("a pod of a namespace that the affinity of a waiting pod selects by its labels wakes it", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a");
  client.put(namespaces, aNamespace({ name: "other", labels: { team: "two" } }));
  const selectors = { namespaceSelector: { matchLabels: { team: "two" } }, labelSelector: { matchLabels: { app: "db" } } };
  const podAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "kubernetes.io/hostname", ...selectors }],
  };
  names.pod("web", { spec: { affinity: { podAffinity } } });
  await step(2_000);
  assert.equal(names.where("web"), undefined);
  names.pod("db", { on: "a", namespace: "other", labels: { app: "db" } });
  await step();
  assert.equal(names.where("web"), "a");
});

test("a pod that one of two affinity terms selects wakes the waiting pod", async (t) => {
  const bench = await startScheduler(t);
  const { step, names } = bench;
  names.node("a");
  const term = (app: string) => ({ topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app } } });
  const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term("cache"), term("db")] };
  names.pod("web", { spec: { affinity: { podAffinity } } });
  await step(2_000);
  assert.equal(refusals(bench), 1);
  names.pod("db", { on: "a", labels: { app: "db" } });
  await step();
  assert.equal(refusals(bench), 2);
});

test("pods are counted by the event that moved them in the queue", async (t) => {
  const { client, registry, step, names } = await startScheduler(t);
  names.node("a");
  client.put(persistentVolumes, aVolume());
  client.put(persistentVolumeClaims, aClaim());
  names.pod("web", { spec: withClaim });
  await step(2_000);
  client.put(persistentVolumeClaims, aClaim("pv"));
  await step();
  assert.equal(names.where("web"), "a");
  assert.match(await registry.render(), /^scheduler_queue_incoming_pods_total\{queue="active",event="PvcUpdate"\} 1$/m);
});

test("an event that no plugin waits for does not shorten the wait of a pod that is just being refused", async (t) => {
  const answer = Promise.withResolvers<void>();
  const filter: Extender["filter"] = async () => {
    await answer.promise;
    return { feasible: [], failed: new Map([["a", "too far"]]), unresolvable: new Map() };
  };
  const bench = await startScheduler(t, { extenders: [anExtender({ filter })] });
  const { client, step, names } = bench;
  names.node("a");
  client.put(csiDrivers, { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: "example.com" }, spec: {} });
  await step();
  names.pod("web");
  await step();
  client.remove(csiDrivers, "example.com");
  await step();
  answer.resolve();
  for (let seconds = 0; seconds < 20; seconds++) await step(1_000);
  assert.equal(refusals(bench), 1);
});

test("the pods that a preemption evicts are counted", async (t) => {
  const { client, registry, step, names } = await startScheduler(t);
  client.react("delete", "pods", () => ({}));
  names.node("a");
  for (const name of ["one", "two"]) names.pod(name, { on: "a", cpu: "2", priority: 1 });
  await step();
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  const text = await registry.render();
  assert.match(text, /^scheduler_preemption_victims_sum 2$/m);
  assert.match(text, /^scheduler_preemption_victims_count 1$/m);
});

test("no pod is scheduled before all objects are known", async (t) => {
  let away = true;
  const { events, step, names } = await startScheduler(t, {
    before(client) {
      client.react("list", "nodes", () => {
        if (away) throw new Error("away");
        return undefined;
      });
      client.put(pods, aTestPod("web"));
    },
  });
  await step();
  assert.deepEqual(events, []);
  names.node("a");
  away = false;
  await step(2_000);
  assert.equal(names.where("web"), "a");
});

test("a pod that has ended takes no resources, from the start or from its end on", async (t) => {
  const { step, names } = await startScheduler(t);
  names.node("a");
  names.pod("done", { on: "a", cpu: "4", status: { phase: "Succeeded" } });
  names.pod("failed", { on: "a", cpu: "4", status: { phase: "Failed" } });
  names.pod("job", { on: "a", cpu: "2", status: { phase: "Running" } });
  await step();
  names.pod("web", { cpu: "4" });
  await step(2_000);
  assert.equal(names.where("web"), undefined);
  names.pod("job", { on: "a", cpu: "2", status: { phase: "Succeeded" } });
  await step(2_000);
  assert.equal(names.where("web"), "a");
});
