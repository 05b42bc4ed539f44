import assert from "node:assert/strict";
import { test } from "node:test";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { retryOnReturn } from "./server-away.ts";

const away = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

test("a key is repeated at the next attempt while the API server is away; an answer of the server is the queue's matter", async () => {
  const clock = newFakeClock();
  const reconnection = new Reconnection({ periodMs: () => 500, clock, random: () => 1 });
  const failing = (err: Error) => retryOnReturn(reconnection, () => Promise.reject(err));
  const { signal } = new AbortController();
  const repeated = failing(away)("a", signal);
  await clock.advance(500);
  assert.deepEqual(await repeated, { requeueAfterMs: 0 });
  const answered = serviceUnavailable("overloaded");
  await assert.rejects(failing(answered)("a", signal), answered);
  assert.equal(clock.waiting, 0);
});

test("the end of the part waits for no API server", async () => {
  const clock = newFakeClock();
  const ending = new AbortController();
  const reconnection = new Reconnection({ periodMs: () => 500, clock, random: () => 1 });
  const reconcile = retryOnReturn(reconnection, () => {
    ending.abort(new Error("the part ends"));
    return Promise.reject(away);
  });
  await assert.rejects(reconcile("a", ending.signal), away);
  assert.equal(clock.waiting, 0);
});
