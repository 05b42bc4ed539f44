import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../clock/fake-clock.ts";
import { type LoggerOptions, newLogger } from "./logger.ts";

function collect(options: LoggerOptions = {}) {
  const lines: string[] = [];
  const clock = newFakeClock(new Date(2022, 2, 4, 5, 6, 7, 89).getTime() + 0.25);
  const log = newLogger({ clock, write: (line) => lines.push(line), ...options });
  return { log, lines };
}

test("writes klog's header, the place of the call and quoted fields", () => {
  const { log, lines } = collect();
  log.info("created pods", { replicaSet: "default/web", count: 3, none: undefined, list: ["a"] });
  const pid = String(process.pid).padStart(7);
  const want = `^I0304 05:06:07\\.089250 ${pid} logger\\.test\\.ts:\\d+\\] "created pods" replicaSet="default/web" count=3 list=\\["a"\\]\n$`;
  assert.match(lines[0] as string, new RegExp(want));
});

test("writes an error once with its chain of causes", () => {
  const { log, lines } = collect({ skipHeaders: true });
  log.error("reconcile failed", new Error("cannot create pod a", { cause: new Error("no route") }), { key: "a" });
  log.warn("plain words");
  assert.deepEqual(lines, ['"reconcile failed" err="cannot create pod a: no route" key="a"\n', "plain words\n"]);
});

test("writes a detail only at its level, by file or component with --vmodule", () => {
  const { log, lines } = collect({ verbosity: 2, skipHeaders: true });
  log.v(2)?.info("two");
  assert.equal(log.v(3), undefined);
  log.setVerbosity(3);
  log.v(3)?.info("three");
  assert.deepEqual(lines, ["two\n", "three\n"]);
  assert.equal(collect({ vmodule: "logger.*=4" }).log.enabled(4), true);
  assert.equal(collect({ vmodule: "logger.*=4" }).log.enabled(5), false);
  assert.notEqual(collect({ vmodule: "logger.*=4" }).log.v(4), undefined);
  assert.equal(collect({ vmodule: "reflector=4" }).log.enabled(4), false);
  assert.equal(collect({ vmodule: "gc=4" }).log.named("gc").enabled(4), true);
  assert.throws(() => collect({ vmodule: "nothing" }), /syntax error/);
});

test("writes one JSON object a line", () => {
  const { log, lines } = collect({ format: "json" });
  log.named("gc").with({ node: "n" }).error("failed", "why", { big: 10n });
  log.info("hello");
  const first = JSON.parse(lines[0] as string);
  assert.partialDeepStrictEqual(first, { msg: "failed", err: "why", logger: "gc", node: "n", big: "10" });
  assert.match(first.caller, /^logger\.test\.ts:\d+$/);
  assert.partialDeepStrictEqual(JSON.parse(lines[1] as string), { msg: "hello", v: 0 });
});

test("ends the process with 255 on a fatal line", () => {
  const { log, lines } = collect({
    skipHeaders: true,
    exit: (code) => {
      throw new Error(`exit ${code}`);
    },
  });
  assert.throws(() => log.fatal("cannot go on", new Error("no disk")), /exit 255/);
  assert.deepEqual(lines, ['"cannot go on" err="no disk"\n']);
});

test("--log-backtrace-at adds a stack trace only to the named line", () => {
  const speak = (log: { info(message: string): void }): void => log.info("there");
  const asJson = collect({ format: "json" });
  speak(asJson.log);
  const { caller } = JSON.parse(asJson.lines[0] as string);
  const { log, lines } = collect({ skipHeaders: true, backtraceAt: caller });
  speak(log);
  log.info("not there");
  assert.match(lines[0] as string, /^there\n {4}at speak .*logger\.test\.ts:\d+/);
  assert.equal(lines[1], "not there\n");
  assert.throws(() => collect({ backtraceAt: "logger:7" }), /syntax error: expect file\.go:234/);
  assert.throws(() => collect({ backtraceAt: "logger.ts:0" }), /negative or zero value/);
});

test("--experimental-logging-sanitization hides lines with a secret in their fields, however deep", () => {
  const { log, lines } = collect({ skipHeaders: true, sanitize: true });
  log.info("plain", { key: "default/web", name: "a", count: 1 });
  log.info("headers", { request: { headers: { Authorization: "Bearer hunter2" } } });
  log.with({ "client-key-data": "hunter2" }).warn("configured");
  log.error("cannot store", new Error("no"), { object: { kind: "Secret", data: { p: "hunter2" } } });
  log.info("keys", { keys: [{ name: "one", secret: "hunter2" }] });
  log.info("pair", { tls: { cert: "c", key: "hunter2" } });
  assert.equal(lines[0], '"plain" key="default/web" name="a" count=1\n');
  assert.equal(lines[1], '"Log message has been redacted." key="request" types=["token"]\n');
  assert.match(lines[3] as string, /types=\["password"\]/);
  log.info("nested", { requests: [{ headers: [{ name: "x", values: { cookie: "hunter2" } }] }] });
  const loop: Record<string, unknown> = {};
  log.info("endless", { loop: Object.assign(loop, { loop }) });
  assert.equal(lines.length, 8);
  assert.ok(!lines.join("").includes("hunter2"));
  const open = collect({ skipHeaders: true });
  open.log.info("keys", { token: "t" });
  assert.deepEqual(open.lines, ['"keys" token="t"\n']);
});

test("a field of the line wins over the logger's, and derived loggers follow the verbosity", () => {
  const { log, lines } = collect({ skipHeaders: true });
  const derived = log.with({ node: "a", pod: "x" }).named("gc");
  derived.info("moved", { node: "b" });
  assert.deepEqual(lines, ['"moved" logger="gc" node="b" pod="x"\n']);
  assert.equal(derived.v(2), undefined);
  log.setVerbosity(2);
  assert.notEqual(derived.v(2), undefined);
});

test("no field replaces what a JSON line has itself, and what cannot be shown is replaced", () => {
  const { log, lines } = collect({ format: "json" });
  log.info("hello", { msg: "other", v: 7, ts: "now", caller: "me", err: "none" });
  assert.partialDeepStrictEqual(JSON.parse(lines[0] as string), { msg: "hello", v: 0, err: "none" });
  const circle: { self?: unknown } = {};
  circle.self = circle;
  const { log: text, lines: written } = collect({ skipHeaders: true });
  text.info("round", { circle });
  assert.deepEqual(written, ['"round" circle="<cannot be shown>"\n']);
});

test("values of fields are written as each format has them", () => {
  const fields = {
    flag: true,
    big: 2n ** 64n,
    when: new Date(0),
    err: new Error("a", { cause: "b" }),
    list: [1n, new Error("c")],
    of: { when: new Date(0) },
    none: null,
    text: 'a"b',
  };
  const { log, lines } = collect({ skipHeaders: true });
  log.info("x", fields);
  const when = "1970-01-01T00:00:00.000Z";
  const shown = `flag=true big=18446744073709551616 when="${when}" err="a: b" list=["1","c"] of={"when":"${when}"} none=null text="a\\"b"`;
  assert.deepEqual(lines, [`"x" ${shown}\n`]);
  const { log: json, lines: written } = collect({ format: "json" });
  json.warn("x", fields);
  const { caller, ...entry } = JSON.parse(written[0] ?? "");
  assert.match(caller, /^logger\.test\.ts:\d+$/);
  assert.deepEqual(entry, {
    ts: new Date(2022, 2, 4, 5, 6, 7, 89).getTime() + 0.25,
    msg: "x",
    severity: "warning",
    flag: true,
    big: "18446744073709551616",
    when,
    err: "a: b",
    list: ["1", "c"],
    of: { when },
    none: null,
    text: 'a"b',
  });
});

test("errors without a message have their name, several in one are listed, and only programming errors have a stack", () => {
  const { log, lines } = collect({ skipHeaders: true });
  const several = Object.assign(new AggregateError([new Error("a", { cause: new Error("b") }), "c"]), { code: "ECONNREFUSED" });
  class Own extends Error {
    override readonly name = "StatusError";
  }
  for (const err of [new Error(), new Own(), new Own("o"), several, "text"]) log.error("failed", err);
  let deep = new Error("0");
  for (let i = 1; i < 12; i++) deep = new Error(`e${i}`, { cause: deep });
  log.error("failed", deep);
  assert.deepEqual(lines, [
    '"failed" err="Error"\n',
    '"failed" err="StatusError"\n',
    '"failed" err="o"\n',
    '"failed" err="a: b, c"\n',
    '"failed" err="text"\n',
    `"failed" err="${Array.from({ length: 10 }, (_, i) => `e${11 - i}`).join(": ")}"\n`,
  ]);
  log.error("failed", new TypeError("wrong"));
  assert.match(lines.at(-1) ?? "", /^"failed" err="TypeError: wrong\\n {4}at .*logger\.test\.ts/);
});

test("a logger's name is that of all its parts", () => {
  const { log, lines } = collect({ format: "json" });
  log.named("a").with({ k: 1 }).named("b").info("x", { k: 2 });
  log.named("c").info("y");
  const entries = lines.map((line) => JSON.parse(line));
  assert.deepEqual(
    entries.map(({ logger, k }) => [logger, k]),
    [
      ["a.b", 2],
      ["c", undefined],
    ],
  );
});

test("a cause that the message repeats is written once", () => {
  const { log, lines } = collect({ skipHeaders: true });
  log.error("failed", new Error("cannot dial: refused", { cause: new Error("refused", { cause: new Error("by peer") }) }));
  assert.deepEqual(lines, ['"failed" err="cannot dial: refused: by peer"\n']);
});

test("a message without fields stays on one line; errors of aborts and those with a code have no stack", () => {
  const { log, lines } = collect({ skipHeaders: true });
  log.info("a\nb\n\nc");
  const coded = Object.assign(new TypeError("no connection"), { code: "ECONNREFUSED" });
  for (const err of [new DOMException("stopped", "AbortError"), AbortSignal.abort().reason, named("AbortError"), coded])
    log.error("failed", err);
  assert.deepEqual(lines, [
    "a\\nb\\n\\nc\n",
    '"failed" err="stopped"\n',
    '"failed" err="This operation was aborted"\n',
    '"failed" err="x"\n',
    '"failed" err="no connection"\n',
  ]);
});

function named(name: string): Error {
  return Object.assign(new Error("x"), { name });
}
