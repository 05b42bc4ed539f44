import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, genericServerResponse, serverTimeout } from "../objects/errors/status-error.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { settle } from "../testing/wait-for.ts";
import { withReviewRetries } from "./retry.ts";

const failure = (code: number) => genericServerResponse(code, "POST", { group: "", resource: "" }, "", "", 0, true);
const reset = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

for (const { name, err, attempts } of [
  { name: "an internal error", err: failure(500), attempts: 5 },
  { name: "too many requests", err: failure(429), attempts: 5 },
  { name: "a server that asks to try again", err: serverTimeout({ group: "", resource: "pods" }, "get", 1), attempts: 5 },
  { name: "a broken connection, whatever is around it", err: new Error("cannot ask", { cause: reset }), attempts: 5 },
  { name: "a refusal", err: forbidden({ group: "", resource: "pods" }, "", "no"), attempts: 1 },
  { name: "any other error", err: new Error("no"), attempts: 1 },
]) {
  test(`${name} is tried ${attempts} times, with growing pauses`, async () => {
    const clock = newFakeClock();
    const at: number[] = [];
    const attempt = async () => {
      at.push(clock.monotonic());
      throw err;
    };
    const result = withReviewRetries(attempt, clock, new AbortController().signal).catch((thrown: unknown) => thrown);
    for (let i = 0; i < 100; i++) {
      await settle(2);
      await clock.advance(100);
    }
    assert.equal(await result, err);
    assert.equal(at.length, attempts);
    for (const [i, base] of [500, 750, 1125, 1687].slice(0, attempts - 1).entries()) {
      const pause = (at[i + 1] as number) - (at[i] as number);
      assert.ok(pause >= base - 100 && pause <= base * 1.2 + 100, `${pause} ms after attempt ${i + 1}`);
    }
  });
}

test("retries end with a response", async () => {
  const clock = newFakeClock();
  let requests = 0;
  const attempt = async () => {
    if (++requests < 3) throw failure(500);
    return "yes";
  };
  const result = withReviewRetries(attempt, clock, new AbortController().signal);
  for (let i = 0; i < 50; i++) {
    await settle(2);
    await clock.advance(100);
  }
  assert.equal(await result, "yes");
  assert.equal(requests, 3);
});

test("a failure after the abort is not retried, and is the failure that is thrown", async () => {
  const clock = newFakeClock();
  const err = failure(500);
  let requests = 0;
  const attempt = async () => {
    requests++;
    throw err;
  };
  const ended = AbortSignal.abort(new Error("stopped"));
  await assert.rejects(withReviewRetries(attempt, clock, ended), (thrown) => thrown === err);
  assert.deepEqual([requests, clock.waiting], [1, 0]);
});
