import assert from "node:assert/strict";
import { test } from "node:test";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";

test("preferred node affinity adds its weights, the configuration's, too", () => {
  const term = (key: string) => ({ matchExpressions: [{ key, operator: "Exists" as const }] });
  const addedAffinity = {
    preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term("added") }],
  };
  const affinity = {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 3, preference: term("own") },
        { weight: 9, preference: {} },
      ],
    },
  };
  const labelled = [
    aTestNode("both", { labels: { own: "1", added: "1" } }),
    aTestNode("added", { labels: { added: "1" } }),
    aTestNode("none"),
  ];
  const cluster = newTestCluster({ nodes: labelled, args: { NodeAffinity: { addedAffinity } } });
  assert.deepEqual(cluster.scores("NodeAffinity", aTestPod("new", { spec: { affinity } })), { both: 100, added: 25, none: 0 });
  assert.deepEqual(cluster.scores("NodeAffinity", aTestPod("plain")), { both: 100, added: 100, none: 0 });
});

test("node affinity required by the configuration holds whatever the pod's own affinity", async () => {
  const nodeSelectorTerms = [{ matchExpressions: [{ key: "pool", operator: "Exists" as const }] }];
  const addedAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  const cluster = newTestCluster({ nodes: [aTestNode("a"), aTestNode("b")], args: { NodeAffinity: { addedAffinity } } });
  assert.equal(
    await cluster.place(aTestPod("new")),
    "0/2 nodes are available: 2 node(s) didn't match scheduler-enforced node affinity.",
  );
});

test("one of several terms of the configuration's required node affinity suffices", async () => {
  const nodeSelectorTerms = ["pool", "rack"].map((key) => ({ matchExpressions: [{ key, operator: "Exists" as const }] }));
  const addedAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  const racked = aTestNode("racked", { labels: { rack: "1" } });
  const cluster = newTestCluster({ nodes: [aTestNode("bare"), racked], args: { NodeAffinity: { addedAffinity } } });
  assert.equal(await cluster.place(aTestPod("new")), "racked");
});

test("a pod's own preference counts where the configuration has none", () => {
  const preference = { matchExpressions: [{ key: "own", operator: "Exists" as const }] };
  const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 3, preference }] } };
  const cluster = newTestCluster({ nodes: [aTestNode("own", { labels: { own: "1" } }), aTestNode("none")] });
  assert.deepEqual(cluster.scores("NodeAffinity", aTestPod("new", { spec: { affinity } })), { own: 100, none: 0 });
  assert.deepEqual(cluster.scores("NodeAffinity", aTestPod("plain")), { own: 0, none: 0 });
});
