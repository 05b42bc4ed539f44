import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes, storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import { aTestNode, aTestPod, listersOver } from "../testing/test-cluster.ts";
import { newVolumeZone } from "./volume-zone.ts";

type Stored = readonly [ResourceRef, KubeObject];
const zone = "topology.kubernetes.io/zone";
const region = "topology.kubernetes.io/region";
const claim = (spec: object, name = "data"): Stored => [
  persistentVolumeClaims,
  { metadata: { name, namespace: "default" }, spec } as KubeObject,
];
const volume = (labels: Record<string, string>): Stored => [
  persistentVolumes,
  { metadata: { name: "pv", labels }, spec: {} } as KubeObject,
];
const aClass = (more: object): Stored => [storageClasses, { metadata: { name: "slow" }, ...more } as KubeObject];
const bound = claim({ volumeName: "pv" });
const unbound = claim({ storageClassName: "slow" });
const elsewhere = "node(s) had no available volume zone";

for (const { name, objects, want } of [
  { name: "a volume of its zone and region", objects: [bound, volume({ [zone]: "x", [region]: "r" })], want: undefined },
  { name: "a volume of another zone", objects: [bound, volume({ [zone]: "y", [region]: "r" })], want: elsewhere },
  { name: "a volume of another region", objects: [bound, volume({ [zone]: "x", [region]: "s" })], want: elsewhere },
  {
    name: "a volume of another region by the former label",
    objects: [bound, volume({ "failure-domain.beta.kubernetes.io/region": "s" })],
    want: elsewhere,
  },
  { name: "a volume of two zones, one of which is its own", objects: [bound, volume({ [zone]: "y__ x" })], want: undefined },
  { name: "a volume whose zone label is malformed", objects: [bound, volume({ [zone]: "y__" })], want: undefined },
  { name: "a claim that is not there", objects: [], want: 'persistentvolumeclaim "data" not found' },
  { name: "a volume that is not there", objects: [bound], want: 'persistentvolume "pv" not found' },
  { name: "a claim without a class", objects: [claim({})], want: "PersistentVolumeClaim had no pv name and storageClass name" },
  { name: "a class that is not there", objects: [unbound], want: 'storageclass.storage.k8s.io "slow" not found' },
  {
    name: "a class without a binding mode",
    objects: [unbound, aClass({})],
    want: 'VolumeBindingMode not set for StorageClass "slow"',
  },
  {
    name: "an unbound claim of immediate binding",
    objects: [unbound, aClass({ volumeBindingMode: "Immediate" })],
    want: "PersistentVolume had no name",
  },
  {
    name: "an unbound claim that waits for its pod",
    objects: [unbound, aClass({ volumeBindingMode: "WaitForFirstConsumer" })],
    want: undefined,
  },
] as { name: string; objects: Stored[]; want: string | undefined }[]) {
  test(`a pod of ${name} ${want === undefined ? "fits" : `does not fit: ${want}`}`, () => {
    const { filter } = newVolumeZone({ informers: listersOver(objects) });
    const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] as Volume[];
    const node = newNodeInfo(
      aTestNode("a", { labels: { [zone]: "x", [region]: "r", "failure-domain.beta.kubernetes.io/region": "r" } }),
    );
    const status = filter?.(new Map(), newPodInfo(aTestPod("new", { spec: { volumes } })), node);
    assert.deepEqual(status, want === undefined ? undefined : { code: "UnschedulableAndUnresolvable", reasons: [want] });
  });
}

test("a claim without a name rejects the pod on a node with a zone, and on no other", () => {
  const { filter } = newVolumeZone({ informers: listersOver([]) });
  const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "" } }] as Volume[];
  const on = (labels: Record<string, string>) =>
    filter?.(new Map(), newPodInfo(aTestPod("new", { spec: { volumes } })), newNodeInfo(aTestNode("a", { labels })));
  assert.deepEqual(on({ [zone]: "x" }), {
    code: "UnschedulableAndUnresolvable",
    reasons: ["PersistentVolumeClaim had no name"],
  });
  assert.equal(on({}), undefined);
});

test("a claim behind one that waits for its pod is looked at", () => {
  const objects = [
    ...[unbound, aClass({ volumeBindingMode: "WaitForFirstConsumer" })],
    ...[claim({ volumeName: "pv" }, "second"), volume({ [zone]: "y" })],
  ];
  const { filter } = newVolumeZone({ informers: listersOver(objects) });
  const volumes = ["data", "second"].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
  const node = newNodeInfo(aTestNode("a", { labels: { [zone]: "x" } }));
  const status = filter?.(new Map(), newPodInfo(aTestPod("new", { spec: { volumes } })), node);
  assert.deepEqual(status, { code: "UnschedulableAndUnresolvable", reasons: [elsewhere] });
});
