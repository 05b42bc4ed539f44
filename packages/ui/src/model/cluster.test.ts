import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster } from "./cluster.ts";
import { reordered } from "./order.ts";
import { parseQuery } from "./query.ts";
import { formatRoute, parseRoute } from "./route.ts";
import type { PodRow, Row } from "./row.ts";
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
