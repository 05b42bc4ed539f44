import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestServer, type TestServer } from "../../../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined, ["--disable-admission-plugins=ServiceAccount"]);
});
after(() => server.stop());

const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const pods = "/api/v1/namespaces/default/pods";
let made = 0;

interface World {
  phase?: string;
  isReady?: boolean;
  /** Status of each budget that matches the pod. */
  healthy?: readonly { currentHealthy: number; desiredHealthy: number; disruptionsAllowed: number }[];
}

/** Creates a pod with matching budgets and evicts it. @returns its name and the response */
async function evict({ phase = "Running", isReady = true, healthy = [] }: World, deleteOptions?: object, query = "") {
  const name = `p${made++}`;
  const labels = { app: name };
  const { body: pod } = await server.request("POST", pods, {
    metadata: { name, labels },
    spec: { containers: [{ name: "c", image: "i" }] },
  });
  pod.status = { ...pod.status, phase, conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] };
  await server.request("PUT", `${pods}/${name}/status`, pod);
  for (const [i, counts] of healthy.entries()) {
    const budget = { metadata: { name: `${name}-${i}` }, spec: { minAvailable: 1, selector: { matchLabels: labels } } };
    const { body } = await server.request("POST", budgets, budget);
    body.status = { observedGeneration: 1, expectedPods: 3, ...counts };
    await server.request("PUT", `${budgets}/${name}-${i}/status`, body);
  }
  const { code, body } = await server.request("POST", `${pods}/${name}/eviction${query}`, { metadata: { name }, deleteOptions });
  const { code: left } = await server.request("GET", `${pods}/${name}`);
  const allowed = async (): Promise<number> =>
    (await server.request("GET", `${budgets}/${name}-0`)).body.status.disruptionsAllowed;
  return { name, code, body, isGone: left === 404, allowed };
}

const enough = { currentHealthy: 2, desiredHealthy: 2, disruptionsAllowed: 0 };
for (const { name, world, code, allowed } of [
  { name: "without a budget", world: {}, code: 201 },
  { name: "that a budget allows", world: { healthy: [{ ...enough, disruptionsAllowed: 1 }] }, code: 201, allowed: 0 },
  { name: "that a budget does not allow", world: { healthy: [enough] }, code: 429, allowed: 0 },
  { name: "that is not ready beside enough that are", world: { isReady: false, healthy: [enough] }, code: 201, allowed: 0 },
  {
    name: "that is not ready where too few are",
    world: { isReady: false, healthy: [{ ...enough, currentHealthy: 1 }] },
    code: 429,
    allowed: 0,
  },
  {
    name: "that is not ready, where a budget wants none",
    world: { isReady: false, healthy: [{ currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 1 }] },
    code: 201,
    allowed: 0,
  },
  { name: "that has not begun", world: { phase: "Pending", isReady: false, healthy: [enough] }, code: 201, allowed: 0 },
  { name: "that is over", world: { phase: "Failed", isReady: false, healthy: [enough] }, code: 201, allowed: 0 },
] as { name: string; world: World; code: number; allowed?: number }[]) {
  test(`a pod ${name} is ${code === 201 ? "evicted" : "kept"}`, async () => {
    const evicted = await evict(world);
    assert.deepEqual([evicted.code, evicted.isGone], [code, code === 201], JSON.stringify(evicted.body));
    if (allowed !== undefined) assert.equal(await evicted.allowed(), allowed);
  });
}

test("a dry run requested in the body does not use the budget", async () => {
  const evicted = await evict({ healthy: [{ ...enough, disruptionsAllowed: 1 }] }, { dryRun: ["All"] });
  assert.deepEqual([evicted.code, evicted.isGone, await evicted.allowed()], [201, false, 1]);
});

for (const { body, code } of [
  { body: undefined, code: 201 },
  { body: { dryRun: [] }, code: 201 },
  { body: { dryRun: ["All"] }, code: 201 },
  { body: { dryRun: ["Some"] }, code: 500 },
]) {
  test(`a dry run requested in the query, with ${JSON.stringify(body)} in the body, is ${code === 201 ? "one" : "refused"}`, async () => {
    const evicted = await evict({ healthy: [{ ...enough, disruptionsAllowed: 1 }] }, body, "?dryRun=All");
    assert.deepEqual([evicted.code, evicted.isGone, await evicted.allowed()], [code, false, 1]);
  });
}

test("a pod of several budgets is kept, and why is said in upstream's words", async () => {
  const { code, body, isGone } = await evict({ healthy: [enough, enough] });
  const message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
  assert.deepEqual([code, body.message, body.reason, isGone], [500, message, undefined, false]);
});

test("a client that knows an older state of the pod gets a conflict", async () => {
  for (const phase of ["Pending", "Running"]) {
    const { code, isGone } = await evict(
      { phase, isReady: false, healthy: [enough] },
      { preconditions: { resourceVersion: "1" } },
    );
    assert.deepEqual([code, isGone], [409, false], phase);
  }
});
