import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { serviceUnavailable } from "../objects/errors/status-error.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { Pod } from "../objects/schema/kinds/core/v1.ts";
import { events, eventsV1, pods } from "../objects/schema/kinds/resources.ts";
import { LabelSelector } from "../objects/selectors/label-selector.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { aPod, aReplicaSet } from "../testing/builders.ts";
import { type FakeClient, newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { newBackoff, reflectorBackoff } from "./backoff.ts";
import { newInformerFactory } from "./factory.ts";
import { informerSync } from "./metrics.ts";
import { newSharedInformer, type SharedInformer } from "./shared-informer.ts";
import { newObjectStore } from "./store.ts";

interface Setting {
  client: FakeClient;
  clock: ReturnType<typeof newFakeClock>;
  informer: SharedInformer<Pod>;
  seen: string[];
  stop: AbortController;
}

async function started(
  t: { after(fn: () => void): void },
  prepare: (client: FakeClient) => void = () => {},
  resyncMs = 0,
): Promise<Setting> {
  const client = newFakeClient();
  const clock = newFakeClock();
  prepare(client);
  const informer = newSharedInformer<Pod>({ client, clock, log: discardLogger, ref: pods, resyncMs, random: () => 0 });
  const seen: string[] = [];
  informer.addHandler({
    added: ({ metadata }) => seen.push(`+${metadata.name}`),
    updated: (old, now) => seen.push(`${old.metadata.labels?.["v"] ?? ""}>${now.metadata.labels?.["v"] ?? ""}`),
    deleted: ({ metadata }) => seen.push(`-${metadata.name}`),
  });
  const stop = new AbortController();
  t.after(() => stop.abort());
  void informer.run(stop.signal);
  await settle();
  return { client, clock, informer, seen, stop };
}

const verbs = ({ actions }: FakeClient): string[] => actions.map(({ verb }) => verb);
const names = (found: readonly Pod[]): (string | undefined)[] => found.map(({ metadata }) => metadata.name).toSorted();

test("handlers get existing objects, then every change in order, after the lister shows it", async (t) => {
  const { client, informer, seen } = await started(t, (c) => c.put(pods, aPod({ name: "a" })));
  assert.equal(informer.synced, true);
  client.put(pods, aPod({ name: "b", labels: { v: "1" } }));
  client.put(pods, aPod({ name: "b", labels: { v: "2" } }));
  client.remove(pods, "default/a");
  await settle();
  assert.deepEqual(seen, ["+a", "+b", "1>2", "-a"]);
  assert.deepEqual(names(informer.lister.list()), ["b"]);
});

test("is synced only after every handler has received the first list", async (t) => {
  const client = newFakeClient();
  client.put(pods, aPod({ name: "a" }));
  const informer = newSharedInformer<Pod>({ client, clock: newFakeClock(), log: discardLogger, ref: pods });
  const synced: boolean[] = [];
  informer.addHandler({ added: () => synced.push(informer.synced) });
  const stop = new AbortController();
  t.after(() => stop.abort());
  void informer.run(stop.signal);
  await informer.waitForSync(stop.signal);
  assert.deepEqual(synced, [false]);
});

test("an object that was created again under its name is a deletion and an addition", async (t) => {
  const { client, informer, seen } = await started(t, (c) => c.put(pods, aPod({ name: "a", uid: "1" })));
  const shown: unknown[] = [];
  informer.addHandler({ deleted: () => shown.push(informer.lister.get("default/a")) });
  client.put(pods, aPod({ name: "a", uid: "2" }));
  await settle();
  assert.deepEqual([seen, shown], [["+a", "-a", "+a"], [undefined]]);
});

test("waiting for the first list leaves no listener on the abort signal", async (t) => {
  const client = newFakeClient();
  const informer = newSharedInformer<Pod>({ client, clock: newFakeClock(), log: discardLogger, ref: pods });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const waiting = new AbortController();
  const synced = informer.waitForSync(waiting.signal);
  assert.equal(getEventListeners(waiting.signal, "abort").length, 1);
  void informer.run(stop.signal);
  await synced;
  await settle();
  assert.equal(getEventListeners(waiting.signal, "abort").length, 0);
});

test("a watch resumes where the last one ended, without a list", async (t) => {
  const { client, clock, seen } = await started(t);
  await clock.advance(2000);
  client.endWatches();
  client.put(pods, aPod({ name: "between" }));
  await settle();
  assert.deepEqual(seen, ["+between"]);
  assert.deepEqual(verbs(client), ["list", "watch", "watch"]);
});

test("lists again when its version is too old, and reports only the differences", async (t) => {
  const { client, clock, informer, seen } = await started(t, (c) => c.put(pods, aPod({ name: "stays" }), aPod({ name: "goes" })));
  seen.length = 0;
  client.react("watch", "pods", () => {
    client.compact();
    return undefined;
  });
  client.remove(pods, "default/goes");
  client.put(pods, aPod({ name: "comes" }));
  client.endWatches();
  await clock.advance(1000);
  await settle();
  assert.deepEqual(seen.toSorted(), ["+comes", "-goes"]);
  assert.deepEqual(names(informer.lister.list()), ["comes", "stays"]);
  assert.ok(verbs(client).filter((verb) => verb === "list").length >= 2);
});

test("a failed list is retried with growing delays", async (t) => {
  let failures = 3;
  const { client, clock, informer } = await started(t, (c) =>
    c.react("list", "pods", () => {
      if (failures-- > 0) throw serviceUnavailable("not yet");
      return undefined;
    }),
  );
  for (const waitMs of [800, 1600, 3200]) {
    assert.equal(informer.synced, false);
    await clock.advance(waitMs - 1);
    assert.equal(informer.synced, false);
    await clock.advance(1);
  }
  await settle();
  assert.equal(informer.synced, true);
  assert.equal(verbs(client).filter((verb) => verb === "list").length, 4);
});

test("a watch that cannot reach the server is tried again without a list", async (t) => {
  const { client, clock, seen } = await started(t);
  let failures = 2;
  client.react("watch", "pods", () => {
    if (failures-- > 0) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    return undefined;
  });
  await clock.advance(2000);
  client.endWatches();
  client.put(pods, aPod({ name: "a" }));
  await clock.advance(5000);
  assert.deepEqual(seen, ["+a"]);
  assert.equal(verbs(client).filter((verb) => verb === "list").length, 1);
});

test("a handler added later gets all objects first; a removed one gets nothing", async (t) => {
  const { client, informer } = await started(t, (c) => c.put(pods, aPod({ name: "a" })));
  const late: string[] = [];
  const remove = informer.addHandler({ added: ({ metadata }) => late.push(metadata.name ?? "") });
  assert.deepEqual(late, ["a"]);
  remove();
  client.put(pods, aPod({ name: "b" }));
  await settle();
  assert.deepEqual(late, ["a"]);
});

test("a handler that throws does not affect other handlers", async (t) => {
  const { client, informer, seen } = await started(t);
  informer.addHandler({
    added() {
      throw new Error("broken");
    },
  });
  client.put(pods, aPod({ name: "a" }));
  await settle();
  assert.deepEqual(seen, ["+a"]);
});

test("resyncs report every object again", async (t) => {
  const { clock, seen } = await started(t, (c) => c.put(pods, aPod({ name: "a", labels: { v: "1" } })), 30_000);
  await clock.advance(60_000);
  assert.deepEqual(seen, ["+a", "1>1", "1>1"]);
});

test("stops when its signal is aborted", async (t) => {
  const { client, stop, seen } = await started(t);
  stop.abort();
  await settle();
  client.put(pods, aPod({ name: "a" }));
  await settle();
  assert.deepEqual(seen, []);
});

test("adding an index again is allowed, adding another function under its name is an error", async (t) => {
  const { client, informer } = await started(t, (c) => c.put(pods, aPod({ name: "a", nodeName: "n1" })));
  const byNode = ({ spec }: Pod): string[] => [spec.nodeName ?? ""];
  informer.addIndex("node", byNode);
  informer.addIndex("node", byNode);
  assert.throws(() => informer.addIndex("node", ({ spec }) => [spec.hostname ?? ""]), /another index named node exists/);
  client.put(pods, aPod({ name: "b", nodeName: "n1" }));
  await settle();
  assert.deepEqual(names(informer.lister.byIndex("node", "n1")), ["a", "b"]);
});

test("listers find by namespace, label, index and controller, through changes", async (t) => {
  const owner = aReplicaSet({ name: "web" });
  const { client, informer } = await started(t, (c) =>
    c.put(
      pods,
      aPod({ name: "a", labels: { app: "web" }, nodeName: "n1", owner }),
      aPod({ name: "b", namespace: "shop", labels: { app: "web" }, nodeName: "n1" }),
      aPod({ name: "c", labels: { app: "api" }, nodeName: "n2" }),
    ),
  );
  const { lister } = informer;
  informer.addIndex("node", ({ spec }) => (spec.nodeName === undefined ? [] : [spec.nodeName]));
  assert.deepEqual(names(lister.inNamespace("default")), ["a", "c"]);
  assert.deepEqual(names(lister.select(LabelSelector.fromSet({ app: "web" }))), ["a", "b"]);
  assert.deepEqual(names(lister.select(LabelSelector.fromSet({ app: "web" }), "shop")), ["b"]);
  assert.deepEqual(names(lister.byIndex("node", "n1")), ["a", "b"]);
  assert.deepEqual(names(lister.controlledBy(owner)), ["a"]);

  client.put(pods, aPod({ name: "a", nodeName: "n2" }));
  client.remove(pods, "shop/b");
  await settle();
  assert.deepEqual(names(lister.byIndex("node", "n1")), []);
  assert.deepEqual(names(lister.byIndex("node", "n2")), ["a", "c"]);
  assert.deepEqual(names(lister.controlledBy(owner)), []);
  assert.deepEqual(names(lister.inNamespace("shop")), []);
});

test("a factory gives one informer for each resource and selector", async (t) => {
  const client = newFakeClient();
  const factory = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const first = factory.for<Pod>(pods);
  assert.equal(factory.for<Pod>(pods), first);
  for (const selectors of [{ labelSelector: "a=b" }, { fieldSelector: "a=b" }, { metadataOnly: true }])
    assert.notEqual(factory.for<Pod>(pods, selectors), first);
  assert.notEqual(factory.for<Pod>(pods, { fieldSelector: "a=b" }), factory.for<Pod>(pods, { labelSelector: "a=b" }));
  assert.notEqual(factory.for<KubeObject>(events), factory.for<KubeObject>(eventsV1));
  factory.start(stop.signal);
  await factory.waitForSync(stop.signal);
  assert.equal(first.synced, true);
  const late = factory.for<Pod>(pods, { labelSelector: "app=api" });
  await late.waitForSync(stop.signal);
});

test("a factory that is started again starts no informer again", async (t) => {
  const client = newFakeClient();
  const factory = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const stop = new AbortController();
  t.after(() => stop.abort());
  factory.for<Pod>(pods);
  factory.start(stop.signal);
  factory.start(stop.signal);
  await settle();
  assert.deepEqual(verbs(client), ["list", "watch"]);
});

test("a factory knows whether it has all objects of a resource", () => {
  const options = { log: discardLogger, clock: newFakeClock() };
  const factory = newInformerFactory(newFakeClient(), options);
  factory.for<Pod>(pods, { labelSelector: "app=web" });
  factory.for<Pod>(pods, { metadataOnly: true });
  assert.equal(factory.hasAll(pods), false, "some pods, or their metadata, are not all of them");
  factory.for<Pod>(pods);
  assert.deepEqual([factory.hasAll(pods), factory.hasAll({ ...pods, version: "v2" })], [true, false]);
  const ofNamespace = newInformerFactory(newFakeClient(), { ...options, namespace: "web" });
  ofNamespace.for<Pod>(pods);
  assert.equal(ofNamespace.hasAll(pods), false);
});

test("resources that a factory still waits for are on the metrics page and in the health check, until they are listed", async (t) => {
  const client = newFakeClient();
  const clock = newFakeClock();
  let isForbidden = true;
  client.react("list", "events", () => {
    if (isForbidden) throw serviceUnavailable("no such API yet");
    return undefined;
  });
  const factory = newInformerFactory(client, { log: discardLogger, clock });
  const metrics = newMetricsRegistry();
  const check = informerSync(metrics, factory);
  const stop = new AbortController();
  t.after(() => stop.abort());
  for (const ref of [pods, events, eventsV1]) factory.for(ref);
  check();
  assert.doesNotMatch(await metrics.render(), /coxswain_informers_unsynced\{/, "informers that do not run wait for nothing");
  factory.start(stop.signal);
  await settle();
  assert.throws(check, { message: "not synced: events, events.events.k8s.io" });
  const page = await metrics.render();
  assert.match(page, /coxswain_informers_unsynced\{resource="events.events.k8s.io"\} 1\n/);
  assert.doesNotMatch(page, /coxswain_informers_unsynced\{resource="pods"\}/);
  isForbidden = false;
  await clock.advance(60_000);
  await settle();
  check();
  assert.doesNotMatch(await metrics.render(), /coxswain_informers_unsynced\{/);
});

test("backoff grows to its limit, and restarts after the reset period or when it is reset", async () => {
  const clock = newFakeClock();
  const backoff = newBackoff({ ...reflectorBackoff, clock, random: () => 0.5 });
  const waits = Array.from({ length: 8 }, () => backoff.next() / 1.5);
  assert.deepEqual(waits, [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
  await clock.advance(120_000);
  assert.equal(backoff.next() / 1.5, 30_000);
  await clock.advance(120_001);
  assert.deepEqual([backoff.next() / 1.5, backoff.next() / 1.5], [800, 1600]);
  backoff.reset();
  assert.equal(backoff.next() / 1.5, 800);
});

test("an object that an index or the transform cannot read hides no other, and is counted", async (t) => {
  const client = newFakeClient();
  client.put(pods, aPod({ name: "broken" }), aPod({ name: "first", nodeName: "n1" }));
  const clock = newFakeClock();
  let failures = 0;
  const refuse = (pod: Pod): Pod => {
    if (pod.metadata.name === "broken") throw new Error("unreadable");
    return pod;
  };
  const informer = newSharedInformer<Pod>({
    client,
    clock,
    log: discardLogger,
    ref: pods,
    transform: refuse,
    onFailure: () => void failures++,
  });
  informer.addIndex("node", (pod) => [refuse(pod).spec.nodeName ?? ""]);
  const heard: string[] = [];
  const watched: string[] = [];
  informer.addHandler({
    added(pod) {
      heard.push(pod.metadata.name ?? "");
      refuse(pod);
    },
    updated: refuse,
    deleted: refuse,
  });
  informer.addHandler({
    added: ({ metadata }) => void watched.push(`+${metadata.name}`),
    updated: (_, { metadata }) => void watched.push(`~${metadata.name}`),
    deleted: ({ metadata }) => void watched.push(`-${metadata.name}`),
  });
  const stop = new AbortController();
  t.after(() => stop.abort());
  void informer.run(stop.signal);
  await settle();
  assert.equal(informer.synced, true);
  client.put(pods, aPod({ name: "broken", labels: { v: "2" } }));
  client.put(pods, aPod({ name: "second", nodeName: "n1" }));
  client.remove(pods, "default/broken");
  client.put(pods, aPod({ name: "third", nodeName: "n1" }));
  await settle();
  assert.deepEqual(heard, ["broken", "first", "second", "third"]);
  assert.deepEqual(watched, ["+broken", "+first", "~broken", "+second", "-broken", "+third"]);
  assert.deepEqual(names(informer.lister.byIndex("node", "n1")), ["first", "second", "third"]);
  assert.ok(failures >= 6, String(failures));
  assert.deepEqual(verbs(client), ["list", "watch"], "one list and one watch: nothing was cut off");
});

test("a handler that throws for existing objects, or at a resync, does not affect the others", async (t) => {
  const { clock, informer, seen } = await started(t, (c) => c.put(pods, aPod({ name: "a" }), aPod({ name: "b" })), 30_000);
  const requests: string[] = [];
  const ill = (pod: Pod): void => {
    requests.push(pod.metadata.name ?? "");
    throw new Error("broken");
  };
  informer.addHandler({ added: ill, updated: ill });
  assert.deepEqual(requests, ["a", "b"], "the throw for the first does not hide the second");
  const later: string[] = [];
  informer.addHandler({ updated: (_, { metadata }) => void later.push(metadata.name ?? "") });
  await clock.advance(60_000);
  assert.deepEqual(later, ["a", "b", "a", "b"]);
  assert.equal(seen.length, 6);
});

test("a relist removes objects deleted during the outage from index and lister, notifies handlers, and adds new ones", async (t) => {
  const { client, clock, informer, seen } = await started(t, (c) =>
    c.put(
      pods,
      aPod({ name: "a", nodeName: "n1" }),
      aPod({ name: "b", nodeName: "n1" }),
      aPod({ name: "c", uid: "1", nodeName: "n1" }),
    ),
  );
  informer.addIndex("node", ({ spec }) => (spec.nodeName === undefined ? [] : [spec.nodeName]));
  seen.length = 0;
  let once = true;
  client.react("watch", "pods", () => {
    if (once) client.compact();
    once = false;
    return undefined;
  });
  client.endWatches();
  client.remove(pods, "default/a");
  client.remove(pods, "default/b");
  client.put(pods, aPod({ name: "c", uid: "2", nodeName: "n2" }));
  await clock.advance(5_000);
  await settle();
  assert.deepEqual(seen.toSorted(), ["+c", "-a", "-b", "-c"]);
  assert.deepEqual(names(informer.lister.byIndex("node", "n1")), []);
  assert.deepEqual(names(informer.lister.byIndex("node", "n2")), ["c"]);
});

test("waiting for an informer ends when its signal is aborted, and when the informer ends", async (t) => {
  const { informer, stop } = await started(t, (c) =>
    c.react("list", "pods", () => {
      throw serviceUnavailable("never");
    }),
  );
  const impatient = new AbortController();
  const waiting = assert.rejects(informer.waitForSync(impatient.signal), /enough/);
  const patient = assert.rejects(informer.waitForSync(new AbortController().signal), /the informer of pods has ended/);
  impatient.abort(new Error("enough"));
  await waiting;
  stop.abort();
  await patient;
  await assert.rejects(informer.waitForSync(AbortSignal.abort(new Error("before"))), /before/);
});

test("a resync stops with the informer, and another handler's removal during a call hides nothing", async (t) => {
  const { client, clock, informer, seen, stop } = await started(t, (c) => c.put(pods, aPod({ name: "a" })), 30_000);
  const remove = informer.addHandler({ updated: () => remove() });
  const last: string[] = [];
  informer.addHandler({ updated: (_, { metadata }) => void last.push(metadata.name ?? "") });
  client.put(pods, aPod({ name: "a", labels: { v: "2" } }));
  await settle();
  assert.deepEqual(last, ["a"]);
  stop.abort();
  await settle();
  const before = seen.length;
  await clock.advance(90_000);
  assert.equal(seen.length, before);
});

test("a grown backoff keeps its length after a failure within the reset period", async () => {
  const clock = newFakeClock();
  const backoff = newBackoff({ ...reflectorBackoff, clock, random: () => 0 });
  backoff.next();
  backoff.next();
  await clock.advance(119_999);
  assert.equal(backoff.next(), 3200, "not quiet for long enough");
  await clock.advance(120_001);
  assert.equal(backoff.next(), 800);
  assert.equal(backoff.next(), 1600);
});

test("after a refused version, an object that differs under the same version is reported as changed", async (t) => {
  const { client, clock, informer, seen } = await started(t, (c) =>
    c.put(pods, aPod({ name: "same", labels: { v: "1" } }), aPod({ name: "other", labels: { v: "1" } })),
  );
  seen.length = 0;
  client.react("list", "pods", () => ({
    metadata: { resourceVersion: "2" },
    items: [
      informer.lister.get("default/same"),
      {
        ...structuredClone(informer.lister.get("default/other")),
        metadata: { ...informer.lister.get("default/other")?.metadata, labels: { v: "0" } },
      },
    ],
  }));
  let once = true;
  client.react("watch", "pods", () => {
    if (once) client.compact();
    once = false;
    return undefined;
  });
  client.endWatches();
  await clock.advance(10_000);
  await settle();
  assert.deepEqual(seen, ["1>0"]);
});

test("a list after a watch that ended at once reports deleted and replaced objects", async (t) => {
  const { client, clock, informer, seen } = await started(t, (c) =>
    c.put(pods, aPod({ name: "a" }), aPod({ name: "b" }), aPod({ name: "c", uid: "1" })),
  );
  seen.length = 0;
  const last = informer.lister.get("default/c");
  client.react("list", "pods", () => ({
    metadata: { resourceVersion: last?.metadata.resourceVersion },
    items: [{ ...structuredClone(last), metadata: { ...last?.metadata, uid: "2" } }],
  }));
  client.endWatches();
  await clock.advance(1_000);
  await settle();
  assert.deepEqual(seen, ["-a", "-b", "-c", "+c"]);
  assert.deepEqual(names(informer.lister.list()), ["c"]);
});

test("no handler is called for the deletion of an object that was never in the cache", async (t) => {
  const { client, seen } = await started(t, (c) => {
    c.put(pods, aPod({ name: "a" }));
    const { resourceVersion } = c.object<Pod>(pods, "default/a")?.metadata ?? {};
    c.react("list", "pods", () => ({ metadata: { resourceVersion }, items: [] }));
  });
  client.remove(pods, "default/a");
  client.put(pods, aPod({ name: "b" }));
  await settle();
  assert.deepEqual(seen, ["+b"]);
});

test("handlers get the transformed object, also at its deletion", async (t) => {
  const client = newFakeClient();
  const transform = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, annotations: {} } });
  const informer = newSharedInformer<Pod>({ client, clock: newFakeClock(), log: discardLogger, ref: pods, transform });
  const gone: Pod[] = [];
  informer.addHandler({ deleted: (last) => void gone.push(last) });
  const stop = new AbortController();
  t.after(() => stop.abort());
  void informer.run(stop.signal);
  await settle();
  client.put(pods, aPod({ name: "a", annotations: { big: "x" } }));
  await settle();
  client.remove(pods, "default/a");
  await settle();
  assert.deepEqual(
    gone.map(({ metadata }) => metadata.annotations),
    [{}],
  );
});

test("an object is found under each value of an index, and under none that it has lost", () => {
  const store = newObjectStore<Pod>();
  store.addIndex("label", ({ metadata }) => Object.keys(metadata.labels ?? {}));
  const labelled = (...labels: string[]): Pod =>
    aPod({ name: "a", labels: Object.fromEntries(labels.map((label) => [label, ""])) });
  const found = (): string[] => ["x", "y", "z"].filter((value) => store.byIndex("label", value).length === 1);
  store.set(labelled("x", "y"));
  assert.deepEqual(found(), ["x", "y"]);
  store.set(labelled("y", "z"));
  assert.deepEqual(found(), ["y", "z"]);
  const last = labelled("y", "z");
  store.set(last);
  assert.deepEqual([store.byIndex("label", "y")[0] === last, store.byIndex("label", "z")[0] === last], [true, true]);
  store.delete("default/a");
  assert.deepEqual(found(), []);
});

test("an object without a namespace leaves the index with its deletion", () => {
  const store = newObjectStore<KubeObject>();
  store.addIndex("all", () => ["x"]);
  store.set({ metadata: { name: "a" } } as KubeObject);
  store.delete("a");
  assert.deepEqual(store.byIndex("all", "x"), []);
});

test("an index keeps objects of one value apart, whichever comes and goes first", () => {
  const store = newObjectStore<Pod>();
  store.addIndex("app", ({ metadata }) => [metadata.labels?.["app"] ?? "none"]);
  const pod = (namespace: string, app: string): Pod => {
    const made = aPod({ name: "a", labels: { app } });
    return { ...made, metadata: { ...made.metadata, namespace } };
  };
  const found = (app: string): (string | undefined)[] => store.byIndex("app", app).map(({ metadata }) => metadata.namespace);
  store.set(pod("one", "web"));
  store.set(pod("one", "web"));
  assert.deepEqual(found("web"), ["one"], "set twice");
  store.set(pod("two", "web"));
  store.set(pod("one", "web"));
  assert.deepEqual(found("web"), ["one", "two"]);
  store.set(pod("one", "db"));
  assert.deepEqual([found("web"), found("db")], [["two"], ["one"]]);
  store.delete("two/a");
  assert.deepEqual([found("web"), found("db")], [[], ["one"]]);
  store.set(pod("two", "web"));
  store.delete("one/a");
  assert.deepEqual([found("web"), found("db")], [["two"], []]);
});
