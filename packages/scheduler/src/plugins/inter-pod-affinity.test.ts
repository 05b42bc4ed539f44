import assert from "node:assert/strict";
import { test } from "node:test";
import type { Affinity, Pod, PodAffinityTerm } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNamespace } from "@coxswain/apimachinery/testing/builders";
import { FitError } from "../framework/status.ts";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";

const zone = "zone";
const node = (name: string, value: string) => aTestNode(name, { labels: { [zone]: value } });
const nodes = [node("a", "x"), node("b", "x"), node("c", "y")];
const term = (app: string, more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({
  topologyKey: zone,
  labelSelector: { matchLabels: { app } },
  ...more,
});
const near = (...terms: PodAffinityTerm[]): Affinity => ({
  podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms },
});
const away = (...terms: PodAffinityTerm[]): Affinity => ({
  podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms },
});
const pod = (name: string, app: string, affinity?: Affinity, more: object = {}): Pod =>
  aTestPod(name, { labels: { app }, spec: affinity === undefined ? {} : { affinity }, cpu: "100m", ...more });
const notNear = "node(s) didn't match pod affinity rules";
const notAway = "node(s) didn't match pod anti-affinity rules";
const existing = "node(s) didn't satisfy existing pods anti-affinity rules";
const teams = [
  [namespaces, aNamespace({ name: "default", labels: { team: "one" } })],
  [namespaces, aNamespace({ name: "other", labels: { team: "two" } })],
] as const;

for (const { name, wanted, pods, want } of [
  {
    name: "a pod is placed where its neighbour is",
    wanted: pod("new", "web", near(term("db"))),
    pods: [pod("db", "db", undefined, { on: "c" })],
    want: "c",
  },
  {
    name: "without its neighbour it is not placed",
    wanted: pod("new", "web", near(term("db"))),
    pods: [],
    want: `0/3 nodes are available: 3 ${notNear}.`,
  },
  {
    name: "the first of several pods with affinity to each other may use any node",
    wanted: pod("new", "web", near(term("web"))),
    pods: [],
    want: "a",
  },
  {
    name: "the second of them is placed beside the first",
    wanted: pod("new", "web", near(term("web"))),
    pods: [pod("web-1", "web", near(term("web")), { on: "c" })],
    want: "c",
  },
  {
    name: "the second of them is not placed elsewhere when there is no room beside the first",
    wanted: pod("new", "web", near(term("web")), { cpu: "2" }),
    pods: [pod("web-1", "web", near(term("web")), { on: "c", cpu: "3" })],
    want: `0/3 nodes are available: 1 Insufficient cpu, 2 ${notNear}.`,
  },
  {
    name: "a term with a namespace selector alone does not mean the pod's own namespace",
    wanted: pod("new", "web", away(term("db", { namespaceSelector: { matchLabels: { team: "two" } } }))),
    pods: ["a", "b", "c"].map((on) => pod(`db-${on}`, "db", undefined, { on })),
    want: "a",
  },
  {
    name: "every term needs a pod that all terms mean",
    wanted: pod("new", "web", near(term("db"), term("cache"))),
    pods: [pod("db", "db", undefined, { on: "c" }), pod("cache", "cache", undefined, { on: "c" })],
    want: `0/3 nodes are available: 3 ${notNear}.`,
  },
  {
    name: "each term has to hold in its own domain, not only the last",
    wanted: pod("new", "web", near(term("db", { topologyKey: "kubernetes.io/hostname" }), term("db"))),
    pods: [pod("db", "db", undefined, { on: "a" })],
    want: "a",
  },
  {
    name: "a pod is not placed in the domain of pods that its anti-affinity selects",
    wanted: pod("new", "web", away(term("db"))),
    pods: [pod("db", "db", undefined, { on: "a" })],
    want: "c",
  },
  {
    name: "a pod is not placed in the domain of pods that the second term of its anti-affinity selects",
    wanted: pod("new", "web", away(term("none"), term("db"))),
    pods: [pod("db", "db", undefined, { on: "a" })],
    want: "c",
  },
  {
    name: "a pod that runs already keeps others away by its second term, too",
    wanted: pod("new", "web"),
    pods: [pod("db", "db", away(term("none"), term("web")), { on: "a" })],
    want: "c",
  },
  {
    name: "with anti-affinity in every domain it is not placed",
    wanted: pod("new", "web", away(term("db"))),
    pods: [pod("db-1", "db", undefined, { on: "a" }), pod("db-2", "db", undefined, { on: "c" })],
    want: `0/3 nodes are available: 3 ${notAway}.`,
  },
  {
    name: "a pod that runs already keeps others away by its own anti-affinity",
    wanted: pod("new", "web"),
    pods: [pod("db-1", "db", away(term("web")), { on: "a" }), pod("db-2", "db", away(term("web")), { on: "c" })],
    want: `0/3 nodes are available: 3 ${existing}.`,
  },
  {
    name: "a topology key that is a property of Object.prototype is no domain",
    wanted: pod("new", "web", away(term("db", { topologyKey: "constructor" }))),
    pods: ["a", "b", "c"].map((on) => pod(`db-${on}`, "db", undefined, { on })),
    want: "a",
  },
  {
    name: "terms select pods of the pod's own namespace",
    wanted: pod("new", "web", away(term("db"))),
    pods: ["a", "b", "c"].map((on) => pod(`db-${on}`, "db", undefined, { on, namespace: "other" })),
    want: "a",
  },
  {
    name: "terms name other namespaces",
    wanted: pod("new", "web", near(term("db", { namespaces: ["other"] }))),
    pods: [pod("db", "db", undefined, { on: "c", namespace: "other" })],
    want: "c",
  },
  {
    name: "terms select namespaces by their labels",
    wanted: pod("new", "web", near(term("db", { namespaceSelector: { matchLabels: { team: "two" } } }))),
    pods: [pod("mine", "db", undefined, { on: "a" }), pod("db", "db", undefined, { on: "c", namespace: "other" })],
    want: "c",
  },
  {
    name: "terms select both named and selected namespaces",
    wanted: pod("new", "web", near(term("db", { namespaces: ["default"], namespaceSelector: { matchLabels: { team: "two" } } }))),
    pods: [pod("db", "db", undefined, { on: "c" })],
    want: "c",
  },
  {
    name: "an empty namespace selector selects all namespaces, also in terms of running pods",
    wanted: pod("new", "web"),
    pods: [pod("db", "db", away(term("web", { namespaceSelector: {} })), { on: "c", namespace: "other" })],
    want: "a",
  },
  {
    name: "a running pod's namespace selector is matched with the new pod's namespace",
    wanted: pod("new", "web"),
    pods: ["a", "c"].map((on) =>
      pod(`db-${on}`, "db", away(term("web", { namespaceSelector: { matchLabels: { team: "one" } } })), {
        on,
        namespace: "other",
      }),
    ),
    want: `0/3 nodes are available: 3 ${existing}.`,
  },
]) {
  test(name, async () => assert.equal(await newTestCluster({ nodes, pods, objects: teams }).place(wanted), want));
}

test("the first of several pods with affinity to each other needs a node with the topology label", async () => {
  const wanted = pod("new", "web", near(term("web"), term("web", { topologyKey: "rack" })));
  const racked = aTestNode("racked", { labels: { [zone]: "x", rack: "1" } });
  const cluster = newTestCluster({ nodes: [node("a", "x"), aTestNode("bare"), racked] });
  assert.equal(await cluster.place(wanted), "racked");
});

test("without PodAffinityNamespaceSelector, namespace selectors match no pods", async () => {
  const wanted = pod("new", "web", near(term("db", { namespaceSelector: {} })));
  const pods = [pod("db", "db", undefined, { on: "c" })];
  const cluster = newTestCluster({ nodes, pods, gates: { PodAffinityNamespaceSelector: false } });
  assert.equal(await cluster.place(wanted), `0/3 nodes are available: 3 ${notNear}.`);
});

const preferred = (weight: number, podAffinityTerm: PodAffinityTerm) => [{ weight, podAffinityTerm }];

for (const { name, wanted, pods, weight = 1, want } of [
  {
    name: "prefers to be near",
    wanted: pod("new", "web", { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred(5, term("db")) } }),
    pods: [pod("db", "db", undefined, { on: "c" })],
    want: { a: 0, b: 0, c: 100 },
  },
  {
    name: "prefers to be away",
    wanted: pod("new", "web", {
      podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred(5, term("db")) },
    }),
    pods: [pod("db", "db", undefined, { on: "c" })],
    want: { a: 100, b: 100, c: 0 },
  },
  {
    name: "the lowest score becomes 0, also when it was above 0",
    wanted: pod("new", "web", { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred(10, term("db")) } }),
    pods: ["a", "c", "c"].map((on, i) => pod(`db-${i}`, "db", undefined, { on })),
    want: { a: 0, b: 0, c: 100 },
  },
  {
    name: "the highest score becomes 100, also when it was below 100",
    wanted: pod("new", "web", {
      podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred(10, term("db")) },
    }),
    pods: ["a", "c", "c"].map((on, i) => pod(`db-${i}`, "db", undefined, { on })),
    want: { a: 100, b: 100, c: 0 },
  },
  {
    name: "a score between the lowest and the highest is rounded down",
    wanted: pod("new", "web", {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: preferred(10, term("db", { topologyKey: "kubernetes.io/hostname" })),
      },
    }),
    pods: ["b", "b", "c", "c", "c"].map((on, i) => pod(`db-${i}`, "db", undefined, { on })),
    want: { a: 0, b: 66, c: 100 },
  },
  {
    name: "a small difference between high scores is scaled to the full range: 5, 5 and 6",
    wanted: pod("new", "web", {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [...preferred(5, term("db")), ...preferred(1, term("cache"))],
      },
    }),
    pods: [
      pod("db-1", "db", undefined, { on: "a" }),
      pod("db-2", "db", undefined, { on: "c" }),
      pod("cache", "cache", undefined, { on: "c" }),
    ],
    want: { a: 0, b: 0, c: 100 },
  },
  {
    name: "preferred terms of running pods count, too",
    wanted: pod("new", "web"),
    pods: [
      pod(
        "db",
        "db",
        { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred(5, term("web")) } },
        { on: "c" },
      ),
    ],
    want: { a: 0, b: 0, c: 100 },
  },
  {
    name: "preferred anti-affinity of running pods counts, too",
    wanted: pod("new", "web"),
    pods: [
      pod(
        "db",
        "db",
        { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred(5, term("web")) } },
        { on: "c" },
      ),
    ],
    want: { a: 100, b: 100, c: 0 },
  },
  {
    name: "preferred terms select namespaces by their labels",
    wanted: pod("new", "web", {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: preferred(
          5,
          term("db", { namespaceSelector: { matchLabels: { team: "two" } } }),
        ),
      },
    }),
    pods: [pod("mine", "db", undefined, { on: "a" }), pod("db", "db", undefined, { on: "c", namespace: "other" })],
    want: { a: 0, b: 0, c: 100 },
  },
  {
    name: "preferred anti-affinity selects namespaces by their labels",
    wanted: pod("new", "web", {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: preferred(
          5,
          term("db", { namespaceSelector: { matchLabels: { team: "two" } } }),
        ),
      },
    }),
    pods: [pod("db", "db", undefined, { on: "c", namespace: "other" })],
    want: { a: 100, b: 100, c: 0 },
  },
  {
    name: "required affinity of a running pod counts with hardPodAffinityWeight",
    wanted: pod("new", "web"),
    pods: [pod("db", "db", near(term("web")), { on: "c" })],
    want: { a: 0, b: 0, c: 100 },
  },
  {
    name: "required affinity of a running pod counts as much as hardPodAffinityWeight says",
    wanted: pod("new", "web"),
    pods: [
      pod("db", "db", near(term("web")), { on: "c" }),
      pod(
        "cache",
        "cache",
        { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred(5, term("web")) } },
        { on: "a" },
      ),
    ],
    weight: 6,
    want: { a: 0, b: 0, c: 100 },
  },
  {
    name: "each required term of a running pod's affinity counts",
    wanted: pod("new", "web"),
    pods: [
      pod("db", "db", near(term("other"), term("web")), { on: "c" }),
      pod("cache", "cache", near(term("web"), term("web", { topologyKey: "kubernetes.io/hostname" })), { on: "a" }),
    ],
    want: { a: 100, b: 0, c: 0 },
  },
  {
    name: "required affinity of a running pod does not count with hardPodAffinityWeight 0",
    wanted: pod("new", "web"),
    pods: [pod("db", "db", near(term("web")), { on: "c" })],
    weight: 0,
    want: { a: 0, b: 0, c: 0 },
  },
]) {
  test(name, () => {
    const args = { InterPodAffinity: { hardPodAffinityWeight: weight } };
    const cluster = newTestCluster({ nodes, pods, args, objects: teams });
    assert.deepEqual(cluster.scores("InterPodAffinity", wanted), want);
  });
}

test("a pod with an invalid selector fits no node, and the error names it", async () => {
  const bad = { topologyKey: zone, labelSelector: { matchExpressions: [{ key: "app", operator: "Sometimes" }] } };
  const answer = await newTestCluster({ nodes }).place(pod("new", "web", near(bad)));
  assert.equal(answer, '0/3 nodes are available: 3 parsing pod: "Sometimes" is not a valid label selector operator.');
});

test("a nominated pod refuses only while its own node is tried", async () => {
  const cluster = newTestCluster({ nodes: [node("a", "x"), node("b", "x")] });
  const options = { priority: 10, status: { nominatedNodeName: "a" } };
  cluster.nominator.set(pod("first", "db", away(term("web")), options));
  assert.equal(await cluster.place(pod("new", "web", away(term("other")))), "b");
});

test("the eviction of pods cannot help where affinity is unmet, and can where anti-affinity refuses", async () => {
  const statuses = async (running: Pod[], wanted: Pod) => {
    const failure = await newTestCluster({ nodes: [node("a", "x")], pods: running })
      .decide(wanted)
      .catch((err: unknown) => err);
    assert.ok(failure instanceof FitError);
    return failure.statuses.get("a")?.code;
  };
  const rival = pod("db", "db", undefined, { on: "a" });
  assert.equal(await statuses([], pod("new", "web", near(term("db")))), "UnschedulableAndUnresolvable");
  assert.equal(await statuses([rival], pod("new", "web", away(term("db")))), "Unschedulable");
  assert.equal(await statuses([pod("db", "db", away(term("web")), { on: "a" })], pod("new", "web")), "Unschedulable");
});

test("a pod with an invalid selector fails where nodes are scored", () => {
  const bad = { topologyKey: zone, labelSelector: { matchExpressions: [{ key: "app", operator: "Sometimes" }] } };
  assert.throws(() => newTestCluster({ nodes }).scores("InterPodAffinity", pod("new", "web", near(bad))), {
    message: 'running PreScore plugin "InterPodAffinity": parsing pod: "Sometimes" is not a valid label selector operator',
  });
});
