import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newScraper } from "./kubelets.ts";
import { newUsageStore } from "./usage-store.ts";

const aNode = (name: string, address = `192.0.2.${name.slice(1)}`, port = 10250): Node => ({
  metadata: { name },
  spec: {},
  status: { addresses: [{ type: "InternalIP", address }], daemonEndpoints: { kubeletEndpoint: { Port: port } } },
});

/** A scraper of kubelets that the test answers for; each round moves the clock on by 15 s. */
function setUp(...given: Node[]) {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const store = newUsageStore();
  const nodes = [...given];
  const answers = new Map<string, () => Promise<{ status: number }>>();
  const requested: string[] = [];
  const closed: string[] = [];
  const errors: string[] = [];
  const infos: string[] = [];
  const scraper = newScraper({
    ...{ nodes: () => nodes, store, clock, metrics: registry },
    log: {
      ...discardLogger,
      error: (_: string, err: unknown) => void errors.push((err as Error).message),
      info: (text: string) => void infos.push(text),
    },
    newClient: (url) => ({
      async raw(_method, _path, { signal } = {}) {
        requested.push(url);
        const seconds = clock.monotonic() / 1000 + 100;
        const { status } = await Promise.race([answers.get(url)?.() ?? { status: 200 }, aborted(signal as AbortSignal)]);
        const body = Buffer.from(`node_cpu_usage_seconds_total ${seconds}\nnode_memory_working_set_bytes 1000\n`);
        return { status, headers: {}, body };
      },
      close: () => void closed.push(url),
    }),
  });
  const round = async (): Promise<void> => {
    await clock.advance(15_000);
    await scraper.round(new AbortController().signal);
  };
  return { clock, store, nodes, answers, requested, closed, errors, infos, scraper, round, metrics: () => registry.render() };
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
const url = (name: string): string => `https://192.0.2.${name.slice(1)}:10250`;

test("usage is that between two rounds; a node that fails has none until two rounds went well again, and is reported once", async () => {
  const { store, answers, errors, infos, round, metrics } = setUp(aNode("n1"), aNode("n2"));
  answers.set(url("n1"), async () => ({ status: 200 }));
  for (let i = 0; i < 2; i++) await round();
  assert.deepEqual([store.node("n1")?.cpuCores, store.node("n2")?.cpuCores], [1, 1]);
  answers.set(url("n1"), async () => ({ status: 403 }));
  for (let i = 0; i < 2; i++) await round();
  assert.equal(store.node("n1"), undefined);
  assert.equal(store.node("n2")?.windowMs, 15_000);
  assert.equal(errors.length, 1);
  assert.match(errors[0] ?? "", /^https:\/\/192.0.2.1:10250 answers 403/);
  answers.delete(url("n1"));
  await round();
  assert.deepEqual([store.node("n1"), infos.length], [undefined, 1]);
  await round();
  assert.deepEqual([store.node("n1")?.cpuCores, infos.length], [1, 1]);
  answers.set(url("n1"), () => Promise.reject(new Error("connection refused")));
  await round();
  assert.deepEqual(errors.slice(1), ["connection refused"], "another failure");
  assert.match(await metrics(), /metrics_server_kubelet_request_total\{success="false"\} 3/);
  assert.match(await metrics(), /metrics_server_kubelet_request_total\{success="true"\} 11/);
});

test("a node that is gone is forgotten with its connection; one with another address is queried there", async () => {
  const { store, nodes, closed, errors, round, requested, answers } = setUp(aNode("n1"), aNode("n2"));
  answers.set(url("n2"), () => Promise.reject(new Error("is going")));
  for (let i = 0; i < 2; i++) await round();
  nodes.splice(1);
  nodes[0] = aNode("n1", "192.0.2.9");
  requested.length = 0;
  await round();
  assert.deepEqual([requested, closed.sort()], [["https://192.0.2.9:10250"], [url("n1"), url("n2")]]);
  assert.deepEqual([store.node("n1")?.cpuCores, store.node("n2")], [1, undefined]);
  nodes.push(aNode("n2"));
  await round();
  assert.equal(errors.length, 2, "a new node of the name is reported again");
  await round();
  assert.deepEqual(closed.splice(0).length, 2, "each once");
  nodes.pop();
  await round();
  assert.deepEqual(closed, [url("n2")], "of the second, while the first stays");
  nodes.push(
    { metadata: { name: "n3" }, spec: {} },
    { ...aNode("n4"), status: { addresses: [{ type: "ExternalIP", address: "2001:db8::4" }] } },
  );
  await round();
  assert.equal(errors.at(-1), "the Node has no address or kubelet port");
});

test("rounds begin every 15 s regardless of their duration; stopping ends them and closes connections", async () => {
  const { clock, answers, requested, closed, errors, scraper } = setUp(aNode("n1"), aNode("n2", "fd00::2"));
  const first = Promise.withResolvers<{ status: number }>();
  answers.set(url("n1"), () => first.promise);
  const ending = new AbortController();
  const running = scraper.run(ending.signal);
  await settle();
  assert.deepEqual([requested, scraper.lastRound], [[url("n1"), "https://[fd00::2]:10250"], undefined]);
  await clock.advance(4_000);
  first.resolve({ status: 200 });
  await settle();
  assert.equal(scraper.lastRound, 4_000);
  await clock.advance(10_999);
  assert.equal(requested.length, 2);
  await clock.advance(1);
  assert.deepEqual([requested.length, scraper.lastRound], [4, 15_000]);
  answers.set(url("n1"), () => new Promise(() => {}));
  await clock.advance(15_000);
  assert.equal(requested.length, 6);
  ending.abort(new Error("the part ends"));
  await running;
  assert.deepEqual([errors, closed.length], [[], 2]);
});

test("a kubelet has ten seconds to answer", async (t) => {
  const limit = t.mock.method(AbortSignal, "timeout");
  const { round } = setUp(aNode("n1"));
  await round();
  assert.deepEqual(
    limit.mock.calls.map((call) => call.arguments),
    [[10_000]],
  );
});

test("of a Node's addresses the internal one is used, then the external one, then the host name", async () => {
  const addresses = [
    { type: "Hostname", address: "n1.example" },
    { type: "ExternalIP", address: "203.0.113.1" },
    { type: "InternalIP", address: "192.0.2.1" },
  ];
  for (const [count, host] of [
    [3, "192.0.2.1"],
    [2, "203.0.113.1"],
    [1, "n1.example"],
  ] as const) {
    const { round, requested } = setUp({
      ...aNode("n1"),
      status: { ...aNode("n1").status, addresses: addresses.slice(0, count) },
    });
    await round();
    assert.deepEqual(requested, [`https://${host}:10250`]);
  }
});

test("fifty kubelets are asked at once, and the next one when one has answered", async () => {
  const many = Array.from({ length: 60 }, (_, i) => aNode(`n${i + 1}`));
  const { answers, requested, scraper } = setUp(...many);
  const first = Promise.withResolvers<{ status: number }>();
  const others = Promise.withResolvers<{ status: number }>();
  for (const { metadata } of many) answers.set(url(metadata.name ?? ""), () => (metadata.name === "n1" ? first : others).promise);
  const done = scraper.round(new AbortController().signal);
  await settle(5);
  assert.equal(requested.length, 50);
  first.resolve({ status: 200 });
  await settle(5);
  assert.equal(requested.length, 51);
  others.resolve({ status: 200 });
  await done;
  assert.equal(requested.length, 60);
});
