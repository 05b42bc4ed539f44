import assert from "node:assert/strict";
import { test } from "node:test";
import { scheduleError } from "./schedule.ts";

for (const schedule of [
  "* * * * *",
  "*/5 1-3,7 ? jan-MAR sun",
  "0/15 * * * 0-6",
  "@daily",
  "@every 1h30m",
  "TZ=UTC 0 0 * * *",
  "CRON_TZ=Europe/Berlin 0 0 1 1 *",
]) {
  test(`${schedule} is a schedule`, () => assert.equal(scheduleError(schedule), undefined));
}

for (const { schedule, want } of [
  { schedule: "* * * *", want: "expected exactly 5 fields, found 4: [* * * *]" },
  { schedule: "* * * * * *", want: "expected exactly 5 fields, found 6: [* * * * * *]" },
  { schedule: "60 * * * *", want: "end of range (60) above maximum (59): 60" },
  { schedule: "* * 0 * *", want: "beginning of range (0) below minimum (1): 0" },
  { schedule: "5-1 * * * *", want: "beginning of range (5) beyond end of range (1): 5-1" },
  { schedule: "*/0 * * * *", want: "step of range should be a positive number: */0" },
  { schedule: "* * * * 7", want: "end of range (7) above maximum (6): 7" },
  { schedule: "a * * * *", want: 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax' },
  { schedule: "@often", want: "unrecognized descriptor: @often" },
]) {
  test(`${schedule} is none: ${want}`, () => assert.equal(scheduleError(schedule), want));
}
