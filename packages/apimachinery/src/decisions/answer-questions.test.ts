import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "../objects/errors/status-error.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { Turns } from "../process/event-loop/turns.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle, waitFor } from "../testing/wait-for.ts";
import { answerQuestions, withinLimit } from "./answer-questions.ts";
import type { Decision, ObjectRef } from "./decision.ts";
import { DecisionLog } from "./decision-log.ts";
import { questionsRef } from "./question.ts";

const ref: ObjectRef = { group: "", resource: "pods", kind: "Pod", namespace: "web", name: "a", uid: "" };

function aDaemon(t: { after(fn: () => Promise<void>): void }) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const decisions = new DecisionLog({ component: "kube-scheduler", clock });
  const stopping = new AbortController();
  const { signal } = stopping;
  const options = { client, recipient: "kube-scheduler", decisions, clock, turns: new Turns(), log: discardLogger, signal };
  const run = (): void => {
    const running = answerQuestions(options);
    t.after(async () => {
      stopping.abort();
      await running;
    });
  };
  return { clock, client, decisions, run };
}

test("watches the questions addressed to it, and answers each from the log", async (t) => {
  const { client, decisions, run } = aDaemon(t);
  decisions.record(ref, "scheduler", { verdict: "waiting", reason: "R", description: "notified" });
  const answered: unknown[] = [];
  client.react("create", "questions", ({ name, subresource, sent }) => {
    answered.push([name, subresource, sent]);
    return {};
  });
  run();
  await settle();
  client.put(questionsRef, { metadata: { name: "kube-scheduler" }, refs: [ref, { ...ref, name: "b" }] } as object as never);
  await waitFor(() => answered.length === 1);
  assert.deepEqual(answered, [
    [
      "kube-scheduler",
      "answers",
      {
        ...{ apiVersion: "diagnostics.coxswain.dev/v1", kind: "Answer", metadata: { name: "kube-scheduler" } },
        decisions: decisions.of(ref),
      },
    ],
  ]);
});

test("retries every few minutes at a server without the questions API, and with backoff at an unreachable one", async (t) => {
  for (const { error, firstMs, withinAnHour } of [
    { error: forbidden(questionsRef, "", "no"), firstMs: 100_000, withinAnHour: [8, 25] },
    { error: new Error("connect ECONNREFUSED"), firstMs: 400, withinAnHour: [40, 130] },
  ] as const) {
    const { clock, client, run } = aDaemon(t);
    let watches = 0;
    client.react("watch", "questions", () => {
      watches++;
      throw error;
    });
    run();
    await settle();
    await clock.advance(firstMs);
    await settle();
    assert.equal(watches, 1);
    for (let s = 0; s < 3600; s += 10) {
      await clock.advance(10_000);
      await settle(2);
    }
    assert.ok(watches >= withinAnHour[0] && watches <= withinAnHour[1], `${watches}`);
  }
});

test("an answer stays within its limit: details go first, then what does not fit", () => {
  const decision: Decision = {
    ...{ component: "c", source: "s", object: ref, verdict: "done", reason: "R", summary: "s", count: 1 },
    ...{ since: "2026-01-02T03:04:05Z", lastAt: "2026-01-02T03:04:05Z" },
  };
  const long = { ...decision, details: { long: "x".repeat(2000) } };
  assert.deepEqual(withinLimit([long, decision]), { kept: [long, decision], cut: false });
  assert.deepEqual(withinLimit([long, decision], 1000), { kept: [decision, decision], cut: true });
  assert.deepEqual(withinLimit([{ ...decision, summary: "x".repeat(2000) }, decision], 1000), { kept: [decision], cut: true });
  const bytes = Buffer.byteLength(JSON.stringify(decision)) + 1; // with a comma
  assert.deepEqual(withinLimit([decision], bytes), { kept: [decision], cut: false });
  assert.deepEqual(withinLimit([decision], bytes - 1), { kept: [], cut: true });
});

test("a question is answered once, though it changes; an answer that is not taken does not end the watch", async (t) => {
  const { client, decisions, run } = aDaemon(t);
  decisions.record(ref, "scheduler", { verdict: "waiting", reason: "R", description: "notified" });
  let answers = 0;
  client.react("create", "questions", () => {
    answers++;
    throw new Error("nobody waits any more");
  });
  run();
  await settle();
  const question = { metadata: { name: "kube-scheduler" }, refs: [ref] } as object as never;
  client.put(questionsRef, question);
  await waitFor(() => answers === 1, { timeoutMs: 5_000 });
  client.put(questionsRef, question);
  client.remove(questionsRef, "kube-scheduler");
  await settle();
  assert.equal(answers, 1);
  client.put(questionsRef, question);
  await waitFor(() => answers === 2, { timeoutMs: 5_000 });
  assert.equal(client.actions.filter(({ verb }) => verb === "watch").length, 1);
});

test("an answer says when it was cut, and has the objects whose texts were ready in time", async (t) => {
  const { client, clock, decisions } = aDaemon(t);
  const details = { long: "x".repeat(200_000) };
  for (const name of ["a", "b"])
    decisions.record({ ...ref, name }, "scheduler", { verdict: "waiting", reason: "R", description: { summary: name, details } });
  const answered: { decisions: Decision[]; cut?: boolean }[] = [];
  client.react("create", "questions", ({ sent }) => {
    answered.push(sent as { decisions: Decision[]; cut?: boolean });
    return {};
  });
  const stopping = new AbortController();
  let now = 0;
  const slow = { ...clock, monotonic: () => (now += 400) };
  const { signal } = stopping;
  const log = discardLogger;
  const running = answerQuestions({
    ...{ client, recipient: "kube-scheduler", decisions, clock: slow, turns: new Turns(), log, signal },
  });
  t.after(async () => {
    stopping.abort();
    await running;
  });
  await settle();
  const refs = ["a", "b", "c", "d"].map((name) => ({ ...ref, name }));
  for (const name of ["c", "d"])
    decisions.record({ ...ref, name }, "scheduler", { verdict: "done", reason: "R", description: name });
  client.put(questionsRef, { metadata: { name: "kube-scheduler" }, refs } as object as never);
  await waitFor(() => answered.length === 1);
  assert.deepEqual(
    answered[0]?.decisions.map(({ summary }) => summary),
    ["a", "b"],
  );
  assert.equal(answered[0]?.cut, true);
});

test("after an outage, a watch that the server ends is renewed as soon as before", async (t) => {
  const { clock, client, run } = aDaemon(t);
  let away = true;
  let watches = 0;
  client.react("watch", "questions", () => {
    watches++;
    if (away) throw new Error("connect ECONNREFUSED");
    return undefined;
  });
  run();
  await settle();
  for (let seconds = 0; seconds < 200; seconds++) await clock.advance(1_000);
  away = false;
  for (let seconds = 0; seconds < 100; seconds++) await clock.advance(1_000);
  const before = watches;
  client.endWatches();
  await settle();
  await clock.advance(1_500);
  await settle();
  assert.equal(watches, before + 1);
});
