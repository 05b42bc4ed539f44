import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { cachedTokens, newTokenCacheMetrics } from "@coxswain/apimachinery/serving/authentication/token-cache";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type PeerAnswer, startTlsPeer } from "../testing/tls-peer.ts";
import { loadWebhookConfig, newReviewWebhook } from "./review-webhook.ts";
import { checkTokenWebhookVersion, webhookToken } from "./webhook.ts";

const jane = { username: "jane", uid: "u1", groups: ["dev", 7, "qa"], extra: { scopes: ["a", "b"], no: "list" } };

async function peerWith(t: TestContext, answer: (attempt: number) => PeerAnswer, version = "v1") {
  const peer = await startTlsPeer(t, () => answer(peer.requests.length));
  const stop = new AbortController();
  t.after(() => stop.abort());
  const clock = newFakeClock();
  const review = newReviewWebhook({ config: loadWebhookConfig(peer.kubeconfig("/check")), clock, signal: stop.signal });
  const authenticate = webhookToken({ review, version, implicitAudiences: ["api"] });
  return { peer, clock, authenticate, stop };
}

const says = (status: object, version = "v1"): PeerAnswer => ({
  body: { kind: "TokenReview", apiVersion: `authentication.k8s.io/${version}`, status },
});

for (const version of ["v1", "v1beta1"]) {
  test(`a token review in ${version} is sent as upstream's, and its user is returned`, async (t) => {
    const { peer, authenticate } = await peerWith(t, () => says({ authenticated: true, user: jane }, version), version);
    const result = await authenticate("s3cret", undefined);
    assert.deepEqual(result, {
      user: { name: "jane", uid: "u1", groups: ["dev", "qa"], extra: { scopes: ["a", "b"], no: [] } },
    });
    const [requested] = peer.requests;
    assert.deepEqual(
      [requested?.method, requested?.url, requested?.authorization],
      ["POST", "/check?timeout=30s", "Bearer from-the-apiserver"],
    );
    assert.deepEqual(JSON.parse(requested?.body ?? ""), {
      kind: "TokenReview",
      apiVersion: `authentication.k8s.io/${version}`,
      metadata: { creationTimestamp: null },
      spec: { token: "s3cret" },
      status: { user: {} },
    });
  });
}

for (const { name, status, wanted, want } of [
  { name: "names none is good for our own", status: {}, wanted: ["api", "other"], want: ["api"] },
  { name: "names ours is good for it", status: { audiences: ["other"] }, wanted: ["api", "other"], want: ["other"] },
  { name: "names ours in another order", status: { audiences: ["b", "x", "a"] }, wanted: ["a", "b"], want: ["a", "b"] },
  { name: "names another's is good for nothing", status: { audiences: ["vault"] }, wanted: ["api"], want: undefined },
]) {
  test(`an answer about audiences that ${name}`, async (t) => {
    const { peer, authenticate } = await peerWith(t, () => says({ authenticated: true, user: jane, ...status }));
    const result = await authenticate("t", wanted);
    assert.deepEqual(result?.audiences, want);
    assert.deepEqual(JSON.parse(peer.requests[0]?.body ?? "").spec.audiences, wanted);
  });
}

test("a token that the webhook does not know is not accepted, with the webhook's error if any", async (t) => {
  const { authenticate } = await peerWith(t, (attempt) =>
    says(
      [
        { authenticated: false },
        { authenticated: false, error: "revoked" },
        { error: "no answer" },
        {},
        { authenticated: "false", user: jane },
        null,
      ][attempt - 1] as object, // cast: null, as some servers write an empty status
    ),
  );
  assert.equal(await authenticate("t", undefined), undefined);
  await assert.rejects(authenticate("t", undefined), { message: "revoked" });
  await assert.rejects(authenticate("t", undefined), { message: "no answer" });
  assert.equal(await authenticate("t", undefined), undefined);
  assert.equal(await authenticate("t", undefined), undefined, "a text is no yes");
  assert.equal(await authenticate("t", undefined), undefined, "a status of null is an empty one");
});

for (const [user, want] of [
  [
    { username: 5, uid: 7, groups: "a", extra: "b" },
    { name: "", groups: [] },
  ],
  [
    { username: "a", uid: "", groups: ["b"], extra: {} },
    { name: "a", groups: ["b"] },
  ],
  [
    { username: "a", groups: null, extra: null },
    { name: "a", groups: [] },
  ],
  ["jane", { name: "", groups: [] }],
  [null, { name: "", groups: [] }],
] as const) {
  test(`of the user ${JSON.stringify(user)} that a webhook names what is of its type is taken`, async (t) => {
    const { authenticate } = await peerWith(t, () => says({ authenticated: true, user }));
    assert.deepEqual(await authenticate("t", undefined), { user: want });
  });
}

for (const { name, answer } of [
  { name: "sends us elsewhere", answer: { status: 302, body: says({ authenticated: true, user: jane }).body as object } },
  { name: "refuses us", answer: { status: 403, body: "no" } },
  { name: "answers in another version", answer: says({ authenticated: true, user: jane }, "v1beta1") },
  { name: "answers another kind", answer: { body: { kind: "Status", apiVersion: "v1" } } },
  { name: "answers no JSON", answer: { body: "<html>" } },
  { name: "answers a list", answer: { body: [] } },
  { name: "answers a text as status", answer: { body: { status: "good" } } },
  { name: "is unavailable", answer: { status: 503, body: "no" } },
]) {
  test(`a webhook that ${name} is an error, and not called again at once`, async (t) => {
    const { peer, authenticate } = await peerWith(t, () => answer);
    await assert.rejects(authenticate("t", undefined));
    assert.equal(peer.requests.length, 1);
  });
}

for (const { name, broken } of [
  { name: "has an internal error", broken: { status: 500, body: "oops" } },
  { name: "is overloaded", broken: { status: 429, body: "later" } },
  { name: "breaks the connection", broken: { body: undefined } },
]) {
  test(`a webhook that ${name} is called again after a pause`, async (t) => {
    const { peer, clock, authenticate } = await peerWith(t, (attempt) =>
      attempt < 3 ? broken : says({ authenticated: true, user: jane }),
    );
    const result = authenticate("t", undefined);
    for (const pauseMs of [600, 900]) {
      await waitFor(() => clock.waiting > 0 && (clock.nextDue ?? 0) - clock.now() <= pauseMs, { what: "a pause" });
      await clock.advance(pauseMs);
    }
    assert.equal((await result)?.user.name, "jane");
    assert.equal(peer.requests.length, 3);
  });
}

test("a server that stops closes its connection to the webhook", async (t) => {
  const { peer, authenticate, stop } = await peerWith(t, () => says({ authenticated: true, user: jane }));
  await authenticate("t", undefined);
  assert.equal(await peer.connections(), 1);
  stop.abort();
  await waitFor(async () => (await peer.connections()) === 0, { what: "the connection to be closed" });
});

test("an answer without a type is taken as what was asked for, and an empty uid is none", async (t) => {
  const { authenticate } = await peerWith(t, () => ({
    body: { status: { authenticated: true, user: { username: "jane", uid: "" } } },
  }));
  assert.deepEqual(await authenticate("t", undefined), { user: { name: "jane", groups: [] } });
});

test("each code from 200 to 206 is an answer of the webhook, 207 is none", async (t) => {
  for (const status of [200, 201, 206, 207]) {
    const { authenticate } = await peerWith(t, () => ({ status, ...says({ authenticated: true, user: jane }) }));
    if (status < 207) assert.equal((await authenticate("t", undefined))?.user.name, "jane", String(status));
    else await assert.rejects(authenticate("t", undefined));
  }
});

test("a webhook that answers with a Status is quoted", async (t) => {
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Forbidden", message: "not you", code: 403 };
  const { authenticate } = await peerWith(t, () => ({ status: 403, body: status }));
  await assert.rejects(authenticate("t", undefined), { message: "not you", reason: "Forbidden" });
});

test("a webhook that does not answer within thirty seconds is an error", async (t) => {
  const limits: number[] = [];
  const over = new AbortController();
  const { authenticate } = await peerWith(t, () => {
    over.abort();
    return says({ authenticated: true, user: jane });
  });
  t.mock.method(AbortSignal, "timeout", (ms: number) => {
    limits.push(ms);
    return over.signal;
  });
  await assert.rejects(authenticate("t", undefined));
  assert.deepEqual(limits, [30_000]);
});

test("reviews are limited by the requests that they belong to alone", async (t) => {
  const { peer, authenticate } = await peerWith(t, () => says({ authenticated: true, user: jane }));
  const all = Promise.allSettled(Array.from({ length: 20 }, () => authenticate("t", undefined)));
  await waitFor(() => peer.requests.length === 20, { what: "the reviews", timeoutMs: 20_000 });
  await all;
});

test("the webhook is told who asks: the API server, unless its kubeconfig says otherwise", async (t) => {
  const peer = await startTlsPeer(t, () => says({ authenticated: false }));
  const config = loadWebhookConfig(peer.kubeconfig());
  const [clock, { signal }] = [newFakeClock(), new AbortController()];
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview" };
  for (const userAgent of [undefined, "checker"]) {
    await newReviewWebhook({ config: { ...config, ...(userAgent && { userAgent }) }, clock, signal })(review);
  }
  assert.deepEqual(
    peer.requests.map(({ userAgent }) => userAgent),
    ["kube-apiserver", "checker"],
  );
});

test("after five attempts the webhook's failure is the answer", async (t) => {
  const { peer, clock, authenticate } = await peerWith(t, () => ({ status: 500, body: "oops" }));
  let failure: Error | undefined;
  authenticate("t", undefined).catch((err: Error) => {
    failure = err;
  });
  await waitFor(
    async () => {
      if (clock.waiting > 0 && failure === undefined) await clock.advance(600);
      return failure !== undefined;
    },
    { what: "the failure" },
  );
  assert.equal(peer.requests.length, 5);
});

test("both yes and no are remembered for their time, failures are not", async () => {
  const clock = newFakeClock();
  let calls = 0;
  const cached = cachedTokens(
    async (token) => {
      calls++;
      if (token === "broken") throw new Error("away");
      return token === "good" ? { user: { name: "jane", groups: [] } } : undefined;
    },
    { successTtlMs: 120_000, failureTtlMs: 120_000, clock, metrics: newTokenCacheMetrics(newMetricsRegistry()) },
  );
  for (const token of ["good", "bad"]) {
    calls = 0;
    await cached(token, undefined);
    await clock.advance(119_999);
    await cached(token, undefined);
    assert.equal(calls, 1);
    await cached(token, ["other"]);
    assert.equal(calls, 2, "another audience is another question");
    await clock.advance(1);
    await cached(token, undefined);
    assert.equal(calls, 3);
  }
  calls = 0;
  await assert.rejects(cached("broken", undefined));
  await assert.rejects(cached("broken", undefined));
  assert.equal(calls, 2);
});

test("concurrent reviews of one token and audience share one result or failure; the next review is sent again", async () => {
  const clock = newFakeClock();
  const requested: { token: string; answer: PromiseWithResolvers<{ user: { name: string; groups: string[] } } | undefined> }[] =
    [];
  const metrics = newTokenCacheMetrics(newMetricsRegistry());
  const cached = cachedTokens(
    (token) => {
      const answer = Promise.withResolvers<{ user: { name: string; groups: string[] } } | undefined>();
      requested.push({ token, answer });
      return answer.promise;
    },
    { successTtlMs: 0, failureTtlMs: 120_000, clock, metrics },
  );
  const jane = { user: { name: "jane", groups: [] } };
  const first = [cached("a", ["x"]), cached("a", ["x"]), cached("a", ["y"]), cached("b", ["x"])];
  const counts = () => ["blocked", "in_flight"].map((status) => metrics.active.labels(status).value);
  assert.deepEqual([requested.length, counts()], [3, [4, 3]]);
  requested[0]?.answer.reject(new Error("away"));
  for (const shared of first.slice(0, 2)) await assert.rejects(shared, /away/);
  requested[1]?.answer.resolve(jane);
  requested[2]?.answer.resolve(undefined);
  assert.deepEqual(await Promise.all(first.slice(2)), [jane, undefined]);
  assert.deepEqual(counts(), [0, 0]);
  const again = [cached("a", ["x"]), cached("a", ["y"]), cached("b", ["x"])];
  assert.equal(requested.length, 5, "only the no is remembered");
  for (const { answer } of requested) answer.resolve(jane);
  assert.deepEqual(await Promise.all(again), [jane, jane, undefined]);
});

test("a refusal whose body says Success is still a refusal", async (t) => {
  const body = { kind: "Status", apiVersion: "v1", status: "Success", metadata: {} };
  const { authenticate } = await peerWith(t, () => ({ status: 403, body }));
  await assert.rejects(authenticate("t", undefined), { code: 403 });
});

test("versions that are not known, and files that are not there, end the start", (t) => {
  for (const version of ["v1", "v1beta1"]) assert.doesNotThrow(() => checkTokenWebhookVersion(version));
  assert.throws(() => checkTokenWebhookVersion("v2"), {
    message: 'unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"',
  });
  assert.throws(() => loadWebhookConfig("/nonexistent/webhook"), {
    message: "stat /nonexistent/webhook: no such file or directory",
  });
  const folder = mkdtempSync(join(tmpdir(), "cox-webhook-config-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const missing of ["certificate-authority", "client-certificate", "client-key"]) {
    for (const name of ["certificate-authority", "client-certificate", "client-key"]) {
      if (name === missing) rmSync(join(folder, name), { force: true });
      else writeFileSync(join(folder, name), "x");
    }
    const cluster = { server: "https://a.example", "certificate-authority": "certificate-authority" };
    const user = { "client-certificate": "client-certificate", "client-key": "client-key" };
    const config = {
      clusters: [{ name: "c", cluster }],
      users: [{ name: "u", user }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    };
    writeFileSync(join(folder, "config"), JSON.stringify(config));
    const message = `stat ${join(folder, missing)}: no such file or directory`;
    assert.throws(() => loadWebhookConfig(join(folder, "config")), { message });
  }
});

for (const { status, isTaken } of [
  { status: 201, isTaken: true },
  { status: 206, isTaken: true },
  { status: 207, isTaken: false },
  { status: 302, isTaken: false },
]) {
  test(`a review answered with ${status} is ${isTaken ? "" : "not "}taken`, async (t) => {
    const { authenticate } = await peerWith(t, () => ({ status, ...says({ authenticated: true, user: jane }) }));
    const user = await authenticate("t", undefined).then(
      (result) => result?.user.name,
      () => "none",
    );
    assert.equal(user, isTaken ? "jane" : "none");
  });
}
