import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { JobError, newWorkerQueue } from "./worker-queue.ts";

/** What the thread does: answers with `text`, then sets `answered`; or never answers; or runs out of memory. */
interface Job {
  readonly text?: string;
  readonly answered?: Int32Array;
  readonly fails?: "never" | "memory";
}

const thread = `
  import { parentPort, threadId } from "node:worker_threads";
  parentPort.on("message", ({ text, answered, fails }) => {
    if (fails === "never") return;
    if (fails === "memory") for (const all = []; ; ) all.push(new Array(100_000).fill({}));
    parentPort.postMessage({ text, threadId });
    if (answered === undefined) return;
    Atomics.store(answered, 0, 1);
    Atomics.notify(answered, 0);
  });
`;

const aQueue = (options: { timeoutMs?: number; idleMs?: number } = {}) =>
  newWorkerQueue<Job, { text: string; threadId: number }>({
    file: new URL(`data:text/javascript,${encodeURIComponent(thread)}`),
    heapMb: 16,
    timeoutMs: 3_600_000,
    idleMs: 3_600_000,
    ...options,
  });

test("one thread answers jobs in order, each with its own result", async () => {
  const queue = aQueue();
  const jobs = ["a", "b", "c"].map((text) => queue.run({ text }));
  assert.equal(queue.size, 3);
  const answers = await Promise.all(jobs);
  assert.deepEqual([answers.map(({ text }) => text), queue.size], [["a", "b", "c"], 0]);
  assert.equal(new Set(answers.map(({ threadId }) => threadId)).size, 1);
  assert.equal((await queue.run({ text: "d" })).text, "d", "each was sent once");
});

test("a thread that runs out of memory fails its job only; the next one gets another thread", async () => {
  const queue = aQueue();
  const lost = queue.run({ fails: "memory" });
  const next = queue.run({ text: "next" });
  await assert.rejects(lost, (err) => err instanceof JobError && err.reason === "memory");
  assert.equal((await next).text, "next");
});

test("a job ends at its timeout, and those behind it are served", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const queue = aQueue({ timeoutMs: 1_000 });
  const lost = queue.run({ fails: "never" });
  const next = queue.run({ text: "next" });
  t.mock.timers.tick(1_000);
  await assert.rejects(lost, (err) => err instanceof JobError && err.reason === "timeout");
  assert.deepEqual([(await next).text, queue.size], ["next", 0]);
});

test("a late result of a timed-out job is not given to the next job", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const queue = aQueue({ timeoutMs: 1_000 });
  await queue.run({ text: "warm" });
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const late = queue.run({ text: "late", answered });
  const next = queue.run({ text: "next" });
  Atomics.wait(answered, 0, 0, 60_000); // the answer is on its way, and this thread has not received it
  t.mock.timers.tick(1_000);
  await assert.rejects(late, JobError);
  assert.equal((await next).text, "next");
});

test("an idle thread is stopped, and the next job starts another", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const queue = aQueue({ idleMs: 1_000 });
  const first = await queue.run({ text: "first" });
  t.mock.timers.tick(999);
  assert.equal((await queue.run({ text: "again" })).threadId, first.threadId);
  t.mock.timers.tick(1_000);
  assert.notEqual((await queue.run({ text: "later" })).threadId, first.threadId);
});

test("a process does not end before its jobs, also those after an idle time, and does not wait for its idle thread", async () => {
  const program = `
    import { newWorkerQueue } from ${JSON.stringify(new URL("./worker-queue.ts", import.meta.url).href)};
    const file = new URL(${JSON.stringify(`data:text/javascript,${encodeURIComponent(thread)}`)});
    const queue = newWorkerQueue({ file, heapMb: 16, timeoutMs: 3_600_000, idleMs: 3_600_000 });
    queue.run({ text: "first" }).then(() => setTimeout(() => {
      queue.run({ text: "second" }).then(({ text }) => console.log(text));
    }, 1));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  assert.equal(stdout, "second\n");
});
