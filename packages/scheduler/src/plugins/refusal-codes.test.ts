/** Whether preemption may help against a refusal: it is tried on nodes with the code Unschedulable only. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { FitError } from "../framework/status.ts";
import { aTestNode, aTestPod, type NodeOptions, newTestCluster, type TestPodOptions } from "../testing/test-cluster.ts";

const hostname = "kubernetes.io/hostname";
const zone = "topology.kubernetes.io/zone";
const near = (app: string) => [{ topologyKey: hostname, labelSelector: { matchLabels: { app } } }];
const affine = (kind: "podAffinity" | "podAntiAffinity", app: string): TestPodOptions => ({
  spec: { affinity: { [kind]: { requiredDuringSchedulingIgnoredDuringExecution: near(app) } } },
});
const web = { app: "web" };
const spread = (topologyKey: string): TestPodOptions => ({
  labels: web,
  spec: {
    topologySpreadConstraints: [
      { topologyKey, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule", labelSelector: { matchLabels: web } },
    ],
  },
});
const withVolumes = (...volumes: object[]): TestPodOptions => ({
  spec: { volumes: volumes.map((volume, i) => ({ name: `v${i}`, ...volume })) as Volume[] },
});
const disk = withVolumes({ gcePersistentDisk: { pdName: "disk" } });
const claimed = withVolumes({ persistentVolumeClaim: { claimName: "data" } });
const onPort: TestPodOptions = { spec: { containers: [{ name: "c", ports: [{ containerPort: 80, hostPort: 80 }] }] } };
const ofClaim = (volume: object): (readonly [ResourceRef, KubeObject])[] => [
  [
    persistentVolumeClaims,
    {
      metadata: { name: "data", namespace: "default", annotations: { "pv.kubernetes.io/bind-completed": "yes" } },
      spec: { volumeName: "pv" },
    } as KubeObject,
  ],
  [persistentVolumes, { metadata: { name: "pv" }, spec: {}, ...volume } as KubeObject],
];
const elsewhere = {
  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "no", operator: "Exists" }] }] } },
};

for (const [plugin, mayHelp, pod, { node = {}, there, objects = [] } = {}] of [
  ["NodeName", false, { spec: { nodeName: "other" } }],
  ["NodeUnschedulable", false, {}, { node: { spec: { unschedulable: true } } }],
  ["NodeAffinity", false, { spec: { nodeSelector: { disk: "ssd" } } }],
  ["TaintToleration", false, {}, { node: { spec: { taints: [{ key: "k", effect: "NoSchedule" }] } } }],
  ["NodeResourcesFit", true, { cpu: "5" }],
  ["NodePorts", true, onPort, { there: onPort }],
  ["InterPodAffinity", false, affine("podAffinity", "db")],
  ["InterPodAffinity", true, affine("podAntiAffinity", "web"), { there: { labels: web } }],
  ["InterPodAffinity", true, { labels: web }, { there: affine("podAntiAffinity", "web") }],
  ["PodTopologySpread", false, spread("rack")],
  ["PodTopologySpread", true, spread(hostname), { there: { labels: web } }],
  ["VolumeRestrictions", true, disk, { there: disk }],
  [
    "VolumeZone",
    false,
    claimed,
    { node: { labels: { [zone]: "x" } }, objects: ofClaim({ metadata: { name: "pv", labels: { [zone]: "y" } } }) },
  ],
  ["VolumeBinding", false, claimed],
  ["VolumeBinding", false, claimed, { objects: ofClaim({ spec: elsewhere }) }],
] as [
  plugin: string,
  mayHelp: boolean,
  pod: TestPodOptions,
  { node?: NodeOptions; there?: TestPodOptions; objects?: ReturnType<typeof ofClaim> }?,
][]) {
  test(`preemption ${mayHelp ? "may" : "cannot"} help a pod that ${plugin} refuses: ${JSON.stringify(pod)}`, async () => {
    // Another node keeps a skew possible.
    const empty = aTestNode("empty", { spec: { taints: [{ key: "never", effect: "NoSchedule" }] } });
    const present: Pod[] = there === undefined ? [] : [aTestPod("there", { on: "a", cpu: "0", ...there })];
    const cluster = newTestCluster({ nodes: [aTestNode("a", node), empty], pods: present, objects });
    await assert.rejects(cluster.decide(aTestPod("new", pod)), (err) => {
      assert.ok(err instanceof FitError);
      const status = err.statuses.get("a");
      const code = mayHelp ? "Unschedulable" : "UnschedulableAndUnresolvable";
      assert.deepEqual([status?.plugin, status?.code], [plugin, code]);
      return true;
    });
  });
}
