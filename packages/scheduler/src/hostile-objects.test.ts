import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aTestNode, aTestPod, newTestCluster } from "./testing/test-cluster.ts";

const largest = (2n ** 63n - 1n) as unknown as number;
const withStatus = (node: Node, status: object): Node => ({ ...node, status: { ...node.status, ...status } });
const affinity = (kind: "podAffinity" | "podAntiAffinity", term: object): Pod["spec"]["affinity"] => ({
  [kind]: {
    requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "kubernetes.io/hostname", ...term }],
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 100, podAffinityTerm: { topologyKey: "kubernetes.io/hostname", ...term } },
    ],
  },
});

/** Nodes with malformed status, which a faulty kubelet could write. */
const hostileNodes: Readonly<Record<string, Node>> = {
  "images larger than a number": withStatus(aTestNode("odd"), {
    images: [
      { names: ["busybox:latest", ""], sizeBytes: largest },
      { names: ["busybox:latest"], sizeBytes: -largest },
      { sizeBytes: largest },
    ],
  }),
  "amounts that are no quantities": withStatus(aTestNode("odd"), {
    allocatable: { cpu: "x", memory: "1e400", pods: "-1", "hugepages-2Mi": "", "": "1" },
  }),
  "no status and no spec": { metadata: { name: "odd" } } as Node,
  "labels and taints of nothing": aTestNode("odd", {
    labels: { "": "", "topology.kubernetes.io/zone": "", "topology.kubernetes.io/region": "\u0000" },
    spec: {
      taints: [
        { key: "", effect: "" },
        { key: "x", effect: "NoExecute", timeAdded: "never" },
      ],
      unschedulable: false,
      podCIDRs: [""],
    },
  }),
  "attached volumes without names": withStatus(aTestNode("odd"), {
    volumesAttached: [{}, { name: "^" }],
    volumesInUse: [""],
    conditions: [{}, { type: "Ready", status: "Perhaps" }],
    addresses: [{ address: "" }],
  }),
};

for (const [name, node] of Object.entries(hostileNodes)) {
  test(`a node with ${name} does not prevent pods from using other nodes`, async () => {
    const cluster = newTestCluster({ nodes: [node, aTestNode("good")], pods: [aTestPod("there", { on: "odd" })] });
    for (let i = 0; i < 3; i++) assert.match(await cluster.place(aTestPod(`web${i}`)), /^(good|odd)$/);
    assert.equal(
      await cluster.place(aTestPod("chosen", { spec: { nodeSelector: { "kubernetes.io/hostname": "good" } } })),
      "good",
    );
  });
}

/** Assigned pods with malformed terms, which are evaluated for every later pod. */
const hostilePods: Readonly<Record<string, Pod>> = {
  "a selector of no known operator": aTestPod("odd", {
    on: "good",
    spec: {
      affinity: affinity("podAntiAffinity", { labelSelector: { matchExpressions: [{ key: "a", operator: "Nonsense" }] } }),
    },
  }),
  "terms without selectors and topology": aTestPod("odd", {
    on: "good",
    spec: { affinity: affinity("podAffinity", { topologyKey: "", namespaces: [""], namespaceSelector: {} }) },
  }),
  "requests that are no quantities": aTestPod("odd", { on: "good", cpu: "NaN" }),
  "negative requests": aTestPod("odd", { on: "good", cpu: "-4" }),
  "ports and volumes without contents": aTestPod("odd", {
    on: "good",
    spec: {
      containers: [{ name: "", ports: [{ hostPort: 80, hostIP: "not an address" }, { hostPort: -1 }, {}] }],
      volumes: [{ name: "" }, { name: "e", ephemeral: {} }, { name: "c", csi: { driver: "" } }],
    } as never,
  }),
  "no containers": aTestPod("odd", { on: "good", spec: { containers: [], overhead: { cpu: "x" } } }),
  "a node that is not there": aTestPod("odd", { on: "nowhere" }),
  "numbers of 64 bits": aTestPod("odd", {
    on: "good",
    spec: {
      priority: 2_147_483_647,
      activeDeadlineSeconds: largest,
      terminationGracePeriodSeconds: largest,
      tolerations: [{ operator: "Exists", tolerationSeconds: largest }],
    },
    metadata: { generation: largest, deletionGracePeriodSeconds: largest, creationTimestamp: "never" },
    status: { startTime: "never" },
  }),
};

for (const [name, pod] of Object.entries(hostilePods)) {
  test(`a pod with ${name} prevents neither other pods nor preemption on its node`, async () => {
    const cluster = newTestCluster({ nodes: [aTestNode("good", { cpu: "4" })], pods: [pod] });
    assert.equal(await cluster.place(aTestPod("web", { labels: { app: "web" } })), "good");
    assert.match(await cluster.place(aTestPod("huge", { cpu: "400", priority: 2_000_000_000 })), /Insufficient cpu/);
    const { nodeName: _, ...spec } = pod.spec;
    await cluster.place({ ...pod, metadata: { ...pod.metadata, uid: "again" }, spec }).catch(() => {});
    assert.equal(await cluster.place(aTestPod("next")), "good");
  });
}

/** Malformed incoming pods: each gets a node or a reason, and does not affect the next pod. */
const wanting: Readonly<Record<string, { readonly want: string; readonly spec: object }>> = {
  "node affinity with numbers that are none": {
    want: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
    spec: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "Gt", values: ["many"] }] }, {}],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: -1, preference: {} }],
        },
      },
    },
  },
  "spreading over nothing": {
    want: "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label).",
    spec: {
      topologySpreadConstraints: [
        { maxSkew: 0, topologyKey: "", whenUnsatisfiable: "Nonsense" },
        {
          maxSkew: 2_147_483_647,
          topologyKey: "zone",
          whenUnsatisfiable: "DoNotSchedule",
          labelSelector: { matchLabels: { a: "b" } },
        },
      ],
    },
  },
  "claims that are nowhere": {
    want: '0/1 nodes are available: 1 persistentvolumeclaim "" not found.',
    spec: { volumes: [{ name: "x", persistentVolumeClaim: { claimName: "" } }] },
  },
  "tolerations of nothing": { want: "good", spec: { tolerations: [{}, { operator: "Nonsense", effect: "x" }] } },
  "a nominated node and a name that are not there": {
    want: "good",
    spec: { nodeName: "", priority: -2_147_483_648, preemptionPolicy: "Nonsense" },
  },
};

for (const [name, { want, spec }] of Object.entries(wanting)) {
  test(`a pod with ${name} gets a place or a reason`, async () => {
    const cluster = newTestCluster({ nodes: [aTestNode("good")] });
    assert.equal(await cluster.place(aTestPod("odd", { spec: spec })), want);
    assert.equal(await cluster.place(aTestPod("next")), "good");
  });
}
