import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSchedule } from "@coxswain/apimachinery/cron/parse";
import type { CronJobSpec, CronJobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { aCronJob } from "../../testing/jobs.ts";
import { planCronJob } from "./plan.ts";
import { untilNextMs } from "./schedule-times.ts";

// Schedules are evaluated in the time zone of the process.
process.env["TZ"] = "UTC";

const active = (name: string): CronJobStatus => ({ active: [{ name, namespace: "default", uid: `${name}-uid` }] });
const zoneText =
  'CRON_TZ or TZ used in schedule "TZ=UTC 0 * * * *" is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details';

for (const { name, spec = {}, status = {}, now, start, events = [], waits = true } of [
  { name: "waits for its first time", now: "2022-01-01T00:00:59Z" },
  { name: "starts when it is time", now: "2022-01-01T00:01:00.1Z", start: "2022-01-01T00:01:00Z" },
  { name: "starts the latest of several that were missed", now: "2022-01-01T00:10:30Z", start: "2022-01-01T00:10:00Z" },
  {
    name: "reports more than a hundred missed starts, and starts the latest",
    now: "2022-01-01T02:00:30Z",
    start: "2022-01-01T02:00:00Z",
    events: [
      "Warning TooManyMissedTimes too many missed start times: 120. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
    ],
  },
  { name: "starts at the very time, the first", now: "2022-01-01T00:01:00Z", start: "2022-01-01T00:01:00Z" },
  { name: "starts at the very time, the second", now: "2022-01-01T00:02:00Z", start: "2022-01-01T00:02:00Z" },
  { name: "does not report a hundred missed starts", now: "2022-01-01T01:40:30Z", start: "2022-01-01T01:40:00Z" },
  {
    name: "reports one more",
    now: "2022-01-01T01:41:30Z",
    start: "2022-01-01T01:41:00Z",
    events: [
      "Warning TooManyMissedTimes too many missed start times: 101. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
    ],
  },
  {
    name: "looks not back at all with a starting deadline of 0",
    spec: { startingDeadlineSeconds: 0 },
    now: "2022-01-01T00:01:30Z",
  },
  {
    name: "looks no further back than its starting deadline",
    spec: { startingDeadlineSeconds: 200 },
    now: "2022-01-01T02:00:30Z",
    start: "2022-01-01T02:00:00Z",
  },
  {
    name: "looks as far back as it likes with a starting deadline of all 64 bits",
    // an int64 beyond the safe integers is decoded as bigint
    spec: { startingDeadlineSeconds: 9223372036854775807n as unknown as number },
    now: "2022-01-01T00:10:30Z",
    start: "2022-01-01T00:10:00Z",
  },
  {
    name: "starts nothing whose starting deadline has passed",
    spec: { schedule: "0 * * * *", startingDeadlineSeconds: 10 },
    now: "2022-01-01T01:00:30Z",
  },
  {
    name: "does not start twice what it started",
    status: { lastScheduleTime: "2022-01-01T00:01:00Z" },
    now: "2022-01-01T00:01:30Z",
  },
  {
    name: "does not start what its list has already",
    status: active("tick-27349921"),
    now: "2022-01-01T00:01:30Z",
  },
  {
    name: "Allow starts beside another",
    status: active("tick-1"),
    now: "2022-01-01T00:01:30Z",
    start: "2022-01-01T00:01:00Z",
  },
  {
    name: "Forbid waits for the other",
    spec: { concurrencyPolicy: "Forbid" },
    status: active("tick-1"),
    now: "2022-01-01T00:01:30Z",
    events: ["Normal JobAlreadyActive Not starting job because prior execution is running and concurrency policy is Forbid"],
  },
  { name: "is suspended", spec: { suspend: true }, now: "2022-01-01T00:01:30Z", waits: false },
  {
    name: "has a schedule that cannot be read",
    spec: { schedule: "* *" },
    now: "2022-01-01T00:01:30Z",
    events: ['Warning UnparseableSchedule unparseable schedule: "* *" : expected exactly 5 fields, found 2: [* *]'],
    waits: false,
  },
  {
    name: "has a schedule that never comes",
    spec: { schedule: "0 0 31 2 *" },
    now: "2022-01-01T00:01:30Z",
    events: ["Warning InvalidSchedule invalid schedule: 0 0 31 2 * : time difference between two schedules less than 1 second"],
    waits: false,
  },
  {
    name: "names a time zone",
    spec: { schedule: "TZ=UTC 0 * * * *" },
    now: "2022-01-01T00:01:30Z",
    events: [`Warning UnsupportedSchedule ${zoneText}`],
  },
] as {
  name: string;
  spec?: Partial<CronJobSpec>;
  status?: CronJobStatus;
  now: string;
  start?: string;
  events?: string[];
  waits?: boolean;
}[]) {
  test(`a cron job ${name}`, () => {
    const decision = planCronJob(aCronJob({ spec, status }), Date.parse(now));
    assert.equal(decision.start, start === undefined ? undefined : Date.parse(start));
    assert.deepEqual(
      decision.events.map((event) => event.join(" ")),
      events,
    );
    assert.equal(decision.schedule !== undefined, waits);
  });
}

test("is being deleted, and starts nothing", () => {
  const decision = planCronJob(aCronJob({ deletedAt: "2022-01-01T00:00:30Z" }), Date.parse("2022-01-01T00:01:30Z"));
  assert.deepEqual(decision, { events: [] });
});

for (const { schedule, status = {}, now, want } of [
  { schedule: "* * * * *", now: "2022-01-01T00:00:30Z", want: 30_100 },
  { schedule: "@every 1h", now: "2022-01-01T00:20:00Z", want: 40 * 60_000 + 100 },
  { schedule: "@every 1h", status: { lastScheduleTime: "2022-01-01T01:00:00Z" }, now: "2022-01-01T01:20:00Z", want: 2_400_100 },
  // Irregular intervals: the extrapolated time must not be in the past.
  {
    schedule: "0 9,17 * * *",
    status: { lastScheduleTime: "2022-01-01T09:00:00Z" },
    now: "2022-01-02T18:00:00Z",
    want: 15 * 3_600_000 + 100,
  },
  { schedule: "10,20,21 * * * *", now: "2022-01-01T00:21:00Z", want: 49 * 60_000 + 100 },
  { schedule: "0 0 31 2 *", now: "2022-01-01T00:20:00Z", want: undefined },
]) {
  test(`with ${schedule} it waits ${want} ms at ${now}`, () => {
    const cronJob = aCronJob({ spec: { schedule }, status });
    assert.equal(untilNextMs(cronJob, parseSchedule(schedule), Date.parse(now)), want);
  });
}

test("a schedule of every second is valid after several missed times", () => {
  const cronJob = aCronJob({ spec: { schedule: "@every 1s" } });
  const now = Date.parse("2022-01-01T00:00:05Z");
  const { start, events } = planCronJob(cronJob, now);
  assert.deepEqual([start, events], [now, []]);
});
