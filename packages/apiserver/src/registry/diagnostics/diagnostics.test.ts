import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { newClient } from "@coxswain/apimachinery/client/client";
import { answerQuestions } from "@coxswain/apimachinery/decisions/answer-questions";
import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { kubeletRecipient } from "@coxswain/apimachinery/decisions/question";
import { formatMicroTime } from "@coxswain/apimachinery/objects/meta/time";
import { type Clock, realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { openStorage } from "../../storage/open.ts";
import { newHttp, startTestServer, type TestServer } from "../../testing/start-test-server.ts";
import { Questions } from "./questions.ts";
import { ClusterDecisions } from "./reader.ts";
import { receivedDecisions } from "./received.ts";
import { storedAnswers, storedQuestions } from "./stored.ts";

const questionsPath = "/apis/diagnostics.coxswain.dev/v1/questions";
const coreRef = (resource: string, kind: string, namespace: string, name: string): ObjectRef => ({
  ...{ group: "", resource, kind, namespace, name, uid: "" },
});
const podRef = (name: string): ObjectRef => coreRef("pods", "Pod", "default", name);

/** A clock that waits only 5 ms between attempts. */
const hurried: Clock = { ...realClock, sleep: (_ms, signal) => realClock.sleep(5, signal) };

/** The questions as one API server sees them, over its own connection to etcd. */
async function aBoard(t: TestContext, prefix: string, servers = 1) {
  const etcd = await startEtcd();
  const stopping = new AbortController();
  const storage = await openStorage({
    etcd: { servers: [etcd.endpoint], prefix, compactionIntervalMs: 0 },
    clock: realClock,
    log: discardLogger,
  });
  const decisions = new DecisionLog({ component: "kube-apiserver", clock: realClock });
  const questions = new Questions({
    questions: storage.for(storedQuestions),
    answers: storage.for(storedAnswers),
    decisions,
    clock: realClock,
    log: discardLogger,
  });
  const running = questions.run(stopping.signal);
  await storage.whenReady();
  t.after(async () => {
    stopping.abort();
    await running;
    storage.stop();
  });
  return { questions, decisions, stored: storage.for(storedQuestions), servers: async () => servers, clock: realClock };
}

/** A daemon that connects to the server with the certificate of `user`. */
async function aDaemon(t: TestContext, server: TestServer, recipient: string, user: string, groups: string[] = []) {
  const certificate = await server.clientCertificate(user, groups);
  const client = newClient({ host: server.url, ca: server.ca, ...certificate, qps: -1, burst: 0, userAgent: "test" });
  const component = recipient.split(".")[0] as string;
  const decisions = new DecisionLog({ component, clock: realClock });
  const stopping = new AbortController();
  const answering = answerQuestions({
    ...{ client, recipient, decisions, clock: hurried, turns: new Turns(), log: discardLogger, signal: stopping.signal },
  });
  t.after(async () => {
    stopping.abort();
    await answering;
    client.close();
  });
  return decisions;
}

const reported = { verdict: "waiting", reason: "Notified", description: () => ({ summary: "as requested" }) } as const;
const signal = (): AbortSignal => AbortSignal.timeout(60_000);

async function lease(server: TestServer, namespace: string, name: string, renewedMs = Date.now()): Promise<void> {
  const spec = { holderIdentity: "somebody", leaseDurationSeconds: 40, renewTime: formatMicroTime(renewedMs) };
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  assert.equal((await server.request("POST", path, { metadata: { name }, spec })).code, 201);
}

async function pod(server: TestServer, name: string, nodeName?: string): Promise<void> {
  const spec = { containers: [{ name: "c", image: "i" }], ...(nodeName && { nodeName }) };
  const account = { metadata: { name: "default" } };
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", account);
  const { code, text } = await server.request("POST", "/api/v1/namespaces/default/pods", { metadata: { name }, spec });
  assert.equal(code, 201, text);
}

test("daemons at two API servers answer for themselves, a kubelet about its node only; who does not answer is named", async (t) => {
  const prefix = `/test-${randomUUID()}`;
  const flags = [`--etcd-prefix=${prefix}`, "--disable-admission-plugins=ServiceAccount"];
  const [one, two] = await Promise.all([startTestServer(t, flags), startTestServer(t, flags)]);
  await pod(one, "web", "n1");
  await pod(one, "other", "n2");
  await pod(one, "waits");
  await lease(one, "kube-system", "kube-scheduler");
  await lease(one, "kube-node-lease", "n1");
  await lease(one, "kube-node-lease", "n2", Date.now() - 60_000);
  const scheduler = await aDaemon(t, one, "kube-scheduler", "system:kube-scheduler");
  const kubelet = await aDaemon(t, two, kubeletRecipient("n1"), "system:node:n1", ["system:nodes"]);
  for (const name of ["web", "other", "waits"]) {
    scheduler.record(podRef(name), "scheduler", reported);
    kubelet.record(podRef(name), "volumes", reported);
  }
  const board = await aBoard(t, prefix);
  board.decisions.record(podRef("web"), "admission", reported);
  const reader = new ClusterDecisions({ ...board, client: one.client });
  const refs = [podRef("web"), podRef("other"), podRef("waits"), podRef("missing")];
  const seen = async () => {
    const { decisions, silent } = await reader.of(refs, signal());
    const shown = decisions.map(({ component, source, object, summary }) => [component, source, object.name, summary].join(" "));
    return { decisions: shown.sort(), silent: [...silent].sort() };
  };
  await waitFor(async () => (await seen()).decisions.length === 5, { what: "the daemons to be connected" });
  await lease(one, "kube-system", "kube-controller-manager");
  assert.deepEqual(await seen(), {
    decisions: [
      "kube-apiserver admission web as requested",
      "kube-scheduler scheduler other as requested",
      "kube-scheduler scheduler waits as requested",
      "kube-scheduler scheduler web as requested",
      "kubelet volumes web as requested",
    ],
    silent: ["kube-controller-manager", "kubelet/n2"],
  });
  const node = coreRef("nodes", "Node", "", "n1");
  kubelet.record(node, "runtime", reported);
  const { decisions } = await reader.of([node], signal());
  assert.deepEqual(
    decisions.map(({ source }) => source),
    ["runtime"],
  );
});

test("the other API servers report what they decided", async (t) => {
  const prefix = `/test-${randomUUID()}`;
  const server = await startTestServer(t, [`--etcd-prefix=${prefix}`]);
  const [one, two, three] = await Promise.all([aBoard(t, prefix, 4), aBoard(t, prefix), aBoard(t, prefix)]);
  for (const board of [one, two, three]) board.decisions.record(podRef("web"), "admission", reported);
  const reader = new ClusterDecisions({ ...one, client: server.client });
  // The fourth recipient is the server itself, which has nothing to report.
  const { decisions, silent } = await reader.of([podRef("web")], signal());
  assert.equal(decisions.length, 3);
  assert.deepEqual(silent, []);
});

test("a daemon answers again after its API server was replaced", async (t) => {
  const prefix = `/test-${randomUUID()}`;
  const port = await freePort();
  const flags = [`--etcd-prefix=${prefix}`, `--secure-port=${port}`];
  const first = await startTestServer(t, flags);
  await lease(first, "kube-system", "kube-scheduler");
  const scheduler = await aDaemon(t, first, "kube-scheduler", "system:kube-scheduler");
  scheduler.record(podRef("web"), "scheduler", reported);
  const board = await aBoard(t, prefix);
  const requests = new Map([["kube-scheduler", { refs: [podRef("web")], expected: true }]]);
  const answered = async (): Promise<boolean> => (await board.questions.query(requests, signal())).decisions.length === 1;
  await waitFor(answered);
  await first.stop();
  assert.deepEqual(await board.questions.query(requests, signal()), { decisions: [], silent: ["kube-scheduler"] });
  await startTestServer(t, flags);
  await waitFor(answered);
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

test("only the daemon itself and administrators may see the questions to it or answer them", async (t) => {
  const server = await startTestServer(t);
  const users = {
    admin: ["admin", ["system:masters"]],
    scheduler: ["system:kube-scheduler", []],
    manager: ["system:kube-controller-manager", []],
    node: ["system:node:n1", ["system:nodes"]],
    "no node": ["system:node:n1", []],
    jane: ["jane", []],
    reader: ["reader", []],
  } as const;
  await server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: "reader-may-all" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "reader" }],
  });
  const allowed: string[] = [];
  for (const [who, [name, groups]] of Object.entries(users)) {
    const http = newHttp(server.url, server.ca, await server.clientCertificate(name, groups));
    t.after(() => http.close());
    for (const recipient of ["kube-scheduler", "kube-controller-manager", "kubelet.n1", "kubelet.n2", "kube-apiserver"]) {
      const answer = { metadata: { name: "no-such-question" }, decisions: [] };
      const { code } = await http.request("POST", `${questionsPath}/${recipient}/answers`, answer);
      assert.ok(code === 404 || code === 403, `${who} ${recipient}: ${code}`);
      // 404 shows that the request was permitted: only the question does not exist.
      if (code === 404) allowed.push(`${who} ${recipient}`);
      if (code === 404) continue;
      const watch = await http.request("GET", `${questionsPath}?watch=1&fieldSelector=metadata.name%3D${recipient}`);
      assert.equal(watch.code, 403, `${who} ${recipient}`);
    }
    const all = await http.request("GET", `${questionsPath}?watch=1`);
    assert.notEqual(all.code, 200, `${who} sees all questions`);
    for (const path of [questionsPath, `${questionsPath}/kube-scheduler`, `${questionsPath}/kube-scheduler/answers`]) {
      const { code } = await http.request("GET", path);
      assert.ok(code === 403 || code === 405, `${who} reads ${path}: ${code}`);
    }
  }
  assert.deepEqual(allowed, [
    ...["kube-scheduler", "kube-controller-manager", "kubelet.n1", "kubelet.n2", "kube-apiserver"].map((one) => `admin ${one}`),
    "scheduler kube-scheduler",
    "manager kube-controller-manager",
    "node kubelet.n1",
  ]);
});

test("the group is in no discovery, and malformed answers get a clear error", async (t) => {
  const server = await startTestServer(t);
  const { body } = await server.request("GET", "/apis");
  assert.ok(!JSON.stringify(body).includes("diagnostics.coxswain.dev"));
  assert.equal((await server.request("GET", "/apis/diagnostics.coxswain.dev/v1")).code, 404);
  const post = (sent: unknown) => server.request("POST", `${questionsPath}/kube-scheduler/answers`, sent);
  for (const sent of ["{", "null", "[]", "7", { metadata: { name: 7 } }, {}]) {
    const { code, body } = await post(sent);
    assert.deepEqual([code, body.reason], [400, "BadRequest"], JSON.stringify(sent));
  }
  assert.equal((await post("x".repeat(300_000))).code, 413);
  assert.equal((await server.request("GET", `${questionsPath}?watch=1`)).code, 400);
});

test("takes from an answer the decisions about the objects in question, as the daemon that answered", () => {
  const decision = {
    ...{ component: "kube-apiserver", source: "s", object: podRef("web"), verdict: "waiting", reason: "R", summary: "s" },
    ...{ since: "2026-01-02T03:04:05Z", lastAt: "2026-01-02T03:04:05Z", count: 2 },
  };
  const taken = receivedDecisions(
    "kubelet",
    {
      decisions: [
        { ...decision, summary: "x".repeat(10_000), extra: 1, related: [podRef("a"), 7], details: { a: 1 }, remedy: "r" },
        { ...decision, object: podRef("not-requested") },
        { ...decision, verdict: "guilty" },
        { ...decision, object: 7 },
        ...[null, 7, "x", [], {}],
      ],
    },
    [podRef("web")],
  );
  const want = { ...decision, component: "kubelet", summary: "x".repeat(4000), related: [podRef("a")], details: { a: 1 } };
  assert.deepEqual(taken, [{ ...want, remedy: "r" }]);
  for (const answer of [null, 7, {}, { decisions: {} }]) assert.deepEqual(receivedDecisions("kubelet", answer, []), []);
});

test("waits 1 s for live recipients, 0.25 s for others, and asks 32 questions at once", async (t) => {
  const board = await aBoard(t, `/test-${randomUUID()}`);
  const started = performance.now();
  const ask = (expected: boolean) =>
    board.questions.query(new Map([["kube-scheduler", { refs: [podRef("web")], expected }]]), signal());
  const shortly = ask(false).then(({ silent }) => ({ silent, tookMs: performance.now() - started }));
  const more = Array.from({ length: 32 }, () =>
    ask(true).then(({ silent }) => ({ silent, tookMs: performance.now() - started })),
  );
  const answers = await Promise.all([shortly, ...more]);
  assert.deepEqual(answers[0]?.silent, []);
  assert.deepEqual(answers[32]?.silent, ["kube-scheduler"]);
  const longest = Math.max(...answers.slice(1, 32).map(({ tookMs }) => tookMs));
  assert.ok(longest >= 900, `${longest} ms`); // timers count from the beginning of the event-loop turn in which they are set
  assert.ok((answers[32]?.tookMs ?? 0) < longest, "did not wait");
  await assert.rejects(
    board.questions.query(new Map([["a", { refs: [], expected: true }]]), AbortSignal.abort(new Error("gone"))),
    /gone/,
  );
});

test("a watcher of questions gets open questions, and a question ends when it is deleted", async (t) => {
  const board = await aBoard(t, `/test-${randomUUID()}`);
  const heard: string[] = [];
  const asking = board.questions.query(new Map([["kube-scheduler", { refs: [podRef("web")], expected: true }]]), signal());
  const end = await waitFor(() => {
    const stop = board.questions.listen("kube-scheduler", (id, [ref]) => heard.push(`${id} ${ref?.name}`));
    if (heard.length > 0) return stop;
    stop();
    return undefined;
  });
  assert.equal(heard.length, 1);
  const id = heard[0]?.split(" ")[0] as string;
  assert.deepEqual(board.questions.requestedRefs(id, "kube-controller-manager"), undefined);
  await board.questions.answer(id, "kube-scheduler", []);
  await board.questions.answer(id, "kube-scheduler", []);
  assert.deepEqual(await asking, { decisions: [], silent: [] });
  end();
  await board.stored.delete(id);
  await waitFor(() => board.questions.requestedRefs(id, "kube-scheduler") === undefined);
});
