import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AgentConfig } from "../agent-config.ts";
import { newBackground } from "../background.ts";
import { runHttpSource } from "./http.ts";
import { newPodSources } from "./merge.ts";
import { maxManifestBytes } from "./static-pod.ts";
import { followStaticPods } from "./static-sources.ts";

const manifest = (name: string): string =>
  JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers: [{ name: "c", image: "i:1" }] } });

test("a URL is polled for pods; a failed request keeps the last ones", async (t) => {
  const clock = newFakeClock();
  const requests: (string | undefined)[] = [];
  let answer = { status: 200, text: manifest("web") };
  const server = createServer((incoming, outgoing) => {
    requests.push(incoming.headers["x-team"] as string | undefined);
    outgoing.writeHead(answer.status).end(answer.text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const reported: string[] = [];
  const sources = newPodSources(["http"], {
    added: (pod) => reported.push(`added ${pod.metadata.name}`),
    updated: (pod) => reported.push(`updated ${pod.metadata.name}`),
    removed: (pod) => reported.push(`removed ${pod.metadata.name}`),
  });
  const stop = new AbortController();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`;
  const headers = { "X-Team": ["a", "b"] };
  const running = runHttpSource(
    { url, headers, nodeName: "n1", frequencyMs: 20_000, sources, clock, turns: new Turns(), log: discardLogger },
    stop.signal,
  );
  /** Waits until the source has polled once more. */
  const nextPoll = async (next: typeof answer): Promise<string[]> => {
    const before = requests.length;
    answer = next;
    await clock.advance(20_000);
    await waitFor(() => requests.length > before && clock.waiting > 0, { what: "the next poll" });
    return reported.splice(0);
  };
  await waitFor(() => clock.waiting > 0, { what: "the first poll" });
  assert.deepEqual([reported.splice(0), sources.allSynced(), requests], [["added web-n1"], true, ["a, b"]]);
  hasFields(sources.list()[0], {
    metadata: { namespace: "default", annotations: { "kubernetes.io/config.source": "http" } },
    spec: { nodeName: "n1", containers: [{ imagePullPolicy: "IfNotPresent" }] },
  });
  assert.deepEqual(await nextPoll({ status: 200, text: manifest("web") }), [], "the same again");
  assert.deepEqual(await nextPoll({ status: 500, text: manifest("other") }), []);
  const huge = JSON.stringify({ ...JSON.parse(manifest("huge")), note: "x".repeat(10 * 1024 * 1024) });
  assert.deepEqual(await nextPoll({ status: 200, text: huge }), []);
  const sized = (bytes: number): string => manifest("big").padEnd(bytes);
  assert.deepEqual(await nextPoll({ status: 200, text: sized(maxManifestBytes) }), []);
  assert.deepEqual(await nextPoll({ status: 200, text: sized(maxManifestBytes - 1) }), ["removed web-n1", "added big-n1"]);
  assert.deepEqual(await nextPoll({ status: 200, text: manifest("web") }), ["removed big-n1", "added web-n1"]);
  assert.deepEqual(await nextPoll({ status: 200, text: "{" }), []);
  assert.deepEqual(await nextPoll({ status: 200, text: manifest("web") }), [], "the same as before the failures");
  assert.deepEqual(await nextPoll({ status: 200, text: "" }), ["removed web-n1"]);
  assert.deepEqual(await nextPoll({ status: 200, text: manifest("web") }), ["added web-n1"]);
  const list = JSON.stringify({ apiVersion: "v1", kind: "PodList", items: ["a", "b"].map((name) => JSON.parse(manifest(name))) });
  assert.deepEqual(await nextPoll({ status: 200, text: list }), ["removed web-n1", "added a-n1", "added b-n1"]);
  assert.deepEqual(await nextPoll({ status: 200, text: `null\n---\n${manifest("a")}\n` }), ["removed b-n1", "updated a-n1"]);
  stop.abort();
  await running;
});

test("an answer that is no pod is a failure at each poll, and so is one that does not come within ten seconds", async (t) => {
  const clock = newFakeClock();
  let requests = 0;
  const server = createServer((_, outgoing) => {
    requests++;
    if (requests <= 2) outgoing.end("kind: Secret");
    else outgoing.end(manifest("web"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const sources = newPodSources(["http"], { added() {}, updated() {}, removed() {} });
  const failed: string[] = [];
  const log = { ...discardLogger, error: (_: string, err: unknown) => void failed.push(String(err)) };
  const stop = new AbortController();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`;
  const running = runHttpSource(
    { url, headers: {}, nodeName: "n1", frequencyMs: 20_000, sources, clock, turns: new Turns(), log },
    stop.signal,
  );
  await waitFor(() => clock.waiting > 0);
  assert.deepEqual([failed.length, sources.allSynced()], [1, false]);
  await clock.advance(20_000);
  await waitFor(() => failed.length === 2 && clock.waiting > 0, { what: "the same answer to fail again" });
  await clock.advance(20_000);
  await waitFor(() => sources.allSynced() && clock.waiting > 0);
  const timeout = AbortSignal.timeout;
  t.mock.method(AbortSignal, "timeout", (ms: number) => (ms === 10_000 ? AbortSignal.abort(new Error("too late")) : timeout(ms)));
  await clock.advance(20_000);
  await waitFor(() => failed.length === 3 && clock.waiting > 0);
  stop.abort();
  await running;
  assert.equal(sources.list().length, 1);
});

test("a URL is polled, and a file read, at a frequency of its own; headers belong to the URL", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-sources-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, "web.yaml"), manifest("web"));
  const headers: unknown[] = [];
  const server = createServer((incoming, outgoing) => {
    headers.push(incoming.headers["x-team"]);
    outgoing.end(manifest("far"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const clock = newFakeClock();
  const background = newBackground({ clock, log: discardLogger });
  const looks: string[] = [];
  const sources = newPodSources(["file", "http"], { added() {}, updated() {}, removed() {} });
  const { set } = sources;
  sources.set = (source, pods) => {
    looks.push(source);
    set(source, pods);
  };
  const config = {
    staticPodPath: dir,
    fileCheckFrequencyMs: 3_000,
    staticPodUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    staticPodUrlHeader: { "X-Team": ["a"] },
    httpCheckFrequencyMs: 10_000,
  } as unknown as AgentConfig;
  followStaticPods(config, { sources, nodeName: "n1", clock, turns: new Turns(), log: discardLogger }, background);
  await waitFor(() => clock.waiting === 2);
  assert.deepEqual(looks.splice(0).toSorted(), ["file", "http"]);
  await clock.advance(3_000);
  await waitFor(() => looks.length > 0 && clock.waiting === 2);
  assert.deepEqual([looks, headers], [["file"], ["a"]]);
  await background.stop();
  const none = newPodSources([], { added() {}, updated() {}, removed() {} });
  const idle = newBackground({ clock, log: discardLogger });
  followStaticPods(
    { staticPodPath: "", staticPodUrl: "" } as AgentConfig,
    { sources: none, nodeName: "n1", clock, turns: new Turns(), log: discardLogger },
    idle,
  );
  assert.equal(clock.waiting, 0);
  await idle.stop();
});
