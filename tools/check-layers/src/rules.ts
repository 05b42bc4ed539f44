/** Which module may import which. ARCHITECTURE.md's tables are made from this: `node tools/check-layers/src/main.ts --write`. */

/** A folder or file below a package's `src`. */
export interface OrderedModule {
  /** Its path; a folder in a group of folders with the group's name: `objects/codec`. */
  readonly name: string;
  /** What it holds, for ARCHITECTURE.md; undefined for what is named after its only content. */
  readonly holds?: string;
}

const inOrder = (modules: Readonly<Record<string, string>>): readonly OrderedModule[] =>
  Object.entries(modules).map(([name, holds]) => (holds === "" ? { name } : { name, holds }));

/** Packages and tools whose modules stand in one order: each may import only those before it, and itself. */
export const orderedModules: Readonly<Record<string, readonly OrderedModule[]>> = {
  apimachinery: inOrder({
    "process/event-loop": "how long work yields to I/O and timers (`Turns`), worker threads",
    "process/memory":
      "a limit for the bytes that caches keep together, and eviction when it is reached; maps of short-lived entries",
    "process/clock": "time, and the clock that tests move by hand",
    "process/files": "folders, atomic writes, watched files",
    "process/logging": "log lines in klog's format",
    "process/release.ts": "the version of this build and of Kubernetes",
    "process/metrics": "metrics under upstream's names",
    "objects/meta": "names, times, quantities, deep equality",
    "objects/errors": "Status errors and field errors",
    "objects/validation": "rules of names and of object metadata",
    "objects/selectors": "label and field selectors",
    "objects/schema": "fields, defaults and protobuf numbers of each kind as data, its TypeScript type, OpenAPI",
    "objects/codec": "JSON, YAML and protobuf",
    "objects/patch": "JSON, merge and strategic merge patches; server-side apply",
    "transport/connect.ts": "opens a TCP or TLS connection",
    "transport/node-http.ts": "`node:http` without what slows a start",
    "transport/http2": "HTTP/2: frames and header compression (`wire/`), `server/` and `client/`",
    "transport/grpc": "a gRPC client: channels, calls, streams of messages",
    cron: "schedules",
    scheduling: "what scheduler and controllers decide alike about pods and nodes",
    volumes: "what controllers, scheduler and kubelet decide alike about volumes",
    quota: "how much of a quota an object uses",
    "storage-versions": "in which version API servers store each resource",
    "watch-stream": "the frames of a watch's answer",
    "flex-volumes": "third parties' programs that attach and mount volumes",
    client: "requests to an API server, kubeconfig, credentials, connections",
    informers: "caches of objects, filled by list and watch",
    workqueue: "keys that wait to be reconciled, with backoff",
    decisions: "what a daemon last decided about an object and why, kept in memory for diagnostics",
    controller: "reconcile loops, Events, leader election",
    flags: "flags, configuration files, feature gates, `main`",
    serving: "HTTPS servers: TLS, authentication, health, metrics page",
    testing: "what the tests of all packages share",
  }),
  "controller-manager": inOrder({
    flags: "",
    "flags.ts": "",
    pods: "states of pods, adoption, creating and deleting them",
    "leader-migration.ts": "",
    config: "what the flags come to, as types and checks",
    "controller-context.ts": "the dependencies that each controller is made with",
    "define-controller.ts": "a queue and its reconcile function, from a controller's context",
    "bootstrap-tokens": "",
    cloud: "controllers that need a cloud provider, which there is none of",
    certificates: "what the controllers of signing requests share",
    volumes: "what the volume controllers share",
    history: "ControllerRevisions",
    jobs: "states of Jobs",
    scale: "the scale subresource",
    services: "what the endpoints controllers share",
    controllers: "a folder for each controller, named as in `--controllers`",
    "catalogue.ts": "the list of controllers",
    "config.ts": "",
    "supervise.ts": "restarts a controller that failed, alone",
    "server-health.ts": "",
    "service-account-tokens.ts": "",
    "manager.ts": "starts everything after the lease was acquired",
    testing: "",
    "kube-controller-manager.ts": "",
    "main.ts": "",
  }),
  scheduler: inOrder({
    "settings.ts": "a row for each field of the configuration file, and its flag",
    "flags.ts": "",
    "pod-status.ts": "",
    cache: "nodes with their pods, and the snapshot that a cycle works on",
    volumes: "assumed claims and volumes",
    framework: "extension points, states and results of plugins",
    config: "KubeSchedulerConfiguration",
    "profile.ts": "the plugins of one profile, in order",
    queue: "pods that wait: active, backing off, unschedulable",
    "metrics.ts": "",
    extenders: "HTTP extenders",
    preemption: "which pods make room for another",
    plugins: "a file or folder for each plugin",
    "node-pre-check.ts": "",
    "diagnosis.ts": "why a pod fits no node, in words",
    "cluster-events.ts": "which changes of the cluster wake which pods",
    "binding-cycle.ts": "",
    "scheduling-cycle.ts": "",
    "scheduling-decisions.ts": "",
    "resource-metrics.ts": "",
    "scheduler.ts": "the loop",
    testing: "",
    "kube-scheduler.ts": "",
    "main.ts": "",
  }),
  "cluster-services": inOrder({
    "flags.ts": "",
    "part.ts": "what a part is: how it starts, its health check, its rights",
    host: "runs programs of the machine, such as iptables",
    services: "cluster IPs, node ports and external addresses of Services, as rules in the kernel",
    "pod-network": "CNI configuration, routes and VXLAN to the pods of other nodes, masquerading",
    dns: "DNS server for the names of Services and Pods, forwards all others",
    "metrics-api": "`metrics.k8s.io` from the kubelets' metrics",
    "local-volumes": "PersistentVolumes that are folders of a node",
    "load-balancers": "addresses for Services of type LoadBalancer, announced by the nodes",
    ingress: "HTTP and HTTPS for Ingresses",
    "parts.ts": "the table of parts",
    "choose-parts.ts": "`--enable` and `--disable`",
    "rights.ts": "RBAC objects of the parts",
    "apply-rights.ts": "",
    "part-health.ts": "",
    "run-part.ts": "starts a part again that failed, alone",
    "run-parts.ts": "parts of the node, and those of the holder of the lease",
    "clean-up.ts": "",
    "heap.ts": "keeps the process small after its start",
    testing: "",
    "coxswain-services.ts": "",
    "main.ts": "",
  }),
  ui: inOrder({
    "api.ts": "requests to the API server that served the page",
    model: "rows of objects, what is not well, the search, the address: no document and no network but `api.ts`",
    worker: "holds the watches, and sends the page what changed",
    parts: "what views share: lists of which only the visible part exists, marks, search, session, theme",
    views: "a file for each view",
    "page.tsx": "signs in, starts the worker, draws",
  }),
  "node-agent": inOrder({
    settings: "a row for each flag and field of the configuration file",
    "flags.ts": "",
    "background.ts": "work beside the syncs of pods, and how it ends",
    pod: "a pod as the node sees it, its resources, back-off, verdicts",
    "agent-config.ts": "what flags and file come to, as types",
    "config-error.ts": "",
    dbus: "systemd and logind",
    environment: "environment variables, DNS and host name of a pod",
    runtime: "the container runtime (CRI): sandboxes, containers, images",
    "events.ts": "",
    probes: "probes and lifecycle hooks",
    sources: "where pods come from: API server, files, HTTP",
    plugins: "sockets by which drivers register",
    resources: "cgroups, CPUs, memory, devices, eviction",
    host: "kernel settings, iptables chains and locks of the machine",
    node: "the Node object, its lease, certificates and addresses",
    volumes: "a file for each kind of volume, CSI, flex, quotas",
    status: "pod status, from the runtime's state to the API server",
    shutdown: "graceful shutdown of the machine",
    "config-checks.ts": "",
    "config.ts": "",
    pods: "admission, workers and syncs of pods",
    server: "the kubelet's HTTP server: logs, exec, stats, metrics",
    "start-plugins.ts": "",
    "dynamic-config": "configuration from the cluster",
    "run-once.ts": "",
    "upkeep.ts": "image and container garbage collection, eviction loop",
    "agent.ts": "puts the modules together",
    testing: "",
    "kubelet.ts": "",
    "main.ts": "",
  }),
  testing: inOrder({
    time: "virtual time",
    store: "etcd in memory, and a client of it",
    faults: "requests that fail, watches that break or lag, wrong clocks",
    history: "who wrote what, and an object's story for failed assertions",
    nodes: "nodes without containers, whose pods behave by rules",
    cluster: "the parts of a cluster: servers without sockets, virtual time, waiting",
    "create-cluster.ts": "`createCluster`",
    "index.ts": "what users import",
    "resources.ts": "",
    "kinds.ts": "",
    "standard-methods.ts": "",
    "cli.ts": "`npx @coxswain/testing`",
    testing: "",
  }),
  machines: inOrder({
    "failure.ts": "",
    config: "kubeadm's configuration files, and the settings of a cluster and a machine that come from them",
    host: "files, programs and units of the machine",
    "steps.ts": "tables of steps: plan, execution, repetition and removal",
    "machine.ts": "what all steps know",
    cluster: "what a cluster has for machines that join: ConfigMaps, rights, tokens, sealed certificates; discovery",
    node: "steps of every machine: programs, kubelet, coxswain-services",
    "control-plane": "steps of a machine of the control plane: certificates, etcd, daemons",
    preflight: "what a machine must have, with remedies",
    etcd: "etcd's services Cluster and Maintenance; how a machine becomes a member; snapshots",
    reset: "what a machine has of a cluster",
    commands: "a file for each command",
    "main.ts": "",
  }),
};

export interface Module {
  /** A file or folder below the package's `src`. The longest match decides. */
  readonly path: string;
  /** Files or folders of the same package it may import, besides itself; `*`: everything. */
  readonly imports: readonly string[];
  readonly holds?: string;
}

/** What every later module may know of a request, a decision and a stored object: interfaces without code. */
const contracts = ["request", "authorization/authorizer.ts", "storage/storage.ts"];
const filters = {
  filters: "the filter chain in front of the handlers; its order and `--goaway-chance` are in `chain.ts`",
  authentication: "who asks",
  authorization: "whether they may",
  audit: "audit events and where they are written",
  "flow-control": "priority and fairness",
};

/** What the store and the cache around it share; none of it knows etcd. */
const storageContracts = [
  "storage",
  "continue-token",
  "key-layout",
  "entry",
  "own-writes",
  "selection",
  "watch-queue",
  "metrics",
].map((name) => `storage/${name}.ts`);

/** What a storage over another one is made of. */
const storageViews = ["storage", "entry", "object-codec", "watch-queue"].map((name) => `storage/${name}.ts`);

/** The API server's modules are a graph: a request passes from left to right, but authorization, for one, stands beside storage. */
export const apiserverModules: readonly Module[] = [
  { path: "request", imports: [], holds: "one request: what its path names, its context" },
  ...Object.entries(filters).map(([path, holds]) => ({ path, imports: ["request", ...Object.keys(filters)], holds })),
  {
    path: "handlers",
    imports: ["request", "admission", "registry/generic", "node-proxy", "storage/storage.ts", "storage/entry.ts"],
    holds: "the verbs: negotiation, bodies, conversion, managed fields, responses and their compression",
  },
  {
    path: "admission",
    imports: ["request", "egress", "authorization/authorizer.ts", "authorization/pod-references.ts"],
    holds: "admission plugins and webhooks",
  },
  { path: "registry", imports: contracts, holds: "strategy, validation and table of each resource" },
  {
    path: "registry/apiextensions",
    imports: ["registry", "structural-schema"],
    holds: "CustomResourceDefinitions",
  },
  {
    path: "structural-schema",
    imports: ["cel"],
    holds: "schemas of custom resources: checks, pruning, defaults, validation of values, rules in CEL",
  },
  { path: "watch", imports: storageContracts, holds: "watch caches: lists, watches and bookmarks from memory" },
  { path: "storage", imports: ["registry/generic/resource.ts"], holds: "objects in etcd, encryption at rest" },
  { path: "storage/storage.ts", imports: ["storage/entry.ts", "storage/own-writes.ts"], holds: "the interface of a storage" },
  {
    path: "storage/cluster.ts",
    imports: ["storage", "watch"],
    holds: "one etcd cluster: its client, its watch, its compactor",
  },
  {
    path: "storage/open.ts",
    imports: ["storage", "watch", "registry/generic/resource.ts"],
    holds: "puts the store and the watch cache around it together",
  },
  { path: "cel", imports: [], holds: "the Common Expression Language" },
  {
    path: "custom-resources",
    imports: [
      "registry/generic",
      "registry/definition.ts",
      "registry/apiextensions",
      "structural-schema",
      "request",
      ...storageViews,
    ],
    holds: "serving the resources that definitions define",
  },
  {
    path: "explain",
    imports: [
      "request",
      "registry/generic",
      "authorization/authorizer.ts",
      "filters/authorization.ts",
      "handlers/served-resources.ts",
    ],
    holds: "why an object is not well: rules by kind, and the pages that answer it",
  },
  { path: "ui", imports: ["handlers/response.ts"], holds: "serves the page at /ui, whose source is the package `ui`" },
  { path: "egress", imports: [], holds: "outgoing connections: direct or through a proxy" },
  {
    path: "node-proxy",
    imports: ["request", "registry/generic", "egress"],
    holds: "requests that go on to nodes, pods and services",
  },
  { path: "aggregation", imports: ["request", "node-proxy", "egress"], holds: "API groups that other servers answer for" },
  {
    path: "loopback",
    imports: ["request", "registry/generic", "storage/storage.ts"],
    holds: "the server's client of itself: reads the stores directly, writes through the router",
  },
  {
    path: "bootstrap",
    imports: ["registry/generic", "request", "storage/storage.ts"],
    holds: "what a new cluster is given: namespaces, roles, the kubernetes Service",
  },
  { path: "testing", imports: ["*"] },
  { path: "server.ts", imports: ["*"], holds: "puts the modules together" },
  { path: "server", imports: ["*"], holds: "the parts of that, and the pages beside the API" },
  { path: "config.ts", imports: ["*"] },
  { path: "kube-apiserver.ts", imports: ["*"] },
  // Nothing may be loaded before the compiled code of it is looked for.
  { path: "main.ts", imports: ["kube-apiserver.ts"] },
  { path: "flags.ts", imports: ["flags"] },
  { path: "flags", imports: [] },
];

/** Packages, and which others each may import. Tools and e2e may import any. */
export const packages: Readonly<Record<string, readonly string[]>> = {
  apimachinery: [],
  apiserver: ["apimachinery"],
  "controller-manager": ["apimachinery"],
  scheduler: ["apimachinery"],
  "node-agent": ["apimachinery"],
  "cluster-services": ["apimachinery"],
  testing: ["apimachinery", "apiserver", "controller-manager", "scheduler"],
  ui: ["apimachinery"],
};
