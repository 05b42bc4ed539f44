import assert from "node:assert/strict";
import { test } from "node:test";
import { logOptionsOf, logText } from "./log-text.ts";
import type { LogLines } from "./rules.ts";

const nowMs = Date.parse("2022-01-01T00:10:00Z");
const startedMs = Date.parse("2022-01-01T00:05:00Z");

for (const [query, want] of [
  ["", {}],
  ["follow=true&timestamps=1", { follow: true, timestamps: true }],
  ["follow=0&timestamps=false", {}],
  ["follow=10&timestamps=falsey", { follow: true, timestamps: true }],
  ["tailLines=0&limitBytes=1", { tailLines: 0, limitBytes: 1 }],
  ["tailLines=-1&limitBytes=x", {}],
  ["sinceSeconds=60", { sinceMs: nowMs - 60_000 }],
  ["sinceSeconds=0", { sinceMs: nowMs }],
  ["sinceTime=2022-01-01T00:00:00Z", { sinceMs: Date.parse("2022-01-01T00:00:00Z") }],
  ["sinceTime=2022-01-01T00:00:00Z&sinceSeconds=60", { sinceMs: nowMs - 60_000 }],
  ["sinceTime=soon", {}],
] as const) {
  test(`options of a log request: ${query}`, () => {
    const none = { follow: false, timestamps: false, tailLines: undefined, limitBytes: undefined, sinceMs: undefined };
    assert.deepEqual(logOptionsOf(new URLSearchParams(query), nowMs), { ...none, ...want });
  });
}

async function* live(...pieces: string[]): AsyncGenerator<string> {
  yield* pieces;
}

for (const [what, source, query, want] of [
  ["a text", "a\nb\n", "", "a\nb\n"],
  ["a text without a newline at its end", "a\nb", "", "a\nb\n"],
  ["a text that ends in an empty line", "a\n\n", "", "a\n\n"],
  ["lines, one of them several", ["a\nb", "c"], "", "a\nb\nc\n"],
  ["the last lines", ["a", "b", "c"], "tailLines=2", "b\nc\n"],
  ["more lines than there are", ["a", "b"], "tailLines=9", "a\nb\n"],
  ["no line", ["a", "b"], "tailLines=0", ""],
  ["so many bytes", ["abc", "def"], "limitBytes=6", "abc\nde"],
  ["bytes up to the end of a line", ["abc", "def"], "limitBytes=4", "abc\n"],
  ["the time of lines that are there is the container's start", ["a"], "timestamps=1", "2022-01-01T00:05:00.000000000Z a\n"],
  ["a time counts among the bytes", ["a"], "timestamps=1&limitBytes=4", "2022"],
  ["lines since the start", ["a"], "sinceTime=2022-01-01T00:05:00Z", "a\n"],
  ["lines that are older than wanted", ["a"], "sinceTime=2022-01-01T00:05:01Z", ""],
  ["lines as they come", live("a\nb", "c\n"), "", "a\nb\nc\n"],
  ["the time of lines as they come", live("a"), "timestamps=1", "2022-01-01T00:10:00.000000000Z a\n"],
  ["the last lines of those that came", live("a", "b", "c"), "tailLines=2", "b\nc\n"],
  ["no line of those that came", live("a", "b"), "tailLines=0", ""],
  ["all lines that are followed", live("a", "b", "c"), "tailLines=1&follow=1", "a\nb\nc\n"],
  ["bytes of lines as they come", live("abc", "def", "ghi"), "limitBytes=6", "abc\nde"],
  ["bytes of the last lines that came", live("abc", "def", "ghi"), "limitBytes=5&tailLines=2", "def\ng"],
] as [string, LogLines, string, string][]) {
  test(`a log has ${what}`, async () => {
    const options = logOptionsOf(new URLSearchParams(query), nowMs);
    const pieces = await Array.fromAsync(logText(source, options, { startedMs, now: () => nowMs }));
    assert.equal(Buffer.concat(pieces).toString(), want);
    assert.ok(
      pieces.every(({ length }) => length > 0),
      "no empty pieces",
    );
  });
}

test("a log that is limited ends with its bytes, though more would come", async () => {
  let isClosed = false;
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;;) yield "line";
    } finally {
      isClosed = true;
    }
  }
  const options = logOptionsOf(new URLSearchParams("limitBytes=12"), nowMs);
  const pieces = await Array.fromAsync(logText(endless(), options, { startedMs, now: () => nowMs }));
  assert.equal(Buffer.concat(pieces).toString(), "line\nline\nli");
  assert.equal(isClosed, true);
});
