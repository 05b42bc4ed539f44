import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { testSettings } from "../testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { newProxyMetrics } from "./metrics.ts";
import { type ServicePort, servicePorts } from "./service-port.ts";
import { ServiceRules } from "./service-rules.ts";
import { parseAddress, StatusPorts, type StatusPortsOptions } from "./status-ports.ts";

/** A loopback address that nothing else on the machine uses, so that ports can be chosen. */
const host = `127.87.${(process.pid >> 8) & 255}.${process.pid & 255}`;

function startPorts(t: TestContext, options: Partial<StatusPortsOptions>) {
  const events: string[] = [];
  const recorder = {
    event: (_object: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason} ${message}`),
    flush: () => Promise.resolve(),
  };
  const ports = new StatusPorts({
    health: undefined,
    metrics: undefined,
    lateMs: () => 0,
    mostLateMs: 60_000,
    renderMetrics: () => Promise.resolve("a_metric 1\n"),
    ...{ recorder, nodeName: "n1", log: discardLogger, clock: newFakeClock() },
    ...options,
  });
  const ending = new AbortController();
  const running = ports.run(ending.signal);
  const stop = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  t.after(stop);
  return { events, stop, signal: ending.signal };
}
const fetchFrom = (port: number, path: string, method = "GET") =>
  fetch(`http://${host}:${port}${path}`, { method }).catch(() => undefined);

test("the health port says whether the rules are late, as kube-proxy's does", async (t) => {
  let late = 0;
  const { stop } = startPorts(t, { health: { host, port: 21_001 }, lateMs: () => late });
  await waitFor(() => fetchFrom(21_001, "/healthz"));
  for (const [ms, status, lastUpdated] of [
    [0, 200, "2022-01-01 00:00:00.000 +0000 UTC"],
    [59_999, 200, "2022-01-01 00:00:00.000 +0000 UTC"],
    [60_000, 503, "2021-12-31 23:59:00.000 +0000 UTC"],
    [0, 200, "2022-01-01 00:00:00.000 +0000 UTC"],
  ] as const) {
    late = ms;
    const answer = await fetchFrom(21_001, "/healthz?verbose");
    assert.equal(answer?.status, status, `${ms} ms late`);
    assert.equal(answer?.headers.get("content-type"), "application/json");
    assert.deepEqual(await answer?.json(), { lastUpdated, currentTime: "2022-01-01 00:00:00.000 +0000 UTC" });
  }
  assert.equal((await fetchFrom(21_001, "/metrics"))?.status, 404, "metrics are not for other machines");
  assert.equal((await fetchFrom(21_001, "/healthz", "POST"))?.status, 405);
  assert.equal((await fetchFrom(21_001, "/healthz", "HEAD"))?.status, 200);
  await stop();
  assert.equal(await fetchFrom(21_001, "/healthz"), undefined);
});

test("the metrics port has kube-proxy's paths", async (t) => {
  let fail = false;
  const renderMetrics = (): Promise<string> => (fail ? Promise.reject(new Error("no page")) : Promise.resolve("a_metric 1\n"));
  startPorts(t, { metrics: { host, port: 21_002 }, renderMetrics });
  await waitFor(() => fetchFrom(21_002, "/healthz"));
  for (const [path, status, body] of [
    ["/healthz", 200, "ok"],
    ["/proxyMode", 200, "iptables"],
    ["/metrics", 200, "a_metric 1\n"],
    ["/debug/pprof/", 404, "404 page not found\n"],
  ] as const) {
    const answer = await fetchFrom(21_002, path);
    assert.deepEqual([answer?.status, await answer?.text()], [status, body], path);
  }
  fail = true;
  assert.equal((await fetchFrom(21_002, "/metrics"))?.status, 500);
});

test("a port that is taken is an event on the Node, and is tried again", async (t) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(21_003, host, () => resolve()));
  const clock = newFakeClock();
  const { events } = startPorts(t, { clock, health: { host, port: 21_003 }, metrics: { host, port: 21_004 } });
  await waitFor(() => events.length === 1);
  assert.match(
    events[0] ?? "",
    new RegExp(`^Warning FailedToStartProxierHealthcheck failed to start proxier healthz on ${host}:21003: .*EADDRINUSE`),
  );
  await waitFor(async () => (await fetchFrom(21_004, "/healthz"))?.status === 200);
  await new Promise((resolve) => taken.close(resolve));
  await waitFor(async () => {
    await clock.advance(5_000);
    return (await fetchFrom(21_003, "/healthz"))?.status === 200;
  });
});

test("a metrics port that is taken is no event, and is tried again after five seconds", async (t) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(21_006, host, () => resolve()));
  t.after(() => void taken.close());
  const clock = newFakeClock();
  const errors: unknown[] = [];
  const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
  const { events } = startPorts(t, { clock, log, metrics: { host, port: 21_006 } });
  await waitFor(() => clock.waiting === 1);
  await clock.advance(4_999);
  await settle(20);
  assert.equal(errors.length, 1);
  await clock.advance(1);
  await waitFor(() => errors.length === 2);
  assert.deepEqual(events, []);
});

test("attempts leave no listeners of the end", async (t) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(21_009, host, resolve));
  t.after(() => taken.close());
  const clock = newFakeClock();
  const { signal } = startPorts(t, { metrics: { host, port: 21_009 }, clock });
  const counts: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    await waitFor(() => clock.waiting > 0, { what: "the pause before the next attempt" });
    counts.push(getEventListeners(signal, "abort").length);
    await clock.advance(5_000);
  }
  assert.deepEqual(counts, Array(4).fill(counts[0]));
});

test("an end cuts off a client that has not sent its request", async (t) => {
  const { stop } = startPorts(t, { health: { host, port: 21_005 } });
  await waitFor(() => fetchFrom(21_005, "/healthz"));
  const client = connect(21_005, host);
  t.after(() => client.destroy());
  client.on("error", () => {});
  await new Promise((resolve) => client.once("connect", resolve));
  client.write("GET /healthz HTTP/1.1\r\n");
  await stop();
  await waitFor(() => client.closed, { what: "the connection to end" });
});

test("rules are late from the change that cannot be written until it is", async (t) => {
  const clock = newFakeClock();
  let refused: Error | undefined;
  let writes = 0;
  let ports: ServicePort[] = [];
  const rules = new ServiceRules({
    settings: testSettings,
    keys: () => [],
    portsOf: () => ports,
    masqueradedNetworks: [],
    checkPeriodMs: 3_600_000,
    onRefused() {},
    run(command) {
      if (command.endsWith("-restore")) writes++;
      return refused === undefined ? Promise.resolve("") : Promise.reject(refused);
    },
    turns: new Turns(),
    metrics: newProxyMetrics(newMetricsRegistry()),
    log: discardLogger,
    clock,
  });
  assert.equal(rules.lateMs(), 0);
  const ending = new AbortController();
  const running = rules.run(ending.signal);
  t.after(async () => {
    ending.abort();
    await running;
  });
  await waitFor(() => writes > 0 && rules.lateMs() === 0);
  await clock.advance(100_000);
  assert.equal(rules.lateMs(), 0, "nothing has changed");

  refused = new Error("the kernel refuses");
  ports = servicePorts(
    aService("web"),
    [aSlice("web", [anEndpoint("10.77.0.2", "n1")])],
    { name: "n1", zone: undefined },
    "IPv4",
  );
  rules.changed("default/web");
  await clock.advance(1_000);
  await waitFor(async () => {
    await clock.advance(10_000);
    try {
      rules.check();
      return false;
    } catch {
      return true;
    }
  });
  const late = rules.lateMs();
  assert.ok(late >= 11_000, `${late}`);
  rules.changed("default/other");
  assert.equal(rules.lateMs(), late, "counted from the first change");
  refused = undefined;
  await waitFor(async () => {
    await clock.advance(10_000);
    return rules.lateMs() === 0;
  });
});

test("address flags", () => {
  for (const [written, address] of [
    ["", undefined],
    ["0.0.0.0:10256", { host: "0.0.0.0", port: 10256 }],
    ["[::1]:10249", { host: "::1", port: 10249 }],
    ["localhost:1", { host: "localhost", port: 1 }],
    ["127.0.0.1:65535", { host: "127.0.0.1", port: 65_535 }],
  ] as const)
    assert.deepEqual(parseAddress("healthz-bind-address", written), address, written);
  for (const written of ["10256", ":10256", "0.0.0.0", "0.0.0.0:0", "0.0.0.0:65536", "::1:10249", "[::1]", "a:b:1"])
    assert.throws(() => parseAddress("healthz-bind-address", written), ConfigError, written);
});
