import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenBucket } from "./token-bucket.ts";

test("a bucket is full at first, is refilled by the time that has passed since, and never above its capacity", (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const bucket = new TokenBucket({ most: 3, perSecond: 2 });
  const spent = (): number => {
    for (let count = 0; count < 100; count++) if (!bucket.spend()) return count;
    return 100;
  };
  const after = (ms: number): number => {
    now += ms;
    return spent();
  };
  assert.deepEqual([spent(), after(0), after(499), after(1), after(0)], [3, 0, 0, 1, 0]);
  assert.deepEqual([after(1_000), after(250), after(250), after(60_000), after(500)], [2, 0, 1, 3, 1]);
});
