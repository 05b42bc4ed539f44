import assert from "node:assert/strict";
import { test } from "node:test";
import { age, clockTime, cores, counted, percent, size } from "./text.ts";

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
for (const [seconds, want] of [
  [-5, "0s"],
  [0, "0s"],
  [119, "119s"],
  [120, "2m"],
  [2 * hour - 1, "119m"],
  [2 * hour, "2h"],
  [2 * day - 1, "47h"],
  [2 * day, "2d"],
  [400 * day, "400d"],
] as const) {
  test(`${seconds} seconds are ${want}`, () => assert.equal(age(1_000, 1_000 + seconds * 1_000 + 999), want));
}

test("an unknown time has no age", () => assert.equal(age(0, 1_000), "–"));

test("cores are thousandths below one, and have a digit below ten", () => {
  assert.deepEqual([0, 250.4, 999, 1_000, 1_500, 9_949, 10_000, 12_499].map(cores), [
    ...["0m", "250m", "999m", "1", "1.5", "9.9", "10", "12"],
  ]);
});

test("sizes are in the largest unit that fits", () => {
  assert.deepEqual([0, 1_023, 1_024, 1_536, 10 * 1_024, 512 * 2 ** 20, 1.5 * 2 ** 30, 2 ** 40, 2 ** 50, 2 ** 60].map(size), [
    ...["0 B", "1023 B", "1 KiB", "1.5 KiB", "10 KiB", "512 MiB", "1.5 GiB", "1 TiB", "1 PiB", "1024 PiB"],
  ]);
});

test("a share is at most all, and that of nothing is nothing", () => {
  assert.deepEqual([percent(1, 3), percent(1, 0), percent(5, 4), percent(0, 4)], [33, 0, 100, 0]);
});

test("one thing has no plural", () => {
  assert.deepEqual([counted(0, "pod"), counted(1, "pod"), counted(1_234, "pod")], ["0 pods", "1 pod", "1,234 pods"]);
});

test("a time of day has two digits each, from 00 to 23 hours", () => {
  assert.deepEqual(
    [new Date(2026, 0, 1, 0, 5, 9), new Date(2026, 0, 1, 23, 59, 59)].map((date) => clockTime(date.getTime())),
    ["00:05:09", "23:59:59"],
  );
});
