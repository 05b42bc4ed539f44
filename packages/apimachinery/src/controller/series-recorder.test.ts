import assert from "node:assert/strict";
import { hostname } from "node:os";
import { test } from "node:test";
import { forbidden, StatusError } from "../objects/errors/status-error.ts";
import type { Event } from "../objects/schema/kinds/events/v1.ts";
import { eventsV1 } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { aNode, aPod } from "../testing/builders.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { newSeriesRecorder } from "./series-recorder.ts";

function setUp(t: { after(fn: () => void): void }) {
  const client = newFakeClient();
  const clock = newFakeClock();
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  const { signal } = stop;
  const recorder = newSeriesRecorder({ client, controller: "tester", log: discardLogger, clock, signal, random: () => 0 });
  const stored = () => client.objects<Event>(eventsV1);
  const verbs = () => client.writes.map(({ verb }) => verb);
  return { client, clock, recorder, stop, stored, verbs };
}

const pod = aPod({ name: "web-0", namespace: "shop" });
const minute = 60_000;

test("an event has action, object, reporting controller and related object", async (t) => {
  const { recorder, stored } = setUp(t);
  recorder.event(pod, "Normal", "Scheduled", "Successfully assigned", { action: "Binding", related: aNode({ name: "a" }) });
  await recorder.flush();
  const [event] = stored();
  assert.match(event?.metadata.name ?? "", /^web-0\.[0-9a-f]{16}$/);
  assert.partialDeepStrictEqual(event, {
    apiVersion: "events.k8s.io/v1",
    metadata: { namespace: "shop" },
    eventTime: "2022-01-01T00:00:00.000000Z",
    reportingController: "tester",
    reportingInstance: `tester-${hostname()}`,
    action: "Binding",
    reason: "Scheduled",
    regarding: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "web-0" },
    related: { apiVersion: "v1", kind: "Node", name: "a" },
    note: "Successfully assigned",
    type: "Normal",
  });
  assert.equal(event?.series, undefined);
});

test("a repeated event becomes a series, written at its second occurrence, every 30 minutes and at its end", async (t) => {
  const { recorder, stored, verbs, clock } = setUp(t);
  const again = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    recorder.event(pod, "Warning", "FailedScheduling", "no room", { action: "Scheduling" });
    await recorder.flush();
  };
  await again(0);
  await again(minute);
  assert.deepEqual(stored()[0]?.series, { count: 1, lastObservedTime: "2022-01-01T00:01:00.000000Z" });
  await again(minute);
  assert.deepEqual(verbs(), ["create", "patch"]);
  for (let i = 0; i < 7; i++) await again(4 * minute);
  await settle();
  assert.deepEqual(verbs(), ["create", "patch", "patch"]);
  assert.equal(stored()[0]?.series?.count, 8); // written after half an hour, with the occurrences until then
  await clock.advance(12 * minute);
  await settle();
  assert.deepEqual(verbs(), ["create", "patch", "patch", "patch"]);
  assert.deepEqual(stored()[0]?.series, { count: 9, lastObservedTime: "2022-01-01T00:30:00.000000Z" });
  await again(0);
  assert.equal(stored().length, 2, "after its end it begins anew");
});

test("of two series the one that continues is kept and the other ends, whichever started first", async (t) => {
  for (const quiet of ["A", "B"]) {
    const { recorder, stored, clock } = setUp(t);
    const report = async (...reasons: string[]): Promise<void> => {
      for (const reason of reasons) recorder.event(pod, "Warning", reason, "a");
      await recorder.flush();
    };
    await report("A", "B");
    await report("A", "B");
    for (let i = 0; i < 5; i++) {
      await clock.advance(4 * minute);
      await report(quiet === "A" ? "B" : "A");
    }
    await settle();
    await report("A", "B");
    const counts = Object.groupBy(stored(), ({ reason = "" }) => reason);
    assert.deepEqual([counts["A"]?.length, counts["B"]?.length], quiet === "A" ? [2, 1] : [1, 2]);
  }
});

test("another action, reason or object version is another event; another note is not", async (t) => {
  const { recorder, stored } = setUp(t);
  const changed = { ...pod, metadata: { ...pod.metadata, resourceVersion: "77" } };
  recorder.event(pod, "Warning", "A", "one", { action: "X" });
  recorder.event(pod, "Warning", "A", "two", { action: "X" });
  recorder.event(pod, "Warning", "A", "one", { action: "Y" });
  recorder.event(pod, "Warning", "B", "one", { action: "X" });
  recorder.event(changed, "Warning", "A", "one", { action: "X" });
  await recorder.flush();
  assert.equal(stored().length, 4);
});

test("a series whose event was deleted is created again with its count", async (t) => {
  const { client, recorder, stored } = setUp(t);
  recorder.event(pod, "Warning", "A", "a");
  await recorder.flush();
  client.remove(eventsV1, `shop/${stored()[0]?.metadata.name}`);
  recorder.event(pod, "Warning", "A", "a");
  await recorder.flush();
  assert.equal(stored()[0]?.series?.count, 1);
});

test("an unreachable server gets twelve attempts, with others in between; a refusal ends them", async (t) => {
  const { client, clock, recorder, stored } = setUp(t);
  let tries = 0;
  client.react("create", "events", ({ sent }) => {
    if ((sent as Event).reason !== "Lost") return undefined;
    tries++;
    throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  });
  recorder.event(pod, "Normal", "Lost", "a");
  recorder.event(pod, "Normal", "Found", "a");
  await settle();
  assert.deepEqual([tries, stored().length], [1, 1]);
  await clock.advance(9_999);
  assert.equal(tries, 1);
  await clock.advance(1);
  assert.equal(tries, 2);
  for (let i = 0; i < 20; i++) await clock.advance(10_000);
  await recorder.flush();
  assert.equal(tries, 12);
  client.react("create", "events", () => {
    tries++;
    throw forbidden(eventsV1, "", "no");
  });
  recorder.event(pod, "Normal", "Forbidden", "b");
  await recorder.flush();
  assert.equal(tries, 13);
});

test("a series whose end could not be written continues", async (t) => {
  const { client, clock, recorder, stored } = setUp(t);
  const again = async (): Promise<void> => {
    recorder.event(pod, "Warning", "A", "a");
    await recorder.flush();
  };
  for (let i = 0; i < 3; i++) await again();
  let away = true;
  client.react("patch", "events", () => {
    if (away) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    return undefined;
  });
  await clock.advance(12 * minute);
  away = false;
  await again();
  await clock.advance(18 * minute);
  assert.deepEqual(
    stored().map(({ series }) => series?.count),
    [3],
  );
});

test("the end of a series that cannot be written does not hold up the end of another", async (t) => {
  const { client, clock, recorder, stored } = setUp(t);
  for (const name of ["web-0", "web-1"])
    for (let i = 0; i < 3; i++) {
      recorder.event(aPod({ name, namespace: "shop" }), "Warning", "A", "a");
      await recorder.flush();
    }
  client.react("patch", "events", ({ name }) => {
    if (name?.startsWith("web-0.")) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    return undefined;
  });
  await clock.advance(12 * minute);
  assert.deepEqual(
    stored().map(({ regarding, series }) => [regarding?.name, series?.count]),
    [
      ["web-0", 1],
      ["web-1", 2],
    ],
  );
});

test("an event during the write of a series' end counts in that series", async (t) => {
  const { client, clock, recorder, stored } = setUp(t);
  for (let i = 0; i < 2; i++) {
    recorder.event(pod, "Warning", "A", "a");
    await recorder.flush();
  }
  let once = true;
  client.react("patch", "events", () => {
    if (once) recorder.event(pod, "Warning", "A", "a");
    once = false;
    return undefined;
  });
  await clock.advance(12 * minute);
  assert.equal(once, false);
  await clock.advance(12 * minute);
  assert.deepEqual(
    stored().map(({ series }) => series?.count),
    [2],
  );
});

test("after the stop no timer is left, and pending flushes resolve", async (t) => {
  const { client, clock, recorder, stop } = setUp(t);
  client.react("create", "events", () => {
    throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  });
  recorder.event(pod, "Warning", "A", "a");
  const flushed = recorder.flush();
  await settle();
  stop.abort(new Error("stopped"));
  await flushed;
  assert.equal(clock.waiting, 0);
});

test("an event about a cluster-scoped object is one of the default namespace", async (t) => {
  const { recorder, stored } = setUp(t);
  const { apiVersion, kind, metadata } = aNode({ name: "a" });
  recorder.event({ apiVersion, kind, metadata: { ...metadata, namespace: "" } }, "Normal", "A", "a");
  recorder.event(aNode({ name: "b" }), "Normal", "A", "a");
  await recorder.flush();
  assert.deepEqual(
    stored().map(({ metadata: of }) => of.namespace),
    ["default", "default"],
  );
});

test("20,000 events may be pending; more are dropped, and one that continues a series is not", async (t) => {
  const client = newFakeClient();
  const warnings: string[] = [];
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  let creates = 0;
  client.react("create", "events", () => {
    creates++;
    return new Promise(() => {});
  });
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  const recorder = newSeriesRecorder({ client, controller: "tester", log, clock: newFakeClock(), signal: stop.signal });
  const ref = (name: string) => ({ kind: "Pod", namespace: "shop", name });
  for (let i = 0; i < 20_000; i++) recorder.event(ref(`p${i}`), "Normal", "A", "a");
  assert.deepEqual(warnings, []);
  recorder.event(ref("one more"), "Normal", "A", "a");
  recorder.event(ref("p0"), "Normal", "A", "a");
  assert.deepEqual(warnings, ["the queue of events is full; dropping one"]);
  await settle();
  assert.equal(creates, 20_001, "the one more is the series of p0");
});

test("a refusal in a namespace that is being deleted is not logged, another one is, and neither is retried", async (t) => {
  const client = newFakeClient();
  const said: string[] = [];
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  const log = { ...discardLogger, error: (message: string) => void said.push(message) };
  const clock = newFakeClock();
  const recorder = newSeriesRecorder({ client, controller: "tester", log, clock, signal: stop.signal });
  let causes = [{ reason: "NamespaceTerminating" }];
  client.react("create", "events", () => {
    const { status } = forbidden(eventsV1, "e", "no");
    throw new StatusError({ ...status, details: { ...status.details, causes } });
  });
  recorder.event(pod, "Normal", "A", "a");
  await recorder.flush();
  assert.deepEqual(said, []);
  causes = [];
  recorder.event(pod, "Normal", "B", "b");
  await recorder.flush();
  assert.deepEqual(said, ["Server rejected event (will not retry!)"]);
  assert.equal(client.writes.length, 2);
});
