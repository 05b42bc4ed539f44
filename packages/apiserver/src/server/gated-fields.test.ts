/** Fields of feature gates, as clients see them from a server whose gates are on, and from one on the same etcd whose gates are off. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const inDefault = (group: string, resource: string): string => `${group}/namespaces/default/${resource}`;
const labels = { a: "b" };
const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
const workload = { selector: { matchLabels: labels }, template };
const policy = {
  seLinux: { rule: "RunAsAny" },
  supplementalGroups: { rule: "RunAsAny" },
  runAsUser: { rule: "RunAsAny" },
  fsGroup: { rule: "RunAsAny" },
  volumes: ["csi"],
};

/** `plain` is a valid object; `gated` adds fields of the gate, as a merge patch. `off`: what is left of them, where that is not what a plain object has. */
const rows: readonly Row[] = [
  {
    gate: "IdentifyPodOS",
    path: inDefault("/api/v1", "podtemplates"),
    plain: { template },
    gated: { template: { spec: { os: { name: "linux" } } } },
  },
  {
    gate: "PodOverhead",
    path: inDefault("/api/v1", "podtemplates"),
    plain: { template },
    gated: { template: { spec: { overhead: { cpu: "1" } } } },
  },
  {
    gate: "ProcMountType",
    path: inDefault("/apis/apps/v1", "deployments"),
    plain: { spec: workload },
    gated: {
      spec: { template: { spec: { containers: [{ name: "c", image: "i", securityContext: { procMount: "Unmasked" } }] } } },
    },
    off: {
      spec: { template: { spec: { containers: [{ name: "c", image: "i", securityContext: { procMount: "Default" } }] } } },
    },
  },
  ...(
    [
      ["ServiceInternalTrafficPolicy", "ClusterIP", { internalTrafficPolicy: "Local" }],
      ["ServiceLBNodePortControl", "LoadBalancer", { allocateLoadBalancerNodePorts: false }],
      ["ServiceLoadBalancerClass", "LoadBalancer", { loadBalancerClass: "example.com/own" }],
    ] as const
  ).map(([gate, type, spec]) => ({
    gate,
    path: inDefault("/api/v1", "services"),
    plain: { spec: { type, ports: [{ port: 80 }] } },
    gated: { spec },
  })),
  {
    gate: "EndpointSliceTerminatingCondition",
    path: inDefault("/apis/discovery.k8s.io/v1", "endpointslices"),
    plain: { addressType: "IPv4", endpoints: [{ addresses: ["10.1.1.1"] }] },
    gated: { endpoints: [{ addresses: ["10.1.1.1"], conditions: { serving: true, terminating: false } }] },
  },
  {
    gate: "TopologyAwareHints",
    path: inDefault("/apis/discovery.k8s.io/v1", "endpointslices"),
    plain: { addressType: "IPv4", endpoints: [{ addresses: ["10.1.1.1"] }] },
    gated: { endpoints: [{ addresses: ["10.1.1.1"], conditions: {}, hints: { forZones: [{ name: "z" }] } }] },
  },
  {
    gate: "NetworkPolicyEndPort",
    path: inDefault("/apis/networking.k8s.io/v1", "networkpolicies"),
    plain: { spec: { podSelector: {}, ingress: [{ ports: [{ port: 1 }] }], egress: [{ ports: [{ port: 1 }] }] } },
    gated: {
      spec: {
        ingress: [{ ports: [{ protocol: "TCP", port: 1, endPort: 2 }] }],
        egress: [{ ports: [{ protocol: "TCP", port: 1, endPort: 2 }] }],
      },
    },
  },
  {
    gate: "DaemonSetUpdateSurge",
    path: inDefault("/apis/apps/v1", "daemonsets"),
    plain: { spec: workload },
    gated: { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } } },
    refused: "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
  },
  {
    gate: "StatefulSetMinReadySeconds",
    path: inDefault("/apis/apps/v1", "statefulsets"),
    plain: { spec: workload },
    gated: { spec: { minReadySeconds: 5 } },
  },
  {
    gate: "StatefulSetAutoDeletePVC",
    path: inDefault("/apis/apps/v1", "statefulsets"),
    plain: { spec: workload },
    gated: { spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" } } },
  },
  {
    gate: "IndexedJob",
    path: inDefault("/apis/batch/v1", "jobs"),
    plain: { spec: { completions: 1, template: { spec: { ...template.spec, restartPolicy: "Never" } } } },
    gated: { spec: { completionMode: "Indexed" } },
  },
  {
    gate: "HPAContainerMetrics",
    path: inDefault("/apis/autoscaling/v2", "horizontalpodautoscalers"),
    plain: { spec: { maxReplicas: 2, scaleTargetRef: { kind: "Deployment", name: "d", apiVersion: "apps/v1" } } },
    gated: {
      spec: {
        metrics: [
          {
            type: "ContainerResource",
            containerResource: { name: "cpu", container: "c", target: { type: "Utilization", averageUtilization: 50 } },
          },
        ],
      },
    },
    refused: "spec.metrics[0].containerResource: Required value",
  },
  {
    gate: "CSIStorageCapacity",
    path: "/apis/storage.k8s.io/v1/csidrivers",
    plain: { spec: {} },
    gated: { spec: { storageCapacity: true } },
  },
  {
    gate: "CSIInlineVolume",
    path: "/apis/storage.k8s.io/v1/csidrivers",
    plain: { spec: {} },
    gated: { spec: { volumeLifecycleModes: ["Ephemeral"] } },
  },
  {
    gate: "ExpandPersistentVolumes",
    path: "/apis/storage.k8s.io/v1/storageclasses",
    plain: { provisioner: "example.com/disk" },
    gated: { allowVolumeExpansion: true },
  },
  {
    gate: "NonPreemptingPriority",
    path: "/apis/scheduling.k8s.io/v1/priorityclasses",
    plain: { value: 5 },
    gated: { preemptionPolicy: "Never" },
  },
  {
    gate: "ExpandCSIVolumes",
    path: "/api/v1/persistentvolumes",
    plain: {
      spec: { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, csi: { driver: "d.example.com", volumeHandle: "h" } },
    },
    gated: { spec: { csi: { controllerExpandSecretRef: { name: "s", namespace: "default" } } } },
  },
  {
    gate: "CSIInlineVolume",
    path: "/apis/policy/v1beta1/podsecuritypolicies",
    plain: { spec: policy },
    gated: { spec: { allowedCSIDrivers: [{ name: "d" }] } },
    always: true,
  },
];

interface Row {
  readonly gate: string;
  readonly path: string;
  readonly plain: object;
  readonly gated: object;
  readonly off?: object;
  /** The object is invalid without the field. */
  readonly refused?: string;
  /** Also dropped from an object that has it. */
  readonly always?: true;
}

const mergePatch = { "content-type": "application/merge-patch+json" };
const gates = [...new Set(rows.map(({ gate }) => gate)), "EphemeralContainers"];
const switched = (to: boolean): string => `--feature-gates=${gates.map((gate) => `${gate}=${to}`).join()}`;

/** What the object has where `shape` has something. */
function picked(object: unknown, shape: unknown): unknown {
  if (shape === null || typeof shape !== "object") return object;
  if (Array.isArray(shape)) return shape.map((item, i) => picked((object as unknown[] | undefined)?.[i], item));
  return Object.fromEntries(
    Object.entries(shape).map(([key, value]) => [key, picked((object as Record<string, unknown> | undefined)?.[key], value)]),
  );
}

test("fields of feature gates", async (t) => {
  const on = await startTestServer(t, [switched(true)]);
  const off = await startTestServer(t, [switched(false), `--etcd-prefix=${on.prefix}`]);

  for (const [i, { gate, path, plain, gated, off: dropped, refused, always }] of rows.entries()) {
    await t.test(`${gate}, ${path}: dropped where the gate is off, unless they are in use`, async () => {
      const [used, unused, fresh] = ["used", "unused", "new"].map((name) => ({ metadata: { name: `${name}-${i}` } }));
      const make = (server: TestServer, object: object) => server.request("POST", path, object);
      const patch = (at: typeof used, change: object) => off.request("PATCH", `${path}/${at!.metadata.name}`, change, mergePatch);
      const stored = await make(on, merged({ ...plain, ...used }, gated));
      assert.equal(stored.code, 201, stored.text);
      assert.deepEqual(picked(stored.body, gated), gated);
      const base = await make(off, { ...plain, ...unused });
      assert.equal(base.code, 201, base.text);
      const without = dropped ?? picked(base.body, gated);
      for (const answer of [await make(off, merged({ ...plain, ...fresh }, gated)), await patch(unused, gated)]) {
        if (refused !== undefined) assert.match(answer.body.message, new RegExp(refused.replaceAll(/[.[\]]/g, "\\$&")));
        else assert.deepEqual(picked(answer.body, gated), without, answer.text);
      }
      const changed = await patch(used, { metadata: { labels } });
      assert.equal(changed.code, 200, changed.text);
      assert.deepEqual(picked(changed.body, gated), always ? without : gated);
    });
  }

  await t.test("EphemeralContainers: without the gate a pod has no such containers, and no subresource for them", async () => {
    const pods = inDefault("/api/v1", "pods");
    const ephemeralContainers = [{ name: "e", image: "i", terminationMessagePolicy: "File", imagePullPolicy: "Always" }];
    const account = { automountServiceAccountToken: false };
    await on.request("POST", inDefault("/api/v1", "serviceaccounts"), { metadata: { name: "default" } });
    const made = await off.request("POST", pods, {
      metadata: { name: "p" },
      spec: { ...template.spec, ...account, ephemeralContainers },
    });
    assert.deepEqual([made.code, made.body.spec?.ephemeralContainers], [201, undefined], made.text);
    const added = (server: TestServer) =>
      server.request("PATCH", `${pods}/p/ephemeralcontainers`, { spec: { ephemeralContainers } }, mergePatch);
    assert.equal((await added(off)).code, 404);
    assert.equal((await added(on)).body.spec.ephemeralContainers.length, 1);
    const labelled = await off.request("PATCH", `${pods}/p`, { metadata: { labels } }, mergePatch);
    assert.equal(labelled.body.spec.ephemeralContainers.length, 1);
  });
});

/** As a merge patch: lists are replaced. */
function merged(object: object, change: object): object {
  const result: Record<string, unknown> = { ...object };
  for (const [key, value] of Object.entries(change)) {
    const old = result[key];
    const isMap = value !== null && typeof value === "object" && !Array.isArray(value);
    result[key] = isMap && old !== undefined ? merged(old as object, value) : value;
  }
  return result;
}
