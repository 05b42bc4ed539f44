const container = { name: "c", image: "i" };
const template = { metadata: { labels: { a: "b" } }, spec: { containers: [container] } };
const selector = { matchLabels: { a: "b" } };
const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] };
const webhook = {
  name: "a.b.c",
  sideEffects: "None",
  admissionReviewVersions: ["v1"],
  clientConfig: { url: "https://127.0.0.1:1" },
  rules: [rule],
  failurePolicy: "Ignore",
  namespaceSelector: { matchLabels: { none: "x" } },
};
/** A valid object of each kind that can be created, with little in it, by resource; no entry: metadata alone. */
export const smallestObjects: Readonly<Record<string, object>> = {
  pods: { spec: { containers: [container] } },
  podtemplates: { template },
  deployments: { spec: { selector, template, replicas: 0 } },
  daemonsets: { spec: { selector, template } },
  replicasets: { spec: { selector, template, replicas: 0 } },
  replicationcontrollers: { spec: { selector: { a: "b" }, template, replicas: 0 } },
  statefulsets: { spec: { selector, template, serviceName: "s", replicas: 0 } },
  jobs: { spec: { template: { spec: { containers: [container], restartPolicy: "Never" } } } },
  cronjobs: {
    spec: {
      schedule: "0 0 1 1 *",
      jobTemplate: { spec: { template: { spec: { containers: [container], restartPolicy: "Never" } } } },
    },
  },
  services: { spec: { ports: [{ port: 80 }] } },
  persistentvolumes: { spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], nfs: { server: "s", path: "/p" } } },
  persistentvolumeclaims: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
  ingresses: { spec: { defaultBackend: { service: { name: "s", port: { number: 80 } } } } },
  ingressclasses: { spec: { controller: "a.b/c" } },
  networkpolicies: { spec: { podSelector: {} } },
  endpointslices: { addressType: "IPv4" },
  horizontalpodautoscalers: {
    spec: { maxReplicas: 3, scaleTargetRef: { kind: "Deployment", name: "d", apiVersion: "apps/v1" } },
  },
  poddisruptionbudgets: { spec: { minAvailable: 1, selector } },
  podsecuritypolicies: {
    spec: {
      seLinux: { rule: "RunAsAny" },
      runAsUser: { rule: "RunAsAny" },
      supplementalGroups: { rule: "RunAsAny" },
      fsGroup: { rule: "RunAsAny" },
    },
  },
  rolebindings: {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" },
    subjects: [{ kind: "User", name: "u", apiGroup: "rbac.authorization.k8s.io" }],
  },
  clusterrolebindings: {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "r" },
    subjects: [{ kind: "User", name: "u", apiGroup: "rbac.authorization.k8s.io" }],
  },
  roles: { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] },
  clusterroles: { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] },
  storageclasses: { provisioner: "a.b/c" },
  volumeattachments: { spec: { attacher: "a", nodeName: "n", source: { persistentVolumeName: "v" } } },
  csidrivers: { spec: {} },
  csinodes: { spec: { drivers: [] } },
  csistoragecapacities: { storageClassName: "s" },
  priorityclasses: { value: 5 },
  runtimeclasses: { handler: "h" },
  leases: { spec: {} },
  flowschemas: { spec: { priorityLevelConfiguration: { name: "catch-all" } } },
  prioritylevelconfigurations: { spec: { type: "Limited", limited: { limitResponse: { type: "Reject" } } } },
  mutatingwebhookconfigurations: { webhooks: [webhook] },
  validatingwebhookconfigurations: { webhooks: [webhook] },
  customresourcedefinitions: {
    spec: {
      group: "x.example",
      scope: "Namespaced",
      names: { plural: "ws", singular: "w", kind: "W", listKind: "WList" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
    },
  },
  apiservices: {
    spec: {
      group: "x.example",
      version: "v1",
      groupPriorityMinimum: 10,
      versionPriority: 10,
      service: { name: "s", namespace: "default" },
      insecureSkipTLSVerify: true,
    },
  },
  certificatesigningrequests: {
    spec: { request: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K", signerName: "a.b/c", usages: ["client auth"] },
  },
  controllerrevisions: { revision: 1, data: { a: "b" } },
  events: { involvedObject: { namespace: "default", kind: "Pod", name: "x" }, reason: "r", type: "Normal" },
};
