/**
 * The default RBAC policy of 1.23; `rbac-policy.ts` applies it. Cluster roles named `system:controller:<x>` are bound to the
 * service account `<x>` in kube-system without a separate row.
 * Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/{policy,controller_policy,namespace_policy}.go
 */
export interface RuleRow {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}
export interface ClusterRoleRow {
  name: string;
  rules?: RuleRow[];
  /** Additional rules, by feature gate. */
  gated?: Readonly<Record<string, RuleRow[]>>;
  /** The role exists only when all of these feature gates are on. */
  onlyWith?: readonly string[];
  /** The role aggregates the roles with the label `aggregate-to-<this>`. */
  aggregateFrom?: string;
  aggregateTo?: string;
}
export interface SubjectRow {
  kind: "User" | "Group" | "ServiceAccount";
  name: string;
  namespace?: string;
}
export interface BindingRow {
  name: string;
  role: string;
  subjects: SubjectRow[];
}
export interface RoleRow {
  namespace: string;
  name: string;
  rules: RuleRow[];
}
export interface NamespacedBindingRow extends BindingRow {
  namespace: string;
}

const read = "get,list,watch";
const write = "create,delete,deletecollection,patch,update";
const readWrite = "create,delete,deletecollection,get,list,patch,update,watch";

/** Each argument is a comma separated list; `""` is the core group. */
function rule(verbs: string, groups: string, resources: string, names?: string): RuleRow {
  const row: RuleRow = { verbs: verbs.split(","), apiGroups: groups.split(","), resources: resources.split(",") };
  if (names !== undefined) row.resourceNames = names.split(",");
  return row;
}
function urls(verbs: string, paths: string): RuleRow {
  return { verbs: verbs.split(","), nonResourceURLs: paths.split(",") };
}
const events = rule("create,patch,update", ",events.k8s.io", "events");
const user = (name: string): SubjectRow => ({ kind: "User", name });
const group = (name: string): SubjectRow => ({ kind: "Group", name });
const serviceAccount = (namespace: string, name: string): SubjectRow => ({ kind: "ServiceAccount", namespace, name });

export const clusterRoles: readonly ClusterRoleRow[] = [
  { name: "admin", aggregateFrom: "admin" },
  { name: "cluster-admin", rules: [rule("*", "*", "*"), urls("*", "*")] },
  { name: "edit", aggregateFrom: "edit", aggregateTo: "admin" },
  {
    name: "system:aggregate-to-admin",
    aggregateTo: "admin",
    rules: [
      rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
      rule(readWrite, "rbac.authorization.k8s.io", "rolebindings,roles"),
    ],
  },
  {
    name: "system:aggregate-to-edit",
    aggregateTo: "edit",
    rules: [
      rule(read, "", "pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy"),
      rule("impersonate", "", "serviceaccounts"),
      rule(write, "", "pods,pods/attach,pods/exec,pods/portforward,pods/proxy"),
      rule(
        write,
        "",
        "configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy",
      ),
      rule(
        write,
        "apps",
        "daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale",
      ),
      rule(write, "autoscaling", "horizontalpodautoscalers"),
      rule(write, "batch", "cronjobs,jobs"),
      rule(
        write,
        "extensions",
        "daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale",
      ),
      rule(write, "policy", "poddisruptionbudgets"),
      rule(write, "networking.k8s.io", "ingresses,networkpolicies"),
    ],
  },
  {
    name: "system:aggregate-to-view",
    aggregateTo: "view",
    rules: [
      rule(
        read,
        "",
        "configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status",
      ),
      rule(
        read,
        "",
        "bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,resourcequotas/status",
      ),
      rule(read, "", "namespaces"),
      rule(read, "discovery.k8s.io", "endpointslices"),
      rule(
        read,
        "apps",
        "controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status",
      ),
      rule(read, "autoscaling", "horizontalpodautoscalers,horizontalpodautoscalers/status"),
      rule(read, "batch", "cronjobs,cronjobs/status,jobs,jobs/status"),
      rule(
        read,
        "extensions",
        "daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale",
      ),
      rule(read, "policy", "poddisruptionbudgets,poddisruptionbudgets/status"),
      rule(read, "networking.k8s.io", "ingresses,ingresses/status,networkpolicies"),
    ],
  },
  {
    name: "system:auth-delegator",
    rules: [
      rule("create", "authentication.k8s.io", "tokenreviews"),
      rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ],
  },
  {
    name: "system:basic-user",
    rules: [rule("create", "authorization.k8s.io", "selfsubjectaccessreviews,selfsubjectrulesreviews")],
  },
  {
    name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    rules: [rule("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient")],
  },
  {
    name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    rules: [rule("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient")],
  },
  {
    name: "system:certificates.k8s.io:kube-apiserver-client-approver",
    rules: [rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client")],
  },
  {
    name: "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
    rules: [rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet")],
  },
  {
    name: "system:certificates.k8s.io:kubelet-serving-approver",
    rules: [rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving")],
  },
  {
    name: "system:certificates.k8s.io:legacy-unknown-approver",
    rules: [rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/legacy-unknown")],
  },
  {
    name: "system:controller:attachdetach-controller",
    rules: [
      rule("list,watch", "", "persistentvolumeclaims,persistentvolumes"),
      rule(read, "", "nodes"),
      rule("patch,update", "", "nodes/status"),
      rule("list,watch", "", "pods"),
      events,
      rule("create,delete,get,list,watch", "storage.k8s.io", "volumeattachments"),
      rule(read, "storage.k8s.io", "csidrivers"),
      rule(read, "storage.k8s.io", "csinodes"),
    ],
  },
  {
    name: "system:controller:certificate-controller",
    rules: [
      rule("delete,get,list,watch", "certificates.k8s.io", "certificatesigningrequests"),
      rule("update", "certificates.k8s.io", "certificatesigningrequests/approval,certificatesigningrequests/status"),
      rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
      rule(
        "sign",
        "certificates.k8s.io",
        "signers",
        "kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown",
      ),
      rule("create", "authorization.k8s.io", "subjectaccessreviews"),
      events,
    ],
  },
  {
    name: "system:controller:clusterrole-aggregation-controller",
    rules: [rule("escalate,get,list,patch,update,watch", "rbac.authorization.k8s.io", "clusterroles")],
  },
  {
    name: "system:controller:cronjob-controller",
    rules: [
      rule("get,list,update,watch", "batch", "cronjobs"),
      rule("create,delete,get,list,patch,update,watch", "batch", "jobs"),
      rule("update", "batch", "cronjobs/status"),
      rule("update", "batch", "cronjobs/finalizers"),
      rule("delete,list", "", "pods"),
      events,
    ],
  },
  {
    name: "system:controller:daemon-set-controller",
    rules: [
      rule(read, "apps,extensions", "daemonsets"),
      rule("update", "apps,extensions", "daemonsets/status"),
      rule("update", "apps,extensions", "daemonsets/finalizers"),
      rule("list,watch", "", "nodes"),
      rule("create,delete,list,patch,watch", "", "pods"),
      rule("create", "", "pods/binding"),
      rule("create,delete,get,list,patch,update,watch", "apps", "controllerrevisions"),
      events,
    ],
  },
  {
    name: "system:controller:deployment-controller",
    rules: [
      rule("get,list,update,watch", "apps,extensions", "deployments"),
      rule("update", "apps,extensions", "deployments/status"),
      rule("update", "apps,extensions", "deployments/finalizers"),
      rule("create,delete,get,list,patch,update,watch", "apps,extensions", "replicasets"),
      rule("get,list,update,watch", "", "pods"),
      events,
    ],
  },
  {
    name: "system:controller:disruption-controller",
    rules: [
      rule(read, "apps,extensions", "deployments"),
      rule(read, "apps,extensions", "replicasets"),
      rule(read, "", "replicationcontrollers"),
      rule(read, "policy", "poddisruptionbudgets"),
      rule(read, "apps", "statefulsets"),
      rule("update", "policy", "poddisruptionbudgets/status"),
      rule("get", "*", "*/scale"),
      events,
    ],
  },
  {
    name: "system:controller:endpoint-controller",
    rules: [
      rule(read, "", "pods,services"),
      rule("create,delete,get,list,update", "", "endpoints"),
      rule("create", "", "endpoints/restricted"),
      events,
    ],
  },
  {
    name: "system:controller:endpointslice-controller",
    rules: [
      rule(read, "", "nodes,pods,services"),
      rule("update", "", "services/finalizers"),
      rule("create,delete,get,list,update", "discovery.k8s.io", "endpointslices"),
      events,
    ],
  },
  {
    name: "system:controller:endpointslicemirroring-controller",
    rules: [
      rule(read, "", "endpoints,services"),
      rule("update", "", "services/finalizers"),
      rule("update", "", "endpoints/finalizers"),
      rule("create,delete,get,list,update", "discovery.k8s.io", "endpointslices"),
      events,
    ],
  },
  {
    name: "system:controller:ephemeral-volume-controller",
    rules: [
      rule(read, "", "pods"),
      rule("update", "", "pods/finalizers"),
      rule("create,get,list,watch", "", "persistentvolumeclaims"),
      events,
    ],
  },
  {
    name: "system:controller:expand-controller",
    rules: [
      rule("get,list,patch,update,watch", "", "persistentvolumes"),
      rule("patch,update", "", "persistentvolumeclaims/status"),
      rule(read, "", "persistentvolumeclaims"),
      rule(read, "storage.k8s.io", "storageclasses"),
      rule("get", "", "endpoints,services"),
      rule("get", "", "secrets"),
      events,
    ],
  },
  { name: "system:controller:generic-garbage-collector", rules: [rule("delete,get,list,patch,update,watch", "*", "*"), events] },
  {
    name: "system:controller:horizontal-pod-autoscaler",
    rules: [
      rule(read, "autoscaling", "horizontalpodautoscalers"),
      rule("update", "autoscaling", "horizontalpodautoscalers/status"),
      rule("get,update", "*", "*/scale"),
      rule("list", "", "pods"),
      rule("get", "", "services/proxy", "http:heapster:,https:heapster:"),
      rule("list", "metrics.k8s.io", "pods"),
      rule("get,list", "custom.metrics.k8s.io", "*"),
      events,
    ],
  },
  {
    name: "system:controller:job-controller",
    rules: [
      rule("get,list,update,watch", "batch", "jobs"),
      rule("update", "batch", "jobs/status"),
      rule("update", "batch", "jobs/finalizers"),
      rule("create,delete,list,patch,watch", "", "pods"),
      events,
    ],
  },
  {
    name: "system:controller:namespace-controller",
    rules: [
      rule("delete,get,list,watch", "", "namespaces"),
      rule("update", "", "namespaces/finalize,namespaces/status"),
      rule("delete,deletecollection,get,list", "*", "*"),
    ],
  },
  {
    name: "system:controller:node-controller",
    rules: [
      rule("delete,get,list,patch,update", "", "nodes"),
      rule("patch,update", "", "nodes/status"),
      rule("update", "", "pods/status"),
      rule("delete,list", "", "pods"),
      events,
    ],
  },
  {
    name: "system:controller:persistent-volume-binder",
    rules: [
      rule("create,delete,get,list,update,watch", "", "persistentvolumes"),
      rule("update", "", "persistentvolumes/status"),
      rule("get,list,update,watch", "", "persistentvolumeclaims"),
      rule("update", "", "persistentvolumeclaims/status"),
      rule("create,delete,get,list,watch", "", "pods"),
      rule(read, "storage.k8s.io", "storageclasses"),
      rule("create,delete,get,update", "", "endpoints"),
      rule("create,delete,get", "", "services"),
      rule("get", "", "secrets"),
      rule("get,list", "", "nodes"),
      rule("watch", "", "events"),
      events,
    ],
  },
  {
    name: "system:controller:pod-garbage-collector",
    rules: [rule("delete,list,watch", "", "pods"), rule("get,list", "", "nodes")],
  },
  { name: "system:controller:pv-protection-controller", rules: [rule("get,list,update,watch", "", "persistentvolumes"), events] },
  {
    name: "system:controller:pvc-protection-controller",
    rules: [rule("get,list,update,watch", "", "persistentvolumeclaims"), rule(read, "", "pods"), events],
  },
  {
    name: "system:controller:replicaset-controller",
    rules: [
      rule("get,list,update,watch", "apps,extensions", "replicasets"),
      rule("update", "apps,extensions", "replicasets/status"),
      rule("update", "apps,extensions", "replicasets/finalizers"),
      rule("create,delete,list,patch,watch", "", "pods"),
      events,
    ],
  },
  {
    name: "system:controller:replication-controller",
    rules: [
      rule("get,list,update,watch", "", "replicationcontrollers"),
      rule("update", "", "replicationcontrollers/status"),
      rule("update", "", "replicationcontrollers/finalizers"),
      rule("create,delete,list,patch,watch", "", "pods"),
      events,
    ],
  },
  {
    name: "system:controller:resourcequota-controller",
    rules: [rule("list,watch", "*", "*"), rule("update", "", "resourcequotas/status"), events],
  },
  { name: "system:controller:root-ca-cert-publisher", rules: [rule("create,update", "", "configmaps"), events] },
  {
    name: "system:controller:route-controller",
    rules: [rule("list,watch", "", "nodes"), rule("patch", "", "nodes/status"), events],
  },
  { name: "system:controller:service-account-controller", rules: [rule("create", "", "serviceaccounts"), events] },
  {
    name: "system:controller:service-controller",
    rules: [rule(read, "", "services"), rule("patch,update", "", "services/status"), rule("list,watch", "", "nodes"), events],
  },
  {
    name: "system:controller:statefulset-controller",
    rules: [
      rule("list,watch", "", "pods"),
      rule(read, "apps", "statefulsets"),
      rule("update", "apps", "statefulsets/status"),
      rule("update", "apps", "statefulsets/finalizers"),
      rule("create,delete,get,patch,update", "", "pods"),
      rule("create,delete,get,list,patch,update,watch", "apps", "controllerrevisions"),
      rule("create,get", "", "persistentvolumeclaims"),
      events,
    ],
    gated: { StatefulSetAutoDeletePVC: [rule("delete,update", "", "persistentvolumeclaims")] },
  },
  {
    name: "system:controller:storage-version-garbage-collector",
    onlyWith: ["APIServerIdentity", "StorageVersionAPI"],
    rules: [
      rule(read, "coordination.k8s.io", "leases"),
      rule("delete,get,list,patch,update,watch", "internal.apiserver.k8s.io", "storageversions"),
      rule("get,patch,update", "internal.apiserver.k8s.io", "storageversions/status"),
    ],
  },
  { name: "system:controller:ttl-after-finished-controller", rules: [rule("delete,get,list,watch", "batch", "jobs"), events] },
  { name: "system:controller:ttl-controller", rules: [rule("list,patch,update,watch", "", "nodes"), events] },
  {
    name: "system:discovery",
    rules: [urls("get", "/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/")],
  },
  { name: "system:explain", rules: [urls("get", "/debug/explain/*")] },
  { name: "system:heapster", rules: [rule(read, "", "events,namespaces,nodes,pods"), rule(read, "extensions", "deployments")] },
  { name: "system:kube-aggregator", rules: [rule(read, "", "endpoints,services")] },
  {
    name: "system:kube-controller-manager",
    rules: [
      events,
      rule("create", "coordination.k8s.io", "leases"),
      rule("get,update", "coordination.k8s.io", "leases", "kube-controller-manager"),
      rule("create", "", "endpoints"),
      rule("get,update", "", "endpoints", "kube-controller-manager"),
      rule("create", "", "secrets,serviceaccounts"),
      rule("delete", "", "secrets"),
      rule("get", "", "configmaps,namespaces,secrets,serviceaccounts"),
      rule("update", "", "secrets,serviceaccounts"),
      rule("create", "authentication.k8s.io", "tokenreviews"),
      rule("create", "authorization.k8s.io", "subjectaccessreviews"),
      rule("list,watch", "*", "*"),
      rule("create", "", "serviceaccounts/token"),
    ],
  },
  { name: "system:kube-dns", rules: [rule("list,watch", "", "endpoints,services")] },
  // Coxswain's own; the server holds each user to the questions to itself.
  {
    name: "system:coxswain-diagnostics",
    rules: [
      rule("watch", "diagnostics.coxswain.dev", "questions"),
      rule("create", "diagnostics.coxswain.dev", "questions/answers"),
    ],
  },
  {
    name: "system:kube-scheduler",
    rules: [
      events,
      rule("create", "coordination.k8s.io", "leases"),
      rule("get,update", "coordination.k8s.io", "leases", "kube-scheduler"),
      rule("create", "", "endpoints"),
      rule("get,update", "", "endpoints", "kube-scheduler"),
      rule(read, "", "nodes"),
      rule("delete,get,list,watch", "", "pods"),
      rule("create", "", "bindings,pods/binding"),
      rule("patch,update", "", "pods/status"),
      rule(read, "", "replicationcontrollers,services"),
      rule(read, "apps,extensions", "replicasets"),
      rule(read, "apps", "statefulsets"),
      rule(read, "policy", "poddisruptionbudgets"),
      rule(read, "", "persistentvolumeclaims,persistentvolumes"),
      rule("create", "authentication.k8s.io", "tokenreviews"),
      rule("create", "authorization.k8s.io", "subjectaccessreviews"),
      rule(read, "storage.k8s.io", "csinodes"),
      rule(read, "", "namespaces"),
      rule(read, "storage.k8s.io", "csidrivers"),
      rule(read, "storage.k8s.io", "csistoragecapacities"),
    ],
  },
  {
    name: "system:kubelet-api-admin",
    rules: [
      rule(read, "", "nodes"),
      rule("proxy", "", "nodes"),
      rule("*", "", "nodes/log,nodes/metrics,nodes/proxy,nodes/spec,nodes/stats"),
    ],
  },
  { name: "system:monitoring", rules: [urls("get", "/healthz,/healthz/*,/livez,/livez/*,/metrics,/readyz,/readyz/*")] },
  {
    name: "system:node",
    rules: [
      rule("create", "authentication.k8s.io", "tokenreviews"),
      rule("create", "authorization.k8s.io", "localsubjectaccessreviews,subjectaccessreviews"),
      rule(read, "", "services"),
      rule("create,get,list,watch", "", "nodes"),
      rule("patch,update", "", "nodes/status"),
      rule("patch,update", "", "nodes"),
      rule("create,patch,update", "", "events"),
      rule(read, "", "pods"),
      rule("create,delete", "", "pods"),
      rule("patch,update", "", "pods/status"),
      rule("create", "", "pods/eviction"),
      rule(read, "", "configmaps,secrets"),
      rule("get", "", "persistentvolumeclaims,persistentvolumes"),
      rule("get", "", "endpoints"),
      rule("create,get,list,watch", "certificates.k8s.io", "certificatesigningrequests"),
      rule("create,delete,get,patch,update", "coordination.k8s.io", "leases"),
      rule("get", "storage.k8s.io", "volumeattachments"),
      rule("create", "", "serviceaccounts/token"),
      rule("get,patch,update", "", "persistentvolumeclaims/status"),
      rule(read, "storage.k8s.io", "csidrivers"),
      rule("create,delete,get,patch,update", "storage.k8s.io", "csinodes"),
      rule(read, "node.k8s.io", "runtimeclasses"),
    ],
  },
  {
    name: "system:node-bootstrapper",
    rules: [rule("create,get,list,watch", "certificates.k8s.io", "certificatesigningrequests")],
  },
  { name: "system:node-problem-detector", rules: [rule("get", "", "nodes"), rule("patch", "", "nodes/status"), events] },
  {
    name: "system:node-proxier",
    rules: [
      rule("list,watch", "", "endpoints,services"),
      rule(read, "", "nodes"),
      events,
      rule("list,watch", "discovery.k8s.io", "endpointslices"),
    ],
  },
  {
    name: "system:persistent-volume-provisioner",
    rules: [
      rule("create,delete,get,list,watch", "", "persistentvolumes"),
      rule("get,list,update,watch", "", "persistentvolumeclaims"),
      rule(read, "storage.k8s.io", "storageclasses"),
      rule("watch", "", "events"),
      events,
    ],
  },
  { name: "system:public-info-viewer", rules: [urls("get", "/healthz,/livez,/readyz,/version,/version/")] },
  {
    name: "system:service-account-issuer-discovery",
    rules: [urls("get", "/.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/")],
  },
  {
    name: "system:volume-scheduler",
    rules: [
      rule("get,list,patch,update,watch", "", "persistentvolumes"),
      rule(read, "storage.k8s.io", "storageclasses"),
      rule("get,list,patch,update,watch", "", "persistentvolumeclaims"),
    ],
  },
  { name: "view", aggregateFrom: "view", aggregateTo: "edit" },
];
export const clusterRoleBindings: readonly BindingRow[] = [
  { name: "cluster-admin", role: "cluster-admin", subjects: [group("system:masters")] },
  { name: "system:basic-user", role: "system:basic-user", subjects: [group("system:authenticated")] },
  {
    name: "system:controller:namespace-controller",
    role: "system:controller:namespace-controller",
    subjects: [serviceAccount("kube-system", "namespace-controller")],
  },
  { name: "system:discovery", role: "system:discovery", subjects: [group("system:authenticated")] },
  // What an explanation shows is decided by the rights of each object in it.
  { name: "system:explain", role: "system:explain", subjects: [group("system:authenticated")] },
  {
    name: "system:kube-controller-manager",
    role: "system:kube-controller-manager",
    subjects: [user("system:kube-controller-manager")],
  },
  { name: "system:kube-dns", role: "system:kube-dns", subjects: [serviceAccount("kube-system", "kube-dns")] },
  {
    name: "system:coxswain-diagnostics",
    role: "system:coxswain-diagnostics",
    subjects: [user("system:kube-controller-manager"), user("system:kube-scheduler"), group("system:nodes")],
  },
  { name: "system:kube-scheduler", role: "system:kube-scheduler", subjects: [user("system:kube-scheduler")] },
  { name: "system:monitoring", role: "system:monitoring", subjects: [group("system:monitoring")] },
  { name: "system:node", role: "system:node", subjects: [] },
  { name: "system:node-proxier", role: "system:node-proxier", subjects: [user("system:kube-proxy")] },
  {
    name: "system:public-info-viewer",
    role: "system:public-info-viewer",
    subjects: [group("system:authenticated"), group("system:unauthenticated")],
  },
  {
    name: "system:service-account-issuer-discovery",
    role: "system:service-account-issuer-discovery",
    subjects: [group("system:serviceaccounts")],
  },
  { name: "system:volume-scheduler", role: "system:volume-scheduler", subjects: [user("system:kube-scheduler")] },
];
export const roles: readonly RoleRow[] = [
  {
    namespace: "kube-public",
    name: "system:controller:bootstrap-signer",
    rules: [rule(read, "", "configmaps"), rule("update", "", "configmaps", "cluster-info"), events],
  },
  {
    namespace: "kube-system",
    name: "extension-apiserver-authentication-reader",
    rules: [rule(read, "", "configmaps", "extension-apiserver-authentication")],
  },
  {
    namespace: "kube-system",
    name: "system::leader-locking-kube-controller-manager",
    rules: [rule("watch", "", "configmaps"), rule("get,update", "", "configmaps", "kube-controller-manager")],
  },
  {
    namespace: "kube-system",
    name: "system::leader-locking-kube-scheduler",
    rules: [rule("watch", "", "configmaps"), rule("get,update", "", "configmaps", "kube-scheduler")],
  },
  { namespace: "kube-system", name: "system:controller:bootstrap-signer", rules: [rule(read, "", "secrets")] },
  {
    namespace: "kube-system",
    name: "system:controller:cloud-provider",
    rules: [rule("create,get,list,watch", "", "configmaps")],
  },
  {
    namespace: "kube-system",
    name: "system:controller:token-cleaner",
    rules: [rule("delete,get,list,watch", "", "secrets"), events],
  },
];
export const roleBindings: readonly NamespacedBindingRow[] = [
  {
    namespace: "kube-public",
    name: "system:controller:bootstrap-signer",
    role: "system:controller:bootstrap-signer",
    subjects: [serviceAccount("kube-system", "bootstrap-signer")],
  },
  {
    namespace: "kube-system",
    name: "system::extension-apiserver-authentication-reader",
    role: "extension-apiserver-authentication-reader",
    subjects: [user("system:kube-controller-manager"), user("system:kube-scheduler")],
  },
  {
    namespace: "kube-system",
    name: "system::leader-locking-kube-controller-manager",
    role: "system::leader-locking-kube-controller-manager",
    subjects: [user("system:kube-controller-manager"), serviceAccount("kube-system", "kube-controller-manager")],
  },
  {
    namespace: "kube-system",
    name: "system::leader-locking-kube-scheduler",
    role: "system::leader-locking-kube-scheduler",
    subjects: [user("system:kube-scheduler"), serviceAccount("kube-system", "kube-scheduler")],
  },
  {
    namespace: "kube-system",
    name: "system:controller:bootstrap-signer",
    role: "system:controller:bootstrap-signer",
    subjects: [serviceAccount("kube-system", "bootstrap-signer")],
  },
  {
    namespace: "kube-system",
    name: "system:controller:cloud-provider",
    role: "system:controller:cloud-provider",
    subjects: [serviceAccount("kube-system", "cloud-provider")],
  },
  {
    namespace: "kube-system",
    name: "system:controller:token-cleaner",
    role: "system:controller:token-cleaner",
    subjects: [serviceAccount("kube-system", "token-cleaner")],
  },
];
