import assert from "node:assert/strict";
import { test } from "node:test";
import { AbuseLimits } from "./abuse-limits.ts";

test("frames may be late for the last 250 streams that the server has reset, and for no others", () => {
  const limits = new AbuseLimits();
  for (let stream = 1; stream <= 501; stream += 2) limits.weReset(stream);
  assert.throws(() => limits.checkLate(1), /frame on a closed stream/);
  for (let stream = 3; stream <= 501; stream += 2) limits.checkLate(stream);
  assert.throws(() => limits.checkLate(503), /frame on a closed stream/);
});
