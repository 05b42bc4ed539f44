import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Storage } from "../../storage/storage.ts";
import { Questions } from "./questions.ts";

test("a question that ended while its watch was interrupted is told to no later listener, and not answered", async (t) => {
  const clock = newFakeClock();
  const refs = [{ group: "", resource: "pods", kind: "Pod", namespace: "default", name: "web", uid: "" }];
  const added = (key: string) => ({
    type: "ADDED",
    entry: { key, object: () => ({ metadata: { name: key }, requested: [{ recipient: "kube-scheduler", refs }] }) },
  });
  const interrupted = Promise.withResolvers<void>();
  let watches = 0;
  const questions = {
    async *watch({ signal }: { signal: AbortSignal }) {
      watches++;
      yield added(watches === 1 ? "first" : "second");
      if (watches === 1) await interrupted.promise;
      else await once(signal, "abort");
    },
  } as unknown as Storage;
  const decisions = new DecisionLog({ component: "kube-apiserver", clock });
  const asked = new Questions({ questions, answers: questions, decisions, clock, log: discardLogger });
  const stopping = new AbortController();
  const running = asked.run(stopping.signal);
  t.after(async () => {
    stopping.abort();
    await running;
  });
  const heard = (): string[] => {
    const ids: string[] = [];
    asked.listen("kube-scheduler", (id) => ids.push(id))();
    return ids;
  };
  await settle(10);
  assert.deepEqual([watches, heard()], [1, ["first"]]);
  interrupted.resolve();
  await settle(10);
  await clock.advance(999);
  assert.equal(watches, 1);
  await clock.advance(1);
  await settle(10);
  assert.deepEqual([watches, heard()], [2, ["second"]]);
  assert.deepEqual(
    [asked.requestedRefs("first", "kube-scheduler"), asked.requestedRefs("second", "kube-scheduler")],
    [undefined, refs],
  );
});
