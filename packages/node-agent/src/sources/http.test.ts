import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { runHttpSource } from "./http.ts";
import { newPodSources } from "./merge.ts";

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
    { url, headers, nodeName: "n1", frequencyMs: 20_000, sources, clock, log: discardLogger },
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
  assert.partialDeepStrictEqual(sources.list()[0], {
    metadata: { namespace: "default", annotations: { "kubernetes.io/config.source": "http" } },
    spec: { nodeName: "n1", containers: [{ imagePullPolicy: "IfNotPresent" }] },
  });
  assert.deepEqual(await nextPoll({ status: 200, text: manifest("web") }), [], "the same again");
  assert.deepEqual(await nextPoll({ status: 500, text: manifest("other") }), []);
  const huge = JSON.stringify({ ...JSON.parse(manifest("huge")), note: "x".repeat(3 * 1024 * 1024) });
  assert.deepEqual(await nextPoll({ status: 200, text: huge }), []);
  assert.deepEqual(await nextPoll({ status: 200, text: "" }), []);
  assert.deepEqual(await nextPoll({ status: 200, text: "{" }), []);
  assert.deepEqual(await nextPoll({ status: 200, text: manifest("web") }), [], "the same as before the failures");
  const list = JSON.stringify({ apiVersion: "v1", kind: "PodList", items: ["a", "b"].map((name) => JSON.parse(manifest(name))) });
  assert.deepEqual(await nextPoll({ status: 200, text: list }), ["removed web-n1", "added a-n1", "added b-n1"]);
  assert.deepEqual(await nextPoll({ status: 200, text: `null\n---\n${manifest("a")}\n` }), ["removed b-n1", "updated a-n1"]);
  stop.abort();
  await running;
});
