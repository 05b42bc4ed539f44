import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { type Api, ApiError } from "../api.ts";
import type { FromWorker } from "../model/protocol.ts";
import { followUsage } from "./usage.ts";

const nodes = { items: [{ metadata: { name: "n1" }, usage: { cpu: "1500m", memory: "1Mi" } }] };
const pods = {
  items: [
    {
      metadata: { name: "p", namespace: "a" },
      containers: [{ usage: { cpu: "100m", memory: "1Ki" } }, { usage: { cpu: "0.15" } }],
    },
    { metadata: { name: "q", namespace: "a" } },
  ],
};

/** Follows the usage of an API that gives these answers, while the test moves the clock. */
function follow(t: TestContext, answers: { nodes: object | Error; pods: object | Error }, podCount = 1) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const requested: string[] = [];
  const posted: FromWorker[] = [];
  const api = {
    async get(path: string) {
      requested.push(path);
      const answer = path.endsWith("/nodes") ? answers.nodes : answers.pods;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const ending = new AbortController();
  const done = followUsage(
    api as unknown as Api, // cast: all that is called
    (message) => void posted.push(message),
    () => podCount,
    ending.signal,
  );
  t.after(() => ending.abort());
  const rounds = async (ms: number): Promise<number> => {
    t.mock.timers.tick(ms);
    await settle();
    return requested.splice(0).length / 2;
  };
  return { requested, posted, done, rounds, ending };
}

test("the use of nodes and pods is that of their containers together", async (t) => {
  const { requested, posted } = follow(t, { nodes, pods });
  await settle();
  assert.deepEqual(requested.toSorted(), ["/apis/metrics.k8s.io/v1beta1/nodes", "/apis/metrics.k8s.io/v1beta1/pods"]);
  assert.deepEqual(posted, [
    {
      type: "usage",
      nodes: [["n1", 1500, 1_048_576]],
      pods: [
        ["a/p", 250, 1024],
        ["a/q", 0, 0],
      ],
    },
  ]);
});

for (const [name, answers, podCount, waitMs, posts] of [
  ["every 15 s", { nodes, pods }, 5_000, 15_000, 1],
  ["every minute in a cluster of more than 5,000 pods", { nodes, pods }, 5_001, 60_000, 1],
  ["every 15 s when only nodes may be read", { nodes, pods: new ApiError(403, "no") }, 1, 15_000, 1],
  ["after a minute when there are no metrics", { nodes: new ApiError(404, ""), pods: new ApiError(404, "") }, 1, 60_000, 1],
  ["after a minute when their server is away", { nodes: new ApiError(503, ""), pods: new ApiError(503, "") }, 1, 60_000, 1],
  ["every 15 s when a connection breaks", { nodes: new TypeError("fetch failed"), pods }, 1, 15_000, 1],
  ["after 15 s when they cannot be read now", { nodes, pods: new ApiError(500, "") }, 1, 15_000, 0],
] as const) {
  test(`metrics are requested again ${name}`, async (t) => {
    const { rounds, posted } = follow(t, answers, podCount);
    assert.equal(await rounds(0), 1);
    assert.equal(posted.length, posts);
    assert.equal(await rounds(waitMs - 1), 0);
    assert.equal(await rounds(1), 1);
  });
}

test("its signal ends it", async (t) => {
  const { ending, done, rounds } = follow(t, { nodes, pods });
  await rounds(0);
  ending.abort();
  await done;
});
