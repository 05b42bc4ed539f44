/** Limits, and rules for more than the first of several values, of kinds that have few other tests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { faultsOf, testKindRules } from "../testing/kind-rules.ts";
import { smallestObjects } from "../testing/smallest-objects.ts";

const ports = [{ name: "a", port: 80, targetPort: 80, protocol: "TCP" }];
testKindRules("services", { spec: { ports, selector: {} } }, [
  {
    name: "the kubelet's port as the second one of a load balancer",
    change: { "spec.type": "LoadBalancer", "spec.ports[1]": { name: "b", port: 10_250 } },
    want: ["spec.ports[1]: Invalid value: 10250: may not expose port 10250 externally since it is used by kubelet"],
  },
  ...[86_400, 86_401].map((timeoutSeconds) => ({
    name: `an affinity of ${timeoutSeconds} s`,
    change: { "spec.sessionAffinity": "ClientIP", "spec.sessionAffinityConfig": { clientIP: { timeoutSeconds } } },
    want:
      timeoutSeconds > 86_400
        ? ["spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400"]
        : [],
  })),
  {
    name: "one node port for two protocols",
    change: {
      "spec.type": "NodePort",
      "spec.ports": [
        { name: "a", port: 53, nodePort: 30_053, protocol: "TCP" },
        { name: "b", port: 53, nodePort: 30_053, protocol: "UDP" },
      ],
    },
    want: [],
  },
  {
    name: "a second source range that is none",
    change: { "spec.type": "LoadBalancer", "spec.loadBalancerSourceRanges": ["10.0.0.0/8", "x"] },
    want: [
      'spec.LoadBalancerSourceRanges: Invalid value: "[10.0.0.0/8 x]": must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 ',
    ],
  },
]);

const onlyLabels =
  "[]: Forbidden: node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)";
testKindRules("nodes", {}, [
  {
    name: "another range of pods",
    before: { "spec.podCIDRs": ["10.0.0.0/24"] },
    change: { "spec.podCIDRs": ["10.0.1.0/24"] },
    want: ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid', onlyLabels],
  },
  {
    name: "no provider any more",
    before: { "spec.providerID": "a" },
    change: { "spec.providerID": undefined },
    want: ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid', onlyLabels],
  },
]);

testKindRules("limitranges", {}, [
  {
    name: "claims with one bound",
    change: { "spec.limits": [{ type: "PersistentVolumeClaim", min: { storage: "1Gi" } }] },
    want: [],
  },
]);

testKindRules("resourcequotas", {}, [
  {
    name: "the same scopes in another order",
    before: { "spec.scopes": ["NotTerminating", "NotBestEffort"] },
    change: { "spec.scopes": ["NotBestEffort", "NotTerminating"] },
    want: [],
  },
]);

testKindRules(
  "statefulsets.apps",
  {
    spec: {
      serviceName: "s",
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  },
  [
    {
      name: "no service any more",
      before: {},
      change: { "spec.serviceName": undefined },
      want: [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      ],
    },
  ],
);

testKindRules("poddisruptionbudgets.policy", { spec: { minAvailable: 1, selector: { matchLabels: { a: "b" } } } }, [
  {
    name: "counts below zero",
    status: true,
    before: {},
    change: { "status.currentHealthy": -1, "status.expectedPods": -1 },
    want: [
      "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0",
      "status.expectedPods: Invalid value: -1: must be greater than or equal to 0",
    ],
  },
]);

testKindRules("ingresses.networking.k8s.io", { spec: { defaultBackend: { service: { name: "s", port: { number: 80 } } } } }, [
  {
    name: "a host that is none in a second entry of TLS",
    change: { "spec.tls": [{ hosts: ["a.example"] }, { hosts: ["b.example", "*.c.example", "_"] }] },
    want: [
      "spec.tls[1].hosts[2]: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
]);

const driver = (name: string, nodeID: string): object => ({ name, nodeID, topologyKeys: [] });
const shownDriver = (name: string): string =>
  `CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"${name}", NodeID:"other", TopologyKeys:[]string{}, Allocatable:(*storage.VolumeNodeResources)(nil)}: field is immutable`;
testKindRules("csinodes.storage.k8s.io", { spec: { drivers: [driver("a", "n"), driver("b", "n")] } }, [
  {
    name: "two changed drivers",
    before: {},
    change: { "spec.drivers": [driver("a", "other"), driver("b", "other")] },
    want: [shownDriver("a"), shownDriver("b")],
  },
  {
    name: "one driver less, and one more",
    before: {},
    change: { "spec.drivers": [driver("b", "n"), driver("c", "n")] },
    want: [],
  },
]);

const parameters = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, ""]));
testKindRules("storageclasses.storage.k8s.io", { provisioner: "p" }, [
  { name: "512 parameters", change: { parameters: parameters(512) }, want: [] },
  {
    name: "513 parameters",
    change: { parameters: parameters(513) },
    want: ["parameters: Too long: must have at most 512 bytes"],
  },
]);

testKindRules("endpointslices.discovery.k8s.io", { addressType: "IPv4", endpoints: [], ports: [] }, [
  {
    name: "another type of address",
    before: {},
    change: { addressType: "IPv6" },
    want: ['addressType: Invalid value: "IPv6": field is immutable'],
  },
]);

testKindRules(
  "deployments.apps",
  {
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  },
  [
    {
      name: "no count of collisions any more",
      status: true,
      before: { "status.collisionCount": 2 },
      change: { "status.collisionCount": undefined },
      want: ["status.collisionCount: Invalid value: 0: cannot be decremented"],
    },
  ],
);

const anyRule = { rule: "RunAsAny" };
const policySpec = { seLinux: anyRule, supplementalGroups: anyRule, runAsUser: anyRule, fsGroup: anyRule };
testKindRules("podsecuritypolicies.policy", { spec: policySpec }, [
  {
    name: "host paths after an empty one, which are not looked at",
    change: { "spec.allowedHostPaths": [{ pathPrefix: "/a" }, { pathPrefix: "" }, { pathPrefix: "/../b" }] },
    want: ["spec.allowedHostPaths[1]: Required value: is required"],
  },
]);

const suspended = {
  metadata: { name: "j", namespace: "default", labels: { "controller-uid": "u", "job-name": "j" } },
  spec: {
    suspend: true,
    selector: { matchLabels: { a: "b" } },
    manualSelector: true,
    template: { metadata: { labels: { a: "b" } }, spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } },
  },
};
const zone = { key: "zone", operator: "Exists" };
const terms = [{ matchExpressions: [zone] }];
for (const { name, before = {}, change, want } of [
  { name: "a node selector", change: { "spec.template.spec.nodeSelector": { a: "b" } }, want: [] },
  { name: "tolerations", change: { "spec.template.spec.tolerations": [zone] }, want: [] },
  { name: "labels", change: { "spec.template.metadata.labels": { a: "b", c: "d" } }, want: [] },
  {
    name: "an affinity of nodes",
    change: {
      "spec.template.spec.affinity": {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
      },
    },
    want: [],
  },
  {
    name: "an affinity of pods",
    change: {
      "spec.template.spec.affinity": {
        podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "zone", labelSelector: {} }] },
      },
    },
    want: ["spec.template"],
  },
  { name: "an image", change: { "spec.template.spec.containers": [{ name: "c", image: "j" }] }, want: ["spec.template"] },
  {
    name: "a node selector after it was started once",
    before: { "status.startTime": "2022-01-01T00:00:00Z" },
    change: { "spec.template.spec.nodeSelector": { a: "b" } },
    want: ["spec.template"],
  },
  {
    name: "a node selector as it is suspended by the same update",
    before: { "spec.suspend": false },
    change: { "spec.suspend": true, "spec.template.spec.nodeSelector": { a: "b" } },
    want: ["spec.template"],
  },
]) {
  test(`jobs.batch: a suspended job ${want.length === 0 ? "may" : "may not"} get ${name}`, () => {
    const faults = faultsOf("jobs.batch", suspended, { before, change });
    assert.deepEqual(
      faults.map((text) => text.split(":")[0]),
      want,
    );
  });
}

interface TwiceWrong {
  readonly resource: string;
  readonly change: Readonly<Record<string, unknown>>;
  /** Of the errors. */
  readonly field: string;
  readonly status?: true;
  /** Default: 2. */
  readonly count?: number;
}

/** Names that are too long and of other characters. */
const [longLabel, longDomain] = ["_".repeat(64), "_".repeat(254)];
const service = { name: "s", namespace: "n" };
const claim = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };

for (const { resource, change, field, status, count = 2 } of [
  {
    resource: "networkpolicies.networking.k8s.io",
    change: { "spec.ingress": [{ ports: [{ port: "-A--B" }] }] },
    field: "spec.ingress[0].ports[0].port",
    count: 4,
  },
  {
    resource: "ingresses.networking.k8s.io",
    change: { "spec.defaultBackend.service.name": longLabel },
    field: "spec.defaultBackend.service.name",
  },
  {
    resource: "ingresses.networking.k8s.io",
    change: { "spec.defaultBackend.service.port": { name: "-A--B" } },
    field: "spec.defaultBackend.service.port.name",
    count: 4,
  },
  ...["ingresses.networking.k8s.io", "services"].map((resource) => ({
    resource,
    status: true as const,
    change: { "status.loadBalancer": { ingress: [{ hostname: longDomain }] } },
    field: "status.loadBalancer.ingress[0].hostname",
  })),
  { resource: "csistoragecapacities.storage.k8s.io", change: { storageClassName: longDomain }, field: "storageClassName" },
  { resource: "rolebindings.rbac.authorization.k8s.io", change: { "roleRef.name": "a/%" }, field: "roleRef.name" },
  {
    resource: "rolebindings.rbac.authorization.k8s.io",
    change: { "subjects[1]": { kind: "ServiceAccount", name: longDomain, namespace: "n" } },
    field: "subjects[1].name",
  },
  ...["data", "binaryData"].map((list) => ({
    resource: "configmaps",
    change: { [list]: { ["/".repeat(254)]: "" } },
    field: `${list}[${"/".repeat(254)}]`,
  })),
  {
    resource: "pods",
    change: {
      "metadata.name": longDomain,
      "spec.volumes": [{ name: "v", ephemeral: { volumeClaimTemplate: { spec: claim } } }],
    },
    field: "spec.volumes[0].name",
  },
  {
    resource: "validatingwebhookconfigurations.admissionregistration.k8s.io",
    change: { "webhooks[0].clientConfig": { service: { ...service, path: `/a/${longDomain}` } } },
    field: "webhooks[0].clientConfig.service.path",
  },
] as readonly TwiceWrong[]) {
  test(`${resource}: each fault of ${field.slice(0, 60)} is reported`, () => {
    const valid = smallestObjects[resource.split(".", 1)[0]!] ?? {};
    const faults = faultsOf(resource, valid, { change, ...(status && { status, before: {} }) });
    const own = faults.filter((fault) => fault.startsWith(`${field}: Invalid value: `));
    assert.equal(new Set(own).size, count, faults.join("\n"));
  });
}
