import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { after, type TestContext, test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startHookServer } from "../testing/start-hook-server.ts";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const server = await startTestServer({ after });
const group = "/apis/flowcontrol.apiserver.k8s.io/v1beta2";
const as = (user: string, ...groups: string[]) => ({ "impersonate-user": user, "impersonate-group": groups.join() });

const level = (name: string, limited: object) => ({ metadata: { name }, spec: { type: "Limited", limited } });
const schemaFor = (name: string, user: string, levelName: string) => ({
  metadata: { name },
  spec: {
    priorityLevelConfiguration: { name: levelName },
    matchingPrecedence: 50,
    distinguisherMethod: { type: "ByUser" },
    rules: [
      {
        subjects: [{ kind: "User", user: { name: user } }],
        resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true }],
        nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      },
    ],
  },
});

async function uidOf(resource: string, name: string): Promise<string> {
  return (await server.request("GET", `${group}/${resource}/${name}`)).body.metadata.uid;
}

const flowOf = (headers: Record<string, unknown>) => [
  headers["x-kubernetes-pf-flowschema-uid"],
  headers["x-kubernetes-pf-prioritylevel-uid"],
];

for (const { who, headers, path = "/api/v1/namespaces/default", schema, levelName } of [
  { who: "an administrator", headers: {}, schema: "exempt", levelName: "exempt" },
  { who: "a user", headers: as("jane", "system:authenticated"), schema: "global-default", levelName: "global-default" },
  {
    who: "a kubelet",
    headers: as("system:node:a", "system:nodes"),
    path: "/api/v1/nodes/a",
    schema: "system-node-high",
    levelName: "node-high",
  },
  {
    who: "a watcher",
    headers: {},
    path: "/api/v1/namespaces?watch=true&timeoutSeconds=1&resourceVersion=0",
    schema: "exempt",
    levelName: "exempt",
  },
  { who: "a probe", headers: { authorization: undefined }, path: "/livez", schema: "probes", levelName: "exempt" },
] as const) {
  test(`an answer to ${who} names its flow schema and its priority level, also a refusal`, async () => {
    const wanted = [await uidOf("flowschemas", schema), await uidOf("prioritylevelconfigurations", levelName)];
    await waitFor(
      async () => {
        const answer = await server.request("GET", path, undefined, headers);
        return flowOf(answer.headers).join() === wanted.join();
      },
      { what: `${schema} to be in force` },
    );
  });
}

test("a FlowSchema's Dangling condition reports a missing priority level, and its return", async () => {
  await server.request("POST", `${group}/flowschemas`, schemaFor("dangler", "nobody", "not-yet"));
  const condition = async () =>
    (await server.request("GET", `${group}/flowschemas/dangler`)).body.status?.conditions?.find(
      ({ type }: { type: string }) => type === "Dangling",
    );
  const first = await waitFor(condition, { what: "the condition" });
  assert.partialDeepStrictEqual(first, {
    status: "True",
    reason: "NotFound",
    message: 'This FlowSchema references the PriorityLevelConfiguration object named "not-yet" but there is no such object',
  });
  await server.request(
    "POST",
    `${group}/prioritylevelconfigurations`,
    level("not-yet", { assuredConcurrencyShares: 1, limitResponse: { type: "Reject" } }),
  );
  const second = await waitFor(async () => (await condition()).status === "False" && (await condition()), { what: "the level" });
  assert.equal(second.reason, "Found");
  const { metadata } = (await server.request("GET", `${group}/flowschemas/dangler`)).body;
  hasFields(
    metadata.managedFields.filter(({ subresource }: { subresource?: string }) => subresource === "status"),
    [{ manager: "api-priority-and-fairness-config-consumer-v1", operation: "Update" }],
  );
});

test("requests beyond a level's seats get 429 and Retry-After, and those of other levels are answered", async (t) => {
  // One seat per level, and no queues at this level.
  const small = await startTestServer(t, ["--max-requests-inflight=1", "--max-mutating-requests-inflight=0"]);
  await small.request(
    "POST",
    `${group}/prioritylevelconfigurations`,
    level("tight", { assuredConcurrencyShares: 1, limitResponse: { type: "Reject" } }),
  );
  await small.request("POST", `${group}/flowschemas`, schemaFor("tight", "jane", "tight"));
  const jane = as("jane", "system:masters");
  const { uid } = (await small.request("GET", `${group}/flowschemas/tight`)).body.metadata;
  await waitFor(async () => flowOf((await small.request("GET", "/version", undefined, as("jane", "a"))).headers)[0] === uid, {
    what: "the schema to be in force",
  });
  const held = await holdPost(t, small, as("jane", "a"));
  const refused = await waitFor(
    async () => {
      const answer = await small.request("GET", "/version", undefined, as("jane", "a"));
      return answer.code === 429 && answer;
    },
    { what: "a refusal" },
  );
  assert.equal(refused.text, "Too many requests, please try again later.\n");
  assert.equal(refused.headers["retry-after"], "1");
  assert.equal(refused.headers["content-type"], "text/plain; charset=utf-8");
  assert.equal(flowOf(refused.headers)[0], uid);
  assert.equal((await small.request("GET", "/version", undefined, as("joe", "a"))).code, 200);
  assert.equal((await small.request("GET", "/version", undefined, jane)).code, 200, "the exempt schema takes precedence");
  const pages = "/debug/api_priority_and_fairness";
  const levels = (await small.request("GET", `${pages}/dump_priority_levels`)).text;
  assert.match(levels, /^PriorityLevelName, +ActiveQueues, IsIdle, +IsQuiescing, WaitingRequests, ExecutingRequests\n/);
  assert.match(levels, /^tight, +0, +false, +false, +0, +1$/m);
  assert.match(levels, /^exempt, +<none>, +<none>,/m);
  const { text: page } = await small.request("GET", "/metrics");
  const tight = 'priority_level="tight",flow_schema="tight"';
  for (const series of [
    `apiserver_flowcontrol_rejected_requests_total{${tight},reason="concurrency-limit"}`,
    `apiserver_flowcontrol_request_wait_duration_seconds_count{${tight},execute="false"}`,
    `apiserver_flowcontrol_request_wait_duration_seconds_count{${tight},execute="true"}`,
    'apiserver_dropped_requests_total{request_kind="readOnly"}',
  ])
    assert.ok(
      page.split("\n").some((line) => line.startsWith(`${series} `) && !line.endsWith(" 0")),
      series,
    );
  await held.end();
  assert.equal((await small.request("GET", "/version", undefined, as("jane", "a"))).code, 200);
});

test("a request that waits for its turn is shown, and answered when the one before is", async (t) => {
  const small = await startTestServer(t, ["--max-requests-inflight=1", "--max-mutating-requests-inflight=0"]);
  const joe = as("joe", "system:authenticated");
  const held = await holdPost(t, small, joe);
  const pages = "/debug/api_priority_and_fairness";
  const show = async (page: string) => (await small.request("GET", `${pages}/${page}`)).text;
  await waitFor(async () => /^global-default, .* 1$/m.test(await show("dump_priority_levels")), { what: "one to run" });
  const waiting = small.request("GET", "/version", undefined, joe);
  const requests = await waitFor(
    async () => {
      const page = await show("dump_requests?includeRequestDetails=1");
      return page.includes("/version") && page;
    },
    { what: "one to wait" },
  );
  assert.match(requests, /^global-default, +global-default, +\d+, +0, +joe, +\S+Z, +1, +0, +0s, +joe, +get, +\/version, /m);
  assert.match(await show("dump_queues"), /^global-default, +\d+, +1, +\d, +\d, +[\d.]+ss, +1, +1, +0\.00300000ss$/m);
  // One seat of one is occupied, and one queue place of fifty. Reads have no separate limit and are reported as numbers.
  const sampled = await shareSeen(small, "priority_level_request_count", 'priority_level="global-default"');
  assert.deepEqual([sampled("executing"), sampled("waiting")], ["1", "0.1"]);
  const seats = await shareSeen(small, "priority_level_seat_count", 'priority_level="global-default"');
  assert.equal(seats(), "1");
  const reads = await shareSeen(small, "read_vs_write_request_count", 'request_kind="readOnly"');
  assert.deepEqual([reads("executing"), reads("waiting")], ["1", "1"]);
  await held.end();
  assert.equal((await waiting).code, 200);
});

test("a watch gives its seat back when it has begun", async (t) => {
  const small = await startTestServer(t, ["--max-requests-inflight=1", "--max-mutating-requests-inflight=0"]);
  const joe = as("joe", "system:masters-not");
  await small.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: "joe" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "joe" }],
  });
  await waitFor(async () => (await small.request("GET", "/api/v1/namespaces", undefined, joe)).code === 200, {
    what: "the right",
  });
  const { answer, close } = await openWatch(small, joe);
  assert.equal(answer.statusCode, 200);
  assert.equal((await small.request("GET", "/version", undefined, joe)).code, 200);
  close();
});

test("with --enable-priority-and-fairness=false the two plain limits stand and no answer names a flow", async (t) => {
  const plain = await startTestServer(t, ["--enable-priority-and-fairness=false"]);
  const { headers } = await plain.request("GET", "/version");
  assert.deepEqual(flowOf(headers), [undefined, undefined]);
  assert.equal((await plain.request("GET", "/readyz/poststarthook/max-in-flight-filter")).code, 200);
  assert.equal((await plain.request("GET", "/debug/api_priority_and_fairness/dump_queues")).code, 404);
});

/** @returns a function that finds the bucket of the greatest share that a phase has had */
async function shareSeen(target: TestServer, metric: string, label: string) {
  const lines = (await target.request("GET", "/metrics")).text.split("\n");
  return (phase?: string): string | undefined => {
    const ofMark = (line: string) =>
      line.startsWith(`apiserver_flowcontrol_${metric}_watermarks_bucket{mark="high",`) &&
      line.includes(label) &&
      (phase === undefined || line.includes(`phase="${phase}"`));
    const buckets = lines.filter(ofMark).map((line) => /le="(.*)"\} (\d+)/.exec(line) as RegExpExecArray);
    return buckets.find(([, , count]) => count === buckets.at(-1)?.[2])?.[1];
  };
}

/** A request that an admission webhook keeps waiting, and with it its seat. A request whose body does not arrive would give its seat back. */
async function holdPost(t: TestContext, target: TestServer, headers: Record<string, string>) {
  const hook = await startHookServer();
  t.after(() => hook.stop());
  const called = Promise.withResolvers<() => void>();
  hook.raw.set("/hold", (response, { uid }) => {
    response.setHeader("content-type", "application/json");
    const review = { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", response: { uid, allowed: true } };
    called.resolve(() => void response.end(JSON.stringify(review)));
  });
  const rule = { apiGroups: ["authorization.k8s.io"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["*"], scope: "*" };
  const webhook = {
    name: "hold.example.com",
    clientConfig: { url: `${hook.url}/hold`, caBundle: hook.caBundle },
    rules: [rule],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    timeoutSeconds: 30,
  };
  const configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  await target.request("POST", configurations, { metadata: { name: "hold" }, webhooks: [webhook] });
  const review = { spec: { nonResourceAttributes: { path: "/", verb: "get" } } };
  let answered: Promise<unknown> | undefined;
  // Until the configuration is in force, reviews are answered at once.
  const heldOne = async (): Promise<(() => void) | false> => {
    answered = target.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, headers);
    return Promise.race([called.promise, answered.then(() => false as const)]);
  };
  const release = await waitFor(heldOne, { what: "a request to be held" });
  return {
    async end() {
      release();
      await answered;
    },
  };
}

async function openWatch(target: TestServer, headers: Record<string, string>) {
  const request = httpsRequest(`${target.url}/api/v1/namespaces?watch=1`, {
    ca: target.ca,
    agent: false,
    headers: { authorization: `Bearer ${target.adminToken}`, ...headers },
  });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request.on("response", resolve).on("error", reject).end();
  });
  answer.on("error", () => {});
  return { answer, close: () => request.destroy() };
}
