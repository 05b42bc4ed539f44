import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { parseRequestInfo } from "../request/request-info.ts";
import {
  type AuditBackend,
  buffered,
  ignoringErrors,
  newAuditMetrics,
  newPluginError,
  type PluginError,
  truncating,
  union,
} from "./backend.ts";
import { AuditEvent, type AuditRecord, eventJson } from "./event.ts";
import { newLogBackend } from "./log-backend.ts";
import { newObjectRecorder } from "./recorded-object.ts";
import { newRotatingFile } from "./rotating-file.ts";

const v1 = "audit.k8s.io/v1";
const never: PluginError = (plugin, err) => assert.fail(`${plugin}: ${err}`);

function aRecord(id: string, padding = 0, objects = newObjectRecorder()): AuditRecord {
  const event = new AuditEvent(
    {
      auditId: id,
      requestUri: "/api/v1/namespaces/web/pods",
      info: parseRequestInfo("POST", "/api/v1/namespaces/web/pods"),
      user: { name: "jane", groups: ["a", "b"] },
      sourceIps: ["192.0.2.1"],
      userAgent: "test",
      receivedMs: Date.UTC(2022, 0, 1) + 120,
    },
    { level: "Request", omitStages: new Set(), omitManagedFields: false },
    objects,
  );
  if (padding > 0) event.requestObject(undefined, () => `{"kind":"Pod","x":"${"x".repeat(padding)}"}`);
  // Objects of this size are converted synchronously.
  assert.equal(
    event.prepare((err) => assert.fail(String(err))),
    undefined,
  );
  return event.record("RequestReceived", Date.UTC(2022, 0, 1) + 120);
}

function collector(): AuditBackend & { readonly batches: string[][] } {
  const batches: string[][] = [];
  return {
    batches,
    process(records) {
      batches.push(records.map((record) => JSON.parse(String(record.item(v1))).auditID));
      return true;
    },
    stop: async () => {},
  };
}

test("the legacy format is one line", () => {
  assert.equal(
    aRecord("id-1").legacy,
    '2022-01-01T00:00:00.12Z AUDIT: id="id-1" stage="RequestReceived" ip="192.0.2.1" method="create" user="jane" ' +
      'groups="\\"a\\",\\"b\\"" as="<self>" asgroups="<lookup>" user-agent="test" namespace="web" ' +
      'uri="/api/v1/namespaces/web/pods" response="<deferred>"',
  );
});

for (const { version, apiVersion, apiGroup } of [
  { version: "audit.k8s.io/v1beta1", apiVersion: "v1", apiGroup: "apps" },
  { version: "audit.k8s.io/v1alpha1", apiVersion: "apps/v1", apiGroup: undefined },
] as const) {
  test(`${version} has the times in seconds too, and its own reference to the object`, () => {
    const info = parseRequestInfo("GET", "/apis/apps/v1/namespaces/web/deployments/x");
    const source = { auditId: "i", requestUri: "/", info, user: undefined, sourceIps: [], userAgent: "", receivedMs: 1_000 };
    const event = new AuditEvent(source, { level: "Metadata", omitStages: new Set(), omitManagedFields: false });
    const json = JSON.parse(String(eventJson(event.record("ResponseComplete", 2_500), version)));
    assert.deepEqual(Object.keys(json).slice(0, 6), ["kind", "apiVersion", "metadata", "level", "timestamp", "auditID"]);
    assert.equal(json.apiVersion, version);
    assert.deepEqual(json.metadata, { creationTimestamp: "1970-01-01T00:00:02Z" });
    assert.equal(json.timestamp, "1970-01-01T00:00:01Z");
    assert.equal(json.stageTimestamp, "1970-01-01T00:00:02.500000Z");
    assert.deepEqual([json.objectRef.apiVersion, json.objectRef.apiGroup], [apiVersion, apiGroup]);
  });
}

test("a batch is sent when it is full or has waited, and the rest at the end", async () => {
  const clock = newFakeClock();
  const sink = collector();
  const options = { bufferSize: 10, maxBatchSize: 3, maxBatchWaitMs: 1000, throttle: undefined, concurrent: true };
  const backend = buffered(sink, options, clock, never);
  for (const id of ["1", "2", "3", "4"]) assert.equal(backend.process([aRecord(id)]), true);
  await clock.advance(0);
  assert.deepEqual(sink.batches, [["1", "2", "3"]]);
  await clock.advance(1000);
  assert.deepEqual(sink.batches.slice(1), [["4"]]);
  await backend.process([aRecord("5")]);
  await backend.stop(AbortSignal.timeout(60_000));
  assert.deepEqual(sink.batches.slice(2), [["5"]]);
});

test("a full buffer drops new events, counts them, and blocks no request", async () => {
  const clock = newFakeClock();
  const lost: string[] = [];
  const sink = collector();
  const options = { bufferSize: 2, maxBatchSize: 10, maxBatchWaitMs: 1000, throttle: undefined, concurrent: true };
  const backend = buffered(sink, options, clock, (plugin, err, records) => {
    lost.push(`${plugin}: ${(err as Error).message}: ${records.length}`);
  });
  for (const id of ["1", "2", "3"]) assert.equal(backend.process([aRecord(id)]), true);
  assert.deepEqual(lost, ["buffered: audit buffer queue blocked: 1"]);
  await clock.advance(1000);
  assert.deepEqual(sink.batches, [["1", "2"]]);
});

test("throttled batches keep to their rate", async () => {
  const clock = newFakeClock();
  const sink = collector();
  const options = { bufferSize: 10, maxBatchSize: 1, maxBatchWaitMs: 0, throttle: { qps: 1, burst: 2 }, concurrent: true };
  const backend = buffered(sink, options, clock, never);
  assert.equal(backend.process(["1", "2", "3", "4"].map((id) => aRecord(id))), true);
  await clock.advance(0);
  assert.equal(sink.batches.length, 2);
  await clock.advance(1000);
  assert.equal(sink.batches.length, 3);
});

test("an event that is too large loses its objects, and is dropped when that does not help", async () => {
  const small = Buffer.byteLength(eventJson(aRecord("1").truncated(), v1)) + 1;
  const lost: string[] = [];
  const taken: AuditRecord[] = [];
  const sink: AuditBackend = {
    process(records) {
      taken.push(...records);
      return true;
    },
    stop: async () => {},
  };
  const fail: PluginError = (plugin, err) => void lost.push(`${plugin}: ${(err as Error).message}`);
  await truncating(sink, { version: v1, maxEventBytes: small, maxBatchBytes: 10_000 }, fail).process([aRecord("1", 500)]);
  const { requestObject, annotations } = JSON.parse(String(taken[0]?.item(v1)));
  assert.equal(requestObject, undefined);
  assert.deepEqual(annotations, { "audit.k8s.io/truncated": "true" });
  await truncating(sink, { version: v1, maxEventBytes: small - 1, maxBatchBytes: 10_000 }, fail).process([aRecord("2", 500)]);
  assert.equal(taken.length, 1);
  assert.deepEqual(lost, ["truncate: event is too large even after truncating"]);
});

test("a batch that is too large is split", async () => {
  const sink = collector();
  const size = Buffer.byteLength(eventJson(aRecord("1"), v1)) + 1;
  await truncating(sink, { version: v1, maxEventBytes: size, maxBatchBytes: 2 * size }, never).process(
    ["1", "2", "3", "4", "5"].map((id) => aRecord(id)),
  );
  assert.deepEqual(sink.batches, [["1", "2"], ["3", "4"], ["5"]]);
});

for (const { format, want } of [
  { format: "json", want: `${eventJson(aRecord("a"), v1)}\n${eventJson(aRecord("b"), v1)}\n` },
  { format: "legacy", want: `${aRecord("a").legacy}\n${aRecord("b").legacy}\n` },
] as const) {
  test(`--audit-log-path=- writes ${format} lines to standard output`, async (t) => {
    const written: string[] = [];
    const options = { path: "-", format, version: v1, maxBytes: 0, maxAgeDays: 0, maxBackups: 0, compress: false } as const;
    const backend = newLogBackend(options, newFakeClock(), never);
    // Mocked only during the write, because the test reporter uses stdout too.
    const { mock } = t.mock.method(process.stdout, "write", (text: string, done: () => void) => {
      written.push(text);
      done();
      return true;
    });
    const processed = await backend.process([aRecord("a"), aRecord("b")]);
    mock.restore();
    assert.equal(processed, true);
    assert.equal(written.join(""), want);
    await backend.stop(t.signal);
  });
}

test("an event that standard output does not take is lost, and is reported with it", async (t) => {
  const lost: string[] = [];
  const fail: PluginError = (name, err, records) => void lost.push(`${name} ${(err as Error).message} ${records.length}`);
  const options = { path: "-", format: "json", version: v1, maxBytes: 0, maxAgeDays: 0, maxBackups: 0, compress: false } as const;
  const backend = newLogBackend(options, newFakeClock(), fail);
  const { mock } = t.mock.method(process.stdout, "write", (_text: string, done: (err?: Error) => void) => {
    done(new Error("the pipe is closed"));
    return false;
  });
  const processed = await backend.process([aRecord("a")]);
  mock.restore();
  assert.deepEqual([processed, lost], [false, ["log the pipe is closed 1"]]);
});

test("a full file that cannot be removed is reported, and no event is lost", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-rotate-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "audit-2001-01-01T00-00-00.000.log"));
  const reported: unknown[][] = [];
  const fail: PluginError = (name, err, records) => void reported.push([name, (err as NodeJS.ErrnoException).code, records]);
  const maxBytes = eventJson(aRecord("a"), v1).length + 1;
  const path = join(folder, "audit.log");
  const options = { path, format: "json", version: v1, maxBytes, maxAgeDays: 0, maxBackups: 1, compress: false } as const;
  const backend = newLogBackend(options, newFakeClock(), fail);
  assert.equal(await backend.process([aRecord("a"), aRecord("b")]), true);
  await backend.stop(t.signal);
  assert.deepEqual(reported, [["log", "EISDIR", []]]);
});

test("a file that is full is moved aside, packed, and the oldest are removed", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-rotate-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const clock = newFakeClock(Date.UTC(2022, 0, 31, 10, 20, 30, 123));
  const path = join(folder, "audit.log");
  writeFileSync(join(folder, "audit-2022-01-01T00-00-00.000.log"), "too old");
  writeFileSync(join(folder, "other-2022-01-01T00-00-00.000.log"), "not ours");
  const options = { path, maxBytes: 10, maxAgeDays: 7, maxBackups: 2, compress: true };
  const file = newRotatingFile(options, clock, (err) => assert.fail(String(err)));
  for (const text of ["one\n", "two\n", "three\n", "four five\n"]) {
    await file.write(text);
    await clock.advance(1000);
  }
  await assert.rejects(file.write("longer than a file\n"), /exceeds maximum file size/);
  await file.close();
  assert.deepEqual(readdirSync(folder).sort(), [
    "audit-2022-01-31T10-20-32.123.log.gz",
    "audit-2022-01-31T10-20-33.123.log.gz",
    "audit.log",
    "other-2022-01-01T00-00-00.000.log",
  ]);
  assert.equal(gunzipSync(readFileSync(join(folder, "audit-2022-01-31T10-20-32.123.log.gz"))).toString(), "one\ntwo\n");
  assert.equal(readFileSync(path, "utf8"), "four five\n");
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("writes that come together keep their order, also across files", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-rotate-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const clock = newFakeClock();
  const options = { path: join(folder, "a.log"), maxBytes: 1000, maxAgeDays: 0, maxBackups: 0, compress: false };
  const file = newRotatingFile(options, clock, (err) => assert.fail(String(err)));
  await Promise.all(Array.from({ length: 100 }, (_, i) => file.write(`${i}\n`)));
  await file.close();
  assert.deepEqual(
    readFileSync(options.path, "utf8").trimEnd().split("\n").map(Number),
    Array.from({ length: 100 }, (_, i) => i),
  );
});

test("of events that the buffer has no room for, those that fit are kept", async () => {
  const lost: string[] = [];
  const fail: PluginError = (_plugin, err, records) => void lost.push(`${(err as Error).message}: ${records.length}`);
  const backend = collector();
  const options = { bufferSize: 3, maxBatchSize: 10, maxBatchWaitMs: 1_000, throttle: undefined, concurrent: false };
  const buffer = buffered(backend, options, newFakeClock(), fail);
  assert.equal(buffer.process([aRecord("1")]), true);
  assert.equal(buffer.process([aRecord("2"), aRecord("3"), aRecord("4"), aRecord("5")]), true);
  assert.deepEqual(lost, ["audit buffer queue blocked: 2"]);
  await buffer.stop(new AbortController().signal);
  assert.deepEqual(backend.batches, [["1", "2", "3"]]);
});

test("an event behind a full batch waits as long as the first of a batch", async () => {
  const clock = newFakeClock();
  const backend = collector();
  const options = { bufferSize: 10, maxBatchSize: 2, maxBatchWaitMs: 1_000, throttle: undefined, concurrent: false };
  const buffer = buffered(backend, options, clock, never);
  void buffer.process([aRecord("1")]);
  await clock.advance(600);
  void buffer.process([aRecord("2")]);
  await clock.advance(100);
  void buffer.process([aRecord("3")]);
  await clock.advance(999);
  assert.deepEqual(backend.batches, [["1", "2"]]);
  await clock.advance(1);
  assert.deepEqual(backend.batches, [["1", "2"], ["3"]]);
  await buffer.stop(new AbortController().signal);
});

test("of two backends both have to accept the events, whichever answers first", async () => {
  const answering = (isTaken: boolean, ms: number): AuditBackend => ({
    process: () => clock.sleep(ms).then(() => isTaken),
    stop: async () => {},
  });
  const clock = newFakeClock();
  for (const [fast, slow, want] of [
    [true, true, true],
    [true, false, false],
    [false, true, false],
  ] as const) {
    const taken = union([answering(slow, 20), answering(fast, 10)]).process([aRecord("1")]);
    await clock.advance(20);
    assert.equal(await taken, want);
  }
});

/** A record that is taken to hold objects of this size. */
const sized = (id: string, objectBytes: number): AuditRecord => ({
  ...aRecord(id),
  objectBytes,
  truncated: () => ({ ...aRecord(`${id} without objects`), objectBytes: 0 }),
});

test("objects count for the buffer's memory until they are sent, those that were left out not at all", async () => {
  const clock = newFakeClock();
  const sink = collector();
  const options = { bufferSize: 10, maxBatchSize: 5, maxBatchWaitMs: 1_000, throttle: undefined, concurrent: false };
  const buffer = buffered(sink, options, clock, never);
  const large = 40 * 1024 * 1024;
  for (const id of ["1", "2", "3"]) {
    void buffer.process([sized(id, large), sized(`${id}b`, large)]);
    await clock.advance(1_000);
  }
  assert.deepEqual(sink.batches, [
    ["1", "1b without objects"],
    ["2", "2b without objects"],
    ["3", "3b without objects"],
  ]);
});

test("objects that wait behind a batch which is being sent count for the buffer's memory", async () => {
  const sink = collector();
  const sent = Promise.withResolvers<boolean>();
  const slow: AuditBackend = { ...sink, process: (records) => sink.process(records) && sent.promise };
  const options = { bufferSize: 10, maxBatchSize: 1, maxBatchWaitMs: 1_000, throttle: undefined, concurrent: false };
  const buffer = buffered(slow, options, newFakeClock(), never);
  void buffer.process([sized("1", 30 * 1024 * 1024), sized("2", 30 * 1024 * 1024)]);
  await settle();
  assert.deepEqual(sink.batches, [["1"]]);
  void buffer.process([sized("3", 40 * 1024 * 1024)]);
  sent.resolve(true);
  await settle();
  assert.deepEqual(sink.batches, [["1"], ["2"], ["3 without objects"]]);
});

test("a batch that was due does not hurry the events after it", async () => {
  const clock = newFakeClock();
  const sink = collector();
  const options = { bufferSize: 10, maxBatchSize: 2, maxBatchWaitMs: 1_000, throttle: undefined, concurrent: false };
  const buffer = buffered(sink, options, clock, never);
  void buffer.process([aRecord("1")]);
  await clock.advance(1_000);
  void buffer.process(["2", "3", "4"].map((id) => aRecord(id)));
  await clock.advance(999);
  assert.deepEqual(sink.batches, [["1"], ["2", "3"]]);
  await clock.advance(1);
  assert.deepEqual(sink.batches.at(-1), ["4"]);
});

for (const concurrent of [true, false]) {
  test(`the end waits for batches that are being sent ${concurrent ? "together" : "in turn"}, until its signal is aborted`, async () => {
    const sent = Promise.withResolvers<boolean>();
    let isStopped = false;
    const slow: AuditBackend = {
      process: () => sent.promise,
      async stop() {
        isStopped = true;
      },
    };
    const options = { bufferSize: 10, maxBatchSize: 1, maxBatchWaitMs: 1_000, throttle: undefined, concurrent };
    const ended = async (signal: AbortSignal) => {
      isStopped = false;
      const buffer = buffered(slow, options, newFakeClock(), never);
      void buffer.process([aRecord("1")]);
      void buffer.stop(signal);
      for (let turn = 0; turn < 5; turn++) await new Promise((next) => setImmediate(next));
      return isStopped;
    };
    assert.equal(await ended(new AbortController().signal), false);
    assert.equal(await ended(AbortSignal.abort()), true);
    sent.resolve(true);
    assert.equal(await ended(new AbortController().signal), true);
  });
}

test("a backend that refuses events at once keeps them from no other", () => {
  const refusing: AuditBackend = { process: () => false, stop: async () => {} };
  const [first, last] = [collector(), collector()];
  assert.equal(union([first, refusing, last]).process([aRecord("1")]), false);
  assert.deepEqual([first.batches, last.batches], [[["1"]], [["1"]]]);
});

test("of several lines only the one that cannot be written is lost", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-audit-lines-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const lost: string[] = [];
  const fail: PluginError = (plugin, _err, records) =>
    void lost.push(plugin, ...records.map((record) => JSON.parse(String(record.item(v1))).auditID));
  const maxBytes = eventJson(aRecord("a"), v1).length + 1;
  const path = join(folder, "audit.log");
  const options = { path, format: "json", version: v1, maxBytes, maxAgeDays: 0, maxBackups: 0, compress: false } as const;
  const backend = newLogBackend(options, newFakeClock(), fail);
  assert.equal(await backend.process([aRecord("a"), aRecord("too long"), aRecord("b")]), false);
  await backend.stop(t.signal);
  assert.deepEqual(lost, ["log", "too long"]);
  assert.match(readFileSync(path, "utf8"), /"auditID":"b"/);
});

test("an event that was truncated before says so once when it is truncated again", () => {
  const text = String(
    aRecord("1", 100, newObjectRecorder({ maxObjectBytes: 10 }))
      .truncated()
      .item(v1),
  );
  assert.equal(text.split("audit.k8s.io/truncated").length - 1, 1);
});

test("at the end the rest is sent without regard to the rate, and later events are lost", async () => {
  const lost: string[] = [];
  const sink = collector();
  const options = { bufferSize: 10, maxBatchSize: 1, maxBatchWaitMs: 0, throttle: { qps: 1, burst: 1 }, concurrent: false };
  const fail: PluginError = (_plugin, err, records) => void lost.push(`${(err as Error).message}: ${records.length}`);
  const buffer = buffered(sink, options, newFakeClock(), fail);
  void buffer.stop(new AbortController().signal);
  assert.equal(buffer.process([aRecord("late")]), true);
  assert.deepEqual([sink.batches, lost], [[], ["the audit buffer is closed: 1"]]);
  const next = buffered(sink, { ...options, maxBatchSize: 2, maxBatchWaitMs: 1_000 }, newFakeClock(), never);
  void next.process(["1", "2"].map((id) => aRecord(id)));
  for (let turn = 0; turn < 5; turn++) await new Promise((resume) => setImmediate(resume));
  void next.process([aRecord("3")]);
  await next.stop(AbortSignal.timeout(10_000));
  assert.deepEqual(sink.batches, [["1", "2"], ["3"]]);
});

test("a backend that fails loses its batch and not the next one", async () => {
  const clock = newFakeClock();
  const lost: string[] = [];
  const fail: PluginError = (plugin, err, records) => void lost.push(`${plugin}: ${(err as Error).message}: ${records.length}`);
  const sink = collector();
  let attempts = 0;
  const failing: AuditBackend = {
    process: (records) => (attempts++ === 0 ? Promise.reject(new Error("no disk")) : sink.process(records)),
    stop: async () => {},
  };
  const options = { bufferSize: 10, maxBatchSize: 2, maxBatchWaitMs: 1_000, throttle: undefined, concurrent: false };
  const buffer = buffered(failing, options, clock, fail);
  void buffer.process(["1", "2", "3", "4"].map((id) => aRecord(id)));
  await clock.advance(0);
  assert.deepEqual([lost, sink.batches], [["buffered: no disk: 2"], [["3", "4"]]]);
});

test("in mode blocking a backend that does not take the events, at once or later, fails no request", async () => {
  for (const taken of [false, Promise.resolve(false)]) {
    assert.equal(await ignoringErrors({ process: () => taken, stop: async () => {} }).process([aRecord("1")]), true);
  }
});

test("every lost event is counted, and the first ten are in the server's log", async () => {
  const registry = newMetricsRegistry();
  const logged: unknown[] = [];
  const log: Logger = { ...discardLogger, error: (message, err, fields) => void logged.push({ message, err, ...fields }) };
  const lost = Array.from({ length: 11 }, (_, i) => aRecord(String(i)));
  const err = new Error("no disk");
  newPluginError(newAuditMetrics(registry), log)("log", err, lost);
  const events = lost.slice(0, 10).map(({ legacy }) => legacy);
  assert.deepEqual(logged, [{ message: "Error in audit plugin", err, plugin: "log", affected: 11, events: events.join("\n") }]);
  assert.match(await registry.render(), /^apiserver_audit_error_total\{plugin="log"\} 11$/m);
});
