/** The values at the ends of each range that validation allows, and those behind them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { faultsOf } from "../testing/kind-rules.ts";
import { smallestObjects } from "../testing/smallest-objects.ts";

interface Limit {
  readonly resource: string;
  /** Path that is changed: `spec.replicas`. */
  readonly path: string;
  readonly inside: readonly unknown[];
  readonly outside: readonly unknown[];
  /** Other changes to the smallest object of the kind, which make each inside value valid. */
  readonly with?: Readonly<Record<string, unknown>>;
  /** Beginning of the fields of the errors, when it is not the path. */
  readonly field?: string;
  readonly gates?: Readonly<Record<string, boolean>>;
  /** API version of the request, where it is not the storage version. */
  readonly requestVersion?: string;
}

const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const text = (length: number): string => "a".repeat(length);
/** A DNS subdomain of labels of 63 characters. */
const subdomain = (length: number): string => text(length).replace(/(.{63})a(?=a)/g, "$1.");
const base64 = (bytes: number): string => Buffer.alloc(bytes).toString("base64");
const fields = (count: number): Record<string, string> => Object.fromEntries(many(count, (at) => [`k${at}`, "v"]));
const positive = { inside: [1], outside: [0, -1] };
const notNegative = { inside: [0], outside: [-1] };
const percent = { inside: ["100%"], outside: ["101%", -1] };
const mib = 1024 * 1024;
const { csrPem } = await newCertificateRequest({ commonName: "a" });
const signing = { "spec.request": Buffer.from(csrPem).toString("base64") };

const volume = { "spec.volumes": [{ name: "v" }] };
const projected = { serviceAccountToken: { path: "t" } };
const probe = { "spec.containers[0].livenessProbe": { tcpSocket: { port: 1 } } };
const preference = { matchExpressions: [{ key: "a", operator: "Exists" }] };
const scheduling = "DuringSchedulingIgnoredDuringExecution";
const rolling = (strategy: string) => `spec.${strategy}.rollingUpdate`;
const hpa = "horizontalpodautoscalers.autoscaling";
const queuing = "spec.limited.limitResponse.queuing";
const queues = { queues: 64, handSize: 10, queueLengthLimit: 1 };
const queued = { "spec.limited.limitResponse": { type: "Queue", queuing: queues } };
const scaling = { "spec.behavior.scaleUp": { policies: [{ type: "Pods", value: 1, periodSeconds: 1 }] } };
const limits = { type: "Container", max: { cpu: "2" }, min: { cpu: "1" } };

const rows: readonly Limit[] = [
  { resource: "pods", path: "spec.activeDeadlineSeconds", inside: [1, 2 ** 31 - 1], outside: [0, 2 ** 31] },
  { resource: "pods", path: "spec.hostname", inside: [text(63)], outside: [text(64)] },
  { resource: "pods", path: "spec.nodeName", inside: [subdomain(253)], outside: [subdomain(254)] },
  {
    resource: "pods",
    path: "spec.dnsConfig.nameservers",
    inside: [many(3, () => "10.0.0.1")],
    outside: [many(4, () => "10.0.0.1")],
  },
  {
    resource: "pods",
    path: "spec.dnsConfig.searches",
    inside: [many(6, () => "a"), [subdomain(127), subdomain(128)]],
    outside: [many(7, () => "a"), [subdomain(128), subdomain(128)]],
  },
  {
    resource: "pods",
    path: "spec.dnsConfig.searches",
    gates: { ExpandedDNSConfig: true },
    inside: [many(32, () => "a"), [...many(8, () => subdomain(253)), subdomain(16)]],
    outside: [many(33, () => "a"), [...many(8, () => subdomain(253)), subdomain(17)]],
  },
  {
    resource: "pods",
    path: "spec.containers[0].ports",
    inside: [[{ containerPort: 1 }], [{ containerPort: 65_535, hostPort: 65_535, name: text(15) }]],
    outside: [[{ containerPort: 0 }], [{ containerPort: 65_536 }], [{ containerPort: 1, hostPort: 65_536 }]],
  },
  {
    resource: "pods",
    path: "spec.containers[0].ports",
    inside: [[{ containerPort: 1, name: text(15) }]],
    outside: [[{ containerPort: 1, name: text(16) }]],
  },
  { resource: "pods", path: "spec.containers[0].livenessProbe.initialDelaySeconds", with: probe, ...notNegative },
  {
    resource: "pods",
    path: "spec.containers[0].livenessProbe.terminationGracePeriodSeconds",
    gates: { ProbeTerminationGracePeriod: true },
    with: probe,
    ...positive,
  },
  {
    resource: "pods",
    path: `spec.affinity.nodeAffinity.preferred${scheduling}[0].weight`,
    with: { [`spec.affinity.nodeAffinity.preferred${scheduling}`]: [{ preference }] },
    inside: [1, 100],
    outside: [0, 101],
  },
  {
    resource: "pods",
    path: `spec.affinity.podAntiAffinity.preferred${scheduling}[0].weight`,
    with: { [`spec.affinity.podAntiAffinity.preferred${scheduling}`]: [{ podAffinityTerm: { topologyKey: "t" } }] },
    inside: [1, 100],
    outside: [0, 101],
  },
  {
    resource: "pods",
    path: "spec.topologySpreadConstraints[0].maxSkew",
    with: { "spec.topologySpreadConstraints": [{ topologyKey: "t", whenUnsatisfiable: "DoNotSchedule" }] },
    ...positive,
  },
  ...["runAsUser", "runAsGroup", "fsGroup"].map((id) => ({
    resource: "pods",
    path: `spec.securityContext.${id}`,
    inside: [0, 2 ** 31 - 1],
    outside: [-1, 2 ** 31],
  })),
  {
    resource: "pods",
    path: "spec.securityContext.supplementalGroups",
    inside: [[0, 2 ** 31 - 1]],
    outside: [
      [1, -1],
      [1, 2 ** 31],
    ],
  },
  { resource: "pods", path: "spec.containers[0].securityContext.runAsUser", inside: [0, 2 ** 31 - 1], outside: [-1, 2 ** 31] },
  {
    resource: "pods",
    path: "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds",
    with: { "spec.serviceAccountName": "s", "spec.volumes": [{ name: "v", projected: { sources: [projected] } }] },
    inside: [600, 2 ** 32],
    outside: [599, 2 ** 32 + 1],
  },
  {
    resource: "pods",
    path: "spec.volumes[0].configMap.defaultMode",
    with: { "spec.volumes": [{ name: "v", configMap: { name: "c" } }] },
    inside: [0, 0o777],
    outside: [-1, 0o1000],
  },
  {
    resource: "pods",
    path: "spec.volumes[0].secret.items[0].mode",
    with: { "spec.volumes": [{ name: "v", secret: { secretName: "c", items: [{ key: "k", path: "p" }] } }] },
    inside: [0, 0o777],
    outside: [-1, 0o1000],
  },
  {
    resource: "pods",
    path: "spec.volumes[0].fc.lun",
    with: { "spec.volumes": [{ name: "v", fc: { targetWWNs: ["w"] } }] },
    inside: [0, 255],
    outside: [-1, 256],
  },
  {
    resource: "pods",
    path: "spec.volumes[0].gcePersistentDisk.partition",
    field: "spec.volumes[0].persistentDisk.partition",
    with: { "spec.volumes": [{ name: "v", gcePersistentDisk: { pdName: "d" } }] },
    inside: [0, 255],
    outside: [-1, 256],
  },
  {
    resource: "pods",
    path: "spec.volumes[0].iscsi.targetPortal",
    field: "spec.volumes[0].name",
    with: {
      "spec.volumes": [{ name: "v", iscsi: { iqn: "iqn.2015-02.a.b:c", lun: 0, initiatorName: "iqn.2015-02.a.b:i" } }],
    },
    inside: [text(62)],
    outside: [text(63)],
  },
  { resource: "pods", path: "spec.volumes[0].emptyDir.sizeLimit", with: volume, inside: ["0"], outside: ["-1"] },
  { resource: "pods", path: "spec.volumes[0].csi.driver", with: volume, inside: [text(63)], outside: [text(64)] },
  {
    resource: "pods",
    path: "spec.volumes[0].quobyte.tenant",
    with: { "spec.volumes": [{ name: "v", quobyte: { registry: "r:1", volume: "v" } }] },
    inside: [text(64)],
    outside: [text(65)],
  },
  {
    resource: "pods",
    path: "metadata.annotations",
    field: "metadata.annotations",
    inside: ["2147483647", "-2147483648"].map((cost) => ({ "controller.kubernetes.io/pod-deletion-cost": cost })),
    outside: ["2147483648", "-2147483649"].map((cost) => ({ "controller.kubernetes.io/pod-deletion-cost": cost })),
  },
  {
    resource: "pods",
    path: "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec",
    inside: [text(64 * 1024)],
    outside: [text(64 * 1024 + 1)],
  },
  {
    resource: "pods",
    path: "spec.containers[0].securityContext.windowsOptions.runAsUserName",
    inside: [text(104), `${subdomain(255)}\\u`],
    outside: [text(105), `${subdomain(256)}\\u`],
  },
  {
    resource: "pods",
    path: "spec.containers[0].resources",
    inside: [{ limits: { cpu: "1" }, requests: { cpu: "1", memory: "0" } }],
    outside: [{ limits: { cpu: "1" }, requests: { cpu: "1001m" } }, { requests: { memory: "-1" } }],
  },
  { resource: "secrets", path: "data", inside: [{ a: base64(mib) }], outside: [{ a: base64(mib / 2), b: base64(mib / 2 + 1) }] },
  { resource: "secrets", path: "data", inside: [{ [text(253)]: "" }], outside: [{ [text(254)]: "" }] },
  {
    resource: "configmaps",
    path: "data",
    field: "[]",
    with: { binaryData: { b: base64(mib / 2) } },
    inside: [{ a: text(mib / 2) }],
    outside: [{ a: text(mib / 2 + 1) }],
  },
  {
    resource: "services",
    path: "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
    with: { "spec.sessionAffinity": "ClientIP" },
    inside: [1, 86_400],
    outside: [0, 86_401],
  },
  { resource: "services", path: "spec.ports[0].port", inside: [1, 65_535], outside: [0, 65_536] },
  {
    resource: "endpointslices.discovery.k8s.io",
    path: "endpoints",
    inside: [many(1000, () => ({ addresses: ["10.0.0.1"] })), [{ addresses: many(100, (at) => `10.0.0.${at}`) }]],
    outside: [many(1001, () => ({ addresses: ["10.0.0.1"] })), [{ addresses: many(101, (at) => `10.0.0.${at}`) }]],
  },
  {
    resource: "endpointslices.discovery.k8s.io",
    path: "endpoints[0].deprecatedTopology",
    requestVersion: "v1beta1",
    with: { endpoints: [{ addresses: ["10.0.0.1"] }] },
    inside: [fields(16)],
    outside: [fields(17)],
  },
  {
    resource: "endpointslices.discovery.k8s.io",
    path: "endpoints[0].hints",
    gates: { TopologyAwareHints: true },
    with: { endpoints: [{ addresses: ["10.0.0.1"] }] },
    inside: [{ forZones: many(8, (at) => ({ name: `z${at}` })) }],
    outside: [{ forZones: many(9, (at) => ({ name: `z${at}` })) }],
  },
  {
    resource: "endpointslices.discovery.k8s.io",
    path: "ports",
    inside: [many(20_000, (at) => ({ name: `p${at}`, port: 1, protocol: "TCP" }))],
    outside: [many(20_001, (at) => ({ name: `p${at}`, port: 1, protocol: "TCP" }))],
  },
  ...["backoffLimit", "completions", "parallelism", "ttlSecondsAfterFinished", "activeDeadlineSeconds"].map((field) => ({
    resource: "jobs.batch",
    path: `spec.${field}`,
    ...notNegative,
  })),
  {
    resource: "jobs.batch",
    path: "spec.parallelism",
    with: { "spec.completionMode": "Indexed", "spec.completions": 100_001 },
    inside: [100_000],
    outside: [100_001],
  },
  {
    resource: "jobs.batch",
    path: "spec.completions",
    field: "metadata.name",
    with: { "spec.completionMode": "Indexed", "metadata.name": text(61) },
    inside: [10],
    outside: [11],
  },
  { resource: "cronjobs.batch", path: "metadata.name", inside: [text(52)], outside: [text(53)] },
  ...["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"].map((field) => ({
    resource: "cronjobs.batch",
    path: `spec.${field}`,
    ...notNegative,
  })),
  ...["replicas", "minReadySeconds", "revisionHistoryLimit"].map((field) => ({
    resource: "deployments.apps",
    path: `spec.${field}`,
    ...notNegative,
  })),
  {
    resource: "deployments.apps",
    path: "spec.progressDeadlineSeconds",
    with: { "spec.minReadySeconds": 10 },
    inside: [11],
    outside: [10, -1],
  },
  { resource: "deployments.apps", path: `${rolling("strategy")}.maxUnavailable`, ...percent },
  {
    resource: "deployments.apps",
    path: rolling("strategy"),
    inside: [
      { maxSurge: 0, maxUnavailable: 1 },
      { maxSurge: "1%", maxUnavailable: 0 },
    ],
    outside: [
      { maxSurge: 0, maxUnavailable: 0 },
      { maxSurge: "0%", maxUnavailable: "0%" },
    ],
  },
  { resource: "statefulsets.apps", path: `${rolling("updateStrategy")}.partition`, ...notNegative },
  { resource: "daemonsets.apps", path: `${rolling("updateStrategy")}.maxUnavailable`, ...percent },
  { resource: "daemonsets.apps", path: "spec.revisionHistoryLimit", ...notNegative },
  { resource: "replicasets.apps", path: "spec.minReadySeconds", ...notNegative },
  { resource: hpa, path: "spec.minReplicas", inside: [1, 3], outside: [0] },
  { resource: hpa, path: "spec.maxReplicas", with: { "spec.minReplicas": 3 }, inside: [3], outside: [2] },
  { resource: hpa, path: "spec.maxReplicas", with: { "spec.minReplicas": 1 }, inside: [1], outside: [0] },
  {
    resource: hpa,
    path: "spec.behavior.scaleUp.stabilizationWindowSeconds",
    with: scaling,
    inside: [0, 3600],
    outside: [-1, 3601],
  },
  { resource: hpa, path: "spec.behavior.scaleUp.policies[0].value", with: scaling, ...positive },
  {
    resource: hpa,
    path: "spec.behavior.scaleUp.policies[0].periodSeconds",
    with: scaling,
    inside: [1, 1800],
    outside: [0, 1801],
  },
  {
    resource: "flowschemas.flowcontrol.apiserver.k8s.io",
    path: "spec.matchingPrecedence",
    inside: [2, 10_000],
    outside: [-1, 1, 10_001],
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    path: queuing,
    with: queued,
    inside: [queues, { queues: 10_000_000, handSize: 2, queueLengthLimit: 1 }, { queues: 1, handSize: 1, queueLengthLimit: 1 }],
    outside: [
      { ...queues, queues: 65 },
      { ...queues, handSize: 11 },
      { queues: 10_000_001, handSize: 2, queueLengthLimit: 1 },
      { queues: 1, handSize: 2, queueLengthLimit: 1 },
      { queues: 1, handSize: -1, queueLengthLimit: 1 },
      { queues: 1, handSize: 1, queueLengthLimit: -1 },
    ],
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    path: "spec.limited.assuredConcurrencyShares",
    inside: [1],
    outside: [-1],
  },
  ...["mutating", "validating"].map((kind) => ({
    resource: `${kind}webhookconfigurations.admissionregistration.k8s.io`,
    path: "webhooks[0].timeoutSeconds",
    inside: [1, 30],
    outside: [0, 31],
  })),
  { resource: "leases.coordination.k8s.io", path: "spec.leaseDurationSeconds", ...positive },
  { resource: "leases.coordination.k8s.io", path: "spec.leaseTransitions", ...notNegative },
  {
    resource: "ingressclasses.networking.k8s.io",
    path: "spec.controller",
    inside: [`a.b/${text(246)}`],
    outside: [`a.b/${text(247)}`],
  },
  {
    resource: "networkpolicies.networking.k8s.io",
    path: "spec.ingress[0].ports[0].endPort",
    with: { "spec.ingress": [{ ports: [{ port: 80 }] }] },
    inside: [80, 65_535],
    outside: [79],
  },
  {
    resource: "networkpolicies.networking.k8s.io",
    path: "spec.ingress[0].from[0].ipBlock.except",
    with: { "spec.ingress": [{ from: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }] },
    inside: [["10.0.0.0/9"], ["10.255.255.255/32"]],
    outside: [["10.0.0.0/8"], ["10.1.0.0/16", "11.0.0.0/9"]],
  },
  { resource: "priorityclasses.scheduling.k8s.io", path: "value", inside: [1e9, -(2 ** 31)], outside: [1e9 + 1] },
  ...[
    { field: "groupPriorityMinimum", most: 20_000 },
    { field: "versionPriority", most: 1000 },
  ].map(({ field, most }) => ({
    resource: "apiservices.apiregistration.k8s.io",
    path: `spec.${field}`,
    with: { "metadata.name": "v1.x.example" },
    inside: [1, most],
    outside: [0, most + 1],
  })),
  {
    resource: "apiservices.apiregistration.k8s.io",
    path: "spec.service.port",
    with: { "metadata.name": "v1.x.example" },
    inside: [1, 65_535],
    outside: [-1, 65_536],
  },
  {
    resource: "certificatesigningrequests.certificates.k8s.io",
    path: "spec.expirationSeconds",
    with: signing,
    inside: [600],
    outside: [599],
  },
  {
    resource: "certificatesigningrequests.certificates.k8s.io",
    path: "spec.signerName",
    with: signing,
    inside: [`${subdomain(253)}/c`, `${subdomain(253)}/${subdomain(63)}.${subdomain(253)}`],
    outside: [`${subdomain(254)}/c`, `${subdomain(253)}/${subdomain(63)}.${subdomain(254)}`],
  },
  { resource: "limitranges", path: "spec.limits", inside: [[limits]], outside: [[{ ...limits, min: { cpu: "2001m" } }]] },
  {
    resource: "limitranges",
    path: "spec.limits",
    inside: ["1", "2"].map((cpu) => [{ ...limits, maxLimitRequestRatio: { cpu } }]),
    outside: ["999m", "2001m"].map((cpu) => [{ ...limits, maxLimitRequestRatio: { cpu } }]),
  },
  {
    resource: "limitranges",
    path: "spec.limits",
    inside: [[{ ...limits, default: { cpu: "2" }, defaultRequest: { cpu: "2" } }], [{ ...limits, defaultRequest: { cpu: "1" } }]],
    outside: [
      [{ ...limits, default: { cpu: "2001m" } }],
      [{ ...limits, default: { cpu: "1" }, defaultRequest: { cpu: "1001m" } }],
      [{ ...limits, defaultRequest: { cpu: "999m" } }],
    ],
  },
  { resource: "resourcequotas", path: "spec.hard", inside: [{ pods: "0", cpu: "0" }], outside: [{ pods: "1", cpu: "-1" }] },
  {
    resource: "nodes",
    path: "spec.podCIDRs",
    inside: [["10.0.0.0/24", "fd00::/64"]],
    outside: [
      ["10.0.0.0/24", "10.1.0.0/24"],
      ["10.0.0.0/24", "fd00::/64", "fd01::/64"],
    ],
  },
  { resource: "poddisruptionbudgets.policy", path: "spec.minAvailable", ...percent },
  { resource: "poddisruptionbudgets.policy", path: "spec.minAvailable", ...notNegative },
  {
    resource: "podsecuritypolicies.policy",
    path: "spec.runAsUser",
    inside: [{ rule: "MustRunAs", ranges: [{ min: 0, max: 0 }] }],
    outside: [
      {
        rule: "MustRunAs",
        ranges: [
          { min: 0, max: 0 },
          { min: 1, max: 0 },
        ],
      },
      { rule: "MustRunAs", ranges: [{ min: -1, max: 0 }] },
    ],
  },
  {
    resource: "storageclasses.storage.k8s.io",
    path: "parameters",
    inside: [fields(512), { aa: text(mib / 4 - 2) }],
    outside: [fields(513), { aa: text(mib / 8), bb: text(mib / 8) }],
  },
  {
    resource: "csinodes.storage.k8s.io",
    path: "spec.drivers",
    inside: [[{ name: text(63), nodeID: text(192), allocatable: { count: 0 } }]],
    outside: [
      [{ name: text(63), nodeID: text(193) }],
      [{ name: text(64), nodeID: "n" }],
      [{ name: "a", nodeID: "n", allocatable: { count: -1 } }],
    ],
  },
];

for (const { resource, path, inside, outside, field = path, gates = {}, requestVersion, ...row } of rows) {
  const title = `${resource} ${path}${Object.keys(gates).length > 0 ? ` with ${Object.keys(gates)}` : ""}`;
  test(`${title}: what is just allowed is taken, what is just not is refused`, () => {
    const valid = smallestObjects[resource.split(".")[0] ?? ""] ?? {};
    const change = (value: unknown) => ({ ...row.with, [path]: value });
    const faults = (value: unknown): string[] =>
      faultsOf(resource, valid, { change: change(value), gates, ...(requestVersion && { requestVersion }) });
    const shown = (value: unknown): string => JSON.stringify(value).slice(0, 100);
    for (const value of inside) assert.deepEqual(faults(value), [], shown(value));
    for (const value of outside)
      assert.ok(
        faults(value).some((fault) => fault.startsWith(field)),
        shown(value),
      );
  });
}
