import assert from "node:assert/strict";
import { test } from "node:test";
import { samplesWithin } from "./sampler.ts";

const frame = (functionName: string, url = "") => ({ functionName, url });

test("counts samples in the files and their callees, as a share of the busy samples", () => {
  const nodes = [
    { id: 1, callFrame: frame("(root)"), children: [2, 3, 6] },
    { id: 2, callFrame: frame("(idle)") },
    { id: 3, callFrame: frame("work", "file:///a/worker.js"), children: [4] },
    { id: 4, callFrame: frame("record", "file:///a/decisions/decision-log.js"), children: [5] },
    { id: 5, callFrame: frame("now", "file:///a/clock.js") },
    { id: 6, callFrame: frame("(garbage collector)") },
  ];
  assert.deepEqual(samplesWithin({ nodes, samples: [2, 2, 3, 3, 4, 5, 6] }, /\/decisions\//), { busy: 5, within: 2 });
});
