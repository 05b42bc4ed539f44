import assert from "node:assert/strict";
import { test } from "node:test";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startScheduler } from "./testing/running-scheduler.ts";

const isLong = process.env["COX_TEST_LONG"] === "1";
const [podCount, nodeCount, rounds] = isLong ? [1000, 100, 12] : [100, 10, 1];
/** Limit as a share of the scheduler's CPU time: 2 %, plus the noise of the medians over that number of rounds. */
const mostShare = 0.02 + 0.03;

/** CPU time in ms of this thread, until all pods have a node or a refusal. */
async function cpuMs(recording: boolean): Promise<number> {
  const ends: (() => void)[] = [];
  const { client, names, step, decisions } = await startScheduler({ after: (end) => void ends.push(end) }, { recording });
  for (let i = 0; i < nodeCount; i++) names.node(`n${i}`, { cpu: "9500m" });
  await step();
  globalThis.gc?.();
  const before = process.threadCpuUsage();
  // Some of the pods do not fit any more.
  for (let i = 0; i < podCount; i++) names.pod(`p${i}`, { cpu: "1" });
  while (client.objects(pods).some(({ spec, status }) => !(spec as { nodeName?: string }).nodeName && !hasRefusal(status))) {
    await step();
  }
  const { user, system } = process.threadCpuUsage(before);
  assert.equal(decisions.entries, recording ? podCount : 0);
  for (const end of ends) end();
  return (user + system) / 1000;
}

function hasRefusal(status: unknown): boolean {
  return ((status as { conditions?: { type: string }[] } | undefined)?.conditions ?? []).length > 0;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

test("recording decisions takes at most 2 % of the CPU time of scheduling", async (t) => {
  await cpuMs(true);
  const times: Record<"without" | "with", number[]> = { without: [], with: [] };
  for (let round = 0; round < rounds; round++) {
    // The order alternates, because garbage of one run is collected during the other.
    for (const recording of round % 2 === 0 ? [false, true] : [true, false]) {
      times[recording ? "with" : "without"].push(await cpuMs(recording));
    }
  }
  const [without, recorded] = [median(times.without), median(times.with)];
  const share = recorded / without - 1;
  t.diagnostic(`${without.toFixed(0)} ms without, ${recorded.toFixed(0)} ms with: ${(share * 100).toFixed(1)} %`);
  if (isLong) assert.ok(share <= mostShare, `${(share * 100).toFixed(1)} %`);
});
