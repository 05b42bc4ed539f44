import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { catalogue, enabledControllers } from "./catalogue.ts";
import type { ControllerContext } from "./controller-context.ts";
import { newTestContext } from "./testing/test-context.ts";

const off = () => false;

test("knows the 38 controllers of 1.23, and one of an alpha feature, each once", () => {
  assert.equal(catalogue.filter(({ onlyWith }) => onlyWith === undefined).length, 38);
  assert.equal(catalogue.length, 39);
  assert.equal(new Set(catalogue.map(({ name }) => name)).size, 39);
});

for (const { words, has, lacks } of [
  { words: ["*"], has: ["deployment", "namespace"], lacks: ["bootstrapsigner", "tokencleaner"] },
  { words: ["*", "-deployment"], has: ["replicaset"], lacks: ["deployment"] },
  { words: ["deployment"], has: ["deployment"], lacks: ["replicaset"] },
  { words: ["-deployment", "*", "deployment"], has: ["replicaset"], lacks: ["deployment"] },
  { words: [], has: [], lacks: ["deployment"] },
]) {
  test(`--controllers=${words.join(",")}`, () => {
    const errors: string[] = [];
    const enabled = enabledControllers(words, errors, off);
    assert.deepEqual(errors, []);
    for (const name of has) assert.ok(enabled.has(name), `${name} is on`);
    for (const name of lacks) assert.ok(!enabled.has(name), `${name} is off`);
  });
}

test("service accounts and sources of events have upstream's names, which follow no rule", () => {
  const unlike = (name: string, rule: string): string => (name === rule ? "" : name);
  const odd = catalogue.flatMap(({ name, user, component = user }) => {
    const [account, source] = [unlike(user, `${name}-controller`), unlike(component, user)];
    return account === "" && source === "" ? [] : [[name, account, source].join(" ").trim()];
  });
  assert.deepEqual(odd, [
    "serviceaccount-token tokens-controller",
    "endpointslice  endpoint-slice-controller",
    "endpointslicemirroring  endpoint-slice-mirroring-controller",
    "replicationcontroller replication-controller",
    "podgc pod-garbage-collector",
    "serviceaccount service-account-controller",
    "garbagecollector generic-garbage-collector garbage-collector-controller",
    "daemonset daemon-set-controller daemonset-controller",
    "horizontalpodautoscaling horizontal-pod-autoscaler",
    "disruption  controllermanager",
    ...["csrsigning", "csrapproving", "csrcleaner"].map((name) => `${name} certificate-controller`),
    "bootstrapsigner bootstrap-signer",
    "tokencleaner token-cleaner",
    "nodeipam node-controller cidrAllocator",
    "nodelifecycle node-controller",
    "cloud-node-lifecycle node-controller",
    "persistentvolume-binder persistent-volume-binder persistentvolume-controller",
    "persistentvolume-expander expand-controller volume_expand",
    "root-ca-cert-publisher root-ca-cert-publisher",
    "ephemeral-volume  ephemeral_volume",
    "storage-version-gc storage-version-garbage-collector",
  ]);
});

test("only the controllers that need many requests have more than the common rate, and only that of tokens the manager's rights", () => {
  assert.deepEqual(
    catalogue.flatMap(({ name, rate, withManagersRights }) =>
      rate || withManagersRights ? [[name, rate, withManagersRights]] : [],
    ),
    [
      ["serviceaccount-token", undefined, true],
      ["namespace", { qps: 20, burst: 100 }, undefined],
      ["garbagecollector", { qps: 2, burst: 2 }, undefined],
    ],
  );
});

test("an unknown name in --controllers is an error that names it", () => {
  const errors: string[] = [];
  enabledControllers(["*", "nope", "-neither", "-job"], errors, off);
  assert.deepEqual(errors, [
    '"nope" is not in the list of known controllers',
    '"neither" is not in the list of known controllers',
  ]);
});

test("a controller of a feature is there when all of its gates are on", () => {
  const gates = new Set(["APIServerIdentity"]);
  const errors: string[] = [];
  const has = (word: string) => enabledControllers([word], errors, (gate) => gates.has(gate)).has("storage-version-gc");
  assert.deepEqual([has("*"), has("storage-version-gc")], [false, false]);
  assert.deepEqual(errors, ['"storage-version-gc" is not in the list of known controllers']);
  gates.add("StorageVersionAPI");
  assert.deepEqual([has("*"), has("storage-version-gc"), errors.length], [true, true, 1]);
});

for (const { name, make } of catalogue) {
  test(`${name} can be started again over the same informers`, (t) => {
    const { ctx } = newTestContext(
      t,
      { nodeIpam: { ranges: [{ cidr: "10.244.0.0/16", maskSize: 24 }], serviceCidrs: [] }, rootCa: "PEM" },
      { TopologyAwareHints: true },
    );
    make(ctx);
    assert.doesNotThrow(() => make(ctx));
  });
}

/** Upstream's named work queues that do not exist here, with the reason. Source: NewNamedRateLimitingQueue and NewNamed in pkg/controller */
const absentQueues: Readonly<Record<string, string>> = {
  disruption_recheck: "a budget is enqueued in the queue `disruption` after a delay",
  garbage_collector_graph_changes: "changes enter the graph when they arrive",
  noexec_taint_node: "a node with changed taints enqueues its pods in `noexec_taint_pod`",
  orphaned_pods_nodes: "podgc looks at all nodes periodically",
  pvcs: "a bound claim enqueues the nodes of its pods in `attachdetach_nodes`",
  resource_quota_controller_resource_changes: "changes enqueue the namespace's quotas when they arrive",
  serviceaccount_tokens_secret: "a Secret enqueues its account in `serviceaccount_tokens_service`",
};

/** Named work queues under upstream's names. */
const sharedQueues = [
  "ClusterRoleAggregator",
  ...["bootstrap_signer_queue", "certificate", "claims", "cronjob", "daemonset", "deployment", "disruption"],
  ...["endpoint", "endpoint_slice", "endpoint_slice_mirroring", "ephemeral_volume"],
  ...["garbage_collector_attempt_to_delete", "garbage_collector_attempt_to_orphan"],
  ...["horizontalpodautoscaler", "job", "job_orphan_pod", "namespace"],
  ...["node_lifecycle_controller", "node_lifecycle_controller_pods", "noexec_taint_pod"],
  ...["pvcprotection", "pvprotection", "replicaset", "replicationmanager", "resourcequota_primary", "resourcequota_priority"],
  ...["root_ca_cert_publisher", "serviceaccount", "serviceaccount_tokens_service", "statefulset"],
  ...["storage_version_garbage_collector_leases", "storage_version_garbage_collector_storageversions"],
  ...["token_cleaner", "ttl_jobs_to_delete", "ttlcontroller", "volume_expand", "volumes"],
];

/** Work queues where upstream uses loops or channels without metrics. */
const ownQueues = [
  ...["attachdetach_flex", "attachdetach_nodes", "attachdetach_volumes", "cidrallocator", "nodelifecycle_evictions"],
];

test("work queues have upstream's names in metrics", (t) => {
  const names: string[] = [];
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { ctx } = newTestContext(
    t,
    {
      nodeIpam: { ranges: [{ cidr: "10.244.0.0/16", maskSize: 24 }], serviceCidrs: [] },
      rootCa: "PEM",
      serviceAccountKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    },
    { TopologyAwareHints: true },
  );
  const none = (): void => {};
  const queueMetrics: NonNullable<ControllerContext["queueMetrics"]> = (name) => {
    names.push(name);
    return { added: none, got: none, done: none, retried: none };
  };
  for (const { make } of catalogue) make({ ...ctx, queueMetrics });
  assert.deepEqual([...new Set(names)].sort(), [...sharedQueues, ...ownQueues].sort());
  assert.deepEqual(
    Object.keys(absentQueues).filter((name) => names.includes(name)),
    [],
  );
});
