import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "../testing/cpu-time.ts";
import { parseSchedule } from "./parse.ts";

for (const schedule of [
  "* * * * *",
  "*/5 1-3,7 ? jan-MAR sun",
  "0/15 * * * 0-6",
  "1,,2 * * * *",
  "  0  0 *\t* * ",
  "*-9 * * * *",
  "@daily",
  "@every 1h30m",
  "@every .5s",
  "TZ=UTC 0 0 * * *",
  "TZ= @daily",
  "TZ=Local @daily",
  "CRON_TZ=Europe/Berlin 0 0 1 1 *",
  "TZ=US/Eastern 0 0 1 1 *",
]) {
  test(`${JSON.stringify(schedule)} is a schedule`, () => assert.doesNotThrow(() => parseSchedule(schedule)));
}

for (const { schedule, want } of [
  { schedule: "", want: "empty spec string" },
  { schedule: "* * * *", want: "expected exactly 5 fields, found 4: [* * * *]" },
  { schedule: "* * * * * *", want: "expected exactly 5 fields, found 6: [* * * * * *]" },
  { schedule: "60 * * * *", want: "end of range (60) above maximum (59): 60" },
  { schedule: "* * 0 * *", want: "beginning of range (0) below minimum (1): 0" },
  { schedule: "5-1 * * * *", want: "beginning of range (5) beyond end of range (1): 5-1" },
  { schedule: "*/0 * * * *", want: "step of range should be a positive number: */0" },
  { schedule: "1-2-3 * * * *", want: "too many hyphens: 1-2-3" },
  { schedule: "*/5/5 * * * *", want: "too many slashes: */5/5" },
  { schedule: "* * * * 7", want: "end of range (7) above maximum (6): 7" },
  { schedule: "a * * * *", want: 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax' },
  { schedule: "-5 * * * *", want: 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax' },
  { schedule: "*/-5 * * * *", want: "negative number (-5) not allowed: -5" },
  {
    schedule: "99999999999999999999 * * * *",
    want: 'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range',
  },
  { schedule: "@often", want: "unrecognized descriptor: @often" },
  { schedule: "@every long", want: 'failed to parse duration @every long: time: invalid duration "long"' },
  { schedule: "@every 5", want: 'failed to parse duration @every 5: time: missing unit in duration "5"' },
  { schedule: "@every 1h5d", want: 'failed to parse duration @every 1h5d: time: unknown unit "d" in duration "1h5d"' },
  { schedule: "TZ=Mars * * * * *", want: "provided bad location Mars: unknown time zone Mars" },
  { schedule: "TZ=europe/berlin * * * * *", want: "provided bad location europe/berlin: unknown time zone europe/berlin" },
  { schedule: "TZ=+01:00 * * * * *", want: "provided bad location +01:00: unknown time zone +01:00" },
  { schedule: "TZ=UTC", want: "expected exactly 5 fields, found 0: []" },
]) {
  test(`${JSON.stringify(schedule)} is refused: ${want}`, () => assert.throws(() => parseSchedule(schedule), { message: want }));
}

test("refuses long malformed schedules quickly", () => {
  for (const part of ["1,", "*/", "1-", " ", "\t1", "@every 1h", "0", "TZ=a"]) {
    const schedule = part.repeat(100_000);
    const tookMs = cpuMsOf(() => assert.throws(() => parseSchedule(schedule)));
    assert.ok(tookMs < 2000, `${tookMs} ms`);
  }
});
