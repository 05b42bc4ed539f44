import assert from "node:assert/strict";
import { test } from "node:test";
import { withReportedFailures } from "./reported-failures.ts";

test("failures are reported from the configured number in a row on", async () => {
  const reported: string[] = [];
  const outcomes = ["a", "", "b", "c", "d"];
  const work = async (): Promise<void> => {
    const outcome = outcomes.shift();
    if (outcome) throw new Error(outcome);
  };
  const notify = { node: (...event: string[]) => void reported.push(event.join(" ")) };
  const run = withReportedFailures(work, { notify, reason: "ImageGCFailed", tolerated: 1 });
  const always = withReportedFailures(() => Promise.reject(new Error("e")), { notify, reason: "ContainerGCFailed" });
  await assert.rejects(run(), /a/);
  await run();
  for (const failure of [/b/, /c/, /d/]) await assert.rejects(run(), failure);
  assert.deepEqual(reported.splice(0), ["Warning ImageGCFailed c", "Warning ImageGCFailed d"]);
  await assert.rejects(always(), /e/);
  assert.deepEqual(reported, ["Warning ContainerGCFailed e"], "none is tolerated");
});
