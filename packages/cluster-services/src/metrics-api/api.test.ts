import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { answerResource, type Inventory, targetOf } from "./api.ts";
import { nodeMetrics } from "./objects.ts";
import { newUsageStore } from "./usage-store.ts";

const t0 = Date.parse("2022-01-01T00:00:00Z");
const store = newUsageStore();
for (const seconds of [0, 15.5]) {
  const sample = { at: t0 + seconds * 1000, cpuSeconds: seconds * 0.25, memoryBytes: 12 * 1024 * 1024 };
  const containers = new Map([
    ["main", sample],
    ["side", { ...sample, memoryBytes: 1000 }],
  ]);
  store.put("n1", {
    node: sample,
    pods: new Map([
      ["default/web", containers],
      ["default/db", containers],
      ["other/x", containers],
    ]),
  });
}
const pod = (namespace: string, name: string, app: string): KubeObject => ({ metadata: { namespace, name, labels: { app } } });
const allPods = [
  pod("default", "web", "web"),
  pod("default", "db", "db"),
  pod("other", "x", "web"),
  pod("default", "new", "web"),
];
const allNodes: KubeObject[] = [{ metadata: { name: "n1", labels: { zone: "a" } } }, { metadata: { name: "n2" } }];
const inventory: Inventory = {
  nodes: { get: (name) => allNodes.find(({ metadata }) => metadata.name === name), list: () => allNodes },
  pods: {
    get: (key) => allPods.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key),
    list: () => allPods,
    inNamespace: (namespace) => allPods.filter(({ metadata }) => metadata.namespace === namespace),
  },
};

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
function get(url: string, accept = "application/json"): any {
  const [path = "", query = ""] = url.split("?");
  const target = targetOf(path);
  assert.equal(target?.kind, "resource");
  return answerResource({ target: target, query: new URLSearchParams(query), accept }, inventory, store, t0 + 20_000);
}
const base = "/apis/metrics.k8s.io/v1beta1";
// biome-ignore lint/suspicious/noExplicitAny: as above
const names = (list: any): string[] => list.items.map((item: KubeObject) => item.metadata.name);

test("gives a node's usage in the notation of metrics-server", () => {
  assert.deepEqual(get(`${base}/nodes/n1`), {
    kind: "NodeMetrics",
    apiVersion: "metrics.k8s.io/v1beta1",
    metadata: { name: "n1", labels: { zone: "a" }, creationTimestamp: "2022-01-01T00:00:20Z" },
    timestamp: "2022-01-01T00:00:15Z",
    window: "15.5s",
    usage: { cpu: "250m", memory: "12Mi" },
  });
});

test("gives a pod's usage by container", () => {
  assert.deepEqual(get(`${base}/namespaces/default/pods/web`), {
    kind: "PodMetrics",
    apiVersion: "metrics.k8s.io/v1beta1",
    metadata: { name: "web", namespace: "default", labels: { app: "web" }, creationTimestamp: "2022-01-01T00:00:20Z" },
    timestamp: "2022-01-01T00:00:15Z",
    window: "15.5s",
    containers: [
      { name: "main", usage: { cpu: "250m", memory: "12Mi" } },
      { name: "side", usage: { cpu: "250m", memory: "1k" } },
    ],
  });
});

test("use is written in billionths of a core and whole bytes", () => {
  const usage = { at: t0, windowMs: 1_000, cpuCores: 0.1234567891, memoryBytes: 2047.6 };
  const { usage: written } = nodeMetrics({ name: "n" }, usage, t0);
  assert.deepEqual(written, { cpu: "123456789n", memory: "2Ki" });
});

test("lists pods that have metrics, by labels and fields, sorted", () => {
  assert.deepEqual(names(get(`${base}/pods`)), ["db", "web", "x"]);
  assert.deepEqual(names(get(`${base}/namespaces/default/pods`)), ["db", "web"]);
  assert.deepEqual(names(get(`${base}/pods?labelSelector=app%3Dweb`)), ["web", "x"]);
  assert.deepEqual(names(get(`${base}/pods?fieldSelector=metadata.namespace%3Dother`)), ["x"]);
  assert.deepEqual(names(get(`${base}/namespaces/absent/pods`)), []);
  assert.deepEqual(names(get(`${base}/nodes`)), ["n1"]);
});

test("gives a table with the sum of a pod's containers", () => {
  const table = get(`${base}/namespaces/default/pods/web`, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  assert.deepEqual(table.rows[0].cells, ["web", "500m", "12583912", "15.5s"]);
  assert.deepEqual(
    table.columnDefinitions.map((column: { name: string }) => column.name),
    ["Name", "cpu", "memory", "Window"],
  );
});

test("pods of all namespaces are sorted by namespace, then by name", () => {
  const sample = (at: number) => ({ at, cpuSeconds: at / 1_000, memoryBytes: 1 });
  const own = newUsageStore();
  const pods = [pod("b", "a", "x"), pod("a", "z", "x"), pod("a", "y", "x")];
  for (const at of [1_000, 2_000])
    own.put("n1", {
      node: undefined,
      pods: new Map(pods.map(({ metadata }) => [`${metadata.namespace}/${metadata.name}`, new Map([["c", sample(at)]])])),
    });
  const target = targetOf(`${base}/pods`);
  assert.equal(target?.kind, "resource");
  const list = answerResource(
    { target, query: new URLSearchParams(), accept: "" },
    { ...inventory, pods: { ...inventory.pods, list: () => pods } },
    own,
    3_000,
  ) as { items: KubeObject[] };
  assert.deepEqual(
    list.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
    ["a/y", "a/z", "b/a"],
  );
});

test("of the forms that a client accepts the first that is served is used", () => {
  const kind = (accept: string): string => get(`${base}/nodes`, accept).kind;
  const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  for (const [accept, want] of [
    ["", "NodeMetricsList"],
    ["*/*", "NodeMetricsList"],
    ["application/*", "NodeMetricsList"],
    ["text/html, application/json;q=0.5", "NodeMetricsList"],
    [`text/html, ${table}`, "Table"],
    [`application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, ${table}, application/json`, "Table"],
    ["application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json", "NodeMetricsList"],
    ["application/json;as=Table;v=v1;g=other, application/json", "NodeMetricsList"],
    ["APPLICATION/JSON; as=table; g=meta.k8s.io; v=v1", "Table"],
  ] as const)
    assert.equal(kind(accept), want, accept);
  assert.throws(
    () => kind("application/json;as=Table;v=v1beta1;g=meta.k8s.io"),
    (err) => err instanceof StatusError && err.code === 406,
  );
});

test("a pod that does not exist any more has no metrics, though some are known", () => {
  const own = { node: store.node, pod: () => store.pod("default/web") };
  const target = targetOf(`${base}/namespaces/default/pods/gone`);
  assert.equal(target?.kind, "resource");
  const ask = () => answerResource({ target, query: new URLSearchParams(), accept: "" }, inventory, own, 0);
  assert.throws(ask, (err) => err instanceof StatusError && err.code === 404);
});

for (const { url, accept, code, message } of [
  { url: `${base}/nodes/n2`, code: 404, message: 'nodes.metrics.k8s.io "n2" not found' },
  { url: `${base}/nodes/n3`, code: 404, message: 'nodes.metrics.k8s.io "n3" not found' },
  { url: `${base}/namespaces/default/pods/new`, code: 404, message: 'pods.metrics.k8s.io "default/new" not found' },
  { url: `${base}/pods?watch=true`, code: 405, message: "watch is not supported" },
  { url: `${base}/pods?watch=`, code: 405, message: "watch is not supported" },
  { url: `${base}/nodes?watch=1`, code: 405, message: "watch is not supported" },
  { url: `${base}/pods?labelSelector=a%20b`, code: 400, message: "unable to parse requirement" },
  { url: `${base}/pods`, accept: "text/html", code: 406, message: "application/json" },
]) {
  test(`refuses ${url} ${accept ?? ""}`, () => {
    assert.throws(
      () => get(url, accept),
      (err) => err instanceof StatusError && err.code === code && err.message.includes(message),
    );
  });
}

test("discovery names the group, its version and its resources", () => {
  const bodyOf = (path: string): unknown => {
    const target = targetOf(path);
    assert.equal(target?.kind, "document");
    return target.body();
  };
  const version = { groupVersion: "metrics.k8s.io/v1beta1", version: "v1beta1" };
  const group = { name: "metrics.k8s.io", versions: [version], preferredVersion: version };
  assert.deepEqual(bodyOf("/apis"), { kind: "APIGroupList", apiVersion: "v1", groups: [group] });
  assert.deepEqual(bodyOf("/apis/metrics.k8s.io/"), { kind: "APIGroup", apiVersion: "v1", ...group });
  const verbs = ["get", "list"];
  assert.deepEqual(bodyOf(base), {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: "metrics.k8s.io/v1beta1",
    resources: [
      { name: "nodes", singularName: "", namespaced: false, kind: "NodeMetrics", verbs },
      { name: "pods", singularName: "", namespaced: true, kind: "PodMetrics", verbs },
    ],
  });
});

test("OpenAPI has the kind, the action and the answer of each path, and what each kind requires", () => {
  const target = targetOf("/openapi/v2");
  assert.equal(target?.kind, "document");
  const { paths, definitions } = target.body() as {
    paths: Record<string, { get: Record<string, unknown>; parameters?: { name: string }[] }>;
    definitions: Record<string, { required?: string[]; "x-kubernetes-group-version-kind"?: { kind: string }[] }>;
  };
  const operations = Object.entries(paths).map(([path, { get, parameters = [] }]) => {
    const { kind } = get["x-kubernetes-group-version-kind"] as { kind: string };
    const answer = JSON.stringify(get["responses"]).match(/v1beta1\.(\w+)/)?.[1];
    return [
      path.slice(base.length),
      get["operationId"],
      get["x-kubernetes-action"],
      kind,
      answer,
      ...parameters.map(({ name }) => name),
    ];
  });
  assert.deepEqual(operations, [
    ["/nodes", "listMetricsV1beta1NodeMetricsList", "list", "NodeMetrics", "NodeMetricsList"],
    ["/nodes/{name}", "getMetricsV1beta1NodeMetrics", "get", "NodeMetrics", "NodeMetrics", "name"],
    ["/pods", "listMetricsV1beta1PodMetricsList", "list", "PodMetrics", "PodMetricsList"],
    ["/namespaces/{namespace}/pods", "listMetricsV1beta1PodMetricsList", "list", "PodMetrics", "PodMetricsList", "namespace"],
    [
      "/namespaces/{namespace}/pods/{name}",
      "getMetricsV1beta1PodMetrics",
      "get",
      "PodMetrics",
      "PodMetrics",
      "name",
      "namespace",
    ],
  ]);
  const required = Object.entries(definitions).map(([name, definition]) => [
    name.slice(name.lastIndexOf(".") + 1),
    definition["x-kubernetes-group-version-kind"]?.[0]?.kind,
    definition.required?.join(),
  ]);
  assert.deepEqual(required, [
    ["NodeMetrics", "NodeMetrics", "timestamp,window,usage"],
    ["NodeMetricsList", "NodeMetricsList", "items"],
    ["ContainerMetrics", undefined, "name,usage"],
    ["PodMetrics", "PodMetrics", "timestamp,window,containers"],
    ["PodMetricsList", "PodMetricsList", "items"],
    ["ObjectMeta", undefined, undefined],
    ["ListMeta", undefined, undefined],
  ]);
});

test("serves discovery and OpenAPI, and nothing under other paths", () => {
  for (const path of ["/apis", "/apis/metrics.k8s.io", base, `${base}/`, "/openapi/v2"])
    assert.equal(targetOf(path)?.kind, "document");
  for (const path of [
    "/",
    "/api",
    `${base}/services`,
    `${base}/namespaces/a`,
    `${base}/namespaces//pods`,
    `${base}/namespaces/a/pods/b/c`,
    `${base}/nodes/a/b`,
    `${base}/pods/a`,
    `${base}2/nodes`,
    `${base}/nodes/%ff`,
  ])
    assert.equal(targetOf(path), undefined, path);
});
