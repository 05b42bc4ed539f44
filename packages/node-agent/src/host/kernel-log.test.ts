import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newOomParser, type SystemOom, watchSystemOoms } from "./kernel-log.ts";

const first = "4,100,5000,-;stress invoked oom-killer: gfp_mask=0x6200ca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0";
const killed = (name: string, pid: number): string =>
  `3,105,5002,-;Out of memory: Killed process ${pid} (${name}) total-vm:2000kB, anon-rss:1000kB`;
const ofMachine =
  "6,104,5001,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,task=stress,pid=7,uid=0";
const ofCgroup =
  "6,104,5001,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/kubepods/x,task_memcg=/kubepods/x,task=stress,pid=7,uid=0";

for (const { name, records, want } of [
  { name: "of the machine", records: [first, ofMachine, killed("stress", 7)], want: [{ process: "stress", pid: 7 }] },
  { name: "whose process has a bracket in its name", records: [first, killed("a (b", 8)], want: [{ process: "a (b", pid: 8 }] },
  {
    name: "with brackets behind the name",
    records: [first, "3,105,5002,-;Killed process 7 (stress) total-vm:2000kB (anon-rss:1000kB)"],
    want: [{ process: "stress", pid: 7 }],
  },
  { name: "of a cgroup", records: [first, ofCgroup, killed("stress", 7)], want: [] },
  {
    name: "of a cgroup, on an older kernel",
    records: [first, "6,1,1,-;Task in /a/b killed as a result of limit of /a", killed("x", 9)],
    want: [],
  },
  {
    name: "of a cgroup and then of the machine",
    records: [first, ofCgroup, killed("a", 1), first, killed("b", 2)],
    want: [{ process: "b", pid: 2 }],
  },
  { name: "whose beginning was overwritten", records: [killed("stress", 7)], want: [] },
  {
    name: "twice",
    records: [first, killed("a", 1), killed("not a report", 3), first, killed("b", 2)],
    want: [
      { process: "a", pid: 1 },
      { process: "b", pid: 2 },
    ],
  },
] as { name: string; records: string[]; want: SystemOom[] }[]) {
  test(`the kernel log names the killed process of a report ${name}`, () => {
    const seen: SystemOom[] = [];
    const parse = newOomParser((oom) => seen.push(oom));
    for (const record of records) parse(`${record}\n SUBSYSTEM=x\n`);
    assert.deepEqual(seen, want);
  });
}

test("a process that the kernel killed is an event of the node; lines written later are read by the next poll", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "cox-kmsg-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "kmsg");
  execFileSync("touch", [path]);
  appendFileSync(path, `${first}\n${killed("before", 1)}\n`);
  const clock = newFakeClock();
  const seen: string[] = [];
  const reportNodeEvent = (...event: string[]) => void seen.push(event.join(" "));
  const stop = new AbortController();
  const running = watchSystemOoms({ path, clock, log: discardLogger, reportNodeEvent }, stop.signal);
  await waitFor(() => seen.length === 1);
  appendFileSync(path, `${first}\n${killed("after", 2)}\n`);
  await settle();
  await clock.advance(5_000);
  await waitFor(() => seen.length === 2);
  assert.equal((await openFilesBelow(dir)).length, 1);
  stop.abort();
  await running;
  const event = "Warning SystemOOM System OOM encountered, victim process:";
  assert.deepEqual([seen, await openFilesBelow(dir)], [[`${event} before, pid: 1`, `${event} after, pid: 2`], []]);
});

test("a read of overwritten records is continued with those that follow", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "cox-kmsg-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "kmsg");
  appendFileSync(path, `${first}\n${killed("stress", 7)}\n`);
  const any = await open(path);
  const { read } = any;
  const lost = Object.assign(new Error("EPIPE: broken pipe, read"), { code: "EPIPE" });
  const mocked = t.mock.method(Object.getPrototypeOf(any) as typeof any, "read", read);
  mocked.mock.mockImplementationOnce(() => Promise.reject(lost));
  await any.close();
  const clock = newFakeClock();
  const stop = new AbortController();
  const seen: string[] = [];
  const reportNodeEvent = (_type: string, _reason: string, message: string) => void seen.push(message);
  const running = watchSystemOoms({ path, clock, log: discardLogger, reportNodeEvent }, stop.signal);
  await waitFor(() => clock.waiting === 1);
  assert.deepEqual(seen, ["System OOM encountered, victim process: stress, pid: 7"]);
  stop.abort();
  await running;
});

test("the end of what the kernel has written is no failure", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "cox-kmsg-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "kmsg");
  appendFileSync(path, "");
  const any = await open(path);
  const again = Object.assign(new Error("EAGAIN: resource temporarily unavailable, read"), { code: "EAGAIN" });
  t.mock.method(Object.getPrototypeOf(any) as typeof any, "read", () => Promise.reject(again));
  await any.close();
  const clock = newFakeClock();
  const stop = new AbortController();
  const log = { ...discardLogger, error: () => assert.fail("nothing failed") };
  const running = watchSystemOoms({ path, clock, log, reportNodeEvent: () => assert.fail() }, stop.signal);
  await waitFor(() => clock.waiting === 1);
  stop.abort();
  await running;
});

test("a kernel log that cannot be opened is no error", async () => {
  const log = { ...discardLogger };
  await watchSystemOoms(
    { path: "/no/such/log", clock: newFakeClock(), log, reportNodeEvent: () => assert.fail() },
    new AbortController().signal,
  );
});

test("a failed read is repeated by the next poll", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "cox-kmsg-")); // can be opened, but not read
  t.after(() => rmSync(dir, { recursive: true }));
  const clock = newFakeClock();
  const stop = new AbortController();
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const running = watchSystemOoms({ path: dir, clock, log, reportNodeEvent: () => assert.fail() }, stop.signal);
  await waitFor(() => errors.length === 1);
  await settle();
  await clock.advance(5_000);
  await waitFor(() => errors.length === 2);
  stop.abort();
  await running;
});
