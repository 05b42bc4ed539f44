import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { everything, type Recording, type SeenEvent, type WatchSession, type Write } from "../../framework/history/records.ts";
import { figuresOf } from "./figures.ts";
import { type Run, runTwice } from "./pods.ts";

const aWrite = (client: string, tag: string, end: number, code = 200): Write => ({
  ...{ client, tag, end, code, start: end - 1, verb: "update", key: "n/a", folder: "configmaps" },
  ...{ basedOn: undefined, answer: undefined },
});
const aWatch = (...events: [at: number, tag: string, type?: SeenEvent["type"]][]): WatchSession => ({
  ...{ client: "w", folder: "configmaps", prefix: "", selection: everything, revision: 1, start: 0, end: 1, code: 200 },
  events: events.map(
    ([at, tag, type = "MODIFIED"]): SeenEvent => ({
      at,
      type,
      object: { metadata: {}, data: { tag } } as unknown as KubeObject,
    }),
  ),
});
const recordingOf = (writes: Write[], watches: WatchSession[] = []): Recording => ({ writes, reads: [], watches });

for (const { name, recording, want } of [
  {
    name: "the gap of all writers is shorter than that of one",
    recording: recordingOf([aWrite("a", "1", 90), aWrite("b", "2", 95), aWrite("b", "3", 125), aWrite("a", "4", 150)]),
    want: { writesMs: 30, clientWritesMs: 60, watchesMs: 0 },
  },
  {
    name: "gaps that ended before the fault do not count",
    recording: recordingOf([aWrite("a", "1", 10), aWrite("a", "2", 80), aWrite("a", "3", 101)]),
    want: { writesMs: 21, clientWritesMs: 21, watchesMs: 0 },
  },
  {
    name: "a refused write ends no gap",
    recording: recordingOf([aWrite("a", "1", 95), aWrite("a", "2", 110, 409), aWrite("a", "3", 130)]),
    want: { writesMs: 35, clientWritesMs: 35, watchesMs: 0 },
  },
  {
    name: "the lag of the slowest watcher counts, and that of no write from before the fault",
    recording: recordingOf(
      [aWrite("a", "1", 99), aWrite("a", "2", 102), aWrite("a", "3", 104)],
      [aWatch([500, "1"], [103, "2"], [105, "3"]), aWatch([150, "2"], [151, "3"], [900, "3", "DELETED"])],
    ),
    want: { writesMs: 3, clientWritesMs: 3, watchesMs: 48 },
  },
])
  test(name, () => assert.deepEqual(figuresOf(recording, 100), want));

const aRun = (change: Partial<Run>): Run => ({
  uid: "u",
  pod: "single-0",
  node: "n1",
  begins: 1,
  first: 10,
  last: 20,
  ...change,
});

for (const { name, runs, want } of [
  { name: "one after the other", runs: [aRun({}), aRun({ uid: "v", first: 20.1, last: 30 })], want: [] },
  { name: "pods of two names", runs: [aRun({}), aRun({ uid: "v", pod: "single-1" })], want: [] },
  { name: "a container that began again", runs: [aRun({ begins: 2 })], want: [/single-0 \(u\) began 2 times/] },
  {
    name: "the second of one name",
    runs: [aRun({}), aRun({ uid: "v", node: "n2", first: 15, last: 30 })],
    want: [/on n1 .* on n2/],
  },
  { name: "one within the time of the other", runs: [aRun({}), aRun({ uid: "v", first: 12, last: 13 })], want: [/single-0 ran/] },
])
  test(`${name} ${want.length === 0 ? "has" : "has not"} run once`, () => {
    const found = runTwice(runs);
    assert.equal(found.length, want.length, found.join());
    for (const [i, pattern] of want.entries()) assert.match(found[i] ?? "", pattern);
  });
