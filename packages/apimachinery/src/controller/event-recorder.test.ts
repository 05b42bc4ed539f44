import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, StatusError } from "../objects/errors/status-error.ts";
import { events } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { aNode, aPod } from "../testing/builders.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { type EventObject, makeEvent, newEventCorrelator } from "./event-correlator.ts";
import { newEventRecorder } from "./event-recorder.ts";

function setUp(log = discardLogger) {
  const client = newFakeClient();
  const clock = newFakeClock();
  const recorder = newEventRecorder({ client, component: "tester", host: "h1", log, clock, random: () => 0.5 });
  const stored = () => client.objects<EventObject>(events);
  return { client, clock, recorder, stored };
}

const pod = aPod({ name: "web-0", namespace: "shop" });

test("an Event has type, reason, message, object and source", async () => {
  const { recorder, stored } = setUp();
  recorder.event(pod, "Normal", "Started", "Started container main");
  recorder.event(pod, "Warning", "Failed", "no", { action: "Starting", related: pod });
  await recorder.flush();
  const [event, another] = stored();
  const { involvedObject, source } = event ?? {};
  assert.partialDeepStrictEqual(another, {
    type: "Warning",
    involvedObject,
    source,
    action: "Starting",
    related: involvedObject,
  });
  assert.deepEqual([event?.action, event?.related], [undefined, undefined]);
  assert.match(event?.metadata.name ?? "", /^web-0\.[0-9a-f]{16}$/);
  assert.partialDeepStrictEqual(event, {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: "shop" },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "web-0", uid: "web-0-uid" },
    type: "Normal",
    reason: "Started",
    message: "Started container main",
    source: { component: "tester", host: "h1" },
    firstTimestamp: "2022-01-01T00:00:00Z",
    lastTimestamp: "2022-01-01T00:00:00Z",
    count: 1,
  });
});

test("a message is cut to the 1,024 characters that an event may hold", async () => {
  const { recorder, stored } = setUp();
  for (const [reason, length] of [
    ["Exact", 1_024],
    ["Longer", 1_025],
  ] as const)
    recorder.event(pod, "Normal", reason, "x".repeat(length));
  await recorder.flush();
  assert.deepEqual(
    stored().map(({ message = "" }) => message.length),
    [1_024, 1_024],
  );
});

test("events of cluster-scoped objects go to the default namespace; a reference keeps its field path", async () => {
  const { recorder, stored } = setUp();
  recorder.event(aNode({ name: "n1" }), "Normal", "Starting", "hello");
  recorder.event({ kind: "Pod", namespace: "shop", name: "a", fieldPath: "spec.containers{main}" }, "Normal", "Pulled", "here");
  await recorder.flush();
  assert.deepEqual(
    stored().map(({ metadata, involvedObject }) => [metadata.namespace, involvedObject.fieldPath]),
    [
      ["default", undefined],
      ["shop", "spec.containers{main}"],
    ],
  );
});

test("a repeated event increments the count of its Event", async () => {
  const { client, clock, recorder, stored } = setUp();
  for (let i = 0; i < 3; i++) {
    recorder.event(pod, "Warning", "BackOff", "Back-off restarting");
    await clock.advance(10_000);
  }
  assert.equal(stored().length, 1);
  assert.partialDeepStrictEqual(stored()[0], {
    count: 3,
    firstTimestamp: "2022-01-01T00:00:00Z",
    lastTimestamp: "2022-01-01T00:00:20Z",
  });
  assert.deepEqual(
    client.writes.map(({ verb }) => verb),
    ["create", "patch", "patch"],
  );
});

test("a repeated Event whose object was deleted is created again with its count", async () => {
  const { client, recorder, stored } = setUp();
  recorder.event(pod, "Warning", "BackOff", "again");
  await recorder.flush();
  client.remove(events, `shop/${stored()[0]?.metadata.name}`);
  recorder.event(pod, "Warning", "BackOff", "again");
  await recorder.flush();
  assert.equal(stored()[0]?.count, 2);
});

test("many events that differ only in their messages are combined into one", async () => {
  const { recorder, stored } = setUp();
  for (let i = 0; i < 15; i++) recorder.event(pod, "Normal", "Created", `Created pod: web-${i}`);
  await recorder.flush();
  const combined = stored().filter(({ message }) => message.startsWith("(combined from similar events): "));
  assert.equal(stored().length, 10);
  assert.deepEqual(
    combined.map(({ message, count }) => ({ message, count })),
    [{ message: "(combined from similar events): Created pod: web-14", count: 6 }],
  );
});

test("after a burst about one object only one event in five minutes is written", async () => {
  const { client, clock, recorder } = setUp();
  for (let i = 0; i < 40; i++) recorder.event(pod, "Normal", `Reason${i}`, "x");
  recorder.event(aPod({ name: "other" }), "Normal", "Reason", "x");
  await recorder.flush();
  assert.equal(client.writes.length, 26);
  await clock.advance(300_000);
  recorder.event(pod, "Normal", "Later", "x");
  recorder.event(pod, "Normal", "Later2", "x");
  await recorder.flush();
  assert.equal(client.writes.length, 27);
});

test("an event whose count cannot be incremented is not created a second time", async () => {
  const { client, recorder, stored } = setUp();
  recorder.event(pod, "Normal", "A", "a");
  await recorder.flush();
  client.react("patch", "events", () => {
    throw forbidden(events, "", "no");
  });
  recorder.event(pod, "Normal", "A", "a");
  await recorder.flush();
  assert.deepEqual([stored().length, client.writes.map(({ verb }) => verb)], [1, ["create", "patch"]]);
});

test("an event is retried while the server is unreachable, but not after a refusal", async () => {
  const { client, clock, recorder, stored } = setUp();
  let failures = 2;
  client.react("create", "events", () => {
    if (failures-- > 0) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    return undefined;
  });
  recorder.event(pod, "Normal", "A", "a");
  await settle();
  assert.equal(stored().length, 0);
  await clock.advance(15_000);
  assert.equal(stored().length, 1);
  client.react("create", "events", () => {
    throw forbidden(events, "", "no");
  });
  client.clearActions();
  recorder.event(pod, "Normal", "B", "b");
  await recorder.flush();
  assert.equal(client.writes.length, 1);
});

test("an event is attempted twelve times at an unreachable server, then the next one is written", async () => {
  const { client, clock, recorder } = setUp();
  const tried: (string | undefined)[] = [];
  client.react("create", "events", ({ sent }) => {
    tried.push((sent as EventObject).reason);
    throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  });
  recorder.event(pod, "Normal", "A", "a");
  recorder.event(pod, "Normal", "B", "b");
  for (let i = 0; i < 30; i++) await clock.advance(10_000);
  await recorder.flush();
  assert.deepEqual([tried.indexOf("B"), tried.length], [12, 24]);
});

test("recorders of one process that write about the same object in the same millisecond write two events", async () => {
  const { client, clock, recorder, stored } = setUp();
  const other = newEventRecorder({ client, component: "other", log: discardLogger, clock, random: () => 0.25 });
  recorder.event(pod, "Normal", "One", "one");
  other.event(pod, "Normal", "Two", "two", { annotations: { why: "b" } });
  await Promise.all([recorder.flush(), other.flush()]);
  assert.deepEqual(
    stored()
      .map(({ reason, metadata }) => [reason, metadata.annotations])
      .sort(),
    [
      ["One", undefined],
      ["Two", { why: "b" }],
    ],
  );
});

test("after many events were combined, a repeated one of them is counted separately", async () => {
  const { recorder, stored } = setUp();
  for (const i of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5]) recorder.event(pod, "Normal", "Pulled", `image ${i}`);
  await recorder.flush();
  const combined = stored().filter(({ message }) => message.startsWith("(combined from similar events): "));
  assert.deepEqual([combined.length, combined[0]?.count], [1, 1]);
  assert.equal(stored().find(({ message }) => message === "image 5")?.count, 2);
});

test("events are combined for longer than ten minutes while no gap between them is that long", async () => {
  const { clock, recorder, stored } = setUp();
  let image = 0;
  for (const [count, waitMs] of [
    [5, 540_000],
    [4, 600_000],
    [1, 600_001],
    [1, 0],
  ] as const) {
    for (let i = 0; i < count; i++) recorder.event(pod, "Normal", "Pulled", `image ${++image}`);
    await recorder.flush();
    await clock.advance(waitMs);
  }
  const combined = stored().filter(({ message }) => message.startsWith("(combined"));
  assert.deepEqual(
    combined.map(({ message }) => message),
    ["(combined from similar events): image 10"],
    "the eleventh comes after a longer one",
  );
});

test("each flush resolves, also when events cannot be written, and at once when none is pending", async () => {
  const { client, recorder, stored } = setUp();
  client.react("create", "events", () => {
    throw forbidden(events, "e", "no");
  });
  recorder.event(pod, "Normal", "Started", "x");
  await Promise.all([recorder.flush(), recorder.flush()]);
  await recorder.flush();
  assert.equal(stored().length, 0);
});

test("events dropped because the queue is full are logged, and not awaited", async () => {
  let dropped = 0;
  const { recorder, stored } = setUp({ ...discardLogger, warn: () => void dropped++ });
  for (let i = 0; i < 1_100; i++) recorder.event(aPod({ name: `web-${i}` }), "Normal", "Started", "x");
  await recorder.flush();
  assert.equal(stored().length, 1_001, "the first one was being written");
  assert.equal(dropped, 99);
  let flushed = false;
  void recorder.flush().then(() => {
    flushed = true;
  });
  await settle();
  assert.ok(flushed);
});

test("an expired event is created again with its first timestamp, without a resourceVersion", async () => {
  const { client, clock, recorder, stored } = setUp();
  recorder.event(pod, "Warning", "BackOff", "again");
  await recorder.flush();
  client.remove(events, `shop/${stored()[0]?.metadata.name}`);
  await clock.advance(60_000);
  recorder.event(pod, "Warning", "BackOff", "again");
  await recorder.flush();
  assert.partialDeepStrictEqual(stored()[0], { firstTimestamp: "2022-01-01T00:00:00Z", lastTimestamp: "2022-01-01T00:01:00Z" });
  const created = client.writes.filter(({ verb }) => verb === "create").at(-1)?.sent as EventObject | undefined;
  assert.equal(created?.metadata.resourceVersion, undefined);
});

test("a count that another writer increased is continued, also for combined events", () => {
  const correlator = newEventCorrelator(newFakeClock());
  const eventOf = (message: string) =>
    makeEvent({
      ref: { kind: "Pod", name: "a" },
      type: "Normal",
      reason: "R",
      message,
      component: "c",
      now: 0,
      uniqueSuffix: "1",
    });
  const counted = (message: string) => {
    const found = correlator.correlate(eventOf(message));
    assert.ok(!found.drop);
    return found.event;
  };
  const first = counted("one");
  correlator.written(first, { ...first, count: 7 });
  assert.equal(counted("one").count, 8);
  for (let i = 0; i < 8; i++) counted(`other ${i}`);
  const combined = counted("last of ten");
  assert.match(combined.message, /^\(combined from similar events\): /);
  correlator.written(combined, { ...combined, count: 20 });
  assert.equal(counted("the next").count, 21);
});

test("of 4,096 events that are remembered, the one written least recently is forgotten first", () => {
  const correlator = newEventCorrelator(newFakeClock());
  const count = (name: string): number => {
    const ref = { kind: "Pod", name };
    const found = correlator.correlate(
      makeEvent({ ref, type: "Normal", reason: "R", message: "m", component: "c", now: 0, uniqueSuffix: "1" }),
    );
    assert.ok(!found.drop);
    return found.event.count;
  };
  count("first");
  count("second");
  count("first");
  for (let i = 0; i < 4095; i++) count(`other-${i}`);
  assert.deepEqual([count("first"), count("second")], [3, 1]);
});

test("the same text about two containers of a pod is two events", async () => {
  const { recorder, stored } = setUp();
  for (const name of ["a", "b", "a"]) {
    const ref = { kind: "Pod", namespace: "shop", name: "web-0", uid: "u", fieldPath: `spec.containers{${name}}` };
    recorder.event(ref, "Normal", "Pulled", "image present");
  }
  await recorder.flush();
  assert.deepEqual(
    stored().map(({ involvedObject, count }) => [involvedObject.fieldPath, count]),
    [
      ["spec.containers{a}", 2],
      ["spec.containers{b}", 1],
    ],
  );
});

test("only events of one type and reason are combined", async () => {
  const { recorder, stored } = setUp();
  for (let i = 0; i < 6; i++) {
    recorder.event(pod, "Normal", "Pulled", `image ${i}`);
    recorder.event(pod, "Normal", "Created", `container ${i}`);
    recorder.event(pod, "Warning", "Pulled", `late image ${i}`);
  }
  await recorder.flush();
  assert.deepEqual(
    stored().filter(({ message }) => message.startsWith("(combined")),
    [],
  );
});

test("a pod made anew under the name of one that used up its burst has its own", async () => {
  const { client, recorder } = setUp();
  for (let i = 0; i < 30; i++) recorder.event(pod, "Normal", `Reason${i}`, "x");
  await recorder.flush();
  assert.equal(client.writes.length, 25);
  recorder.event(aPod({ name: "web-0", namespace: "shop", uid: "anew" }), "Normal", "Scheduled", "x");
  await recorder.flush();
  assert.equal(client.writes.length, 26);
});

test("an event in a namespace that is being deleted is dropped in silence, another refusal is logged", async () => {
  const client = newFakeClient();
  const said: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void said.push(message) };
  const recorder = newEventRecorder({ client, component: "tester", log, clock: newFakeClock() });
  let causes = [{ reason: "NamespaceTerminating" }];
  client.react("create", "events", () => {
    const { status } = forbidden(events, "e", "no");
    throw new StatusError({ ...status, details: { ...status.details, causes } });
  });
  recorder.event(pod, "Normal", "A", "a");
  await recorder.flush();
  assert.deepEqual([client.writes.length, said], [1, []]);
  causes = [];
  recorder.event(pod, "Normal", "B", "b");
  await recorder.flush();
  assert.deepEqual(said, ["Unable to write event"]);
});

test("events of different reporters are not combined", () => {
  const correlator = newEventCorrelator(newFakeClock());
  for (const reportingComponent of ["one", "two"]) {
    for (let i = 0; i < 6; i++) {
      const event = makeEvent({
        ref: { kind: "Pod", name: "a" },
        type: "Normal",
        reason: "R",
        message: `${reportingComponent} ${i}`,
        component: "c",
        now: 0,
        uniqueSuffix: "1",
      });
      const found = correlator.correlate({ ...event, reportingComponent });
      assert.ok(!found.drop && !found.event.message.startsWith("(combined"));
    }
  }
});

test("an event that was dropped after a burst counts in the next one that is written", async () => {
  const { clock, recorder, stored } = setUp();
  for (let i = 0; i < 30; i++) recorder.event(pod, "Warning", "BackOff", "again");
  await recorder.flush();
  assert.equal(stored()[0]?.count, 25);
  await clock.advance(300_000);
  recorder.event(pod, "Warning", "BackOff", "again");
  await recorder.flush();
  assert.equal(stored()[0]?.count, 31);
});
