import assert from "node:assert/strict";
import { test } from "node:test";
import { validityOf } from "./validity.ts";

const now = Date.parse("2024-01-01T12:00:00Z");
const [hour, day] = [3600, 86_400];
const at = (seconds: number): string => new Date(now + seconds * 1000).toISOString();

for (const { name, requested, longest = 365 * day, signer = 3650 * day, want } of [
  { name: "a year by default, five minutes of it in the past", requested: undefined, want: 365 * day - 300 },
  {
    name: "a certificate is valid as long as requested, counted from its backdated start",
    requested: 9 * hour,
    want: 9 * hour - 300,
  },
  { name: "eight hours are not short", requested: 8 * hour, want: 8 * hour - 300 },
  { name: "a short life counts from now", requested: hour, want: hour },
  { name: "not less than ten minutes", requested: 60, want: 600 },
  { name: "not more than the longest", requested: 400 * day, want: 365 * day - 300 },
  { name: "a longest below ten minutes", requested: 60, longest: 30, want: 30 },
  { name: "not longer than the signer", requested: undefined, signer: day, want: day },
]) {
  test(name, () => {
    const signerNotAfter = new Date(now + signer * 1000);
    const validity = validityOf({ requestedSeconds: requested, longestMs: longest * 1000, signerNotAfter, now });
    assert.deepEqual([validity.notBefore.toISOString(), validity.notAfter.toISOString()], [at(-300), at(want)]);
  });
}

test("an expired signer does not sign", () => {
  const sign = (seconds: number) =>
    validityOf({ requestedSeconds: undefined, longestMs: 1, signerNotAfter: new Date(now + seconds * 1000), now });
  assert.throws(() => sign(-300), /the signer has expired/);
  assert.throws(() => sign(0), /refusing to sign a certificate that expired in the past/);
  assert.throws(() => sign(-1), /refusing to sign a certificate that expired in the past/);
});
