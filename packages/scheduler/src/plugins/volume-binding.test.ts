import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PersistentVolume, PersistentVolumeClaim, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { silentRecorder } from "@coxswain/apimachinery/testing/silent-recorder";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { bindPod, reserve } from "../binding-cycle.ts";
import { ClusterCache } from "../cache/cluster-cache.ts";
import { newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import { defaultCapacityShape } from "../config/argument-rows.ts";
import type { ShapePoint } from "../config/plugin-args.ts";
import { emptyPluginSet, type PluginSets, pluginPoints } from "../config/plugin-sets.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import { newNominator } from "../framework/nominator.ts";
import { newSchedulerMetrics } from "../metrics.ts";
import { newProfile, type Profile, runFilters, runPreFilter, scoreNodes } from "../profile.ts";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
import { newDefaultBinder } from "./default-binder.ts";
import { newPrioritySort } from "./priority-sort.ts";
import { newVolumeBinding } from "./volume-binding.ts";

const emptySnapshot = new ClusterCache(newFakeClock()).snapshot();
const pod = aTestPod("web", {
  spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] as Volume[] },
});
const claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "data", namespace: "default", uid: "claim-uid" },
  spec: { storageClassName: "slow", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  status: { phase: "Pending" },
} as PersistentVolumeClaim;
const volume = {
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: "pv" },
  spec: { storageClassName: "slow", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] },
  status: { phase: "Available" },
} as PersistentVolume;
const aClass = (provisioner: string) => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "slow" },
  provisioner,
  volumeBindingMode: "WaitForFirstConsumer",
});

/** Runs the plugin with a fake client up to `reserve` for a pod on node a. */
async function start(
  t: { after(fn: () => void): void },
  provisioner: string,
  volumes: PersistentVolume[],
  shape?: readonly ShapePoint[],
) {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const client = newFakeClient({ clock });
  const node = { apiVersion: "v1", kind: "Node", ...aTestNode("a") };
  client.put(nodes, node);
  client.put(pods, pod);
  client.put(persistentVolumeClaims, claim);
  client.put(persistentVolumes, ...volumes);
  client.put(storageClasses, aClass(provisioner));
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  const context = {
    client,
    informers,
    gates: { enabled: () => false },
    clock,
    log: discardLogger,
    recorder: silentRecorder,
    metrics: newSchedulerMetrics(registry, clock),
    nominator: newNominator(),
    statuses: { clearNomination: () => assert.fail() },
    extenders: [],
    random: () => 0,
    profile: (): Profile => profile,
  };
  const made = {
    VolumeBinding: newVolumeBinding(context, { bindTimeoutSeconds: 10, ...(shape && { shape }) }),
    DefaultBinder: newDefaultBinder(client),
    PrioritySort: newPrioritySort(),
  };
  const multiPoint = { enabled: Object.keys(made).map((name) => ({ name, weight: 0 })), disabled: [] };
  const sets = {
    ...Object.fromEntries(pluginPoints.map((point) => [point, emptyPluginSet])),
    multiPoint,
  } as unknown as PluginSets;
  const profile: Profile = newProfile("default-scheduler", sets, (name) => made[name as keyof typeof made]);
  informers.start(stop.signal);
  await settle(30);
  const cycle = (): CycleState => {
    const state: CycleState = new Map();
    assert.equal(runPreFilter(profile, state, newPodInfo(pod), emptySnapshot), undefined);
    return state;
  };
  const state = cycle();
  assert.equal(runFilters(profile.at.filter, state, newPodInfo(pod), newNodeInfo(node)), undefined);
  reserve(profile, state, newPodInfo(pod), "a");
  return { clock, client, profile, state, cycle, node, registry };
}

/** Binds the claim like the persistent volume controller. */
function bindAsController(client: ReturnType<typeof newFakeClient>, volumeName: string): void {
  const current = client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data");
  assert.ok(current);
  const annotations = { ...current.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes" };
  client.put(persistentVolumeClaims, {
    ...current,
    metadata: { ...current.metadata, annotations },
    spec: { ...current.spec, volumeName },
  });
}

test("a free volume is reserved for the claim, and the pod bound once the controller has bound both", async (t) => {
  const { clock, client, profile, state, cycle, node } = await start(t, "kubernetes.io/no-provisioner", [volume]);
  const second = cycle();
  const other = runFilters(profile.at.filter, second, newPodInfo(pod), newNodeInfo(node));
  assert.equal(other, undefined, "its own claim may still have the volume that is assumed for it");
  const done = bindPod(profile, state, newPodInfo(pod), "a");
  await settle(30);
  const written = client.object<PersistentVolume>(persistentVolumes, "pv");
  assert.equal(written?.spec.claimRef?.name, "data");
  assert.equal(written?.metadata.annotations?.["pv.kubernetes.io/bound-by-controller"], "yes");
  await clock.advance(1_000);
  assert.equal(client.actions.filter(({ subresource }) => subresource === "binding").length, 0);
  bindAsController(client, "pv");
  await settle(30);
  await clock.advance(1_000);
  await done;
  assert.equal(client.actions.filter(({ subresource }) => subresource === "binding").length, 1);
});

test("provisioning is requested by the selected-node annotation on the claim", async (t) => {
  const { clock, client, profile, state } = await start(t, "example.com/disk", []);
  const done = bindPod(profile, state, newPodInfo(pod), "a");
  await settle(30);
  const written = client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data");
  assert.equal(written?.metadata.annotations?.["volume.kubernetes.io/selected-node"], "a");
  client.put(persistentVolumes, { ...volume, metadata: { name: "made" } });
  bindAsController(client, "made");
  await settle(30);
  await clock.advance(1_000);
  await done;
});

test("a provisioner that removes the selected-node annotation fails the binding", async (t) => {
  const { clock, client, profile, state } = await start(t, "example.com/disk", []);
  const done = bindPod(profile, state, newPodInfo(pod), "a").catch((err: unknown) => (err as Error).message);
  await settle(30);
  client.put(persistentVolumeClaims, { ...claim, metadata: { ...claim.metadata, annotations: {} } });
  await settle(30);
  await clock.advance(1_000);
  assert.equal(await done, 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"');
});

test("a volume binding fails at its timeout", async (t) => {
  const { clock, profile, state, registry } = await start(t, "example.com/disk", []);
  const done = bindPod(profile, state, newPodInfo(pod), "a").catch((err: unknown) => (err as Error).message);
  for (let i = 0; i < 10; i++) {
    await settle(30);
    await clock.advance(1_000);
  }
  const want = 'running PreBind plugin "VolumeBinding": binding volumes: timed out waiting for the condition';
  assert.equal(await done, want);
  assert.match(await registry.render(), /^scheduler_volume_scheduling_stage_error_total\{operation="bind"\} 1$/m);
});

test("reserved volumes are free again when the pod is not bound", async (t) => {
  const { client, profile, state, cycle, node } = await start(t, "kubernetes.io/no-provisioner", [volume]);
  client.react("update", "persistentvolumes", () => {
    throw new Error("no");
  });
  await assert.rejects(bindPod(profile, state, newPodInfo(pod), "a"), {
    message: 'running PreBind plugin "VolumeBinding": binding volumes: no',
  });
  const again = cycle();
  assert.equal(runFilters(profile.at.filter, again, newPodInfo(pod), newNodeInfo(node)), undefined);
  reserve(profile, again, newPodInfo(pod), "a");
});

test("the first volume is free again when the second changed before its reservation", async (t) => {
  const { client, profile, node, registry } = await start(t, "kubernetes.io/no-provisioner", [volume]);
  const large: PersistentVolume = {
    ...volume,
    metadata: { name: "large" },
    spec: { ...volume.spec, capacity: { storage: "2Gi" } },
  };
  client.put(persistentVolumes, large);
  for (const [name, storage] of [
    ["other", "1Gi"],
    ["second", "2Gi"],
  ]) {
    const spec = { ...claim.spec, resources: { requests: { storage } } } as never;
    client.put(persistentVolumeClaims, { ...claim, metadata: { name, namespace: "default", uid: name }, spec });
  }
  await settle(30);
  const podWith = (name: string, ...claims: string[]) => {
    const volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })) as Volume[];
    return newPodInfo(aTestPod(name, { spec: { volumes } }));
  };
  const filtered = (of: ReturnType<typeof newPodInfo>, own: CycleState = new Map()) => {
    assert.equal(runPreFilter(profile, own, of, emptySnapshot), undefined);
    return runFilters(profile.at.filter, own, of, newNodeInfo(node))?.reasons;
  };
  const both = podWith("both", "data", "second");
  const own: CycleState = new Map();
  assert.equal(filtered(both, own), undefined);
  client.put(persistentVolumes, { ...large, metadata: { name: "large", labels: { of: "another version" } } });
  await settle(30);
  assert.throws(() => reserve(profile, own, both, "a"), /"large" is out of sync/);
  assert.match(await registry.render(), /^scheduler_volume_scheduling_stage_error_total\{operation="assume"\} 1$/m);
  client.remove(persistentVolumes, "large");
  await settle(30);
  assert.equal(filtered(podWith("rival", "other")), undefined);
});

for (const { size, shape, want } of [
  { size: "1Gi", shape: undefined, want: 0 },
  { size: "1Gi", shape: defaultCapacityShape, want: 100 },
  { size: "4Gi", shape: defaultCapacityShape, want: 25 },
  {
    size: "4Gi",
    shape: [
      { utilization: 0, score: 10 },
      { utilization: 50, score: 0 },
    ],
    want: 50,
  },
]) {
  test(`a volume of ${size} scores ${want} for a claim of 1Gi ${shape ? "with" : "without"} a shape`, async (t) => {
    const free = { ...volume, spec: { ...volume.spec, capacity: { storage: size } } } as PersistentVolume;
    const { profile, state, node } = await start(t, "kubernetes.io/no-provisioner", [free], shape);
    assert.deepEqual(atOnce(scoreNodes(profile, state, newPodInfo(pod), [newNodeInfo(node)], emptySnapshot)), [want]);
  });
}

test("a volume that is to be provisioned scores nothing", async (t) => {
  const { profile, state, node } = await start(t, "example.com/disk", [], defaultCapacityShape);
  assert.deepEqual(atOnce(scoreNodes(profile, state, newPodInfo(pod), [newNodeInfo(node)], emptySnapshot)), [0]);
});

const cases: { name: string; provisioner?: string; happens: (client: ReturnType<typeof newFakeClient>) => void; want: string }[] =
  [
    {
      name: "the node is deleted",
      happens: (client) => client.remove(nodes, "a"),
      want: 'failed to get node "a": node "a" not found',
    },
    {
      name: "the pod is deleted",
      happens: (client) => client.remove(pods, "default/web"),
      want: 'pod does not exist any more: pod "web" not found',
    },
    {
      name: "the claim is deleted",
      happens: (client) => client.remove(persistentVolumeClaims, "default/data"),
      want: 'failed to check binding: could not find v1.PersistentVolumeClaim "default/data"',
    },
    {
      name: "the volume is deleted",
      happens: (client) => client.remove(persistentVolumes, "pv"),
      want: 'failed to check binding: could not find v1.PersistentVolume "pv"',
    },
    {
      name: "somebody takes the claim off the volume",
      happens: (client) => client.put(persistentVolumes, volume),
      want: 'ClaimRef got reset for pv "pv"',
    },
    {
      name: "the controller reserves the volume for no claim of its own any more",
      happens(client) {
        const written = client.object<PersistentVolume>(persistentVolumes, "pv") as PersistentVolume;
        client.put(persistentVolumes, {
          ...written,
          spec: { ...written.spec, claimRef: { namespace: "default", name: "data" } },
        });
      },
      want: 'ClaimRef got reset for pv "pv"',
    },
    {
      name: "the volume moves to other nodes",
      happens(client) {
        const written = client.object<PersistentVolume>(persistentVolumes, "pv") as PersistentVolume;
        const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["far"] }] }] };
        client.put(persistentVolumes, { ...written, spec: { ...written.spec, nodeAffinity: { required } } });
      },
      want: `pv "pv" node affinity doesn't match node "a": no matching NodeSelectorTerms`,
    },
    {
      name: "the claim to be provisioned is deleted",
      provisioner: "example.com/disk",
      happens: (client) => client.remove(persistentVolumeClaims, "default/data"),
      want: 'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/data"',
    },
    {
      name: "all annotations are removed from the claim",
      provisioner: "example.com/disk",
      happens: (client) => client.put(persistentVolumeClaims, claim),
      want: 'selectedNode annotation reset for PVC "data"',
    },
    {
      name: "another node is written onto the claim",
      provisioner: "example.com/disk",
      happens(client) {
        const annotations = { "volume.kubernetes.io/selected-node": "b" };
        client.put(persistentVolumeClaims, { ...claim, metadata: { ...claim.metadata, annotations } });
      },
      want: 'provisioning failed for PVC "data"',
    },
  ];
for (const { name, provisioner = "kubernetes.io/no-provisioner", happens, want } of cases) {
  test(`${name} during the wait for the binding: it fails at once, and assumed changes are reverted`, async (t) => {
    const { clock, client, profile, state, node } = await start(t, provisioner, provisioner.startsWith("kube") ? [volume] : []);
    const done = bindPod(profile, state, newPodInfo(pod), "a").then(
      () => "bound",
      (err: Error) => err.message,
    );
    await settle(30);
    happens(client);
    await settle(30);
    await clock.advance(1_000);
    assert.equal(await done, `running PreBind plugin "VolumeBinding": binding volumes: ${want}`);
    // Restore the objects: the assumed state must be gone, so that the same decision succeeds again.
    client.put(nodes, node);
    client.put(persistentVolumeClaims, claim);
    client.put(persistentVolumes, volume);
    await settle(30);
    const again: CycleState = new Map();
    assert.equal(runPreFilter(profile, again, newPodInfo(pod), emptySnapshot), undefined);
    assert.equal(runFilters(profile.at.filter, again, newPodInfo(pod), newNodeInfo(node)), undefined);
    reserve(profile, again, newPodInfo(pod), "a");
  });
}

test("the binding waits for a bound claim without the controller's bind-completed annotation", async (t) => {
  const { clock, client, profile, state } = await start(t, "kubernetes.io/no-provisioner", [volume]);
  let bound = false;
  const done = bindPod(profile, state, newPodInfo(pod), "a").then(() => {
    bound = true;
  });
  await settle(30);
  client.put(persistentVolumeClaims, { ...claim, spec: { ...claim.spec, volumeName: "pv" } });
  await settle(30);
  await clock.advance(1_000);
  await settle(30);
  assert.equal(bound, false);
  bindAsController(client, "pv");
  await settle(30);
  await clock.advance(1_000);
  await done;
});

for (const { name, provisioner, ref, volumes } of [
  { name: "volume", provisioner: "kubernetes.io/no-provisioner", ref: persistentVolumes, volumes: [volume] },
  { name: "claim", provisioner: "example.com/disk", ref: persistentVolumeClaims, volumes: [] },
]) {
  test(`the binding waits while the cache shows a ${name} as it was before the write`, async (t) => {
    const { clock, client, profile, state } = await start(t, provisioner, volumes);
    let written: KubeObject | undefined;
    client.react("update", ref.resource, ({ sent }) => {
      written = sent as KubeObject;
      const { resourceVersion } = written.metadata;
      return { ...written, metadata: { ...written.metadata, resourceVersion: String(Number(resourceVersion) + 1) } };
    });
    const done = bindPod(profile, state, newPodInfo(pod), "a").then(
      () => "bound",
      (err: Error) => err.message,
    );
    await settle(30);
    await clock.advance(2_000);
    assert.ok(written);
    client.put(ref, written);
    if (name === "claim") client.put(persistentVolumes, volume);
    bindAsController(client, "pv");
    await settle(30);
    await clock.advance(1_000);
    assert.equal(await done, "bound");
  });

  test(`a reserved ${name} is not assigned to another pod, and free again after a failed write`, async (t) => {
    const { client, profile, state, cycle } = await start(t, provisioner, volumes);
    const onB = newNodeInfo({ apiVersion: "v1", kind: "Node", ...aTestNode("b") });
    const reasons = () => runFilters(profile.at.filter, cycle(), newPodInfo(pod), onB)?.reasons;
    client.put(persistentVolumeClaims, { ...claim, metadata: { name: "other", namespace: "default", uid: "other" } });
    await settle(30);
    const spec = { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "other" } }] as Volume[] };
    const rival = newPodInfo(aTestPod("rival", { spec }));
    const reasonsOfRival = () => {
      const own: CycleState = new Map();
      assert.equal(runPreFilter(profile, own, rival, emptySnapshot), undefined);
      return runFilters(profile.at.filter, own, rival, onB)?.reasons;
    };
    const nothing = ["node(s) didn't find available persistent volumes to bind"];
    // A claim to be provisioned is assigned to one node; a volume that is assumed for a claim is not offered to other claims.
    assert.deepEqual([reasons(), reasonsOfRival()], name === "claim" ? [nothing, undefined] : [undefined, nothing]);
    client.react("update", ref.resource, () => {
      throw new Error("no");
    });
    await assert.rejects(bindPod(profile, state, newPodInfo(pod), "a"), /binding volumes: no$/);
    assert.deepEqual([reasons(), reasonsOfRival()], [undefined, undefined]);
  });
}

test("the binding waits for a provisioned volume that is not in the cache yet; one of other nodes ends it with an error", async (t) => {
  const { clock, client, profile, state } = await start(t, "example.com/disk", []);
  let end: string | undefined;
  void bindPod(profile, state, newPodInfo(pod), "a").catch((err: Error) => {
    end = err.message;
  });
  await settle(30);
  bindAsController(client, "made");
  await settle(30);
  await clock.advance(2_000);
  assert.equal(end, undefined);
  assert.equal(client.actions.filter(({ subresource }) => subresource === "binding").length, 0);
  const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["far"] }] }] };
  client.put(persistentVolumes, { ...volume, metadata: { name: "made" }, spec: { ...volume.spec, nodeAffinity: { required } } });
  await settle(30);
  await clock.advance(1_000);
  await settle(30);
  assert.match(end ?? "", /pv "made" node affinity doesn't match node "a"/);
});

test("a class that is deleted during the cycle fails it, and is counted", async (t) => {
  const { client, profile, cycle, node, registry } = await start(t, "example.com/disk", []);
  const state = cycle();
  client.remove(storageClasses, "slow");
  await settle(30);
  assert.throws(
    () => runFilters(profile.at.filter, state, newPodInfo(pod), newNodeInfo(node)),
    /failed to find storage class "slow"/,
  );
  assert.match(await registry.render(), /^scheduler_volume_scheduling_stage_error_total\{operation="predicate"\} 1$/m);
});

test("a pod without claims scores 0 on every node, also with a shape", async (t) => {
  const { profile, node } = await start(t, "kubernetes.io/no-provisioner", [volume], defaultCapacityShape);
  const state: CycleState = new Map();
  const plain = newPodInfo(aTestPod("plain"));
  assert.equal(runPreFilter(profile, state, plain, emptySnapshot), undefined);
  assert.deepEqual(atOnce(scoreNodes(profile, state, plain, [newNodeInfo(node)], emptySnapshot)), [0]);
});

const podOfTwo = newPodInfo(
  aTestPod("two", {
    spec: {
      volumes: ["one", "two"].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })) as Volume[],
    },
  }),
);

test("volumes of several classes score the mean of their classes", async (t) => {
  const { client, profile, node } = await start(t, "kubernetes.io/no-provisioner", [volume], defaultCapacityShape);
  client.put(storageClasses, { ...aClass("kubernetes.io/no-provisioner"), metadata: { name: "fast" } });
  for (const [name, storageClassName, size] of [
    ["one", "slow", "1Gi"],
    ["two", "fast", "4Gi"],
  ] as const) {
    const { metadata: _, ...rest } = claim;
    client.put(persistentVolumeClaims, {
      ...rest,
      metadata: { name, namespace: "default", uid: name },
      spec: { ...claim.spec, storageClassName },
    });
    const spec = { ...volume.spec, storageClassName, capacity: { storage: size } };
    client.put(persistentVolumes, { ...volume, metadata: { name: `pv-${name}` }, spec });
  }
  await settle(30);
  const state: CycleState = new Map();
  assert.equal(runPreFilter(profile, state, podOfTwo, emptySnapshot), undefined);
  assert.equal(runFilters(profile.at.filter, state, podOfTwo, newNodeInfo(node)), undefined);
  const [score] = atOnce(scoreNodes(profile, state, podOfTwo, [newNodeInfo(node)], emptySnapshot));
  assert.equal(score, 63, "the mean of 100 and 25");
});

for (const isOn of [false, true]) {
  test(`drivers and their capacity ${isOn ? "" : "do not "}wake pods ${isOn ? "with" : "without"} CSIStorageCapacity`, () => {
    const clock = newFakeClock();
    const client = newFakeClient({ clock });
    const informers = newInformerFactory(client, { log: discardLogger, clock });
    const context = {
      client,
      informers,
      gates: { enabled: () => isOn },
      clock,
      log: discardLogger,
      recorder: silentRecorder,
      metrics: newSchedulerMetrics(newMetricsRegistry(), clock),
      nominator: newNominator(),
      statuses: { clearNomination: () => assert.fail() },
      extenders: [],
      random: () => 0,
      profile: () => assert.fail(),
    };
    const { wakeUpOn = [] } = newVolumeBinding(context, { bindTimeoutSeconds: 10 });
    const ofDrivers = wakeUpOn.filter((event) => event.startsWith("CSIDriver/") || event.startsWith("CSIStorageCapacity/"));
    assert.equal(ofDrivers.length, isOn ? 4 : 0);
  });
}

for (const { name, provisioner } of [
  { name: "each of two volumes is bound", provisioner: "kubernetes.io/no-provisioner" },
  { name: "each of two claims is provisioned", provisioner: "example.com/disk" },
]) {
  test(`the binding waits until ${name}`, async (t) => {
    const { clock, client, profile, node } = await start(t, provisioner, provisioner === "example.com/disk" ? [] : [volume]);
    const claims = ["one", "two"];
    client.put(pods, podOfTwo.pod);
    for (const each of claims) {
      client.put(persistentVolumeClaims, { ...claim, metadata: { name: each, namespace: "default", uid: each } });
      if (provisioner !== "example.com/disk") client.put(persistentVolumes, { ...volume, metadata: { name: `pv-${each}` } });
    }
    await settle(30);
    const state: CycleState = new Map();
    assert.equal(runPreFilter(profile, state, podOfTwo, emptySnapshot), undefined);
    assert.equal(runFilters(profile.at.filter, state, podOfTwo, newNodeInfo(node)), undefined);
    reserve(profile, state, podOfTwo, "a");
    let isBound = false;
    const done = bindPod(profile, state, podOfTwo, "a").then(() => {
      isBound = true;
    });
    await settle(30);
    for (const each of claims) {
      assert.equal(isBound, false, each);
      const current = client.object<PersistentVolumeClaim>(persistentVolumeClaims, `default/${each}`) as PersistentVolumeClaim;
      const annotations = { ...current.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes" };
      const volumeName = provisioner === "example.com/disk" ? `made-${each}` : `pv-${each}`;
      if (provisioner === "example.com/disk") client.put(persistentVolumes, { ...volume, metadata: { name: volumeName } });
      client.put(persistentVolumeClaims, {
        ...current,
        metadata: { ...current.metadata, annotations },
        spec: { ...current.spec, volumeName },
      });
      await settle(30);
      await clock.advance(1_000);
      await settle(30);
    }
    await done;
  });
}
