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
