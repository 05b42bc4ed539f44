/** Cells of the tables of each kind. Source: pkg/printers/internalversion/printers.go */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { resourcesForTests } from "../testing/kind-rules.ts";
import { smallestObjects } from "../testing/smallest-objects.ts";
import { agesAt } from "./generic/ages.ts";

const ages = agesAt(Date.parse("2022-01-01T02:00:00Z"));
const old = "120m";

function cellsOf(resource: string, { metadata, ...rest }: { metadata?: object }): readonly unknown[] {
  const definition = resourcesForTests.find(
    (one) => (one.group === "" ? one.resource : `${one.resource}.${one.group}`) === resource,
  );
  assert.ok(definition, `no resource ${resource}`);
  const object = { metadata: { name: "x", creationTimestamp: "2022-01-01T00:00:00Z", ...metadata }, ...rest } as Unstructured;
  return definition.table.cells(object, ages);
}

for (const { resource, group, table } of resourcesForTests) {
  test(`${resource}.${group}: a row has one cell for each column, of an object with an empty spec too`, () => {
    for (const object of [smallestObjects[resource] ?? {}, { spec: {} }]) {
      const cells = table.cells({ metadata: { name: "x" }, ...structuredClone(object) } as Unstructured, ages);
      assert.equal(cells.length, table.columns.length);
      assert.ok(!cells.includes(undefined));
    }
  });
}

const template = (more: object = {}): object => ({
  spec: {
    containers: [
      { name: "c", image: "i" },
      { name: "d", image: "j" },
    ],
    ...more,
  },
});
const selector = { matchLabels: { b: "2" }, matchExpressions: [{ key: "a", operator: "In", values: ["y", "x"] }] };
const hpa = "horizontalpodautoscalers.autoscaling";
const scaled = (metrics: object[], currentMetrics: object[] = [], more: object = {}): object => ({
  spec: { scaleTargetRef: { kind: "Deployment", name: "d" }, maxReplicas: 3, metrics, ...more },
  status: { currentReplicas: 2, currentMetrics },
});
const cpu = (target: object): object => ({ type: "Resource", resource: { name: "cpu", target } });
const usage = (current: object): object => ({ type: "Resource", resource: { name: "cpu", current } });
const claims = "persistentvolumeclaims";
const csr = "certificatesigningrequests.certificates.k8s.io";
const decided = (...types: string[]): object[] => types.map((type) => ({ type, status: "True" }));

for (const { resource, object, want, from = 1 } of [
  { resource: hpa, object: scaled([]), want: ["Deployment/d", "<none>", "<unset>", 3, 2, old] },
  {
    resource: hpa,
    object: scaled([cpu({ averageUtilization: 50 }), cpu({ averageValue: "1" })], [usage({ averageUtilization: 20 })], {
      minReplicas: 0,
    }),
    want: ["Deployment/d", "20%/50%, <unknown>/1", "0", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled(
      [cpu({ averageUtilization: 50 }), cpu({ averageUtilization: 60 })],
      [20, 30].map((averageUtilization) => usage({ averageUtilization })),
    ),
    want: ["Deployment/d", "20%/50%, 30%/60%", "<unset>", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled([
      { type: "External", external: { target: { value: "9" } } },
      { type: "Object", object: { target: { averageValue: "5" } } },
      cpu({}),
      { type: "Pods", pods: { target: { averageValue: "4" } } },
    ]),
    want: ["Deployment/d", "<unknown>/9, <unknown>/5 (avg) + 2 more...", "<unset>", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled(
      [{ type: "Pods", pods: { target: { averageValue: "4" } } }, cpu({})],
      [{ type: "Pods", pods: { current: { averageValue: "3" } } }, usage({ averageUtilization: 0 })],
    ),
    want: ["Deployment/d", "3/4, 0%/<auto>", "<unset>", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled(
      [
        { type: "External", external: { target: { averageValue: "9" } } },
        { type: "External", external: { target: { value: "8" } } },
      ],
      [
        { type: "External", external: { current: { averageValue: "1", value: "x" } } },
        { type: "External", external: { current: { averageValue: "x", value: "2" } } },
      ],
    ),
    want: ["Deployment/d", "1/9 (avg), 2/8", "<unset>", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled(
      [
        { type: "Object", object: { target: { averageValue: "9" } } },
        { type: "Object", object: { target: { value: "8" } } },
      ],
      [
        { type: "Object", object: { current: { averageValue: "1", value: "x" } } },
        { type: "Object", object: { current: { averageValue: "x", value: "2" } } },
      ],
    ),
    want: ["Deployment/d", "1/9 (avg), 2/8", "<unset>", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled(
      [
        { type: "ContainerResource", containerResource: { target: { averageValue: "9" } } },
        { type: "ContainerResource", containerResource: { target: { averageUtilization: 8 } } },
      ],
      [
        { type: "ContainerResource", containerResource: { current: { averageValue: "1", averageUtilization: 7 } } },
        { type: "ContainerResource", containerResource: { current: { averageValue: "x", averageUtilization: 2 } } },
      ],
    ),
    want: ["Deployment/d", "1/9, 2%/8%", "<unset>", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled([{ type: "Other" }, { type: "Pods", pods: { target: { averageValue: "4" } } }], [], { minReplicas: null }),
    want: ["Deployment/d", "<unknown type>, <unknown>/4", "<unset>", 3, 2, old],
  },
  {
    resource: hpa,
    object: scaled([{ type: "Object", object: { target: {} } }, { type: "External" }]),
    want: ["Deployment/d", "<unknown>/<unknown>, <unknown>/<unknown>", "<unset>", 3, 2, old],
  },
  { resource: "ingresses.networking.k8s.io", object: {}, want: ["<none>", "*", "", "80", old] },
  {
    resource: "ingresses.networking.k8s.io",
    object: {
      spec: { ingressClassName: "c", rules: [{ host: "a" }, {}, { host: "b" }, { host: "d" }], tls: [{}] },
      status: { loadBalancer: { ingress: [{ ip: "1.2.3.4" }, { hostname: "h" }] } },
    },
    want: ["c", "a,b,d", "1.2.3.4,h", "80, 443", old],
  },
  {
    resource: "ingresses.networking.k8s.io",
    object: { spec: { rules: ["a", "b", "c", "d", "e"].map((host) => ({ host })) } },
    want: ["<none>", "a,b,c + 2 more...", "", "80", old],
  },
  {
    resource: "ingresses.networking.k8s.io",
    object: { spec: { rules: [{}, { host: "a" }, { host: "b" }, { host: "" }, { host: "c" }, {}] } },
    want: ["<none>", "a,b,c + 3 more...", "", "80", old],
  },
  { resource: csr, object: { spec: { username: "u" } }, want: [old, "<none>", "u", "<none>", "Pending"] },
  {
    resource: csr,
    object: {
      spec: { signerName: "s", username: "u", expirationSeconds: 7200 },
      status: { conditions: decided("Approved", "Denied") },
    },
    want: [old, "s", "u", "120m", "Denied"],
  },
  {
    resource: csr,
    object: { spec: { signerName: "s", username: "u" }, status: { certificate: "c", conditions: decided("Failed", "Approved") } },
    want: [old, "s", "u", "<none>", "Approved,Failed,Issued"],
  },
  {
    resource: "daemonsets.apps",
    object: {
      spec: { selector, template: template({ nodeSelector: { b: "2", a: "1" } }) },
      status: {
        desiredNumberScheduled: 1,
        currentNumberScheduled: 2,
        numberReady: 3,
        updatedNumberScheduled: 4,
        numberAvailable: 5,
      },
    },
    want: [1, 2, 3, 4, 5, "a=1,b=2", old, "c,d", "i,j", "a in (x,y),b=2"],
  },
  {
    resource: "statefulsets.apps",
    object: { spec: { replicas: 3, template: template() }, status: { replicas: 2, readyReplicas: 1 } },
    want: ["1/3", old, "c,d", "i,j"],
  },
  {
    resource: "replicasets.apps",
    object: { spec: { replicas: 3, selector, template: template() }, status: { replicas: 2, readyReplicas: 1 } },
    want: [3, 2, 1, old, "c,d", "i,j", "a in (x,y),b=2"],
  },
  {
    resource: "replicationcontrollers",
    object: {
      spec: { replicas: 3, selector: { b: "2", a: "1" }, template: template() },
      status: { replicas: 2, readyReplicas: 1 },
    },
    want: [3, 2, 1, old, "c,d", "i,j", "a=1,b=2"],
  },
  { resource: "poddisruptionbudgets.policy", object: { spec: { minAvailable: 0 } }, want: ["0", "N/A", 0, old] },
  { resource: "poddisruptionbudgets.policy", object: { spec: { maxUnavailable: 0 } }, want: ["N/A", "0", 0, old] },
  {
    resource: "poddisruptionbudgets.policy",
    object: { spec: { maxUnavailable: "50%" }, status: { disruptionsAllowed: 2 } },
    want: ["N/A", "50%", 2, old],
  },
  {
    resource: claims,
    object: { spec: {}, status: { phase: "Pending", capacity: { storage: "1Gi" } } },
    want: ["Pending", "", "", "", "", old, "<unset>"],
  },
  {
    resource: claims,
    object: {
      spec: { volumeName: "v", storageClassName: "c", volumeMode: "Block" },
      status: {
        phase: "Bound",
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteMany", "ReadWriteOncePod", "ReadWriteOnce", "ReadOnlyMany"],
      },
    },
    want: ["Bound", "v", "1Gi", "RWO,ROX,RWX,RWOP", "c", old, "Block"],
  },
  {
    resource: claims,
    object: {
      metadata: { deletionTimestamp: "2022-01-01T01:00:00Z", annotations: { "volume.beta.kubernetes.io/storage-class": "b" } },
      spec: { volumeName: "v", storageClassName: "c" },
      status: { phase: "Bound" },
    },
    want: ["Terminating", "v", "0", "", "b", old, "<unset>"],
  },
  {
    resource: "storageclasses.storage.k8s.io",
    from: 0,
    object: { provisioner: "p" },
    want: ["x", "p", "Delete", "Immediate", false, old],
  },
  ...["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"].map((key) => ({
    resource: "storageclasses.storage.k8s.io",
    from: 0,
    object: {
      metadata: { annotations: { [key]: "true" } },
      provisioner: "p",
      reclaimPolicy: "Retain",
      volumeBindingMode: "WaitForFirstConsumer",
      allowVolumeExpansion: true,
    },
    want: ["x (default)", "p", "Retain", "WaitForFirstConsumer", true, old],
  })),
  {
    resource: "rolebindings.rbac.authorization.k8s.io",
    object: {
      roleRef: { kind: "Role", name: "r" },
      subjects: [
        { kind: "User", name: "u" },
        { kind: "ServiceAccount", namespace: "n", name: "s" },
        { kind: "Group", name: "g" },
        { kind: "User", name: "v" },
      ],
    },
    want: ["Role/r", old, "u, v", "g", "n/s"],
  },
  { resource: "endpoints", object: {}, want: ["<none>", old] },
  {
    resource: "endpoints",
    object: { subsets: [{ addresses: [{ ip: "1" }] }, { addresses: [{ ip: "::2" }], ports: [{ port: 80 }, { port: 81 }] }] },
    want: ["1,[::2]:80,[::2]:81", old],
  },
  {
    resource: "endpoints",
    object: { subsets: [{ addresses: [{ ip: "1" }, { ip: "2" }], ports: [{ port: 80 }, { port: 81 }] }] },
    want: ["1:80,2:80,1:81 + 1 more...", old],
  },
  {
    resource: "endpoints",
    object: {
      subsets: [{ addresses: [{ ip: "1" }, { ip: "2" }, { ip: "3" }], notReadyAddresses: [{ ip: "4" }], ports: [{ port: 80 }] }],
    },
    want: ["1:80,2:80,3:80", old],
  },
  { resource: "configmaps", object: { data: { a: "", b: "" }, binaryData: { c: "" } }, want: [3, old] },
  { resource: "secrets", object: { type: "t", data: { a: "", b: "" } }, want: ["t", 2, old] },
  { resource: "serviceaccounts", object: { secrets: [{}, {}], imagePullSecrets: [{}] }, want: [2, old] },
  { resource: "namespaces", object: { status: { phase: "Terminating" } }, want: ["Terminating", old] },
  {
    resource: "podtemplates",
    object: { template: { metadata: { labels: { b: "2", a: "1" } }, ...template() } },
    want: ["c,d", "i,j", "a=1,b=2"],
  },
  {
    resource: "persistentvolumes",
    object: { spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteMany", "ReadWriteOnce"], volumeMode: "Block" } },
    want: ["1Gi", "RWO,RWX", "", "", "", "", "", old, "Block"],
  },
  {
    resource: "persistentvolumes",
    object: {
      metadata: { annotations: { "volume.beta.kubernetes.io/storage-class": "" } },
      spec: { persistentVolumeReclaimPolicy: "Retain", storageClassName: "c", claimRef: { namespace: "n", name: "m" } },
      status: { phase: "Failed", reason: "r" },
    },
    want: ["0", "", "Retain", "Failed", "n/m", "", "r", old, "<unset>"],
  },
  {
    resource: claims,
    object: {
      metadata: { annotations: { "volume.beta.kubernetes.io/storage-class": "" } },
      spec: { storageClassName: "c" },
      status: { phase: "Pending", accessModes: ["ReadWriteOnce"] },
    },
    want: ["Pending", "", "", "", "", old, "<unset>"],
  },
  {
    resource: "resourcequotas",
    object: {
      status: { hard: { "requests.cpu": "1", "limits.memory": "1Gi", "a.b/limits-of": "3" }, used: { "limits.memory": "0" } },
    },
    want: [old, "a.b/limits-of: 0/3, requests.cpu: 0/1", "limits.memory: 0/1Gi"],
  },
  { resource: "endpointslices.discovery.k8s.io", object: { addressType: "IPv4" }, want: ["IPv4", "<unset>", "<unset>", old] },
  {
    resource: "endpointslices.discovery.k8s.io",
    object: {
      addressType: "IPv4",
      ports: [{ port: 80 }, { name: "n" }, {}],
      endpoints: [{ addresses: ["1", "2"] }, {}, { addresses: ["3", "4", "5"] }],
    },
    want: ["IPv4", "80,n,*", "1,2,3 + 2 more...", old],
  },
  { resource: "apiservices.apiregistration.k8s.io", object: { spec: {} }, want: ["Local", "Unknown", old] },
  ...[
    ["True", "True"],
    ["False", "False (R)"],
  ].map(([status, cell]) => ({
    resource: "apiservices.apiregistration.k8s.io",
    object: {
      spec: { service: { namespace: "n", name: "s" } },
      status: {
        conditions: [
          { type: "Other", status: "x" },
          { type: "Available", status, reason: "R" },
        ],
      },
    },
    want: ["n/s", cell, old],
  })),
  { resource: "priorityclasses.scheduling.k8s.io", object: { value: 7, globalDefault: true }, want: [7, true, old] },
  { resource: "cronjobs.batch", object: { spec: { schedule: "s" } }, want: ["s", "<unset>", 0, "<none>", old, "", "", "<none>"] },
  {
    resource: "cronjobs.batch",
    object: {
      spec: { schedule: "s", suspend: false, jobTemplate: { spec: { template: template() } } },
      status: { active: [{}, {}], lastScheduleTime: "2022-01-01T01:59:00Z" },
    },
    want: ["s", "False", 2, "60s", old, "c,d", "i,j", "<none>"],
  },
  {
    resource: "cronjobs.batch",
    object: { spec: { schedule: "s", suspend: true, jobTemplate: { spec: { selector } } } },
    want: ["s", "True", 0, "<none>", old, "", "", "a in (x,y),b=2"],
  },
  { resource: "jobs.batch", object: { spec: { parallelism: 1 } }, want: ["0/1", "", old, "", "", "<none>"] },
  {
    resource: "jobs.batch",
    object: { spec: { parallelism: 2, selector, template: template() }, status: { succeeded: 3 } },
    want: ["3/1 of 2", "", old, "c,d", "i,j", "a in (x,y),b=2"],
  },
  { resource: "csidrivers.storage.k8s.io", object: { spec: {} }, want: [true, false, false, "<unset>", false, "<none>", old] },
  {
    resource: "csidrivers.storage.k8s.io",
    object: {
      spec: {
        ...{ attachRequired: false, podInfoOnMount: true, storageCapacity: true, requiresRepublish: true },
        ...{ tokenRequests: [{ audience: "a" }, { audience: "b" }], volumeLifecycleModes: ["Persistent", "Ephemeral"] },
      },
    },
    want: [false, true, true, "a,b", true, "Persistent,Ephemeral", old],
  },
  { resource: "ingressclasses.networking.k8s.io", object: { spec: { controller: "c" } }, want: ["c", "<none>", old] },
  {
    resource: "ingressclasses.networking.k8s.io",
    object: { spec: { controller: "c", parameters: { kind: "K", name: "n" } } },
    want: ["c", "K/n", old],
  },
  {
    resource: "ingressclasses.networking.k8s.io",
    object: { spec: { controller: "c", parameters: { apiGroup: "g", kind: "K", name: "n" } } },
    want: ["c", "K.g/n", old],
  },
  {
    resource: "resourcequotas",
    object: { status: { hard: { pods: "3", "limits.cpu": "2", cpu: "1" }, used: { pods: "1" } } },
    want: [old, "cpu: 0/1, pods: 1/3", "limits.cpu: 0/2"],
  },
  { resource: "leases.coordination.k8s.io", object: { spec: { holderIdentity: "h" } }, want: ["h", old] },
  { resource: "leases.coordination.k8s.io", object: { spec: {} }, want: ["", old] },
  { resource: "controllerrevisions.apps", object: { revision: 3 }, want: ["<none>", 3, old] },
  ...[
    ["apps/v1", "deployment.apps/d"],
    ["v1", "deployment/d"],
  ].map(([apiVersion, owner]) => ({
    resource: "controllerrevisions.apps",
    object: {
      metadata: {
        ownerReferences: [
          { apiVersion: "v1", kind: "ConfigMap", name: "c" },
          { apiVersion, kind: "Deployment", name: "d", controller: true },
        ],
      },
    },
    want: [owner, 0, old],
  })),
  { resource: "runtimeclasses.node.k8s.io", object: { handler: "h" }, want: ["h", old] },
  { resource: "csinodes.storage.k8s.io", object: { spec: { drivers: [{}, {}] } }, want: [2, old] },
  { resource: "csistoragecapacities.storage.k8s.io", object: { storageClassName: "s" }, want: ["s", "<unset>"] },
  { resource: "csistoragecapacities.storage.k8s.io", object: { storageClassName: "s", capacity: "0" }, want: ["s", "0"] },
  {
    resource: "flowschemas.flowcontrol.apiserver.k8s.io",
    object: {
      spec: { priorityLevelConfiguration: { name: "p" }, matchingPrecedence: 7 },
      status: { conditions: [{ type: "Other", status: "x" }] },
    },
    want: ["p", 7, "<none>", old, "?"],
  },
  {
    resource: "flowschemas.flowcontrol.apiserver.k8s.io",
    object: {
      spec: { distinguisherMethod: { type: "ByUser" } },
      status: { conditions: [{ type: "Other" }, { type: "Dangling", status: "False" }] },
    },
    want: ["", 0, "ByUser", old, "False"],
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    object: { spec: { type: "Exempt" } },
    want: ["Exempt", "<none>", "<none>", "<none>", "<none>", old],
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    object: {
      spec: {
        type: "Limited",
        limited: { assuredConcurrencyShares: 4, limitResponse: { queuing: { queues: 3, handSize: 2, queueLengthLimit: 1 } } },
      },
    },
    want: ["Limited", 4, 3, 2, 1, old],
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    object: { spec: { type: "Limited", limited: { limitResponse: { type: "Reject" } } } },
    want: ["Limited", 0, "<none>", "<none>", "<none>", old],
  },
  { resource: "networkpolicies.networking.k8s.io", object: { spec: { podSelector: selector } }, want: ["a in (x,y),b=2", old] },
  { resource: "networkpolicies.networking.k8s.io", object: { spec: { podSelector: {} } }, want: ["<none>", old] },
  ...["mutating", "validating"].map((kind) => ({
    resource: `${kind}webhookconfigurations.admissionregistration.k8s.io`,
    object: { webhooks: [{}, {}] },
    want: [2, old],
  })),
  {
    resource: "podsecuritypolicies.policy",
    object: { spec: {} },
    want: ["false", "", "", "", "", "", false, ""],
  },
  {
    resource: "podsecuritypolicies.policy",
    object: {
      spec: {
        ...{ privileged: true, allowedCapabilities: ["a", "b"], readOnlyRootFilesystem: true, volumes: ["c", "d"] },
        ...{ seLinux: { rule: "1" }, runAsUser: { rule: "2" }, fsGroup: { rule: "3" }, supplementalGroups: { rule: "4" } },
      },
    },
    want: ["true", "a,b", "1", "2", "3", "4", true, "c,d"],
  },
  { resource: "storageversions.internal.apiserver.k8s.io", object: { spec: {} }, want: ["<unset>", "<unset>", old] },
  {
    resource: "storageversions.internal.apiserver.k8s.io",
    object: {
      status: {
        commonEncodingVersion: "v1",
        storageVersions: ["a", "b", "c"].map((apiServerID) => ({ apiServerID, encodingVersion: "v1" })),
      },
    },
    want: ["v1", "a=v1,b=v1,c=v1", old],
  },
  {
    resource: "storageversions.internal.apiserver.k8s.io",
    object: { status: { storageVersions: ["a", "b", "c", "d"].map((apiServerID) => ({ apiServerID, encodingVersion: "v1" })) } },
    want: ["<unset>", "a=v1,b=v1,c=v1 + 1 more...", old],
  },
  {
    resource: "volumeattachments.storage.k8s.io",
    object: { spec: { attacher: "a", nodeName: "n", source: {} } },
    want: ["a", "", "n", false, old],
  },
  {
    resource: "volumeattachments.storage.k8s.io",
    object: { spec: { attacher: "a", nodeName: "n", source: { persistentVolumeName: "v" } }, status: { attached: true } },
    want: ["a", "v", "n", true, old],
  },
  ...[
    [[], ["Unknown", "", ""]],
    [[{ type: "Healthy", status: "True", message: "ok" }], ["Healthy", "ok", ""]],
    [[{ type: "Healthy", status: "False", error: "e" }], ["Unhealthy", "", "e"]],
  ].map(([conditions, want]) => ({ resource: "componentstatuses", object: { conditions }, want: want as unknown[] })),
] as { resource: string; object: { metadata?: object }; want: unknown[]; from?: number }[]) {
  test(`${resource}: the cells of ${JSON.stringify(object).slice(0, 90)}`, () => {
    assert.deepEqual(cellsOf(resource, object).slice(from), want);
  });
}

test("flow schemas have their rows in the order in which they match, all other kinds in the order of their keys", () => {
  const ordered = resourcesForTests.filter(({ table }) => table.order !== undefined);
  assert.deepEqual(
    ordered.map(({ resource }) => resource),
    ["flowschemas"],
  );
  const schemas = [300, undefined, 5, 1000, 5].map((matchingPrecedence, i) => ({
    metadata: { name: `${i}` },
    spec: matchingPrecedence === undefined ? undefined : { matchingPrecedence },
  }));
  assert.deepEqual(
    schemas.toSorted(ordered[0]!.table.order).map(({ metadata }) => metadata.name),
    ["1", "2", "4", "0", "3"],
  );
});
