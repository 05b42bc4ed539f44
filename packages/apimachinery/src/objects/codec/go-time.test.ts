import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalMicroTime, canonicalTime, timeFromParts, timeParts } from "./go-time.ts";

for (const [text, want] of [
  ["2021-12-07T18:16:20Z", "2021-12-07T18:16:20Z"],
  ["2021-12-07T18:16:20.987Z", "2021-12-07T18:16:20Z"],
  ["2021-12-07T18:16:20+02:30", "2021-12-07T15:46:20Z"],
  ["2021-12-07T18:16:20-02:30", "2021-12-07T20:46:20Z"],
  ["0099-01-01T00:00:00Z", "0099-01-01T00:00:00Z"],
  ["2000-02-29T23:59:59Z", "2000-02-29T23:59:59Z"],
  ["2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z"],
  ["2021-10-31T00:00:00Z", "2021-10-31T00:00:00Z"],
  ["0001-01-01T00:00:00Z", undefined],
] as const) {
  test(`reads ${text} as ${want}`, () => assert.equal(canonicalTime(text), want));
}

const layout = '"2006-01-02T15:04:05Z07:00"';
for (const [text, message] of [
  ["", `parsing time "" as ${layout}: cannot parse "" as "2006"`],
  ["yesterday", `parsing time "yesterday" as ${layout}: cannot parse "yesterday" as "2006"`],
  ["2021-12-07 18:16:20Z", `parsing time "2021-12-07 18:16:20Z" as ${layout}: cannot parse " 18:16:20Z" as "T"`],
  ["2021-13-07T18:16:20Z", 'parsing time "2021-13-07T18:16:20Z": month out of range'],
  ["2021-02-29T18:16:20Z", 'parsing time "2021-02-29T18:16:20Z": day out of range'],
  ["1900-02-29T18:16:20Z", 'parsing time "1900-02-29T18:16:20Z": day out of range'],
  ...["04-31", "06-31", "09-31", "11-31", "12-32", "12-00"].map(
    (day) => [`2021-${day}T18:16:20Z`, `parsing time "2021-${day}T18:16:20Z": day out of range`] as const,
  ),
  ["2021-00-07T18:16:20Z", 'parsing time "2021-00-07T18:16:20Z": month out of range'],
  ["2021-12-07T24:00:00Z", 'parsing time "2021-12-07T24:00:00Z": hour out of range'],
  ["2021-12-07T18:60:00Z", 'parsing time "2021-12-07T18:60:00Z": minute out of range'],
  ["2021-12-07T18:16:60Z", 'parsing time "2021-12-07T18:16:60Z": second out of range'],
  ["2021-12-07T18:16:20", `parsing time "2021-12-07T18:16:20" as ${layout}: cannot parse "" as "Z07:00"`],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => canonicalTime(text), { message }));
}

test("wants exactly six digits of a MicroTime", () => {
  assert.equal(canonicalMicroTime("2021-12-07T20:16:20.000123+02:00"), "2021-12-07T18:16:20.000123Z");
  assert.throws(() => canonicalMicroTime("2021-12-07T18:16:20Z"), {
    message: 'parsing time "2021-12-07T18:16:20Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
  });
});

test("a time is the same after conversion to seconds and back", () => {
  const { seconds, micros } = timeParts("2021-12-07T18:16:20.000123Z");
  assert.deepEqual({ seconds, micros }, { seconds: 1638900980, micros: 123 });
  assert.equal(timeFromParts(seconds, micros), "2021-12-07T18:16:20.000123Z");
  assert.equal(timeFromParts(seconds), "2021-12-07T18:16:20Z");
  assert.throws(() => timeFromParts(1e15));
});

test("only the time in which nothing is set is Go's zero time", () => {
  const { seconds } = timeParts("0001-01-01T00:00:00Z");
  assert.equal(canonicalMicroTime("0001-01-01T00:00:00.000000Z"), undefined);
  assert.equal(canonicalMicroTime("0001-01-01T00:00:00.000001Z"), "0001-01-01T00:00:00.000001Z");
  assert.deepEqual([timeFromParts(seconds), timeFromParts(seconds, 0)], [undefined, undefined]);
  assert.equal(timeFromParts(seconds, 1), "0001-01-01T00:00:00.000001Z");
});
