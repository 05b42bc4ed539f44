/** Which room may import which; ARCHITECTURE.md shows the same as a picture. */

/** Rooms of apimachinery in order: each may import only those before it, and itself. */
export const apimachineryRooms: readonly string[] = [
  "event-loop",
  "clock",
  "files",
  "logging",
  "metrics",
  "meta",
  "http2",
  "cron",
  "errors",
  "validation",
  "selectors",
  "schema",
  "scheduling",
  "volumes",
  "quota",
  "storage-versions",
  "watch-stream",
  "codec",
  "patch",
  "flex-volumes",
  "client",
  "informers",
  "workqueue",
  "controller",
  "flags",
  "serving",
  "testing",
];

export interface Room {
  /** A file or folder below the package's `src`. The longest match decides. */
  readonly path: string;
  /** Files or folders of the same package it may import, besides itself; `*`: everything. */
  readonly imports: readonly string[];
}

/** What every later room may know of a request, a decision and a stored object: interfaces without code. */
const contracts = ["request", "authorization/authorizer.ts", "storage/storage.ts"];
const filters = ["filters", "authentication", "authorization", "audit", "flow-control"];

/** What the store and the cache around it share; none of it knows etcd. */
const storageContracts = ["storage", "continue-token", "key-layout", "entry", "selection", "watch-queue", "metrics"].map(
  (name) => `storage/${name}.ts`,
);

/** What a storage over another one is made of. */
const storageViews = ["storage", "entry", "object-codec", "watch-queue"].map((name) => `storage/${name}.ts`);

export const apiserverRooms: readonly Room[] = [
  { path: "request", imports: [] },
  ...filters.map((path) => ({ path, imports: ["request", ...filters] })),
  { path: "handlers", imports: ["request", "admission", "registry/generic", "node-proxy", "storage/storage.ts"] },
  { path: "node-proxy", imports: ["request", "registry/generic", "egress"] },
  // The way out of the server.
  { path: "egress", imports: [] },
  { path: "admission", imports: ["request", "egress", "authorization/authorizer.ts", "authorization/pod-references.ts"] },
  // The server's own client: reads the stores directly, writes through the router.
  { path: "loopback", imports: ["request", "registry/generic", "storage/storage.ts"] },
  // A language, which knows nothing of the server.
  { path: "cel", imports: [] },
  { path: "registry", imports: [...contracts, "cel"] },
  { path: "watch", imports: storageContracts },
  { path: "storage", imports: ["registry/generic/resource.ts"] },
  { path: "storage/storage.ts", imports: [] },
  // Where the store and the watch cache around it are put together.
  { path: "storage/open.ts", imports: ["storage", "watch", "registry/generic/resource.ts"] },
  {
    path: "custom-resources",
    imports: ["registry/generic", "registry/definition.ts", "registry/apiextensions", "cel", "request", ...storageViews],
  },
  // Sends requests on as the node proxy does.
  { path: "aggregation", imports: ["request", "node-proxy", "egress"] },
  { path: "bootstrap", imports: ["registry/generic", "request", "storage/storage.ts"] },
  { path: "testing", imports: ["*"] },
  { path: "server.ts", imports: ["*"] },
  { path: "server", imports: ["*"] },
  { path: "config.ts", imports: ["*"] },
  { path: "kube-apiserver.ts", imports: ["*"] },
  // Nothing may be loaded before the compiled code of it is looked for.
  { path: "main.ts", imports: ["kube-apiserver.ts"] },
  { path: "flags.ts", imports: [] },
];

/** Packages that may import only apimachinery. Tools and e2e may import any. */
export const daemons: readonly string[] = ["apiserver", "controller-manager", "scheduler", "node-agent"];
