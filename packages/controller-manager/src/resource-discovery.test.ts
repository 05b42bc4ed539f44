import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { configMaps, deployments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { ResourceDiscovery } from "./resource-discovery.ts";
import { serveDiscovery } from "./testing/discovery.ts";

const never = new AbortController().signal;

test("callers at the same time get one result", async () => {
  const { discovery, requests } = world();
  const [first, second] = await Promise.all([discovery.resources(never), discovery.resources(never)]);
  assert.deepEqual(
    first.resources.map(({ resource }) => resource),
    ["configmaps", "deployments"],
  );
  assert.equal(second, first);
  assert.deepEqual(requests.sort(), ["/api", "/api/v1", "/apis", "/apis/apps/v1"]);
});

test("a result is kept for 5 seconds from its end", async () => {
  const { discovery, requests, clock } = world();
  const first = await discovery.resources(never);
  await clock.advance(4_999);
  assert.equal(await discovery.resources(never), first);
  assert.equal(requests.length, 4);
  await clock.advance(1);
  assert.notEqual(await discovery.resources(never), first);
  assert.equal(requests.length, 8);
});

test("a result that takes longer than 5 seconds is not read twice", async () => {
  const { discovery, requests, clock, hold } = world();
  const release = hold();
  const first = discovery.resources(never);
  await clock.advance(6_000);
  const second = discovery.resources(never);
  release();
  assert.equal(await second, await first);
  assert.equal(requests.length, 4);
});

test("when the groups cannot be read, all who wait get the error and the next call reads again", async () => {
  const { discovery, fail } = world();
  const recover = fail("/apis");
  const both = await Promise.allSettled([discovery.resources(never), discovery.resources(never)]);
  assert.deepEqual(
    both.map((one) => one.status === "rejected" && one.reason.message),
    ["away", "away"],
  );
  recover();
  assert.equal((await discovery.resources(never)).resources.length, 2);
});

test("when one group cannot be read, the next call reads again", async () => {
  const { discovery, fail } = world();
  const recover = fail("/apis/apps/v1");
  const { resources, failed } = await discovery.resources(never);
  assert.deepEqual([resources.length, failed.map(({ groupVersion }) => groupVersion)], [1, ["apps/v1"]]);
  recover();
  assert.equal((await discovery.resources(never)).resources.length, 2);
});

for (const { what, answer, failures } of [
  { what: "null in place of the list", answer: { resources: null }, failures: [] },
  { what: "no list", answer: {}, failures: [] },
  { what: "a list", answer: [], failures: ["GET /apis/apps/v1: the answer is not a JSON object"] },
]) {
  test(`a group version that answers with ${what} has no resources${failures.length > 0 ? " and counts as failed" : ""}`, async () => {
    const { discovery, answers } = world();
    answers.set("/apis/apps/v1", answer);
    const { resources, failed } = await discovery.resources(never);
    assert.deepEqual([resources.length, failed.map(({ error }) => messageOf(error))], [1, failures]);
  });
}

test("when one caller is aborted, only its wait ends", async () => {
  const { discovery, hold, signals } = world();
  const release = hold();
  const stop = new AbortController();
  const aborted = discovery.resources(stop.signal);
  const other = discovery.resources(never);
  stop.abort(new Error("stopped"));
  await assert.rejects(aborted, /stopped/);
  release();
  assert.equal((await other).resources.length, 2);
  assert.ok(signals.every((signal) => !signal.aborted));
});

test("when all callers are aborted, so are the requests, and the next call reads again", async () => {
  const { discovery, hold, signals } = world();
  const release = hold();
  const stop = new AbortController();
  const both = Promise.allSettled([discovery.resources(stop.signal), discovery.resources(stop.signal)]);
  stop.abort(new Error("stopped"));
  assert.deepEqual(
    (await both).map(({ status }) => status),
    ["rejected", "rejected"],
  );
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, true],
  );
  release();
  assert.equal((await discovery.resources(never)).resources.length, 2);
});

test("a caller that has its answer no longer listens to its signal, also after a failure", async () => {
  const { signal } = new AbortController();
  await world().discovery.resources(signal);
  const { discovery, fail } = world();
  fail("/apis");
  await assert.rejects(discovery.resources(signal), /away/);
  assert.deepEqual(getEventListeners(signal, "abort"), []);
});

test("a caller that is aborted already sends nothing", async () => {
  const { discovery, requests } = world();
  await assert.rejects(discovery.resources(AbortSignal.abort(new Error("stopped"))), /stopped/);
  assert.deepEqual(requests, []);
});

/** Discovery of two resources, whose requests can be held back or fail. */
function world() {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  serveDiscovery(client, [configMaps, deployments]);
  const requests: string[] = [];
  const signals: AbortSignal[] = [];
  const failing = new Set<string>();
  let held = Promise.resolve();
  const raw = client.raw.bind(client);
  client.raw = async (method: string, path: string, options?: { signal?: AbortSignal }) => {
    requests.push(path);
    if (options?.signal !== undefined) signals.push(options.signal);
    await held;
    if (failing.has(path)) throw serviceUnavailable("away");
    return raw(method, path);
  };
  return {
    discovery: new ResourceDiscovery(client, clock),
    answers: client.rawAnswers,
    clock,
    requests,
    signals,
    /** @returns what lets the requests go on */
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    /** @returns what ends the failure */
    fail(path: string) {
      failing.add(path);
      return () => void failing.delete(path);
    },
  };
}
