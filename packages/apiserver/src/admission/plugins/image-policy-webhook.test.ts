import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { imagePolicyWebhook } from "./image-policy-webhook.ts";

interface Settings {
  /** The path of the backend. */
  readonly path?: string;
  readonly [setting: string]: unknown;
}

/** The plugin with a backend that sends the given responses in order and repeats the last one. */
async function policy(t: TestContext, { path = "/review", ...imagePolicy }: Settings, ...answers: (object | number)[]) {
  const requested: { containers: object[]; annotations?: object; namespace?: string }[] = [];
  const urls: (string | undefined)[] = [];
  const backend = createServer((incoming, outgoing) => {
    let text = "";
    incoming.on("data", (piece) => {
      text += piece;
    });
    incoming.on("end", () => {
      requested.push(JSON.parse(text).spec);
      urls.push(incoming.url);
      const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? 500;
      if (typeof answer === "number") outgoing.writeHead(answer).end();
      else outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ status: answer }));
    });
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  const dir = mkdtempSync(join(tmpdir(), "cox-images-"));
  t.after(() => {
    backend.close();
    backend.closeAllConnections();
    rmSync(dir, { recursive: true, force: true });
  });
  const kubeConfigFile = join(dir, "config");
  const server = `http://127.0.0.1:${(backend.address() as AddressInfo).port}${path}`;
  const config = {
    clusters: [{ name: "b", cluster: { server } }],
    contexts: [{ name: "c", context: { cluster: "b", user: "" } }],
    "current-context": "c",
  };
  writeFileSync(kubeConfigFile, JSON.stringify({ apiVersion: "v1", kind: "Config", ...config }));
  const clock = newFakeClock();
  const configurationOf = () => ({ imagePolicy: { kubeConfigFile, ...imagePolicy } });
  const plugin = imagePolicyWebhook({ clock, configurationOf, log: discardLogger } as unknown as PluginContext);
  const review = async (
    more: object = {},
    object: object = { metadata: { name: "p" }, spec: { containers: [{ image: "good" }] } },
  ) => {
    const annotated: string[] = [];
    const attributes = {
      resource: { group: "", resource: "pods" },
      subresource: "",
      name: "p",
      namespace: "default",
      object,
      signal: AbortSignal.timeout(60_000),
      annotate: (name: string, value: string) => void annotated.push(`${name}=${value}`),
      ...more,
    };
    const result = await Promise.resolve(plugin.validate?.(attributes as unknown as AdmissionAttributes<never>)).then(
      () => "allowed",
      (err: Error) => err.message,
    );
    return [result, ...annotated];
  };
  return { clock, requested, urls, review };
}

const denied = 'pods "p" is forbidden: image policy webhook backend denied one or more images: evil';

test("a refusal is reported with its reason, and kept for its own time; what is noted of it is noted each time", async (t) => {
  const no = { allowed: false, reason: "evil", auditAnnotations: { why: "x" } };
  const { requested, review } = await policy(t, { allowTTL: -1 }, no);
  const want = [denied, "imagepolicywebhook.image-policy.k8s.io/why=x"];
  assert.deepEqual([await review(), await review()], [want, want]);
  assert.equal(requested.length, 1);
});

for (const { ttl, allowed, times } of [
  { ttl: { allowTTL: -1 }, allowed: true, times: 2 },
  { ttl: { denyTTL: -1 }, allowed: true, times: 1 },
  { ttl: { denyTTL: -1 }, allowed: false, times: 2 },
]) {
  test(`with ${JSON.stringify(ttl)} the same question, ${allowed ? "allowed" : "refused"}, is called ${times} times of 2`, async (t) => {
    const { requested, review } = await policy(t, ttl, { allowed });
    const want = allowed ? "allowed" : 'pods "p" is forbidden: one or more images rejected by webhook backend';
    for (let i = 0; i < 2; i++) assert.deepEqual(await review(), [want]);
    assert.equal(requested.length, times);
  });
}

for (const { ttl, allowed, seconds } of [
  { ttl: {}, allowed: true, seconds: 300 },
  { ttl: {}, allowed: false, seconds: 30 },
  { ttl: { allowTTL: 7, denyTTL: 5 }, allowed: true, seconds: 7 },
  { ttl: { allowTTL: 7, denyTTL: 5 }, allowed: false, seconds: 5 },
]) {
  test(`with ${JSON.stringify(ttl)} an answer that ${allowed ? "allows" : "refuses"} is kept for ${seconds} s`, async (t) => {
    let nowMs = 1;
    t.mock.method(performance, "now", () => nowMs);
    const { requested, review } = await policy(t, ttl, { allowed });
    for (const [ms, times] of [
      [0, 1],
      [seconds * 1000 - 1, 1],
      [2, 2],
    ] as const) {
      nowMs += ms;
      await review();
      assert.equal(requested.length, times, `after ${nowMs - 1} ms`);
    }
  });
}

test("the backend's annotations of an allowed image are added to each request, also from the cache", async (t) => {
  const { requested, review } = await policy(t, {}, { allowed: true, auditAnnotations: { why: "x", who: "y" } });
  const want = ["allowed", ...["why=x", "who=y"].map((note) => `imagepolicywebhook.image-policy.k8s.io/${note}`)];
  assert.deepEqual([await review(), await review()], [want, want]);
  assert.equal(requested.length, 1);
});

test("the backend sees all images, its own annotations and the namespace; other writes it does not see", async (t) => {
  const { requested, review } = await policy(t, {}, { allowed: true });
  const annotations = { "x.image-policy.k8s.io/ticket": "1", other: "2" };
  const spec = {
    containers: [{ image: "a" }, { image: "b" }],
    initContainers: [{ image: "c" }, {}],
    ephemeralContainers: [{ image: "d" }, { image: "e" }],
  };
  await review({}, { metadata: { annotations }, spec });
  await review({ subresource: "ephemeralcontainers", namespace: "" }, { metadata: {}, spec });
  await review({ subresource: "status" });
  await review({ resource: { group: "", resource: "services" } });
  await review({ resource: { group: "metrics", resource: "pods" } });
  const ticket = { "x.image-policy.k8s.io/ticket": "1" };
  assert.deepEqual(requested, [
    { containers: [{ image: "a" }, { image: "b" }, { image: "c" }, {}], annotations: ticket, namespace: "default" },
    { containers: [{ image: "d" }, { image: "e" }] },
  ]);
});

test("an overloaded backend is retried with increasing delays, five times at most", async (t) => {
  const { clock, requested, review } = await policy(t, { retryBackoff: 100 }, 429, 500, { allowed: true });
  const answer = review();
  for (const [tries, wait] of [
    [1, 100],
    [2, 150],
  ] as const) {
    await waitFor(() => clock.waiting > 0, { what: `try ${tries}` });
    await clock.advance(wait - 1);
    assert.equal(requested.length, tries);
    await clock.advance(1);
  }
  assert.deepEqual(await answer, ["allowed"]);
  const failing = await policy(t, { retryBackoff: 1 }, 503);
  let failed: string[] | undefined;
  void failing.review().then((result) => {
    failed = result;
  });
  await waitFor(() => {
    void failing.clock.advance(100);
    return failed !== undefined;
  });
  assert.deepEqual([failed, failing.requested.length], [['pods "p" is forbidden: Error contacting webhook: 503'], 5]);
});

test("a backend that answers with another status than 2xx has not answered", async (t) => {
  const { review } = await policy(t, {}, 300);
  assert.deepEqual(await review(), ['pods "p" is forbidden: Error contacting webhook: 300']);
});

test("a backend that refuses to answer is called once; the default says what counts, and nothing is kept of it", async (t) => {
  const { requested, review } = await policy(t, { defaultAllow: true }, 400, { allowed: false, reason: "evil" });
  const object = { metadata: { name: "p", annotations: { a: "b" } }, spec: { containers: [{ image: "good" }] } };
  assert.deepEqual(await review({}, object), ["allowed", "imagepolicywebhook.image-policy.k8s.io/failed-open=true"]);
  assert.deepEqual(object.metadata.annotations, { a: "b", "alpha.image-policy.k8s.io/failed-open": "true" });
  assert.equal(requested.length, 1);
  assert.deepEqual(await review(), [denied]);
});

for (const { imagePolicy, want } of [
  { imagePolicy: { allowTTL: 1801 }, want: /valid value is between 1s and 30m0s, got 30m1s/ },
  { imagePolicy: { denyTTL: -2 }, want: /valid value is between 1s and 30m0s/ },
  { imagePolicy: { retryBackoff: 300_001 }, want: /valid value is between 1ms and 5m0s/ },
  { imagePolicy: { kubeConfigFile: "" }, want: /invalid configuration: no configuration has been provided/ },
]) {
  test(`the configuration ${JSON.stringify(imagePolicy)} is refused`, async (t) => {
    await assert.rejects(policy(t, imagePolicy, 200), want);
  });
}

test("the bounds of times are allowed", async (t) => {
  await policy(t, { allowTTL: 1, denyTTL: 1800, retryBackoff: 1 }, 200);
  await policy(t, { allowTTL: 1800, denyTTL: 1, retryBackoff: 300_000 }, 200);
});

for (const path of ["", "/", "/review", "/a/b"]) {
  test(`a backend at ${path === "" ? "no path" : path} is called there`, async (t) => {
    const { urls, review } = await policy(t, { path }, { allowed: true });
    assert.deepEqual([await review(), urls], [["allowed"], [path || "/"]]);
  });
}
