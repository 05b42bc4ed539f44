/** The small parts between a cluster's clients and its server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { Faults } from "../faults/faults.ts";
import type { Write, WriteLog } from "../history/write-log.ts";
import { Activity } from "./activity.ts";
import { applyObjects, objectsOf } from "./apply.ts";
import { Dialer } from "./dialer.ts";
import { InProcessListener } from "./listener.ts";
import { wholeNumber } from "./number-flag.ts";
import { isLongRunning, Requests } from "./requests.ts";
import { busiest, lastWork } from "./settle.ts";

/** What a handler and the listener use of an exchange, and what became of it. */
function newExchange(url = "/api/v1/pods", method = "GET", agent?: string) {
  const seen = { answers: [] as { code: number; body: unknown }[], isDestroyed: false };
  const exchange = {
    method,
    url,
    headers: agent === undefined ? {} : { "user-agent": agent },
    respond: (code: number, _: unknown, body = "{}") => void seen.answers.push({ code, body: JSON.parse(body) }),
    destroy: () => {
      seen.isDestroyed = true;
    },
  } as unknown as Exchange; // cast: the fields that are used here
  return { exchange, seen };
}

function newRequests() {
  const clock = newFakeClock();
  const activity = new Activity();
  const faults = new Faults(clock);
  return { clock, activity, faults, requests: new Requests(activity, faults) };
}

const request = { by: "kube-controller-manager/replicaset-controller", method: "GET", path: "/api/v1/pods?limit=5" };

test("a fault applies as often as it says, the earlier one first, until it is removed", () => {
  const faults = new Faults(newFakeClock());
  const once_ = faults.inject({ status: 500 });
  const twice = faults.inject({ status: 409, times: 2, message: "m" });
  const always = faults.inject({ breaks: "after", times: Number.POSITIVE_INFINITY, delay: "2s" });
  assert.deepEqual(
    Array.from({ length: 5 }, () => faults.next(request)?.status),
    [500, 409, 409, undefined, undefined],
  );
  assert.deepEqual([once_.hits, twice.hits, always.hits], [1, 2, 2]);
  assert.deepEqual(faults.next(request), { delayMs: 2_000, status: undefined, message: undefined, breaks: "after" });
  always.remove();
  assert.equal(faults.next(request), undefined);
  {
    using _ = faults.inject({ status: 500, times: 9 });
    assert.equal(faults.next(request)?.delayMs, 0);
  }
  assert.equal(faults.next(request), undefined);
});

const pattern = /pods\?/g; // a pattern that remembers where it has matched
for (const { match, want } of [
  { match: {}, want: true },
  { match: { method: "GET" }, want: true },
  { match: { method: "POST" }, want: false },
  { match: { by: "replicaset" }, want: true },
  { match: { by: "scheduler" }, want: false },
  { match: { path: "/pods" }, want: true },
  { match: { path: "/nodes" }, want: false },
  { match: { path: /limit=\d/ }, want: true },
  { match: { path: /limit=x/ }, want: false },
  { match: { path: pattern }, want: true },
  { match: { path: "/pods", method: "POST" }, want: false },
  { match: { path: "/pods", by: "scheduler" }, want: false },
])
  test(`a fault with ${JSON.stringify(match)} ${want ? "meets" : "does not meet"} the request, each time`, () => {
    const faults = new Faults(newFakeClock());
    faults.inject({ ...match, status: 500, times: 3 });
    assert.deepEqual(
      [1, 2].map(() => faults.next(request) !== undefined),
      [want, want],
    );
  });

test("a fault without an effect or with a wrong time is refused, and one of watches where there are none", () => {
  const faults = new Faults(newFakeClock());
  assert.throws(() => faults.inject({ path: "x" }), { message: "a fault needs a status, a delay, or breaks" });
  assert.throws(() => faults.inject({ delay: "soon" as never }), /"soon" is not a duration/);
  assert.equal(faults.next(request), undefined);
  for (const disturb of [() => faults.breakWatches(), () => faults.breakStoreWatch(), () => faults.lagWatches("1s")])
    assert.throws(disturb, /^Error: watches of this cluster cannot be disturbed: /);
  const calls: unknown[] = [];
  const watches = {
    breakClients: (path: string) => calls.push(path),
    breakStore: () => void calls.push("store"),
    lagStore: (ms: number) => void calls.push(ms),
  };
  const own = new Faults(newFakeClock(), () => watches);
  assert.equal(own.breakWatches("/pods"), 1);
  own.breakStoreWatch();
  own.lagWatches("2s");
  assert.deepEqual(calls, ["/pods", "store", 2_000]);
});

test("a program's clock is ahead by its own skew only, and its timers are not", async () => {
  const clock = newFakeClock(1_000);
  const faults = new Faults(clock);
  const skewed = faults.clockOf("kube-scheduler");
  faults.skew("kube-scheduler", -400);
  assert.deepEqual([skewed.now(), faults.clockOf("kube-apiserver").now(), clock.now()], [600, 1_000, 1_000]);
  assert.equal(skewed.monotonic(), clock.monotonic());
  let fired = 0;
  skewed.after(100, () => fired++);
  skewed.every(100, () => fired++);
  const slept = skewed.sleep(200).then(() => fired++);
  await clock.advance(200);
  await slept;
  assert.equal(fired, 4);
});

for (const { fault, want } of [
  { fault: { status: 409 }, want: ["Conflict", "injected fault: GET /api/v1/pods fails with 409 Conflict"] },
  { fault: { status: 422, message: "no" }, want: ["Invalid", "no"] },
  { fault: { status: 429 }, want: ["TooManyRequests", "injected fault: GET /api/v1/pods fails with 429 Too Many Requests"] },
  { fault: { status: 504 }, want: ["Timeout", "injected fault: GET /api/v1/pods fails with 504 Gateway Timeout"] },
  { fault: { status: 599 }, want: ["Unknown", "injected fault: GET /api/v1/pods fails with 599"] },
])
  test(`an injected ${fault.status} is answered with the reason ${want[0]}, and the server does not see the request`, async () => {
    const { requests, faults, activity } = newRequests();
    faults.inject(fault);
    const { exchange, seen } = newExchange();
    await requests.pass(exchange, () => assert.fail("it was handled"));
    const [reason, message] = want;
    assert.deepEqual(seen.answers, [
      {
        code: fault.status,
        body: { ...{ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" }, message, reason, code: fault.status },
      },
    ]);
    assert.deepEqual([seen.isDestroyed, activity.open, activity.count], [false, [], 1]);
  });

test("a broken connection comes before or after the server's work; a delay before it", async () => {
  const { requests, faults, clock, activity } = newRequests();
  const handled: string[] = [];
  const handler = (exchange: Exchange): void => {
    handled.push(requests.current?.by ?? "nobody");
    assert.equal(activity.open.length, 1);
    exchange.respond(200, {}, '"done"');
  };
  const pass = async (agent?: string) => {
    const { exchange, seen } = newExchange("/x", "PUT", agent);
    await requests.pass(exchange, handler);
    return [seen.answers.map(({ code }) => code), seen.isDestroyed];
  };
  faults.inject({ breaks: "before" });
  assert.deepEqual([await pass(), handled], [[[], true], []]);
  faults.inject({ breaks: "after" });
  assert.deepEqual([await pass("curl/8.0"), handled], [[[], true], ["curl/8.0"]]);
  assert.deepEqual(await pass("kube-scheduler/v1.23.0 (linux/amd64) kubernetes/coxswain"), [[200], false]);
  assert.deepEqual(await pass("kube-controller-manager/v1.23.0 (linux/amd64) kubernetes/coxswain/job-controller"), [
    [200],
    false,
  ]);
  assert.deepEqual(handled.slice(1), ["kube-scheduler", "kube-controller-manager/job-controller"]);
  assert.equal(requests.current, undefined);
  faults.inject({ delay: "3s" });
  const late = pass();
  await clock.advance(2_999);
  assert.equal(handled.length, 3);
  await clock.advance(1);
  assert.deepEqual([await late, handled.at(-1)], [[[200], false], "unknown"]);
  await assert.rejects(
    requests.pass(newExchange().exchange, () => {
      throw new Error("no");
    }),
    /no/,
  );
  assert.deepEqual(activity.open, [], "a failed one has ended too");
});

for (const [url, want] of [
  ["/api/v1/pods?watch=true", true],
  ["/api/v1/pods?limit=5&watch=1", true],
  ["/api/v1/pods?watch=false", false],
  ["/api/v1/pods?watch=0", false],
  ["/api/v1/pods?watchful=1", false],
  ["/api/v1/watch/pods", true],
  ["/api/v1/namespaces/a/pods/b/log?follow=true", true],
  ["/api/v1/namespaces/a/pods/b/log?follow=false", false],
  ["/api/v1/namespaces/a/pods/b/exec?command=ls", true],
  ["/api/v1/namespaces/a/pods/b/attach", true],
  ["/api/v1/namespaces/a/pods/b/portforward", true],
  ["/api/v1/namespaces/a/pods/exec-1", false],
] as const)
  test(`${url} ${want ? "does not end by itself" : "ends by itself"}`, () => assert.equal(isLongRunning(url), want));

test("a closed listener has ended the requests in progress, and knows none any more", async () => {
  const { requests, activity } = newRequests();
  const held = Promise.withResolvers<void>();
  const listener = new InProcessListener(() => held.promise, requests);
  const [one, two] = [newExchange("/one"), newExchange("/two?watch=1")];
  const handled = [listener.handle(one.exchange), listener.handle(two.exchange)];
  assert.deepEqual([listener.active, listener.isClosed, activity.open.length], [2, false, 1]);
  assert.equal(
    listener.breakOff(({ url }) => url.startsWith("/two")),
    1,
  );
  assert.deepEqual([one.seen.isDestroyed, two.seen.isDestroyed], [false, true]);
  await listener.close();
  assert.deepEqual([one.seen.isDestroyed, listener.isClosed], [true, true]);
  held.resolve();
  await Promise.all(handled);
  assert.equal(listener.active, 0);
  assert.equal(
    listener.breakOff(() => true),
    0,
  );
  listener.handleWith(() => {
    throw new Error("no");
  });
  await assert.rejects(listener.handle(newExchange().exchange), /no/);
  assert.equal(listener.active, 0);
});

test("a host in the process is found by its port first, until it is removed; what closes one end closes the other", async () => {
  const dialer = new Dialer();
  const accepted: [string, Duplex][] = [];
  const accept = (name: string) => (far: Duplex) => void accepted.push([name, far]);
  dialer.serve("node-1", accept("all"));
  const remove = dialer.serve("node-1:10250", accept("one"));
  const near = await dialer.connect("node-1", 10250);
  await dialer.connect("node-1", 80);
  remove();
  const third = await dialer.connect("node-1", 10250);
  assert.deepEqual(
    accepted.map(([name]) => name),
    ["one", "all", "all"],
  );
  const far = accepted[0]![1];
  const closed = once(far, "close");
  near.destroy();
  await closed;
  const [, farOfThird] = accepted[2]!;
  const nearClosed = once(third, "close");
  farOfThird.destroy();
  await nearClosed;
  const [, last] = accepted[1]!;
  const lastClosed = once(last, "close");
  dialer.close();
  await lastClosed;
  dialer.serve("refuses", () => {
    throw new Error("unreachable");
  });
  await assert.rejects(async () => dialer.connect("refuses", 1), /unreachable/);
});

const write = (key: string, atMs: number, by?: string): Write => ({
  ...{ revision: 1, atMs, key, type: "put", value: undefined, before: undefined },
  by: by === undefined ? undefined : { by, method: "PUT", path: "" },
});

test("heartbeats are no work; who writes most is named first, up to ten", () => {
  const heartbeats = ["leases/kube-system/x", "masterleases/1", "events/default/e", "ranges/serviceips"].map((key) =>
    write(`/registry/${key}`, 9_000, "x"),
  );
  heartbeats.push(write("/x/compact_rev_key", 9_000), write("/x/coxswain-barrier", 9_000));
  const work = [
    write("/registry/pods/a/b", 1_000, "s"),
    write("/registry/pods/a/b", 5_000, "s"),
    write("/registry/nodes/n", 6_000),
  ];
  assert.equal(lastWork([...work, ...heartbeats]), work[2]);
  assert.equal(lastWork(heartbeats), undefined);
  const log = (all: readonly Write[]): WriteLog => ({ all }) as unknown as WriteLog; // cast: what is read of it
  assert.deepEqual(busiest(log([...work, ...heartbeats]), 1_000, 0).split("\n"), [
    "  2 × pods/a/b by s, last at +5.000s",
    "  1 × nodes/n by the store itself, last at +6.000s",
  ]);
  assert.equal(busiest(log(work), 5_000, 0).split("\n").length, 2);
  assert.equal(busiest(log(work), 5_001, 0).split("\n").length, 1);
  const many = Array.from({ length: 12 }, (_, index) => write(`/registry/pods/a/${index}`, 1, "s"));
  assert.equal(busiest(log(many), 0, 0).split("\n").length, 10);
});

test("manifests are applied in the order in which they depend on each other, lists item by item", () => {
  const object = (kind: string, name: string) => ({ apiVersion: "v1", kind, metadata: { name } });
  const kinds = ["Pod", "ConfigMap", "Service", "Secret", "ServiceAccount", "CustomResourceDefinition", "Namespace"];
  const sorted = ["Namespace", "CustomResourceDefinition", "ServiceAccount", "Secret", "ConfigMap", "Pod", "Service"];
  const list = { apiVersion: "v1", kind: "PodList", items: [object("Pod", "b"), object("Namespace", "a")] };
  assert.deepEqual(
    objectsOf(kinds.map((kind) => object(kind, "x"))).map(({ kind }) => kind),
    sorted,
  );
  assert.deepEqual(
    objectsOf([object("Pod", "a"), list as never]).map(({ metadata }) => metadata.name),
    ["a", "a", "b"],
  );
  assert.deepEqual(
    objectsOf("---\n# nothing\n---\n{apiVersion: v1, kind: Pod, metadata: {name: c}}\n").map(({ metadata }) => metadata.name),
    ["c"],
  );
  assert.deepEqual(objectsOf(object("Pod", "z")).length, 1);
  for (const wrong of ["{apiVersion: v1}", "{kind: Pod}", "text"])
    assert.throws(() => objectsOf(`{apiVersion: v1, kind: Pod, metadata: {}}\n---\n${wrong}\n`), {
      message: "document 2 of the manifests is no Kubernetes object: it has no kind or apiVersion",
    });
});

test("a number on the command line is a whole one from 0 to its most", () => {
  assert.deepEqual([wholeNumber("nodes", "0", 5), wholeNumber("nodes", "5", 5)], [0, 5]);
  for (const wrong of ["6", "-1", "1.5", "", "1e1", "100000"])
    assert.throws(() => wholeNumber("nodes", wrong, 5), {
      message: `--nodes must be a whole number from 0 to 5, got ${JSON.stringify(wrong)}`,
    });
});

test("the resource of an applied kind is the one that is no subresource, and is asked for once", async () => {
  const kind = { kind: "Thing", namespaced: true };
  const asked: unknown[] = [];
  const client = {
    async raw(method: string, path: string) {
      asked.push([method, path]);
      const resources = [
        { ...kind, name: "things/status" },
        { kind: "Other", name: "others", namespaced: true },
        { ...kind, name: "things" },
      ];
      return { status: 200, body: Buffer.from(JSON.stringify({ resources })) };
    },
    async patch(ref: object, target: object) {
      asked.push([ref, target]);
      return {};
    },
  } as unknown as Client; // cast: all that applying calls
  const thing = (metadata: object) => ({ apiVersion: "example.com/v1", kind: "Thing", metadata }) as KubeObject;
  const options = { namespace: "default", fieldManager: "test", waitFor: async () => {} };
  await applyObjects(client, objectsOf([thing({ name: "a" }), thing({ name: "b", namespace: "own" })]), options);
  const ref = { group: "example.com", version: "v1", resource: "things", ...kind };
  assert.deepEqual(asked, [
    ["GET", "/apis/example.com/v1"],
    [ref, { name: "a", namespace: "default" }],
    [ref, { name: "b", namespace: "own" }],
  ]);
});
