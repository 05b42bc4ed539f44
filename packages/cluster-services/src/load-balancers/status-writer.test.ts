import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { conflict, internalError, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aService } from "../testing/objects.ts";
import { newLoadBalancerMetrics } from "./metrics.ts";
import { Pool } from "./pool.ts";
import { StatusWriter } from "./status-writer.ts";

function setUp(t: TestContext, ...objects: Service[]) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock, objects: objects.map((object) => [services, object] as const) });
  const events: string[] = [];
  const ending = new AbortController();
  const metrics = newMetricsRegistry();
  const writer = new StatusWriter({
    ...{ client, clock, log: discardLogger, turns: newUnlimitedTurns() },
    reconnection: new Reconnection({ periodMs: () => 500, clock, random: () => 1 }),
    cluster: () => ({
      services: client.objects<Service>(services),
      nodes: [],
      pool: new Pool(["192.0.2.1-192.0.2.2"]),
      nodesWithEndpoints: () => new Set(),
      reservedPorts: new Set(),
    }),
    recorder: {
      event: (object, type, reason) => void events.push(`${"metadata" in object ? object.metadata.name : ""} ${type} ${reason}`),
      flush: () => Promise.resolve(),
    },
    metrics: newLoadBalancerMetrics(metrics),
  });
  t.after(() => ending.abort());
  const addresses = (name: string): string =>
    JSON.stringify(client.object<Service>(services, `default/${name}`)?.status?.loadBalancer?.ingress ?? []);
  return { clock, client, events, writer, addresses, metrics, ending };
}
const balanced = (name: string): Service => aService(name, { type: "LoadBalancer" });
const first = '[{"ip":"192.0.2.1"}]';

test("writes the status once, and nothing but the status", async (t) => {
  const { client, writer, addresses, events, ending } = setUp(t, balanced("a"));
  await writer.sync(ending.signal);
  assert.equal(addresses("a"), first);
  await writer.sync(ending.signal);
  assert.deepEqual(
    client.writes.map(({ verb, subresource }) => `${verb} ${subresource}`),
    ["update status"],
  );
  assert.deepEqual(events, ["a Normal AddressAssigned"]);
});

test("a Service that is of another type now loses its address, which the next one gets", async (t) => {
  const { client, writer, addresses, ending } = setUp(t, aService("a", { type: "ClusterIP" }, ["192.0.2.1"]), balanced("b"));
  await writer.sync(ending.signal);
  assert.deepEqual([addresses("a"), addresses("b")], ["[]", first]);
  client.remove(services, "default/b");
  client.put(services, balanced("c"));
  await writer.sync(ending.signal);
  assert.equal(addresses("c"), first);
});

test("an exhausted pool is reported once, and again when it has been exhausted again", async (t) => {
  const { client, writer, events, metrics, ending } = setUp(t, balanced("a"), balanced("b"), balanced("c"));
  for (let i = 0; i < 2; i++) await writer.sync(ending.signal);
  const exhausted = (): number => events.filter((event) => event === "c Warning PoolExhausted").length;
  assert.equal(exhausted(), 1);
  assert.match(await metrics.render(), /^coxswain_load_balancer_services_without_address 1$/m);
  client.remove(services, "default/a");
  await writer.sync(ending.signal);
  assert.match(await metrics.render(), /^coxswain_load_balancer_services_without_address 0$/m);
  client.put(services, balanced("d"));
  await writer.sync(ending.signal);
  assert.deepEqual(
    events.filter((event) => event.includes("Warning")),
    ["c Warning PoolExhausted", "d Warning PoolExhausted"],
  );
  events.length = 0;
  client.put(services, aService("d", { type: "LoadBalancer", loadBalancerIP: "198.51.100.1" }));
  for (let i = 0; i < 2; i++) await writer.sync(ending.signal);
  assert.deepEqual(events, ["d Warning AddressNotInPool"], "another problem is reported, once");
});

test("another writer's change and a Service that is gone are no failures; others are tried again", async (t) => {
  const { client, clock, writer, addresses, ending } = setUp(t, balanced("a"), balanced("b"));
  let failures = 0;
  client.react("update", "services", () => {
    if (++failures === 1) throw conflict(services, "a", "changed");
    if (failures === 2) throw internalError("etcd is away");
  });
  const running = writer.run(ending.signal);
  await waitFor(() => failures === 2);
  await waitFor(() => assert.throws(() => writer.check(), /etcd is away/) === undefined);
  await clock.advance(1_000);
  await waitFor(() => addresses("b") !== "[]" && addresses("a") !== "[]");
  writer.check();
  ending.abort();
  await running;
});

test("a Service that was deleted meanwhile is no failure, and others are counted", async (t) => {
  const { client, writer, metrics, ending } = setUp(t, balanced("a"), balanced("b"));
  let code: "gone" | "broken" = "gone";
  client.react("update", "services", ({ name }) => {
    if (name === "a") throw code === "gone" ? notFound(services, name) : internalError("etcd is away");
  });
  await writer.sync(ending.signal);
  const failures = async (): Promise<string | undefined> =>
    /^coxswain_load_balancer_status_failures_total (\d+)$/m.exec(await metrics.render())?.[1];
  assert.equal((await failures()) ?? "0", "0");
  code = "broken";
  await assert.rejects(writer.sync(ending.signal), /etcd is away/);
  assert.equal(await failures(), "1");
});

test("the status of another program's load balancer is left alone, and other fields of a status stay", async (t) => {
  const theirs = aService("theirs", { type: "LoadBalancer", loadBalancerClass: "metallb" }, ["203.0.113.1"]);
  const conditions = [{ type: "Known", status: "True", reason: "r", message: "", lastTransitionTime: "2022-01-01T00:00:00Z" }];
  const own: Service = { ...balanced("own"), status: { conditions } as Service["status"] & object };
  const { client, writer, addresses, ending } = setUp(t, theirs, own);
  await writer.sync(ending.signal);
  assert.equal(addresses("theirs"), '[{"ip":"203.0.113.1"}]');
  assert.deepEqual(client.object<Service>(services, "default/own")?.status, {
    conditions,
    loadBalancer: { ingress: [{ ip: "192.0.2.1" }] },
  });
});

test("a problem that was solved is reported again when it returns", async (t) => {
  const { client, writer, events, ending } = setUp(t, balanced("a"), balanced("b"), balanced("c"));
  const exhausted = (): number => events.filter((event) => event.endsWith("PoolExhausted")).length;
  await writer.sync(ending.signal);
  client.remove(services, "default/a");
  await writer.sync(ending.signal);
  assert.equal(exhausted(), 1);
  client.put(services, aService("c", { type: "LoadBalancer" }), aService("a", { type: "LoadBalancer" }, ["192.0.2.1"]));
  await writer.sync(ending.signal);
  assert.equal(exhausted(), 2);
});

test("a status that cannot be written keeps no other from being written", async (t) => {
  const { client, writer, addresses, ending } = setUp(t, balanced("a"), balanced("b"));
  client.react("update", "services", ({ name }) => {
    if (name === "a") throw internalError("etcd is away");
  });
  await assert.rejects(writer.sync(ending.signal), /etcd is away/);
  assert.deepEqual([addresses("a"), addresses("b")], ["[]", '[{"ip":"192.0.2.2"}]']);
});

test("of several failures the first is told", async (t) => {
  const { client, writer, ending } = setUp(t, balanced("a"), balanced("b"));
  client.react("update", "services", ({ name }) => {
    throw internalError(`no room for ${name}`);
  });
  await assert.rejects(writer.sync(ending.signal), /no room for a/);
});

test("a change that comes while statuses are written is written after them", async (t) => {
  const { client, clock, writer, addresses, ending } = setUp(t, balanced("a"));
  client.react("update", "services", ({ name }) => {
    if (name === "a") {
      client.put(services, balanced("b"));
      writer.changed();
    }
  });
  const running = writer.run(ending.signal);
  await waitFor(async () => (await clock.advance(1_000)) ?? addresses("b") !== "[]");
  ending.abort();
  await running;
  assert.equal(clock.waiting, 0);
});

test("a Service that is made again is reported as the one before it", async (t) => {
  const { client, writer, events, ending } = setUp(t, balanced("a"), balanced("b"), balanced("c"));
  await writer.sync(ending.signal);
  client.remove(services, "default/c");
  await writer.sync(ending.signal);
  client.put(services, balanced("c"));
  await writer.sync(ending.signal);
  assert.equal(events.filter((event) => event === "c Warning PoolExhausted").length, 2);
});

test("after five minutes without an API server addresses are written within its next attempt, and meanwhile it is asked for one Service", async (t) => {
  const { client, clock, writer, addresses, ending } = setUp(t, balanced("a"), balanced("b"));
  let isAway = true;
  client.react("update", "services", () => {
    if (isAway) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  });
  const running = writer.run(ending.signal);
  for (let second = 0; second < 300; second++) await clock.advance(1_000);
  assert.equal(client.writes.length, 601, "at once, then every 500 ms");
  assert.throws(() => writer.check(), /ECONNREFUSED/);
  isAway = false;
  await clock.advance(500);
  assert.equal(addresses("a"), first);
  assert.notEqual(addresses("b"), "[]");
  writer.check();
  ending.abort();
  await running;
});
