import assert from "node:assert/strict";
import { test } from "node:test";
import { withReportedFailures } from "./reported-failures.ts";

test("failures are told from the one on that is too many in a row", async () => {
  const told: string[] = [];
  const outcomes = ["a", "", "b", "c", "d"];
  const work = async (): Promise<void> => {
    const outcome = outcomes.shift();
    if (outcome) throw new Error(outcome);
  };
  const tell = { node: (...event: string[]) => void told.push(event.join(" ")) };
  const run = withReportedFailures(work, { tell, reason: "ImageGCFailed", tolerated: 1 });
  await assert.rejects(run(), /a/);
  await run();
  for (const failure of [/b/, /c/, /d/]) await assert.rejects(run(), failure);
  assert.deepEqual(told, ["Warning ImageGCFailed c", "Warning ImageGCFailed d"]);
});
