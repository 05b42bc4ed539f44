import assert from "node:assert/strict";
import { test } from "node:test";
import { currentSpan, parseTraceparent, traceparent } from "./trace.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";

for (const [text, want] of [
  [`00-${traceId}-${spanId}-01`, { traceId, spanId, sampled: true }],
  [`00-${traceId}-${spanId}-00`, { traceId, spanId, sampled: false }],
  [`00-${traceId}-${spanId}-03`, { traceId, spanId, sampled: true }],
  [`01-${traceId}-${spanId}-01-more`, { traceId, spanId, sampled: true }],
  [`00-${traceId}-${spanId}-01-more`, undefined],
  [`ff-${traceId}-${spanId}-01`, undefined],
  [`00-${"0".repeat(32)}-${spanId}-01`, undefined],
  [`00-${traceId}-${"0".repeat(16)}-01`, undefined],
  [`00-${traceId.toUpperCase()}-${spanId}-01`, undefined],
  [["00"], undefined],
  [undefined, undefined],
] as const) {
  test(`the header ${String(text).slice(0, 60)} is ${want === undefined ? "no trace" : "a trace"}`, () => {
    assert.deepEqual(parseTraceparent(text), want);
  });
}

test("the span of the running code is passed on, in the form that is read again", () => {
  assert.equal(traceparent(), undefined);
  for (const sampled of [true, false]) {
    currentSpan.run({ traceId, spanId, sampled }, () => {
      assert.deepEqual(parseTraceparent(traceparent()), { traceId, spanId, sampled });
    });
  }
});
