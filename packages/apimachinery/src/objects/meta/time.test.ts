import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, formatMicroTime, formatTime, humanDuration, parseDuration, parseTime } from "./time.ts";

test("writes seconds and microseconds", () => {
  assert.equal(formatTime(1_640_995_200_999), "2022-01-01T00:00:00Z");
  assert.equal(formatMicroTime(1_640_995_200_123.456), "2022-01-01T00:00:00.123456Z");
  assert.equal(formatMicroTime(1_640_995_200_123 + 2 ** -7), "2022-01-01T00:00:00.123007Z");
  assert.equal(formatMicroTime(1_640_995_200_000), "2022-01-01T00:00:00.000000Z");
});

for (const [text, want] of [
  ["2022-01-01T00:00:00Z", 1_640_995_200_000],
  ["2022-01-01T01:30:00+01:30", 1_640_995_200_000],
  ["2021-12-31T23:00:00.5-01:00", 1_640_995_200_500],
  ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
  ["2000-02-29T00:00:00Z", Date.UTC(2000, 1, 29)],
  ["2000-02-29T00:00:00.0Z", Date.UTC(2000, 1, 29)],
  ["2100-02-29T00:00:00.0Z", undefined],
  ["2022-01-01T00:00:00,5Z", 1_640_995_200_500],
  ["2022-01-01T00:00:00.123456789Z", 1_640_995_200_123.456],
  ["2022-01-02T00:00:00+24:00", 1_640_995_200_000],
  ["2022-01-02T00:00:00+25:00", undefined],
  ["2022-01-01T00:59:00+00:59", 1_640_995_200_000],
  ["2022-01-01T00:59:00+00:60", undefined],
  ["2022-01-01T00:00:60.0Z", undefined],
  ["2022-01-01T00:60:00.0Z", undefined],
  ["2022-01-01T24:00:00.0Z", undefined],
  ["2022-13-01T00:00:00.0Z", undefined],
  ["2022-00-01T00:00:00.0Z", undefined],
  ["2022-01-00T00:00:00.0Z", undefined],
  ["2022-12-31T23:59:59Z", 1_672_531_199_000],
  ["0001-01-01T00:00:00Z", -62_135_596_800_000],
  ["2023-02-29T00:00:00Z", undefined],
  ["2022-01-01", undefined],
  ["2022-13-01T00:00:00Z", undefined],
  ["2022-01-01T24:00:00Z", undefined],
  ["2022-01-01 00:00:00Z", undefined],
  ["2100-02-29T00:00:00Z", undefined],
  ["2022-04-31T00:00:00Z", undefined],
  ["2022-04-00T00:00:00Z", undefined],
  ["2022-00-01T00:00:00Z", undefined],
  ["2022-01-01T00:60:00Z", undefined],
  ["2022-01-01T00:00:60Z", undefined],
  ["2022-01-0/T00:00:00Z", undefined],
  ["2022-01-01T00:0::00Z", undefined],
  ["2022-01-01T00:00:00z", undefined],
  ["0099-12-31T23:59:59Z", -59_011_459_201_000],
  ["0100-01-01T00:00:00Z", -59_011_459_200_000],
  ["9999-12-31T23:59:59Z", 253_402_300_799_000],
  ["", undefined],
] as const) {
  test(`reads ${JSON.stringify(text)} as ${want}`, () => assert.equal(parseTime(text), want));
}

for (const [text, want] of [
  ["1m0s", 60_000],
  ["1h30m", 5_400_000],
  ["1.5s", 1500],
  ["-1m", -60_000],
  ["0", 0],
  ["+0", 0],
  ["-0", 0],
  ["2562047h47m16.8s", 9_223_372_036_800],
  ["2562047h47m16.9s", undefined],
  ["300ms", 300],
  ["1us", 0.001],
  [".5s", 500],
  ["1", undefined],
  ["", undefined],
  ["s", undefined],
  ["1d", undefined],
  ["1 s", undefined],
  ["9999999h", undefined],
] as const) {
  test(`reads the duration ${JSON.stringify(text)} as ${want}`, () => assert.equal(parseDuration(text), want));
}

for (const [ms, want] of [
  [0, "0s"],
  [60_000, "1m0s"],
  [3_600_000, "1h0m0s"],
  [1500, "1.5s"],
  [300, "300ms"],
  [0.001, "1µs"],
  [0.0015, "1.5µs"],
  [1, "1ms"],
  [1000, "1s"],
  [59_999, "59.999s"],
  [3_599_000, "59m59s"],
  [0.5, "500µs"],
  [0.0005, "500ns"],
  [-90_000, "-1m30s"],
  [86_400_000 * 365, "8760h0m0s"],
] as const) {
  test(`writes the duration ${want}`, () => {
    assert.equal(formatDuration(ms), want);
    assert.equal(parseDuration(want), ms);
  });
}

const s = 1000;
const m = 60 * s;
const h = 60 * m;
const d = 24 * h;
for (const [ms, want] of [
  [-2 * s, "<invalid>"],
  [-s, "0s"],
  [119 * s, "119s"],
  [2 * m, "2m"],
  [2 * m + 5 * s, "2m5s"],
  [10 * m + 5 * s, "10m"],
  [179 * m, "179m"],
  [3 * h, "3h"],
  [7 * h + 59 * m, "7h59m"],
  [8 * h + 5 * m, "8h"],
  [47 * h, "47h"],
  [48 * h + 30 * m, "2d"],
  [3 * d, "3d"],
  [2 * d + h, "2d1h"],
  [8 * d + h, "8d"],
  [729 * d, "729d"],
  [730 * d, "2y"],
  [3 * 365 * d + 5 * d, "3y5d"],
  [8 * 365 * d - h, "7y364d"],
  [8 * 365 * d + 5 * d, "8y"],
  [9 * 365 * d + 5 * d, "9y"],
] as const) {
  test(`shows the age ${want}`, () => assert.equal(humanDuration(ms), want));
}
