import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallOptions } from "@coxswain/apimachinery/client/client";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import { leases, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { type HeartbeatClient, withTimeLimit } from "./heartbeat-client.ts";
import { runNodeLease } from "./lease.ts";
import { Registration } from "./registration.ts";

/** A client of a server that accepts requests of the verb in `standsStill` and never responds. */
function standingStill() {
  const clock = newFakeClock();
  const server = newFakeClient({ clock });
  const control = { standsStill: "", asked: 0 };
  const answer = async <T>(verb: string, { signal }: CallOptions = {}, ask: () => Promise<T>): Promise<T> => {
    control.asked++;
    if (control.standsStill !== verb) return ask();
    return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true }));
  };
  const client: HeartbeatClient = {
    get: (ref, target, options) => answer("get", options, () => server.get(ref, target, options)),
    create: (ref, object, options) => answer("create", options, () => server.create(ref, object, options)),
    update: (ref, object, options) => answer("update", options, () => server.update(ref, object, options)),
    patch: (ref, target, patch, options) => answer("patch", options, () => server.patch(ref, target, patch, options)),
  };
  const stop = new AbortController();
  const step = async (ms: number) => {
    await clock.advance(ms);
    await settle();
  };
  return { clock, server, control, stop, step, client, heartbeat: withTimeLimit(client, 10_000, clock) };
}

for (const verb of ["get", "create", "update"]) {
  test(`a server that does not answer a ${verb} delays the renewal of the lease by at most ten seconds`, async () => {
    const { clock, server, control, stop, step, heartbeat } = standingStill();
    const options = { client: heartbeat, clock, nodeName: "n1", durationSeconds: 40, node: () => undefined };
    const errors: unknown[] = [];
    const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
    if (verb !== "update") control.standsStill = verb;
    const running = runNodeLease({ ...options, log }, stop.signal);
    await settle();
    if (verb === "update") {
      control.standsStill = verb;
      await step(10_000);
    }
    const { asked } = control;
    await step(9_999);
    assert.deepEqual([control.asked, errors.length], [asked, 0]);
    control.standsStill = "";
    await step(1);
    assert.match(String(errors), /no answer within 10000 ms/);
    await step(200);
    const renewTime = `2022-01-01T00:00:${verb === "update" ? "20" : "10"}.200000Z`;
    assert.equal(server.object<Lease>(leases, "kube-node-lease/n1")?.spec?.renewTime, renewTime);
    stop.abort();
    await running;
    assert.equal(clock.waiting, 0, "no timer is left");
  });
}

test("a status update without an answer is repeated after ten seconds", async () => {
  const { clock, server, control, stop, step, heartbeat } = standingStill();
  const registration = new Registration({
    client: heartbeat,
    clock,
    log: discardLogger,
    initial: () => ({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} }),
    register: true,
    nodeName: "n1",
    status: async () => ({ conditions: [{ type: "Ready", status: "True" }] }),
    updateFrequencyMs: 10_000,
    reportFrequencyMs: 300_000,
    onUpdate: () => undefined,
    notify: () => undefined,
  });
  control.standsStill = "patch";
  const running = registration.run(stop.signal);
  await settle();
  const patches = () => server.writes.filter((write) => write.verb === "patch").length;
  await step(9_999);
  control.standsStill = "";
  assert.equal(patches(), 0);
  await step(1);
  assert.equal(patches(), 1);
  stop.abort();
  await step(10_000);
  await running;
});

test("stopping a heartbeat does not wait for its timeout", async () => {
  const { clock, control, stop, heartbeat } = standingStill();
  control.standsStill = "get";
  const asking = heartbeat.get(nodes, { name: "n1" }, { signal: stop.signal });
  stop.abort(new Error("the kubelet ends"));
  await assert.rejects(asking, /the kubelet ends/);
  assert.equal(clock.waiting, 0);
});

test("a request without an abort signal has a timeout, too", async () => {
  const { clock, control, heartbeat } = standingStill();
  control.standsStill = "patch";
  const asking = heartbeat.patch(nodes, { name: "n1" }, { type: "merge", body: {} });
  const failed = assert.rejects(asking, /no answer within 10000 ms/);
  await clock.advance(10_000);
  await failed;
});

test("--node-status-update-frequency=0 sets no request timeout", async () => {
  const { clock, control, client } = standingStill();
  const unlimited = withTimeLimit(client, 0, clock);
  await assert.rejects(unlimited.get(nodes, { name: "n1" }), /not found/);
  assert.deepEqual([control.asked, clock.waiting], [1, 0]);
  control.standsStill = "get";
  const stop = new AbortController();
  const asking = unlimited.get(nodes, { name: "n1" }, { signal: stop.signal });
  const ended = assert.rejects(asking, /the test ends/);
  await clock.advance(3_600_000);
  stop.abort(new Error("the test ends"));
  await ended;
});
