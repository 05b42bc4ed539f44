import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type LogSource, mergedLines, timeOfLine } from "./logs.ts";

const now = new Date(2022, 0, 2, 12).getTime();

for (const { name, line, want } of [
  {
    name: "klog",
    line: 'I0102 11:59:58.250000     907 x.js:1] "started"',
    want: new Date(2022, 0, 2, 11, 59, 58, 250).getTime(),
  },
  {
    name: "klog of a clock that is ahead",
    line: "I0103 11:59:59.000000  1 x.js:1] a",
    want: new Date(2022, 0, 3, 11, 59, 59).getTime(),
  },
  {
    name: "klog of a day and more ahead, which is last year's",
    line: "I0103 12:00:01.000000  1 x.js:1] a",
    want: new Date(2021, 0, 3, 12, 0, 1).getTime(),
  },
  { name: "klog of last year", line: "W1231 23:59:59.000000  1 x.js:1] a", want: new Date(2021, 11, 31, 23, 59, 59).getTime() },
  { name: "etcd", line: '{"level":"warn","ts":"2022-01-02T10:00:00.5Z","msg":"a"}', want: Date.UTC(2022, 0, 2, 10, 0, 0, 500) },
  {
    name: "etcd with a zone",
    line: '{"level":"warn","ts":"2022-01-02T10:00:00.5+0200"}',
    want: Date.UTC(2022, 0, 2, 8, 0, 0, 500),
  },
  {
    name: "containerd",
    line: 'time="2022-01-02T10:00:00.140274097Z" level=info msg="a"',
    want: Date.UTC(2022, 0, 2, 10, 0, 0, 140),
  },
  { name: "etcd 3.4", line: "2022-01-02 10:00:00.580638 W | etcdserver: a", want: new Date(2022, 0, 2, 10, 0, 0, 580).getTime() },
  { name: "a stack", line: "    at x (file:///x.js:1:1)", want: undefined },
  { name: "a time inside of a message", line: "read 2022-01-02T10:00:00Z", want: undefined },
]) {
  test(`the time of a line: ${name}`, () => assert.equal(timeOfLine(line, now), want));
}

function logs(t: TestContext, contents: Readonly<Record<string, string>>): LogSource[] {
  const folder = mkdtempSync(join(tmpdir(), "logs-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return Object.entries(contents).map(([name, text]) => {
    const file = join(folder, `${name}.log`);
    if (text !== "") writeFileSync(file, text);
    return { name, file };
  });
}

async function read(sources: LogSource[], sinceMs?: number, tail?: number): Promise<string[]> {
  const lines: string[] = [];
  for await (const { name, text } of mergedLines(sources, { sinceMs, tail, now })) lines.push(`${name} ${text}`);
  return lines;
}

const contents = {
  a: 'time="2022-01-02T10:00:01Z" a1\n  stack\ntime="2022-01-02T10:00:03Z" a3\n',
  b: 'before\ntime="2022-01-02T10:00:02Z" b2\ntime="2022-01-02T10:00:04Z" b4 without an end of line',
  missing: "",
};
const short = (lines: string[]): string[] => lines.map((line) => line.replace(/time=\S+ /, ""));

test("lines of several logs are ordered by time, a stack trace behind its line", async (t) =>
  assert.deepEqual(short(await read(logs(t, contents))), [
    "b before",
    "a a1",
    "a   stack",
    "b b2",
    "a a3",
    "b b4 without an end of line",
  ]));

test("--since omits older lines with their stack traces", async (t) =>
  assert.deepEqual(short(await read(logs(t, contents), Date.UTC(2022, 0, 2, 10, 0, 3))), [
    "a a3",
    "b b4 without an end of line",
  ]));

test("lines of one time are in the order of the logs", async (t) => {
  const same = 'time="2022-01-02T10:00:01Z" x\n';
  assert.deepEqual(short(await read(logs(t, { b: same, a: same, c: same }))), ["b x", "a x", "c x"]);
});

test("what is written to a log while it is read is left to those that follow it", async (t) => {
  const sources = logs(t, { a: 'time="2022-01-02T10:00:01Z" a1\n', b: 'time="2022-01-02T10:00:02Z" b2\n' });
  const ends = new Map<string, number>();
  const lines: string[] = [];
  for await (const { name, text } of mergedLines(sources, { sinceMs: undefined, tail: undefined, now }, ends)) {
    for (const { file } of sources) appendFileSync(file, 'time="2022-01-02T10:00:03Z" late\n');
    lines.push(`${name} ${text}`);
  }
  assert.deepEqual(short(lines), ["a a1", "b b2"]);
  assert.deepEqual(
    [...ends],
    [
      ["a", 31],
      ["b", 31],
    ],
  );
});

test("--tail cuts the lines of an entry that is longer than it", async (t) => {
  const a = `time="2022-01-02T10:00:01Z" a1\n  s1\n  s2\ntime="2022-01-02T10:00:03Z" a3\n`;
  for (const [tail, want] of [
    [1, ["a a3"]],
    [2, ["a   s2", "a a3"]],
    [4, ["a a1", "a   s1", "a   s2", "a a3"]],
    [5, ["a a1", "a   s1", "a   s2", "a a3"]],
  ] as const)
    assert.deepEqual(short(await read(logs(t, { a }), undefined, tail)), want, `${tail}`);
});

for (const { tail, want } of [
  { tail: 0, want: [] },
  { tail: 1, want: ["a a3", "b b4 without an end of line"] },
  { tail: 2, want: ["a   stack", "b b2", "a a3", "b b4 without an end of line"] },
]) {
  test(`--tail ${tail} applies to each log`, async (t) =>
    assert.deepEqual(short(await read(logs(t, contents), undefined, tail)), want));
}
