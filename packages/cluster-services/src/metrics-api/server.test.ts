/** Who gets what of metrics.k8s.io: authentication, authorization and the answers about them. */
import assert from "node:assert/strict";
import { request } from "node:https";
import { type TestContext, test } from "node:test";
import { connect } from "node:tls";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";
import type { DelegatedAuthorizer } from "@coxswain/apimachinery/serving/delegated/authorization";
import { testPair } from "@coxswain/apimachinery/testing/tls";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startMetricsServer } from "./server.ts";
import { newUsageStore } from "./usage-store.ts";

const jane: UserInfo = { name: "jane", groups: [] };

async function start(t: TestContext) {
  const { cert, key, ca } = await testPair();
  const store = newUsageStore();
  for (const at of [1_000, 16_000]) store.put("n1", { node: { at, cpuSeconds: at / 1_000, memoryBytes: 100 }, pods: new Map() });
  const state = {
    user: jane as UserInfo | undefined | Error,
    allowed: true,
    reason: "",
    broken: undefined as Error | undefined,
  };
  const asked: string[] = [];
  const errors: unknown[] = [];
  const authorize: DelegatedAuthorizer = async (user, attributes) => {
    const { resourceAttributes, nonResourceAttributes } = attributes as {
      resourceAttributes?: Record<string, string>;
      nonResourceAttributes?: Record<string, string>;
    };
    asked.push([user.name, ...Object.values(resourceAttributes ?? nonResourceAttributes ?? {})].join(" "));
    if (state.broken !== undefined) throw state.broken;
    return { allowed: state.allowed, reason: state.reason } as Awaited<ReturnType<DelegatedAuthorizer>>;
  };
  const server = await startMetricsServer({
    ...{ address: "127.0.0.1", port: 0, cert, key, authorize, store, clock: newFakeClock() },
    async authenticate() {
      if (state.user instanceof Error) throw state.user;
      return state.user && { user: state.user };
    },
    inventory: {
      nodes: { get: (name) => (name === "n1" ? { metadata: { name } } : undefined), list: () => [{ metadata: { name: "n1" } }] },
      pods: { get: () => undefined, list: () => [], inNamespace: () => [] },
    },
    log: { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) },
  });
  t.after(() => server.close());
  const ask = (path: string, method = "GET", sent = ""): Promise<{ code: number | undefined; body: string }> =>
    new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: server.port, path, method, ca, servername: "localhost", agent: false } as const;
      const call = request(options, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        response.on("end", () => resolve({ code: response.statusCode, body }));
      });
      call.once("error", reject);
      call.end(sent);
    });
  return {
    state,
    asked,
    errors,
    ask,
    connect: () => connect({ port: server.port, host: "127.0.0.1", ca, servername: "localhost" }),
  };
}
const base = "/apis/metrics.k8s.io/v1beta1";
const messageOf = ({ body }: { body: string }): string => (JSON.parse(body) as { message: string }).message;

test("each request is authorized as what it asks for: the verb, the resource, its namespace and its name", async (t) => {
  const { asked, ask } = await start(t);
  const node = await ask(`${base}/nodes/n1`);
  assert.equal(node.code, 200);
  assert.partialDeepStrictEqual(JSON.parse(node.body), { kind: "NodeMetrics", usage: { cpu: "1" } });
  assert.partialDeepStrictEqual(JSON.parse((await ask(`${base}/nodes?limit=1`)).body), { kind: "NodeMetricsList" });
  await ask(`${base}/pods`);
  await ask(`${base}/namespaces/a/pods`);
  await ask(`${base}/namespaces/a/pods/b`);
  await ask(base);
  await ask("/nothing?x=1");
  const of = (resource: string, namespace: string, name: string, verb: string): string =>
    `jane metrics.k8s.io v1beta1 ${resource} ${namespace} ${name} ${verb}`;
  assert.deepEqual(asked, [
    of("nodes", "", "n1", "get"),
    of("nodes", "", "", "list"),
    of("pods", "", "", "list"),
    of("pods", "a", "", "list"),
    of("pods", "a", "b", "get"),
    `jane ${base} get`,
    "jane /nothing get",
  ]);
});

test("health needs no credentials; discovery and metrics answer 401 without a user, also when the check of one fails", async (t) => {
  const { state, asked, errors, ask } = await start(t);
  state.user = undefined;
  for (const path of ["/healthz", "/livez", "/readyz?verbose"]) assert.deepEqual(await ask(path), { code: 200, body: "ok" });
  for (const path of [base, `${base}/nodes`]) {
    const answer = await ask(path);
    assert.deepEqual([answer.code, messageOf(answer)], [401, "Unauthorized"], path);
  }
  assert.deepEqual(errors, []);
  state.user = new Error("the token review failed");
  const answer = await ask(`${base}/nodes`);
  assert.deepEqual([answer.code, messageOf(answer), errors], [401, "Unauthorized", [state.user]]);
  assert.deepEqual(asked, []);
});

test("a write is not answered before its body has arrived", async (t) => {
  const { asked, ask, connect } = await start(t);
  const socket = connect();
  t.after(() => void socket.destroy());
  let answer = "";
  socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
  socket.write(`POST ${base}/nodes/n1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab`);
  await waitFor(() => asked.length === 1, { what: "the request" });
  await ask(`${base}/nodes`);
  assert.equal(answer, "");
  socket.write("c");
  await waitFor(() => answer !== "", { what: "the answer" });
  assert.match(answer, /^HTTP\/1\.1 405 /);
});

test("who may not is told what, with the reason", async (t) => {
  const { state, ask } = await start(t);
  state.allowed = false;
  const refusals: [string, string][] = [
    [
      `${base}/nodes/n1`,
      'nodes.metrics.k8s.io "n1" is forbidden: User "jane" cannot get resource "nodes" in API group "metrics.k8s.io" at the cluster scope',
    ],
    [
      `${base}/namespaces/a/pods`,
      'pods.metrics.k8s.io is forbidden: User "jane" cannot list resource "pods" in API group "metrics.k8s.io" in the namespace "a"',
    ],
    [base, `forbidden: User "jane" cannot get path "${base}"`],
  ];
  for (const [path, message] of refusals) {
    const answer = await ask(path);
    assert.deepEqual([answer.code, messageOf(answer)], [403, message]);
  }
  state.reason = "no RBAC policy matched";
  assert.match(messageOf(await ask(`${base}/nodes/n1`)), /at the cluster scope: no RBAC policy matched$/);
});

test("writes are authorized as such and answered with 405 after their body; an unexpected error with 500", async (t) => {
  const { state, asked, errors, ask } = await start(t);
  for (const [method, verb] of [
    ["POST", "create"],
    ["PUT", "update"],
    ["PATCH", "patch"],
    ["DELETE", "delete"],
  ] as const) {
    const answer = await ask(`${base}/nodes/n1`, method, "x".repeat(2 << 20));
    assert.equal(answer.code, 405, method);
    assert.match(
      messageOf(answer),
      new RegExp(`^${method.toLowerCase()} is not supported on resources of kind "nodes.metrics.k8s.io"`),
    );
    assert.match(asked.at(-1) ?? "", new RegExp(` ${verb}$`));
  }
  state.broken = new Error("the access review failed");
  const answer = await ask(`${base}/nodes`);
  assert.equal(answer.code, 500);
  assert.deepEqual(errors, [state.broken]);
});
