import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  csiDrivers,
  csiNodes,
  csiStorageCapacities,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { addPod, newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import { aTestNode, aTestPod, listersOver, newTestCluster } from "../testing/test-cluster.ts";
import { csiLimitKey, newDiskLimits, newNodeVolumeLimits } from "./volume-limits.ts";
import { newVolumeRestrictions } from "./volume-restrictions.ts";

type Stored = readonly [ResourceRef, KubeObject];
const zone = "topology.kubernetes.io/zone";
const nodes = [aTestNode("a", { labels: { [zone]: "x" } }), aTestNode("b", { labels: { [zone]: "y" } })];
const using = (...volumes: object[]): Pod =>
  aTestPod("new", { spec: { volumes: volumes.map((volume, i) => ({ name: `v${i}`, ...volume })) as Volume[] } });
const claimed = (claimName: string): object => ({ persistentVolumeClaim: { claimName } });
const claim = (name: string, spec: object = {}, more: { metadata?: object; status?: object } = {}): Stored => [
  persistentVolumeClaims,
  {
    metadata: { name, namespace: "default", uid: `${name}-uid`, ...more.metadata },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec },
    status: more.status ?? {},
  } as KubeObject,
];
const bound = (name: string, volumeName: string, spec: object = {}): Stored =>
  claim(name, { volumeName, ...spec }, { metadata: { annotations: { "pv.kubernetes.io/bind-completed": "yes" } } });
const onNode = (name: string): object => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [name] }] }],
    },
  },
});
const volume = (name: string, spec: object = {}, labels: Record<string, string> = {}): Stored => [
  persistentVolumes,
  {
    metadata: { name, labels },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], ...spec },
    status: { phase: "Available" },
  } as KubeObject,
];
const storageClass = (name: string, more: object = {}): Stored => [
  storageClasses,
  { metadata: { name }, provisioner: "example.com/disk", volumeBindingMode: "WaitForFirstConsumer", ...more } as KubeObject,
];
const noObjects = listersOver([]);
const slow = { storageClassName: "slow" };
const no = (reason: string): string => `0/2 nodes are available: 2 ${reason}.`;

for (const { name, wanted, objects, want, gates = {} } of [
  {
    name: "a missing claim rejects the pod",
    wanted: using(claimed("data")),
    objects: [],
    want: no('persistentvolumeclaim "data" not found'),
  },
  {
    name: "a claim that is being deleted rejects the pod",
    wanted: using(claimed("data")),
    objects: [claim("data", {}, { metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } })],
    want: no('persistentvolumeclaim "data" is being deleted'),
  },
  {
    name: "a bound claim that is being deleted rejects the pod",
    wanted: using(claimed("data")),
    objects: [
      claim(
        "data",
        { volumeName: "pv" },
        {
          metadata: {
            deletionTimestamp: "2024-01-01T00:00:00Z",
            annotations: { "pv.kubernetes.io/bind-completed": "yes" },
          },
          status: { phase: "Bound" },
        },
      ),
      volume("pv"),
    ],
    want: no('persistentvolumeclaim "data" is being deleted'),
  },
  {
    name: "a claim in phase Lost rejects the pod",
    wanted: using(claimed("data")),
    objects: [claim("data", { volumeName: "pv" }, { status: { phase: "Lost" } })],
    want: no('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'),
  },
  {
    name: "the claim of an ephemeral volume is not made yet",
    wanted: using({ ephemeral: {} }),
    objects: [],
    want: no('waiting for ephemeral volume controller to create the persistentvolumeclaim "new-v0"'),
  },
  {
    name: "the claim of an ephemeral volume is owned by another pod",
    wanted: using({ ephemeral: {} }),
    objects: [claim("new-v0")],
    want: no("PVC default/new-v0 was not created for pod default/new (pod is not owner)"),
  },
  {
    name: "the claim of an ephemeral volume is owned by an earlier pod of the same name",
    wanted: using({ ephemeral: {} }),
    objects: [
      claim(
        "new-v0",
        {},
        { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "new", uid: "old", controller: true }] } },
      ),
    ],
    want: no("PVC default/new-v0 was not created for pod default/new (pod is not owner)"),
  },
  {
    name: "a claim that names a volume but is not bound to it yet rejects the pod",
    wanted: using(claimed("data")),
    objects: [claim("data", { ...slow, volumeName: "pv" }), storageClass("slow"), volume("pv", slow)],
    want: no("pod has unbound immediate PersistentVolumeClaims"),
  },
  {
    name: "an unbound claim with immediate binding rejects the pod",
    wanted: using(claimed("data")),
    objects: [claim("data", slow), storageClass("slow", { volumeBindingMode: "Immediate" })],
    want: no("pod has unbound immediate PersistentVolumeClaims"),
  },
  {
    name: "the pod is placed on the node of a bound volume",
    wanted: using(claimed("data")),
    objects: [bound("data", "pv"), volume("pv", onNode("b"))],
    want: "b",
  },
  {
    name: "a bound volume that no node can access rejects the pod",
    wanted: using(claimed("data")),
    objects: [bound("data", "pv"), volume("pv", onNode("c"))],
    want: no("node(s) had volume node affinity conflict"),
  },
  {
    name: "a missing bound volume rejects the pod",
    wanted: using(claimed("data")),
    objects: [bound("data", "pv")],
    want: no("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
  },
  {
    name: "a claim with WaitForFirstConsumer selects the node that has a volume for it",
    wanted: using(claimed("data")),
    objects: [
      claim("data", slow),
      storageClass("slow", { provisioner: "kubernetes.io/no-provisioner" }),
      volume("pv", { ...slow, ...onNode("b") }),
    ],
    want: "b",
  },
  {
    name: "two claims do not share one volume",
    wanted: using(claimed("one"), claimed("two")),
    objects: [
      claim("one", slow),
      claim("two", slow),
      storageClass("slow", { provisioner: "kubernetes.io/no-provisioner" }),
      volume("pv", { ...slow, ...onNode("b") }),
    ],
    want: no("node(s) didn't find available persistent volumes to bind"),
  },
  {
    name: "a pod that names one claim twice needs one volume",
    wanted: using(claimed("data"), claimed("data")),
    objects: [
      claim("data", slow),
      storageClass("slow", { provisioner: "kubernetes.io/no-provisioner" }),
      volume("pv", { ...slow, ...onNode("b") }),
    ],
    want: "b",
  },
  {
    name: "a volume can be provisioned on any node",
    wanted: using(claimed("data")),
    objects: [claim("data", slow), storageClass("slow")],
    want: "a",
  },
  {
    name: "a volume can be provisioned where the class's topologies allow it",
    wanted: using(claimed("data")),
    objects: [
      claim("data", slow),
      storageClass("slow", { allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: ["y"] }] }] }),
    ],
    want: "b",
  },
  {
    name: "a claim for which a node was chosen is bound to no other node",
    wanted: using(claimed("data")),
    objects: [
      claim("data", slow, { metadata: { annotations: { "volume.kubernetes.io/selected-node": "b" } } }),
      storageClass("slow"),
    ],
    want: "b",
  },
  {
    name: "the published capacity of a driver limits provisioning",
    wanted: using(claimed("data")),
    objects: [
      claim("data", slow),
      storageClass("slow"),
      [csiDrivers, { metadata: { name: "example.com/disk" }, spec: { storageCapacity: true } } as KubeObject],
      [
        csiStorageCapacities,
        {
          metadata: { name: "y", namespace: "default" },
          storageClassName: "slow",
          capacity: "2Gi",
          nodeTopology: { matchLabels: { [zone]: "y" } },
        } as KubeObject,
      ],
    ],
    want: "b",
  },
  {
    name: "no node with enough capacity rejects the pod",
    wanted: using(claimed("data")),
    objects: [
      claim("data", slow),
      storageClass("slow"),
      [csiDrivers, { metadata: { name: "example.com/disk" }, spec: { storageCapacity: true } } as KubeObject],
    ],
    want: no("node(s) did not have enough free storage"),
  },
  {
    name: "a volume's zone labels hold, one of several zones is enough",
    wanted: using(claimed("data")),
    objects: [bound("data", "pv"), volume("pv", {}, { [zone]: "y__z" })],
    want: "b",
  },
  {
    name: "a volume of another zone rejects the pod",
    wanted: using(claimed("data")),
    objects: [bound("data", "pv"), volume("pv", {}, { [zone]: "z" })],
    want: no("node(s) had no available volume zone"),
  },
  {
    name: "a ReadWriteOncePod claim in use rejects the pod",
    wanted: using(claimed("data")),
    objects: [bound("data", "pv", { accessModes: ["ReadWriteOncePod"] }), volume("pv", { accessModes: ["ReadWriteOncePod"] })],
    gates: { ReadWriteOncePod: true },
    want: no("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"),
  },
] as { name: string; wanted: Pod; objects: Stored[]; want: string; gates?: Record<string, boolean> }[]) {
  test(`volumes: ${name}`, async () => {
    const pods = [aTestPod("old", { on: "a", cpu: "10m", spec: { volumes: [{ name: "v", ...claimed("data") }] as Volume[] } })];
    const cluster = newTestCluster({ nodes, objects, gates, pods: gates["ReadWriteOncePod"] ? pods : [] });
    assert.equal(await cluster.place(wanted), want);
  });
}

test("volumes: a claim of the same name in another namespace is another one", async () => {
  const volumes = [{ name: "v", ...claimed("data") }] as Volume[];
  const once = { accessModes: ["ReadWriteOncePod"] };
  const cluster = newTestCluster({
    nodes,
    objects: [bound("data", "pv", once), volume("pv", once)],
    gates: { ReadWriteOncePod: true },
    pods: [aTestPod("old", { on: "b", namespace: "other", cpu: "10m", spec: { volumes } })],
  });
  assert.equal(await cluster.place(using(claimed("data"))), "a");
});

test("volumes: the zone of the second claim's volume counts though the first claim is unbound", async () => {
  const objects = [claim("new", slow), storageClass("slow"), bound("data", "pv"), volume("pv", {}, { [zone]: "y" })];
  assert.equal(await newTestCluster({ nodes, objects }).place(using(claimed("new"), claimed("data"))), "b");
});

test("volumes: one unbound claim with immediate binding rejects the pod", async () => {
  const fast = { storageClassName: "fast" };
  const classes = [storageClass("slow"), storageClass("fast", { volumeBindingMode: "Immediate" })];
  const objects = [claim("late", slow), claim("data", fast), ...classes];
  const want = no("pod has unbound immediate PersistentVolumeClaims");
  assert.equal(await newTestCluster({ nodes, objects }).place(using(claimed("late"), claimed("data"))), want);
});

test("volumes: a class without a binding mode fails the pod", async () => {
  const unset = { volumeBindingMode: undefined };
  const objects = [claim("data", slow), storageClass("slow", unset)];
  await assert.rejects(
    newTestCluster({ nodes, objects }).place(using(claimed("data"))),
    /VolumeBindingMode not set for StorageClass "slow"/,
  );
});

test("volumes: nodes without zone labels accept volumes of any zone", async () => {
  const objects = [bound("data", "pv"), volume("pv", {}, { [zone]: "z" })];
  assert.equal(await newTestCluster({ nodes: [aTestNode("a")], objects }).place(using(claimed("data"))), "a");
});

for (const { plugins, gates, want } of [
  { plugins: "kubernetes.io/gce-pd,kubernetes.io/aws-ebs", gates: {}, want: "a" },
  { plugins: "kubernetes.io/gce-pd", gates: {}, want: "b" },
  { plugins: "kubernetes.io/aws-ebs", gates: { CSIMigrationAWS: false }, want: "b" },
]) {
  test(`volumes: where ${plugins} moved to CSI ${JSON.stringify(gates)} an EBS disk leads to its driver's zone on ${want}`, async () => {
    const driverZone = "topology.ebs.csi.aws.com/zone";
    // Node a is in the volume's zone by the label of the CSI driver, node b by the label of the in-tree plugin.
    const two = [
      aTestNode("a", { labels: { [driverZone]: "x" } }),
      aTestNode("b", { labels: { [zone]: "x", [driverZone]: "y" } }),
    ];
    const inZone = { nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: "In", values: ["x"] }] }] };
    const objects = [
      bound("data", "pv"),
      volume("pv", { awsElasticBlockStore: { volumeID: "v" }, nodeAffinity: { required: inZone } }),
      ...["a", "b"].map((name): Stored => {
        const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": plugins };
        return [csiNodes, { metadata: { name, annotations }, spec: { drivers: [] } } as KubeObject];
      }),
    ];
    assert.equal(await newTestCluster({ nodes: two, objects, gates }).place(using(claimed("data"))), want);
  });
}

const gce = (pdName: string, readOnly = false): object => ({ gcePersistentDisk: { pdName, readOnly } });
const rbd = (monitors: string[], image: string): object => ({ rbd: { monitors, image } });

for (const { name, wanted, there, want } of [
  { name: "one GCE disk, written twice", wanted: gce("d"), there: gce("d"), want: "b" },
  { name: "one GCE disk, read only by the one that is there", wanted: gce("d"), there: gce("d", true), want: "b" },
  { name: "one GCE disk, read only by the new one", wanted: gce("d", true), there: gce("d"), want: "b" },
  { name: "one GCE disk, only read", wanted: gce("d", true), there: gce("d", true), want: "a" },
  {
    name: "one EBS volume, even only read",
    wanted: { awsElasticBlockStore: { volumeID: "d", readOnly: true } },
    there: { awsElasticBlockStore: { volumeID: "d", readOnly: true } },
    want: "b",
  },
  { name: "two disks", wanted: gce("d"), there: gce("e"), want: "a" },
  { name: "one iSCSI target", wanted: { iscsi: { iqn: "i" } }, there: { iscsi: { iqn: "i" } }, want: "b" },
  { name: "one RBD image by a shared monitor", wanted: rbd(["1", "2"], "i"), there: rbd(["2"], "i"), want: "b" },
  { name: "two RBD images of one pool", wanted: rbd(["1"], "i"), there: rbd(["1"], "j"), want: "a" },
  {
    name: "RBD images of one name in two pools",
    wanted: { rbd: { monitors: ["1"], image: "i", pool: "p" } },
    there: rbd(["1"], "i"),
    want: "a",
  },
  {
    name: "one RBD image of the default pool",
    wanted: { rbd: { monitors: ["1"], image: "i", pool: "rbd" } },
    there: rbd(["1"], "i"),
    want: "b",
  },
  { name: "RBD images of other monitors", wanted: rbd(["1"], "i"), there: rbd(["2"], "i"), want: "a" },
]) {
  test(`shared disks: ${name}`, async () => {
    const two = [aTestNode("a"), aTestNode("b", { cpu: "2" })];
    const there_ = aTestPod("old", { on: "a", cpu: "10m", spec: { volumes: [{ name: "v", ...there }] as Volume[] } });
    assert.equal(await newTestCluster({ nodes: two, pods: [there_] }).place(using(wanted)), want);
  });
}

test("shared disks: a pod that writes one and reads it by a second volume does not only read it", async () => {
  const volumes = [gce("d"), gce("d", true)].map((source, i) => ({ name: `v${i}`, ...source })) as Volume[];
  const there = aTestPod("old", { on: "a", cpu: "10m", spec: { volumes: volumes.slice(1) } });
  const cluster = newTestCluster({ nodes: [aTestNode("a"), aTestNode("b", { cpu: "2" })], pods: [there] });
  assert.equal(await cluster.place(aTestPod("new", { spec: { volumes } })), "b");
});

const limited = (allocatable: Record<string, string>) => {
  const node = aTestNode("a");
  return { ...node, status: { ...node.status, allocatable: { ...node.status?.allocatable, ...allocatable } } };
};
const ebs = (volumeID: string): object => ({ awsElasticBlockStore: { volumeID } });
const csi = (name: string): object => ({ csi: { driver: "d.example.com", volumeHandle: name } });
const driverOn = (count: number): Stored => [
  csiNodes,
  { metadata: { name: "a" }, spec: { drivers: [{ name: "d.example.com", nodeID: "a", allocatable: { count } }] } } as KubeObject,
];
const migratedOn = (plugin: string, driver: string, count: number): Stored => [
  csiNodes,
  {
    metadata: { name: "a", annotations: { "storage.alpha.kubernetes.io/migrated-plugins": plugin } },
    spec: { drivers: [{ name: driver, nodeID: "a", allocatable: { count } }] },
  } as KubeObject,
];
const exceeded = "0/1 nodes are available: 1 node(s) exceed max volume count.";
const many = (count: number): object[] => Array.from({ length: count }, (_, i) => ebs(`vol-${i}`));

for (const { name, node, wanted, there = [], objects = [], want, gates = {} } of [
  { name: "39 EBS volumes fit", node: aTestNode("a"), wanted: using(...many(39)), want: "a" },
  { name: "40 do not", node: aTestNode("a"), wanted: using(...many(40)), want: exceeded },
  ...[16, 17].flatMap((count) => {
    const want = count === 16 ? "a" : exceeded;
    const names = Array.from({ length: count }, (_, i) => `d${i}`);
    return [
      { name: `${count} GCE disks`, node: aTestNode("a"), wanted: using(...names.map((name) => gce(name))), want },
      {
        name: `${count} Azure disks`,
        node: aTestNode("a"),
        wanted: using(...names.map((diskName) => ({ azureDisk: { diskName, diskURI: diskName } }))),
        want,
      },
    ];
  }),
  ...["c5.large", "m5.large", "r5.large", "t3.small", "z1d.large"].map((type) => ({
    name: `a node of the newer type ${type} attaches 25`,
    node: aTestNode("a", { labels: { "node.kubernetes.io/instance-type": type } }),
    wanted: using(...many(26)),
    want: exceeded,
  })),
  {
    name: "a node of a newer type by the former label attaches 25",
    node: aTestNode("a", { labels: { "beta.kubernetes.io/instance-type": "t3.small" } }),
    wanted: using(...many(26)),
    want: exceeded,
  },
  {
    name: "EBS volumes of a node whose disks a CSI driver attaches have no limit of the in-tree plugin",
    node: limited({ "attachable-volumes-aws-ebs": "1" }),
    wanted: using(...many(2)),
    objects: [migratedOn("kubernetes.io/aws-ebs", "ebs.csi.aws.com", 1)],
    want: "a",
  },
  {
    name: "EBS volumes that are to be provisioned count, each",
    node: limited({ "attachable-volumes-aws-ebs": "1" }),
    wanted: using(claimed("one"), claimed("two")),
    objects: [claim("one", slow), claim("two", slow), storageClass("slow", { provisioner: "kubernetes.io/aws-ebs" })],
    want: exceeded,
  },
  {
    name: "CSI volumes that are to be provisioned count, each",
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [claim("one", slow), claim("two", slow), storageClass("slow", { provisioner: "d.example.com" }), driverOn(1)],
    want: exceeded,
  },
  ...[
    {
      name: "in-tree disks that are to be provisioned count for the driver that has taken them over",
      on: "kubernetes.io/aws-ebs",
    },
    { name: "in-tree disks that are to be provisioned do not count for a driver that has not taken them over", on: "" },
  ].map(({ name, on }) => ({
    name,
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [
      ...[claim("one", slow), claim("two", slow), storageClass("slow", { provisioner: "kubernetes.io/aws-ebs" })],
      migratedOn(on, "ebs.csi.aws.com", 1),
    ],
    want: on === "" ? "a" : exceeded,
  })),
  {
    name: "volumes of a driver that reports no limit are not limited beside one that does",
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [
      ...[bound("one", "pv1"), bound("two", "pv2"), driverOn(1)],
      ...["1", "2"].map((n) => volume(`pv${n}`, { csi: { driver: "free.example.com", volumeHandle: n } })),
    ],
    want: "a",
  },
  {
    name: "the node's own limit takes precedence over that of its type",
    node: limited({ "attachable-volumes-aws-ebs": "1" }),
    wanted: using(...many(2)),
    want: exceeded,
  },
  {
    name: "a volume that is attached already is not counted twice",
    node: limited({ "attachable-volumes-aws-ebs": "1" }),
    wanted: using(ebs("vol-0")),
    there: [ebs("vol-0")],
    want: "exclusive",
  },
  {
    name: "CSI volumes up to the driver's limit fit",
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [bound("one", "pv1"), bound("two", "pv2"), volume("pv1", csi("1")), volume("pv2", csi("2")), driverOn(2)],
    want: "a",
  },
  {
    name: "CSI volumes above the driver's limit do not fit",
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [bound("one", "pv1"), bound("two", "pv2"), volume("pv1", csi("1")), volume("pv2", csi("2")), driverOn(1)],
    want: exceeded,
  },
  {
    name: "a driver may have a limit of nothing",
    node: aTestNode("a"),
    wanted: using(claimed("one")),
    objects: [bound("one", "pv1"), volume("pv1", csi("1")), driverOn(0)],
    want: exceeded,
  },
  {
    name: "the limit of the second driver of a node counts",
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [
      ...[bound("one", "pv1"), bound("two", "pv2"), volume("pv1", csi("1")), volume("pv2", csi("2"))],
      [
        csiNodes,
        {
          metadata: { name: "a" },
          spec: {
            drivers: [
              { name: "other.example.com", nodeID: "a", allocatable: { count: 9 } },
              { name: "d.example.com", nodeID: "a", allocatable: { count: 1 } },
            ],
          },
        } as KubeObject,
      ] as Stored,
    ],
    want: exceeded,
  },
  {
    name: "a CSI volume that is attached already is not counted twice",
    node: aTestNode("a"),
    wanted: using(claimed("one")),
    there: [claimed("one")],
    objects: [bound("one", "pv1"), volume("pv1", csi("1")), driverOn(1)],
    want: "a",
  },
  {
    name: "a CSI volume attached to a node above its limit fits there",
    node: aTestNode("a"),
    wanted: using(claimed("one")),
    there: [claimed("one"), claimed("two")],
    objects: [bound("one", "pv1"), bound("two", "pv2"), volume("pv1", csi("1")), volume("pv2", csi("2")), driverOn(1)],
    want: "a",
  },
  {
    name: "a running pod whose claim was deleted does not count",
    node: aTestNode("a"),
    wanted: using(claimed("one")),
    there: [claimed("gone"), claimed("two")],
    objects: [bound("one", "pv1"), bound("two", "pv2"), volume("pv1", csi("1")), volume("pv2", csi("2")), driverOn(2)],
    want: "a",
  },
  ...[
    { name: "an image of Ceph counts for the driver that has taken it over", csiMigrationRBD: true, want: exceeded },
    { name: "a Ceph image without a driver is not limited", csiMigrationRBD: false, want: "a" },
  ].map(({ name, csiMigrationRBD, want }) => ({
    name,
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [
      bound("one", "pv1"),
      bound("two", "pv2"),
      volume("pv1", rbd(["1"], "i")),
      volume("pv2", rbd(["1"], "j")),
      migratedOn("kubernetes.io/rbd", "rbd.csi.ceph.com", 1),
    ],
    gates: { csiMigrationRBD },
    want,
  })),
  {
    name: "one disk counts once, whether in-tree or migrated",
    node: aTestNode("a"),
    wanted: using(claimed("one"), claimed("two")),
    objects: [
      bound("one", "pv1"),
      bound("two", "pv2"),
      volume("pv1", ebs("aws://z/vol-1")),
      volume("pv2", { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" } }),
      migratedOn("kubernetes.io/aws-ebs", "ebs.csi.aws.com", 1),
    ],
    want: "a",
  },
] as {
  name: string;
  node: ReturnType<typeof aTestNode>;
  wanted: Pod;
  there?: object[];
  objects?: Stored[];
  want: string;
  gates?: Record<string, boolean>;
}[]) {
  test(`volume limits: ${name}`, async () => {
    const old = aTestPod("old", {
      on: "a",
      cpu: "10m",
      spec: { volumes: there.map((v, i) => ({ name: `v${i}`, ...v })) as Volume[] },
    });
    const cluster = newTestCluster({ nodes: [node], pods: there.length > 0 ? [old] : [], objects, gates });
    // The limit allows it, but VolumeRestrictions rejects sharing such a disk.
    const expected = want === "exclusive" ? "0/1 nodes are available: 1 node(s) had no available disk." : want;
    assert.equal(await cluster.place(wanted), expected);
  });
}

test("volume limits: the other kinds of disks have separate limits", () => {
  for (const [plugin, disk, most] of [
    ["GCEPDLimits", (pdName: string) => ({ gcePersistentDisk: { pdName } }), 16],
    ["AzureDiskLimits", (diskName: string) => ({ azureDisk: { diskName, diskURI: diskName } }), 16],
    ["CinderLimits", (volumeID: string) => ({ cinder: { volumeID } }), 256],
  ] as const) {
    const { filter } = newDiskLimits({ informers: noObjects, gates: { enabled: () => false } }, plugin);
    const fits = (count: number): boolean => {
      const pod = newPodInfo(using(...Array.from({ length: count }, (_, i) => disk(`d${i}`))));
      return filter?.(new Map(), pod, newNodeInfo(aTestNode("a"))) === undefined;
    };
    assert.deepEqual([fits(most), fits(most + 1)], [true, false], plugin);
  }
});

for (const { name, make } of [
  { name: "NodeVolumeLimits", make: newNodeVolumeLimits },
  { name: "EBSLimits", make: (context: Parameters<typeof newDiskLimits>[0]) => newDiskLimits(context, "EBSLimits") },
]) {
  test(`${name} fails a new pod whose claim is missing or has no name, but not for the claims of a running one`, () => {
    const plugin = make({ informers: noObjects, gates: { enabled: () => false } });
    const reasons = (wanted: Pod, ...there: Pod[]) => {
      const node = newNodeInfo(aTestNode("a"));
      for (const pod of there) addPod(node, newPodInfo(pod));
      return plugin.filter?.(new Map(), newPodInfo(wanted), node);
    };
    const missing = 'looking up PVC default/data: persistentvolumeclaim "data" not found';
    assert.deepEqual(reasons(using({ emptyDir: {} }, claimed("data"))), { code: "Error", reasons: [missing] });
    assert.deepEqual(reasons(using(claimed(""))), { code: "Error", reasons: ["PersistentVolumeClaim had no name"] });
    assert.equal(reasons(using(ebs("vol-1")), using(claimed("data"))), undefined);
  });
}

test("KUBE_MAX_PD_VOLS replaces the limits of the plugins, if it is a positive number", (t) => {
  const before = process.env["KUBE_MAX_PD_VOLS"];
  t.after(() => {
    if (before === undefined) delete process.env["KUBE_MAX_PD_VOLS"];
    else process.env["KUBE_MAX_PD_VOLS"] = before;
  });
  const fits = (value: string, count: number): boolean => {
    process.env["KUBE_MAX_PD_VOLS"] = value;
    const { filter } = newDiskLimits({ informers: noObjects, gates: { enabled: () => false } }, "GCEPDLimits");
    const pod = newPodInfo(using(...Array.from({ length: count }, (_, i) => gce(`d${i}`))));
    return filter?.(new Map(), pod, newNodeInfo(aTestNode("a"))) === undefined;
  };
  assert.deepEqual([fits("2", 2), fits("2", 3)], [true, false]);
  for (const value of ["0", "-1", "many"]) assert.deepEqual([fits(value, 16), fits(value, 17)], [true, false], value);
});

test("with ReadWriteOncePod a claim that is not there rejects the pod", () => {
  const context = { informers: noObjects, gates: { enabled: () => true } };
  const { preFilter } = newVolumeRestrictions(context);
  const status = preFilter?.(new Map(), newPodInfo(using(claimed("data"))), newTestCluster().snapshot());
  assert.deepEqual(status, { code: "UnschedulableAndUnresolvable", reasons: ['persistentvolumeclaim "data" not found'] });
});

test("with ReadWriteOncePod a claim behind a volume of another kind is looked at", () => {
  const { preFilter } = newVolumeRestrictions({ informers: noObjects, gates: { enabled: () => true } });
  const snapshot = newTestCluster().snapshot();
  assert.equal(preFilter?.(new Map(), newPodInfo(using({ emptyDir: {} })), snapshot), undefined);
  assert.deepEqual(preFilter?.(new Map(), newPodInfo(using({ emptyDir: {} }, claimed("data"))), snapshot), {
    code: "UnschedulableAndUnresolvable",
    reasons: ['persistentvolumeclaim "data" not found'],
  });
});

test("a long driver name has a short limit", () => {
  assert.equal(csiLimitKey("d.example.com"), "attachable-volumes-csi-d.example.com");
  const long = csiLimitKey("a-driver-with-a-very-long-name.csi.storage.example.com");
  assert.match(long, /^attachable-volumes-csi-a-driver-with-a-very-lo[0-9a-f]{16}$/);
  assert.equal(csiLimitKey("d".repeat(39)), `attachable-volumes-csi-${"d".repeat(39)}`);
  assert.match(csiLimitKey("d".repeat(40)), /^attachable-volumes-csi-d{23}[0-9a-f]{16}$/);
});
