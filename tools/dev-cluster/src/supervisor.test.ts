import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { haveEnded, signalAll, startedBySupervisor } from "./cluster-processes.ts";
import { processState, runningPid, start, stop } from "./processes.ts";
import { readSettings } from "./read-settings.ts";
import type { Settings } from "./settings.ts";
import { reasonIn } from "./supervisor.ts";
import { endSupervisor, ensureSupervisor, sendRequest, supervisorPid } from "./supervisor-client.ts";
import { logFile, type ProcessSpec, recordAllStopped, socketFile } from "./supervisor-state.ts";

for (const { name, log, want } of [
  { name: "a stack below an error", log: "I0102 ok\nTypeError: no\n    at x\n\nNode.js v26.0.0\n", want: "TypeError: no" },
  {
    name: "a usage below an error",
    log: "Error: unknown flag: --bad\nUsage:\n  x\n\nGlobal flags:\n\n  -h\n",
    want: "Error: unknown flag: --bad",
  },
  {
    name: "klog's fatal line",
    log: 'E0102 "a"\nF0102 00:00:00.1 1 x.js:1] leaderelection lost\nI0102 bye\n',
    want: "F0102 00:00:00.1 1 x.js:1] leaderelection lost",
  },
  {
    name: "a logged error that was not fatal",
    log: 'E0102 00:00:00.1 1 x.js:1] "a"\nI0102 00:00:00.2 1 x.js:1] bye\n',
    want: "I0102 00:00:00.2 1 x.js:1] bye",
  },
  { name: "a value that is no error", log: "x.js:1\nthrow 1\n^\nUncaught:\n1\n\nNode.js v26.0.0\n", want: "1" },
  { name: "no error at all", log: "one\ntwo\n", want: "two" },
  { name: "nothing", log: "", want: undefined },
])
  test(`reads why a process ended: ${name}`, () => assert.equal(reasonIn(log), want));

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let attempt = 0; !condition(); attempt++) {
    assert.ok(attempt < 3_000, what);
    await delay(20);
  }
}

/** An isolated supervisor; it and its processes are killed after the test. */
async function newPlace(t: TestContext): Promise<Settings> {
  const folder = mkdtempSync(join(tmpdir(), "cox-supervisor-"));
  const own = readSettings(join(import.meta.dirname, "..", "..", ".."), { COX_STATE: join(folder, "state") });
  const settings = { ...own, run: join(folder, "run") };
  t.after(async () => {
    await endSupervisor(settings);
    const left = startedBySupervisor(settings.id);
    signalAll(left, "SIGKILL");
    await haveEnded(left, 5_000);
    rmSync(folder, { recursive: true, force: true });
  });
  await ensureSupervisor(settings);
  return settings;
}

const namesOf = (settings: Settings): string[] =>
  startedBySupervisor(settings.id)
    .map(({ name }) => name)
    .toSorted();

const sleeper: ProcessSpec = { name: "sleeper", command: "sleep", args: ["600"] };

test("a killed process is restarted and counted, with the reason; a stopped one is not", async (t) => {
  const settings = await newPlace(t);
  const pid = (await start(settings, sleeper)) as number;
  process.kill(pid, "SIGKILL");
  await until("started again", () => ![undefined, pid].includes(runningPid(settings, "sleeper")));
  const state = processState(settings, "sleeper");
  assert.equal(state?.restarts, 1);
  assert.equal(state?.lastEnd?.reason, "killed by SIGKILL");
  assert.equal(existsSync(`${logFile(settings, "sleeper")}.old`), false, "the log goes on");
  truncateSync(logFile(settings, "sleeper"), (64 << 20) + 1);
  process.kill(runningPid(settings, "sleeper") as number, "SIGKILL");
  await until(
    "started again",
    () => (processState(settings, "sleeper")?.restarts ?? 0) === 2 && existsSync(`${logFile(settings, "sleeper")}.old`),
  );
  assert.ok(statSync(logFile(settings, "sleeper")).size < 1000, "a log of more than 64 MiB is begun anew");
  await stop(settings, "sleeper");
  assert.equal(runningPid(settings, "sleeper"), undefined);
  assert.equal(processState(settings, "sleeper")?.phase, "stopped");
});

test("a process that does not end on SIGTERM is killed", async (t) => {
  const settings = await newPlace(t);
  const script = "trap '' TERM; echo deaf; while :; do sleep 1; done";
  await start(settings, { name: "deaf", command: "sh", args: ["-c", script] });
  await until("the trap", () => readFileSync(logFile(settings, "deaf"), "utf8").includes("deaf"));
  await stop(settings, "deaf", 100);
  assert.equal(runningPid(settings, "deaf"), undefined);
});

test("a process that ends in its own time is not killed", async (t) => {
  const settings = await newPlace(t);
  const script = "trap 'sleep 0.3; echo ended; exit' TERM; echo ready; while :; do sleep 0.05; done";
  await start(settings, { name: "slow", command: "sh", args: ["-c", script] });
  await until("the trap", () => readFileSync(logFile(settings, "slow"), "utf8").includes("ready"));
  await stop(settings, "slow");
  assert.equal(readFileSync(logFile(settings, "slow"), "utf8"), "ready\nended\n");
});

test("a missing and a failing program are reported and retried", async (t) => {
  const settings = await newPlace(t);
  await start(settings, { name: "missing", command: "/no/such/program", args: [] });
  await start(settings, { name: "failing", command: "sh", args: ["-c", "echo why it failed; exit 7"] });
  await until("two tries of each", () =>
    ["missing", "failing"].every((name) => (processState(settings, name)?.restarts ?? 0) >= 1),
  );
  assert.match(processState(settings, "missing")?.lastEnd?.reason ?? "", /cannot be started: .*ENOENT/);
  assert.equal(processState(settings, "failing")?.lastEnd?.reason, "exit code 7: why it failed");
});

test("a new supervisor adopts the processes of a killed one, and restarts them with their old command", async (t) => {
  const settings = await newPlace(t);
  const pid = (await start(settings, sleeper)) as number;
  appendFileSync(logFile(settings, "sleeper"), "I1123 17:09:26.493000 1 sleeper] something usual\n");
  process.kill(supervisorPid(settings) as number, "SIGKILL");
  await until("no supervisor", () => supervisorPid(settings) === undefined);
  assert.equal(runningPid(settings, "sleeper"), pid);
  assert.equal(await ensureSupervisor(settings), true);
  assert.equal(await start(settings, sleeper), pid, "it is not started twice");
  process.kill(pid, "SIGKILL");
  await until("started again", () => ![undefined, pid].includes(runningPid(settings, "sleeper")));
  assert.match(processState(settings, "sleeper")?.lastEnd?.reason ?? "", /exit code unknown \(.*\)$/);
});

for (const { name, recorded, want } of [
  { name: "processes that down stopped are not reported as ended by the next supervisor", recorded: true, want: undefined },
  {
    name: "processes that ended without a supervisor and without down are reported by the next one",
    recorded: false,
    want: "it ended while no supervisor ran",
  },
])
  test(name, async (t) => {
    const settings = await newPlace(t);
    await start(settings, sleeper);
    await start(settings, { ...sleeper, name: "other" });
    await endSupervisor(settings);
    const left = startedBySupervisor(settings.id);
    signalAll(left, "SIGKILL");
    await haveEnded(left, 5_000);
    if (recorded) recordAllStopped(settings);
    await ensureSupervisor(settings);
    const { processes } = await sendRequest(settings, { verb: "status" });
    const ends = Object.values(processes).map(({ state }) => [state.phase, state.lastEnd?.reason]);
    assert.deepEqual(ends, [
      ["stopped", want],
      ["stopped", want],
    ]);
  });

test("a damaged state file is treated as missing", async (t) => {
  const settings = await newPlace(t);
  await start(settings, sleeper);
  process.kill(supervisorPid(settings) as number, "SIGKILL");
  await until("no supervisor", () => supervisorPid(settings) === undefined);
  writeFileSync(join(settings.state, "run", "supervisor.json"), "{ damaged");
  assert.equal(await ensureSupervisor(settings), true);
  assert.deepEqual((await sendRequest(settings, { verb: "status" })).processes, {});
  assert.deepEqual(namesOf(settings), ["sleeper", "supervisor"], "what runs is still found");
});

test("a supervisor with a damaged state file is found, and rewrites the file", async (t) => {
  const settings = await newPlace(t);
  const pid = await start(settings, sleeper);
  const supervisor = supervisorPid(settings);
  writeFileSync(join(settings.state, "run", "supervisor.json"), "{ damaged");
  assert.equal(supervisorPid(settings), supervisor);
  assert.equal(await ensureSupervisor(settings), false);
  assert.equal(await start(settings, sleeper), pid);
  assert.equal(runningPid(settings, "sleeper"), pid);
  writeFileSync(join(settings.state, "run", "supervisor.json"), "{ damaged");
  await endSupervisor(settings);
  assert.deepEqual(namesOf(settings), ["sleeper"]);
});

test("another command replaces the running process, the same one keeps it", async (t) => {
  const settings = await newPlace(t);
  const pid = await start(settings, sleeper);
  assert.equal(await start(settings, sleeper), pid);
  assert.notEqual(await start(settings, { ...sleeper, args: ["601"] }), pid);
  assert.deepEqual(namesOf(settings), ["sleeper", "supervisor"]);
});

test("before each start of etcd, a member that was killed before its first write is removed", async (t) => {
  const settings = await newPlace(t);
  const etcdData = join(settings.state, "etcd");
  const log = join(etcdData, "member", "wal", "0000000000000000-0000000000000000.wal");
  const unused = Buffer.alloc(64);
  unused.set([8, 0, 0, 0, 0, 0, 0, 0, 0x08, 1]); // one record, of 8 bytes, with the cluster's metadata
  const write = (): void => {
    mkdirSync(dirname(log), { recursive: true });
    writeFileSync(log, unused);
  };
  write();
  const pid = (await start(settings, { ...sleeper, etcdData })) as number;
  assert.equal(existsSync(log), false);
  write();
  process.kill(pid, "SIGKILL");
  await until("started again", () => ![undefined, pid].includes(runningPid(settings, "sleeper")));
  assert.equal(existsSync(log), false);
  const removed = readFileSync(logFile(settings, "supervisor"), "utf8").match(/ removed the member in .*etcd, which /g);
  assert.equal(removed?.length, 2);
});

test("only its owner can use the socket; malformed requests are refused, and the supervisor keeps running", async (t) => {
  const settings = await newPlace(t);
  assert.equal(statSync(socketFile(settings)).mode & 0o777, 0o600);
  await assert.rejects(sendRequest(settings, { verb: "explode" } as never), /unknown verb "explode"/);
  await assert.rejects(sendRequest(settings, null as never), /supervisor refused|Cannot read/);
  assert.deepEqual((await sendRequest(settings, { verb: "status" })).processes, {});
  const mask = spawnSync("sh", ["-c", "umask"], { encoding: "utf8" }).stdout;
  await start(settings, { name: "mask", command: "sh", args: ["-c", "umask; exec sleep 600"] });
  await until("the umask", () => existsSync(logFile(settings, "mask")) && readFileSync(logFile(settings, "mask"), "utf8") !== "");
  assert.equal(readFileSync(logFile(settings, "mask"), "utf8"), mask, "what it starts has the user's own umask");
});
