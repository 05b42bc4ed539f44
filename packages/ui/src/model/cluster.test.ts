import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster, nodesOf } from "./cluster.ts";
import { reordered } from "./order.ts";
import { parseQuery } from "./query.ts";
import { formatRoute, parseRoute } from "./route.ts";
import type { NodeRow, PodRow, Row } from "./row.ts";
import { troublesOf } from "./trouble.ts";

const row = (resource: Row["resource"], uid: string, more: object = {}): Row =>
  ({ resource, uid, namespace: "a", name: uid, createdMs: 0, owner: "", sinceMs: 0, health: "good", status: "", ...more }) as Row;
const pod = (uid: string, more: object = {}): PodRow =>
  row("pods", uid, { node: "n1", ready: 1, containers: 1, restarts: 0, cpuMilli: 100, memoryBytes: 1, ...more }) as PodRow;

function clusterOf(rows: readonly Row[]): { cluster: Cluster; report: () => void } {
  let report = (): void => {};
  const cluster = new Cluster((reported) => {
    report = reported;
  });
  cluster.apply({ type: "rows", set: rows, gone: [] });
  return { cluster, report: () => report() };
}

test("a pod is found only under its current node and owner, and nowhere after its deletion", () => {
  const { cluster } = clusterOf([row("replicasets.apps", "rs"), pod("p", { node: "", owner: "rs" }), pod("q", { owner: "rs" })]);
  assert.deepEqual(
    cluster.podsOf("").pods.map(({ uid }) => uid),
    ["p"],
  );
  assert.deepEqual(
    cluster.owned("rs").map(({ uid }) => uid),
    ["p", "q"],
  );
  cluster.apply({ type: "rows", set: [pod("p", { owner: "" })], gone: [] });
  assert.deepEqual(cluster.podsOf("").pods, []);
  assert.deepEqual(
    cluster.podsOf("n1").pods.map(({ uid }) => uid),
    ["p", "q"],
  );
  assert.equal(cluster.podsOf("n1").requested.cpuMilli, 200);
  assert.deepEqual(
    cluster.owned("rs").map(({ uid }) => uid),
    ["q"],
  );
  cluster.apply({ type: "rows", set: [], gone: ["p", "q", "never-there"] });
  assert.deepEqual([cluster.podsOf("n1").pods, cluster.owned("rs"), cluster.get("p")], [[], [], undefined]);
  assert.equal(cluster.all("pods").size, 0);
});

test("the pods of a node are the same array until one of them changes", () => {
  const { cluster } = clusterOf([pod("p"), pod("q", { node: "n2" })]);
  const before = cluster.podsOf("n1");
  cluster.apply({ type: "rows", set: [pod("q", { node: "n2", ready: 0 })], gone: [] });
  assert.equal(cluster.podsOf("n1"), before);
  cluster.apply({ type: "rows", set: [pod("p", { ready: 0 })], gone: [] });
  assert.notEqual(cluster.podsOf("n1"), before);
});

test("owners are followed to the top, and a cycle ends", () => {
  const { cluster } = clusterOf([
    row("deployments.apps", "d"),
    row("replicasets.apps", "rs", { owner: "d" }),
    pod("p", { owner: "rs" }),
  ]);
  assert.deepEqual(
    cluster.owners(cluster.get("p") as Row).map(({ uid }) => uid),
    ["rs", "d"],
  );
  const circle = clusterOf([pod("a", { owner: "b" }), pod("b", { owner: "a" })]).cluster;
  assert.equal(circle.owners(circle.get("a") as Row).length, 10);
});

test("listeners are called once for several changes, and no more after they unsubscribed", () => {
  const { cluster, report } = clusterOf([]);
  let heard = 0;
  const leave = cluster.subscribe(() => heard++);
  cluster.apply({ type: "rows", set: [pod("p")], gone: [] });
  report();
  assert.equal(heard, 1);
  leave();
  cluster.apply({ type: "rows", set: [pod("q")], gone: [] });
  report();
  assert.equal(heard, 1);
});

test("unhealthy objects: pods that fail alike are one entry, and owners whose pods explain the failure have no entry", () => {
  const crashing = { owner: "rs", health: "bad", status: "CrashLoopBackOff" };
  const { cluster } = clusterOf([
    row("deployments.apps", "d", { health: "bad" }),
    row("replicasets.apps", "rs", { owner: "d", health: "moving" }),
    ...["p", "q", "r"].map((uid) => pod(uid, crashing)),
    pod("other", { owner: "rs", health: "bad", status: "Evicted" }),
    row("deployments.apps", "alone", { health: "bad" }),
    row("persistentvolumeclaims", "young", { health: "moving", sinceMs: 1_000_000 }),
    row("persistentvolumeclaims", "old", { health: "moving", sinceMs: 1 }),
    row("nodes", "cordoned", { health: "moving" }),
  ]);
  const found = troublesOf(cluster, 1_010_000).map((one) => [one.row.uid, one.more]);
  assert.deepEqual(found, [
    ["p", 2],
    ["other", 0],
    ["alone", 0],
    ["old", 0],
  ]);
});

test("an incremental sort gives the same order as a full sort", () => {
  const compare = (a: Row, b: Row): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  let before: Row[] = [];
  const rows = new Map<string, Row>();
  for (let i = 0; i < 200; i++) {
    const uid = String((i * 37) % 100);
    if (i % 3 === 0) rows.delete(uid);
    else rows.set(uid, row("pods", uid, { name: `n${(i * 53) % 97}-${uid}` }));
    before = reordered(before, rows, compare);
    assert.deepEqual(before, [...rows.values()].sort(compare));
  }
});

test("an object is found by its resource, namespace and name", () => {
  const { cluster } = clusterOf([pod("p", { name: "web" }), pod("q", { name: "web", namespace: "b" })]);
  assert.equal(cluster.find("pods", "b", "web")?.uid, "q");
  assert.equal(cluster.find("pods", "a", "web")?.uid, "p");
  for (const [resource, namespace, name] of [
    ["pods", "a", "other"],
    ["pods", "c", "web"],
    ["services", "a", "web"],
    ["constructor", "a", "web"],
  ] as const)
    assert.equal(cluster.find(resource, namespace, name), undefined);
});

test("each message makes a new version of the cluster, each changed row one of its resource", () => {
  const { cluster } = clusterOf([pod("p"), pod("q")]);
  const versions = () => [cluster.version, cluster.versionOf("pods"), cluster.versionOf("nodes")];
  assert.deepEqual(versions(), [1, 2, 0]);
  cluster.apply({ type: "rows", set: [row("nodes", "n")], gone: ["p"] });
  assert.deepEqual(versions(), [2, 3, 1]);
  cluster.apply({ type: "rows", set: [], gone: ["p"] });
  assert.deepEqual(versions(), [3, 3, 1]);
});

test("the usage of nodes and pods is that of the last message; a resource is loading until its state is known", () => {
  const { cluster } = clusterOf([]);
  const [node, one] = [row("nodes", "n1") as NodeRow, pod("p")];
  assert.deepEqual([cluster.usageOf(node), cluster.usageOf(one), cluster.hasPodUsage], [undefined, undefined, false]);
  cluster.apply({ type: "usage", nodes: [["n1", 10, 20]], pods: [["a/p", 1, 2]] });
  assert.deepEqual(
    [cluster.usageOf(node), cluster.usageOf(one), cluster.usageOf(pod("p", { namespace: "b" })), cluster.hasPodUsage],
    [{ cpuMilli: 10, memoryBytes: 20 }, { cpuMilli: 1, memoryBytes: 2 }, undefined, true],
  );
  cluster.apply({ type: "usage", nodes: [], pods: [] });
  assert.deepEqual([cluster.usageOf(node), cluster.hasPodUsage], [undefined, false]);
  assert.deepEqual(cluster.source("pods"), { state: "loading", message: "" });
  const denied = { state: "denied", message: "no" } as const;
  cluster.apply({ type: "source", resource: "pods", source: denied });
  assert.deepEqual([cluster.source("pods"), [...cluster.sources]], [denied, [["pods", denied]]]);
});

test("nodes and owned objects come by namespace, name and uid; pods that are done request nothing", () => {
  const { cluster } = clusterOf([
    row("nodes", "2", { name: "b" }),
    row("nodes", "1", { name: "b" }),
    row("nodes", "3", { name: "a" }),
    row("pods", "elsewhere", { namespace: "z", name: "a", owner: "o", node: "n1", health: "good", cpuMilli: 5, memoryBytes: 6 }),
    pod("done", { owner: "o", health: "idle", cpuMilli: 7, memoryBytes: 8 }),
  ]);
  assert.deepEqual(
    nodesOf(cluster).map(({ uid }) => uid),
    ["3", "1", "2"],
  );
  assert.deepEqual(
    cluster.owned("o").map(({ uid }) => uid),
    ["done", "elsewhere"],
  );
  assert.deepEqual(cluster.podsOf("n1").requested, { cpuMilli: 5, memoryBytes: 6 });
  assert.deepEqual(cluster.podsOf("n9"), { pods: [], requested: { cpuMilli: 0, memoryBytes: 0 } });
});

const searched = {
  pod: pod("u", { name: "web", node: "N-1".toLowerCase() }),
  set: row("deployments.apps", "u", { desired: 1, images: "Registry/Img:1" }),
  event: row("events", "u", { reason: "Failed", message: "No Space", aboutKind: "Job", aboutName: "nightly" }),
  node: row("nodes", "u", { namespace: "", status: "Ready" }),
};
for (const [query, want] of [
  ["n-1", ["pod"]],
  ["img:1", ["set"]],
  ["fail", ["event"]],
  ["space", ["event"]],
  ["job", ["event"]],
  ["nightly", ["event"]],
  ["ready", ["node"]],
  ["kind:deployment", ["set"]],
  ["kind:deployments", ["set"]],
  ["kind:node", ["node"]],
  ["node:n-1", ["pod"]],
  ["is:good", ["pod", "set", "event", "node"]],
  ["ns:a fail", ["event"]],
] as const) {
  test(`the search ${query} finds ${want.join(", ")}`, () => {
    const found = Object.entries(searched).filter(([, one]) => parseQuery(query)?.(one));
    assert.deepEqual(
      found.map(([name]) => name),
      want,
    );
  });
}

test("the address of a view has only what is set", () => {
  const route = { view: "events", query: "", namespace: "", object: undefined, tab: "logs" } as const;
  assert.equal(formatRoute(route), "#/events");
  const object = { resource: "pods", namespace: "a", name: "p" };
  assert.equal(formatRoute({ ...route, object, tab: "why" }), "#/events?o=pods%2Fa%2Fp");
  assert.equal(formatRoute({ ...route, object, namespace: "n" }), "#/events?ns=n&o=pods%2Fa%2Fp&tab=logs");
  assert.deepEqual(parseRoute("#/events?ns=n&tab=logs&q=x"), { ...route, namespace: "n", query: "x" });
});

for (const { query, want } of [
  { query: "", want: undefined },
  { query: "   ", want: undefined },
  { query: "WEB", want: true },
  { query: "web crash", want: true },
  { query: "web running", want: false },
  { query: "ns:shop is:bad kind:pod node:n1", want: true },
  { query: "kind:pods", want: true },
  { query: "ns:sho", want: false },
  { query: "is:crashloopbackoff", want: true },
  { query: "unknown:word", want: false },
  { query: "ns:", want: false },
  { query: "constructor:x", want: false },
]) {
  test(`the search ${JSON.stringify(query)} gives ${want}`, () => {
    const one = pod("u", { namespace: "shop", name: "web-1", health: "bad", status: "CrashLoopBackOff" });
    assert.equal(parseQuery(query)?.(one), want);
  });
}

test("a written address is read as the same view, and an invalid one as the first view", () => {
  const route = {
    view: "pods",
    query: "a&b=#%",
    namespace: "x",
    object: { resource: "deployments.apps", namespace: "", name: "a b" },
    tab: "json",
  } as const;
  assert.deepEqual(parseRoute(formatRoute(route)), route);
  for (const hash of ["", "#", "#/nowhere", "#/?o=a", "#/cluster?o=//&tab=x", "#/%E0%A4%A?q"]) {
    assert.partialDeepStrictEqual(parseRoute(hash), { view: "cluster", object: undefined, tab: "why" });
  }
});
