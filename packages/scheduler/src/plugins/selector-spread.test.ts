import assert from "node:assert/strict";
import { test } from "node:test";
import { services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { defaultPluginSets } from "../config/plugin-sets.ts";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";

const spreading = { sets: defaultPluginSets("v1beta3", { spreadByTopology: false }) };

test("SelectorSpread prefers zones, then nodes, with fewer pods of a service", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const zone = (name: string, value: string) => aTestNode(name, { labels: { "topology.kubernetes.io/zone": value } });
  const cluster = newTestCluster({
    nodes: [zone("a", "x"), zone("b", "x"), zone("c", "y")],
    pods: [aTestPod("web", { on: "a", labels })],
    objects: [[services, service]],
    ...spreading,
  });
  assert.deepEqual(cluster.scores("SelectorSpread", aTestPod("new", { labels })), { a: 0, b: 33, c: 100 });
});

test("SelectorSpread counts the pods that all services of the pod select", () => {
  const service = (name: string, selector: object) => ({ metadata: { name, namespace: "default" }, spec: { selector } });
  const labels = { app: "web", tier: "front" };
  const cluster = newTestCluster({
    nodes: [aTestNode("a"), aTestNode("b")],
    pods: [aTestPod("both", { on: "a", labels }), aTestPod("one", { on: "b", labels: { app: "web" } })],
    objects: [
      [services, service("web", { app: "web" })],
      [services, service("front", { tier: "front" })],
    ],
    ...spreading,
  });
  assert.deepEqual(cluster.scores("SelectorSpread", aTestPod("new", { labels })), { a: 0, b: 100 });
});

test("SelectorSpread scores a node without a zone by its own pods only", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const cluster = newTestCluster({
    nodes: [aTestNode("zoned", { labels: { "topology.kubernetes.io/zone": "x" } }), aTestNode("bare")],
    pods: ["zoned", "bare", "bare"].map((on, i) => aTestPod(`web${i}`, { on, labels })),
    objects: [[services, service]],
    ...spreading,
  });
  assert.deepEqual(cluster.scores("SelectorSpread", aTestPod("new", { labels })), { zoned: 16, bare: 0 });
});

test("SelectorSpread knows zones by region alone, and by the former labels, which win", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const beta = "failure-domain.beta.kubernetes.io";
  const cluster = newTestCluster({
    nodes: [
      aTestNode("full", { labels: { "topology.kubernetes.io/region": "r" } }),
      aTestNode("beside", { labels: { [`${beta}/region`]: "r", "topology.kubernetes.io/region": "other" } }),
      aTestNode("zoned", { labels: { [`${beta}/region`]: "r", [`${beta}/zone`]: "z" } }),
    ],
    pods: [aTestPod("web", { on: "full", labels })],
    objects: [[services, service]],
    ...spreading,
  });
  const scores = cluster.scores("SelectorSpread", aTestPod("new", { labels }));
  assert.deepEqual(scores, { full: 0, beside: 33, zoned: 100 });
});

test("SelectorSpread leaves pods with spread constraints of their own alone", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const cluster = newTestCluster({
    nodes: [aTestNode("a"), aTestNode("b")],
    pods: [aTestPod("web", { on: "a", labels })],
    objects: [[services, service]],
    ...spreading,
  });
  const constraint = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" as const };
  const pod = aTestPod("new", { labels, spec: { topologySpreadConstraints: [constraint] } });
  assert.deepEqual(cluster.scores("SelectorSpread", pod), { a: 0, b: 0 });
});
