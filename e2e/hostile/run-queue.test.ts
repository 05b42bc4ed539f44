import assert from "node:assert/strict";
import { test } from "node:test";
import { newWaitCounter, type Waits } from "./run-queue.ts";

interface Sample {
  readonly at: number;
  readonly path: readonly number[];
  readonly shared?: Readonly<Record<string, number>>;
}

for (const { name, samples, want } of [
  {
    name: "waits one after another add up",
    samples: [
      { at: 10, path: [4, 0] },
      { at: 20, path: [4, 5] },
    ],
    want: 9,
  },
  { name: "threads that wait at the same time count once", samples: [{ at: 10, path: [10, 10], shared: { a: 10 } }], want: 10 },
  {
    name: "of threads that share work the longest wait counts",
    samples: [{ at: 10, path: [0, 0], shared: { a: 3, b: 2 } }],
    want: 3,
  },
  {
    name: "a thread that ends takes nothing away",
    samples: [
      { at: 10, path: [0, 0], shared: { a: 5 } },
      { at: 20, path: [0, 0], shared: {} },
      { at: 30, path: [1, 0], shared: { b: 2 } },
    ],
    want: 8,
  },
  { name: "no wait is no wait, however long it takes", samples: [{ at: 1000, path: [0, 0] }], want: 0 },
] as readonly { name: string; samples: readonly Sample[]; want: number }[]) {
  test(name, () => {
    const rest = [{ at: 0, path: [0, 0] }, ...samples];
    let now = rest[0] as Sample;
    const read = (): Waits => ({ path: now.path, shared: new Map(Object.entries(now.shared ?? {})) });
    const waitedMs = newWaitCounter(read, () => now.at);
    let total = 0;
    for (const sample of samples) {
      now = sample;
      total = waitedMs();
    }
    assert.equal(total, want);
  });
}
