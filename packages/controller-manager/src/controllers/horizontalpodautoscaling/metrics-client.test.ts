import assert from "node:assert/strict";
import { test } from "node:test";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { newMetricsClient } from "./metrics-client.ts";

const { signal } = new AbortController();
const of = { namespace: "default", selector: LabelSelector.everything };

function prepared() {
  const [client, clock] = [newFakeClient(), newFakeClock()];
  const scales = { resourceOf: () => Promise.reject(new Error("not asked")) } as never;
  return { client, clock, metrics: newMetricsClient({ client, scales, clock, cacheMs: 15_000 }) };
}

test("a pod of which one container has no value has none; the others have theirs", async () => {
  const { client, metrics } = prepared();
  const pod = (name: string, ...usages: object[]) => ({
    metadata: { name },
    timestamp: "2022-01-01T00:00:00Z",
    window: "30s",
    containers: usages.map((usage, i) => ({ name: `c${i}`, usage })),
  });
  client.rawAnswers.set("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods", {
    items: [pod("lacks", { cpu: "1" }, { memory: "1" }), pod("none"), pod("both", { cpu: "1" }, { cpu: "500m" })],
  });
  const usage = await metrics.resource("cpu", of, undefined, signal);
  assert.deepEqual(
    [...usage].map(([name, { value }]) => [name, value]),
    [["both", 1500]],
  );
});

test("the version of the custom metrics API is looked up again after a while", async () => {
  const { client, clock, metrics } = prepared();
  const serve = (version: string, value: string): void => {
    client.rawAnswers.set("/api", { versions: [] });
    client.rawAnswers.set("/apis", { groups: [{ name: "custom.metrics.k8s.io", versions: [{ version }] }] });
    const item = { describedObject: { name: "a" }, timestamp: "2022-01-01T00:00:00Z", value };
    client.rawAnswers.set(`/apis/custom.metrics.k8s.io/${version}/namespaces/default/pods/*/rate`, { items: [item] });
    client.rawAnswers.set(`/apis/custom.metrics.k8s.io/${version}/namespaces/default/pods/%2A/rate`, { items: [item] });
  };
  const read = async () => (await metrics.pods({ name: "rate", selector: LabelSelector.everything }, of, signal)).get("a")?.value;
  serve("v1beta1", "1");
  assert.equal(await read(), 1000);
  serve("v1beta2", "2");
  assert.equal(await read(), 1000);
  await clock.advance(15_000);
  assert.equal(await read(), 2000);
});

const groups = (...versions: string[]) => ({
  groups: [
    {
      name: "custom.metrics.k8s.io",
      versions: versions.map((version) => ({ version })),
      preferredVersion: { version: versions[0] },
    },
  ],
});

for (const { served, want } of [
  { served: ["v1beta1", "v1beta2"], want: "v1beta1" },
  { served: ["v2", "v1beta1", "v1beta2"], want: "v1beta2" },
  { served: ["v2", "v1beta1"], want: "v1beta1" },
])
  test(`of the versions ${served.join(", ")} of the custom metrics API, with the first preferred, ${want} is used`, async () => {
    const { client, metrics } = prepared();
    client.rawAnswers.set("/api", { versions: [] });
    client.rawAnswers.set("/apis", groups(...served));
    const described = { describedObject: { name: "a" }, timestamp: "2022-01-01T00:00:00Z", value: "1" };
    const items = [
      { ...described, windowSeconds: 0 },
      { ...described, describedObject: { name: "b" }, window: 30 },
      { ...described, describedObject: { name: "c" } },
    ];
    client.rawAnswers.set(`/apis/custom.metrics.k8s.io/${want}/namespaces/default/pods/*/rate`, { items });
    const samples = await metrics.pods({ name: "rate", selector: LabelSelector.everything }, of, signal);
    assert.deepEqual(
      [...samples].map(([name, { windowMs }]) => [name, windowMs]),
      [
        ["a", 0],
        ["b", 30_000],
        ["c", 60_000],
      ],
    );
    assert.equal(samples.get("a")?.at, Date.parse("2022-01-01T00:00:00Z"));
  });

test("without a version of the custom metrics API that is known, it says so", async () => {
  const { client, metrics } = prepared();
  client.rawAnswers.set("/api", { versions: [] });
  client.rawAnswers.set("/apis", groups("v2"));
  const reading = metrics.pods({ name: "rate", selector: LabelSelector.everything }, of, signal);
  await assert.rejects(reading, /custom metrics API: no known available metric versions found$/);
});

for (const { what, body, message } of [
  {
    what: "a Status",
    body: JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: 503, message: "no endpoints" }),
    message: "unable to fetch metrics from resource metrics API: no endpoints",
  },
  {
    what: "the error page of a proxy",
    body: "<html>",
    message:
      "unable to fetch metrics from resource metrics API: the server is currently unable to handle the request (get pods.metrics.k8s.io)",
  },
])
  test(`a refusal with ${what} is reported as that`, async () => {
    const { client, metrics } = prepared();
    client.raw = async () => ({ status: 503, headers: {}, body: Buffer.from(body) });
    await assert.rejects(metrics.resource("cpu", of, undefined, signal), { message });
  });

test("a metric of a namespace is that of the autoscaler's own; a kind of that name in another group is like any other", async () => {
  const [client, clock] = [newFakeClient(), newFakeClock()];
  const scales = { resourceOf: async () => ({ group: "example.com", resource: "spaces" }) } as never;
  const metrics = newMetricsClient({ client, scales, clock, cacheMs: 15_000 });
  client.rawAnswers.set("/api", { versions: [] });
  client.rawAnswers.set("/apis", groups("v1beta2"));
  const base = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default";
  const item = (value: string) => ({ describedObject: { name: "x" }, timestamp: "2022-01-01T00:00:00Z", value });
  client.rawAnswers.set(`${base}/metrics/hits`, { items: [item("1")] });
  client.rawAnswers.set(`${base}/spaces.example.com/x/hits`, { items: [item("2")] });
  client.rawAnswers.set(`${base}/spaces.example.com/both/hits`, { items: [item("2"), item("3")] });
  const read = (apiVersion: string, name = "x") =>
    metrics.object(
      { name: "hits", selector: LabelSelector.everything },
      "default",
      { apiVersion, kind: "Namespace", name },
      signal,
    );
  assert.deepEqual([await read("v1"), await read("example.com/v1")], [1000, 2000]);
  await assert.rejects(read("example.com/v1", "both"), /returned 2 results when we asked for exactly one$/);
});
