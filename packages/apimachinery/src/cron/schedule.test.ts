import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../testing/fast-check.ts";
import { parseSchedule } from "./parse.ts";
import { fieldsSchedule } from "./schedule.ts";

/** The next time after `after` as text, or "never". */
function next(schedule: string, after: string): string {
  const time = parseSchedule(schedule).next(Date.parse(after));
  return time === undefined ? "never" : new Date(time).toISOString().replace(".000Z", "Z");
}

for (const { schedule, after, want } of [
  { schedule: "TZ=UTC 0/15 * * * *", after: "2012-07-09T14:45:00Z", want: "2012-07-09T15:00:00Z" },
  { schedule: "TZ=UTC 0/15 * * * *", after: "2012-07-09T14:59:59.9Z", want: "2012-07-09T15:00:00Z" },
  { schedule: "TZ=UTC 20-35/15 * * * *", after: "2012-07-09T15:45:00Z", want: "2012-07-09T16:20:00Z" },
  { schedule: "TZ=UTC 20-35/15 1/2 */2 * *", after: "2012-07-09T23:35:51Z", want: "2012-07-11T01:20:00Z" },
  { schedule: "TZ=UTC 20-35/15 * 9-20 Jul *", after: "2012-07-09T23:35:51Z", want: "2012-07-10T00:20:00Z" },
  { schedule: "TZ=UTC * * * * *", after: "2012-12-31T23:59:45Z", want: "2013-01-01T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 9 Apr-Oct ?", after: "2012-07-09T23:35:00Z", want: "2012-08-09T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 * Feb Mon", after: "2012-07-09T23:35:00Z", want: "2013-02-04T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 * Feb Mon/2", after: "2012-07-09T23:35:00Z", want: "2013-02-01T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 29 Feb ?", after: "2012-07-09T23:35:00Z", want: "2016-02-29T00:00:00Z" },
  // With both day fields restricted, one match suffices; a star with a step counts as restricted.
  { schedule: "TZ=UTC 0 0 1,15 * Sun", after: "2012-06-03T00:00:00Z", want: "2012-06-10T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 1,15 * Sun", after: "2012-06-10T00:00:00Z", want: "2012-06-15T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 */5 Apr,Aug,Oct Mon", after: "2012-07-09T23:35:00Z", want: "2012-08-01T00:00:00Z" },
  // A step of 1 leaves a star a star: both day fields have to match.
  { schedule: "TZ=UTC 0 0 */1 * Mon", after: "2012-07-09T23:35:00Z", want: "2012-07-16T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 1,15 * *", after: "2012-07-09T23:35:00Z", want: "2012-07-15T00:00:00Z" },
  // Never
  { schedule: "TZ=UTC 0 0 30 Feb ?", after: "2012-07-09T23:35:00Z", want: "never" },
  { schedule: "TZ=UTC 0 0 31 Apr ?", after: "2012-07-09T23:35:00Z", want: "never" },
  { schedule: "TZ=UTC ,1,,2, * * * *", after: "2012-07-09T14:01:00Z", want: "2012-07-09T14:02:00Z" },
  // Five years ahead and no further; 2100 is no leap year. The search begins a second later.
  { schedule: "TZ=UTC 0 0 29 Feb ?", after: "2099-01-01T00:00:00Z", want: "2104-02-29T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 29 Feb ?", after: "2098-12-31T23:59:59Z", want: "2104-02-29T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 29 Feb ?", after: "2098-12-31T23:59:58Z", want: "never" },
  { schedule: "TZ=UTC , * * * *", after: "2012-07-09T23:35:00Z", want: "never" },
  // Descriptors
  { schedule: "TZ=UTC @hourly", after: "2012-07-09T15:04:00Z", want: "2012-07-09T16:00:00Z" },
  { schedule: "TZ=UTC @daily", after: "2012-07-09T00:00:00Z", want: "2012-07-10T00:00:00Z" },
  { schedule: "TZ=UTC @midnight", after: "2012-07-09T00:00:00Z", want: "2012-07-10T00:00:00Z" },
  { schedule: "TZ=UTC @yearly", after: "2012-07-09T00:00:00Z", want: "2013-01-01T00:00:00Z" },
  // A star in a list counts, wherever it stands: the other field of days alone decides (2012-07-15 is a Sunday).
  { schedule: "TZ=UTC 0 0 *,15 * Sun", after: "2012-07-09T00:00:00Z", want: "2012-07-15T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 15,* * Mon", after: "2012-07-09T00:00:00Z", want: "2012-07-16T00:00:00Z" },
  { schedule: "TZ=UTC 0 0 *,15 * Mon", after: "2012-07-09T00:00:00Z", want: "2012-07-16T00:00:00Z" },
  { schedule: "TZ=UTC @weekly", after: "2012-07-09T00:00:00Z", want: "2012-07-15T00:00:00Z" },
  { schedule: "TZ=UTC @monthly", after: "2012-07-01T00:00:00Z", want: "2012-08-01T00:00:00Z" },
  { schedule: "TZ=UTC @annually", after: "2012-07-01T00:00:00Z", want: "2013-01-01T00:00:00Z" },
  { schedule: "@every 1h30m", after: "2012-07-09T14:45:30.4Z", want: "2012-07-09T16:15:30Z" },
  { schedule: "@every 300ms", after: "2012-07-09T14:45:00Z", want: "2012-07-09T14:45:01Z" },
  { schedule: "@every 90.7s", after: "2012-07-09T14:45:00Z", want: "2012-07-09T14:46:30Z" },
  // DST start in New York, 2:00 → 3:00: times in between are skipped.
  { schedule: "TZ=America/New_York 0 * * * *", after: "2012-03-11T01:00:00-05:00", want: "2012-03-11T07:00:00Z" },
  { schedule: "CRON_TZ=America/New_York 0 1 * * *", after: "2012-03-11T01:00:00-05:00", want: "2012-03-12T05:00:00Z" },
  { schedule: "TZ=America/New_York 0 2 * * *", after: "2012-03-11T00:00:00-05:00", want: "2012-03-12T06:00:00Z" },
  { schedule: "TZ=America/New_York 30 2 11 Mar ?", after: "2012-03-11T00:00:00-05:00", want: "2013-03-11T06:30:00Z" },
  // DST end, 2:00 → 1:00: times in the repeated hour are due twice.
  { schedule: "TZ=America/New_York 0 1 * * *", after: "2012-11-04T00:00:00-04:00", want: "2012-11-04T05:00:00Z" },
  { schedule: "TZ=America/New_York 0 1 * * *", after: "2012-11-04T01:00:00-04:00", want: "2012-11-04T06:00:00Z" },
  { schedule: "TZ=America/New_York 0 1 * * *", after: "2012-11-04T01:00:00-05:00", want: "2012-11-05T06:00:00Z" },
  { schedule: "TZ=America/New_York 30 1 04 Nov ?", after: "2012-11-04T01:45:00-04:00", want: "2012-11-04T06:30:00Z" },
  { schedule: "TZ=America/New_York 0 2 * * *", after: "2012-11-04T00:00:00-04:00", want: "2012-11-04T07:00:00Z" },
  // DST start at midnight in São Paulo, 0:00 → 1:00.
  { schedule: "TZ=America/Sao_Paulo 30 9 * * 0", after: "2018-11-01T00:00:00-03:00", want: "2018-11-04T11:30:00Z" },
  { schedule: "TZ=Asia/Kolkata 0 0 * * *", after: "2022-01-01T00:00:00Z", want: "2022-01-01T18:30:00Z" },
]) {
  test(`${schedule} after ${after}: ${want}`, () => assert.equal(next(schedule, after), want));
}

test("the next time matches the schedule, is after the given time, and no match lies between", () => {
  const field = (min: number, max: number) =>
    fc.oneof(
      fc.constant("*"),
      fc.integer({ min, max }).map(String),
      fc.tuple(fc.integer({ min, max }), fc.integer({ min: 1, max: 7 })).map(([from, step]) => `${from}/${step}`),
    );
  const spec = fc.tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), fc.constant("*"));
  const start = fc.integer({ min: 1_577_836_800, max: 1_893_456_000 });
  fc.assert(
    fc.property(spec, start, (fields, seconds) => {
      const schedule = parseSchedule(`TZ=UTC ${fields.join(" ")}`);
      const due = schedule.next(seconds * 1000);
      assert.ok(due !== undefined && due > seconds * 1000);
      const at = new Date(due);
      const shown = [at.getUTCMinutes(), at.getUTCHours(), at.getUTCDate(), at.getUTCMonth() + 1];
      for (const [i, value] of shown.entries()) assert.ok(matches(fields[i] as string, value), `${fields[i]} at ${value}`);
      const between = seconds * 1000 + Math.floor((due - seconds * 1000) / 2);
      assert.equal(schedule.next(between), due);
    }),
    { numRuns: 200 },
  );
});

function matches(field: string, value: number): boolean {
  if (field === "*") return true;
  const [from, step] = field.split("/").map(Number) as [number, number?];
  return step === undefined ? value === from : value >= from && (value - from) % step === 0;
}

test("without a zone of its own a schedule is in the zone of the process", (t) => {
  const before = process.env["TZ"];
  t.after(() => {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  });
  process.env["TZ"] = "Asia/Kolkata";
  assert.equal(next("0 6 * * *", "2022-01-01T00:00:00Z"), "2022-01-01T00:30:00Z");
  process.env["TZ"] = "America/New_York";
  assert.equal(next("TZ=Local 0 6 * * *", "2022-01-01T00:00:00Z"), "2022-01-01T11:00:00Z");
});

test("days that no month has are not searched for", () => {
  const all = (from: number, to: number) => ({
    values: new Set(Array.from({ length: to - from + 1 }, (_, i) => from + i)),
    star: true,
  });
  const only = (...values: number[]) => ({ values: new Set(values), star: false });
  const rest = { minute: only(0), hour: only(0), dayOfWeek: all(0, 6) };
  const zone = { offsetMs: () => assert.fail("a time was looked at") };
  const never = (days: number[], months: number[]) =>
    fieldsSchedule({ ...rest, dayOfMonth: only(...days), month: only(...months) }, zone).next(0);
  assert.equal(never([30, 31], [2]), undefined);
  assert.equal(never([31], [2, 4, 6, 9, 11]), undefined);
  for (const [day, month] of [
    [29, 2],
    [30, 4],
    [31, 12],
  ] as const) {
    const schedule = fieldsSchedule({ ...rest, dayOfMonth: only(day), month: only(month) }, { offsetMs: () => 0 });
    assert.equal(new Date(schedule.next(Date.UTC(2022, 0, 1)) ?? 0).getUTCDate(), day);
  }
});
