import assert from "node:assert/strict";
import { test } from "node:test";
import { statusReport } from "./status.ts";
import type { ProcessState } from "./supervisor-decisions.ts";

const now = 1_600_000_000_000;
const second = 1_000;
const state = (changes: Partial<ProcessState> = {}): ProcessState => ({
  phase: "running",
  since: now - 5 * second,
  restarts: 0,
  quickEnds: 0,
  ...changes,
});
const recordedWith = (states: Readonly<Record<string, ProcessState>>) => ({
  supervisor: { pid: 9, startTime: "90", since: now - 7 * second, version: "v1.23.17" },
  processes: Object.fromEntries(
    Object.entries(states).map(([name, one]) => [
      name,
      { spec: { name, command: name, args: [], ...(name === "etcd" && { version: "3.4.1" }) }, state: one },
    ]),
  ),
});
const ready = { name: "kube-apiserver", pid: 2, notReady: undefined };
const facts = {
  now,
  supervisor: 9,
  recorded: recordedWith({ etcd: state(), "kube-apiserver": state() }),
  processes: [{ name: "etcd", pid: 1, notReady: undefined }, ready],
  expired: undefined,
};

test("status lists each process with its version, restarts and last end, and says what is not ready", () => {
  const recorded = recordedWith({
    etcd: state({ restarts: 3, quickEnds: 1, lastEnd: { at: now - 200 * second, reason: "killed by SIGKILL" } }),
    "kube-apiserver": state({ phase: "stopping" }),
    kubelet: state({ phase: "waiting", quickEnds: 2, restarts: 4 }),
  });
  const { text, exitCode } = statusReport({
    ...facts,
    recorded,
    processes: [
      { name: "etcd", pid: 1, notReady: undefined },
      { name: "kube-apiserver", pid: 2, notReady: "/readyz answers 500: etcd failed" },
      { name: "kubelet", pid: undefined, notReady: "it does not run" },
      { name: "kube-scheduler", pid: undefined, notReady: "it does not run" },
    ],
  });
  assert.deepEqual(text.split("\n"), [
    "NAME             STATE             READY   AGE   RESTARTS   VERSION    LAST END",
    "supervisor       running, pid 9    yes     7s               v1.23.17",
    "etcd             running, pid 1    yes     5s    3          3.4.1      3m ago: killed by SIGKILL",
    "kube-apiserver   stopping, pid 2   no      5s    0",
    "kubelet          restarting        no      5s    4",
    "kube-scheduler   not running       no",
    "kube-apiserver is not ready: /readyz answers 500: etcd failed",
  ]);
  assert.equal(exitCode, 1);
});

const noSupervisor = "the supervisor does not run: what ends is not started again; ./cox up starts it";
const isReady = "the API server is ready";
const ended = (name: string) => ({ name, pid: undefined, notReady: "it does not run" });
for (const { name, changes, lines, code } of [
  { name: "everything is ready", changes: {}, lines: [isReady], code: 0 },
  {
    name: "a process is not ready",
    changes: { processes: [{ name: "etcd", pid: 1, notReady: "/health: no" }, ready] },
    lines: ["etcd is not ready: /health: no", isReady],
    code: 1,
  },
  { name: "a process has ended", changes: { processes: [ended("etcd"), ready] }, lines: [isReady], code: 1 },
  { name: "only the supervisor has ended", changes: { supervisor: undefined }, lines: [noSupervisor, isReady], code: 1 },
  {
    name: "the supervisor has ended, and one process of two",
    changes: { supervisor: undefined, processes: [facts.processes[0]!, ended("kube-apiserver")] },
    lines: [noSupervisor],
    code: 1,
  },
  {
    name: "nothing runs",
    changes: { supervisor: undefined, processes: [ended("etcd"), ended("kube-apiserver")] },
    lines: [],
    code: 1,
  },
  { name: "a certificate has expired", changes: { expired: "a\nrenew them" }, lines: ["a", "renew them", isReady], code: 0 },
]) {
  test(`the exit code of status is ${code} when ${name}`, () => {
    const { text, exitCode } = statusReport({ ...facts, ...changes });
    const [, supervisor = "", ...rest] = text.split("\n");
    assert.deepEqual(rest.slice(2), lines);
    assert.equal(exitCode, code);
    const gone = /^supervisor +not running +no +v1\.23\.17$/;
    assert.equal(gone.test(supervisor), facts.supervisor !== ("supervisor" in changes ? changes.supervisor : 9), supervisor);
  });
}

for (const [seconds, age] of [
  [-3, "0s"],
  [0.9, "0s"],
  [119.9, "119s"],
  [120, "2m"],
  [7_199, "119m"],
  [7_200, "2h"],
  [172_799, "47h"],
  [172_800, "2d"],
] as const)
  test(`an age of ${seconds} s is shown as ${age}`, () => {
    const recorded = recordedWith({ etcd: state({ since: now - seconds * second }) });
    const { text } = statusReport({ ...facts, recorded, processes: [ready, facts.processes[0]!] });
    assert.equal(text.split("\n")[3]?.split(/ {2,}/)[3], age);
  });

test("without a state file only what runs is shown", () => {
  const { text } = statusReport({ ...facts, recorded: undefined });
  assert.deepEqual(text.split("\n").slice(1, 3), [
    "supervisor       running, pid 9   yes",
    "etcd             running, pid 1   yes",
  ]);
});
