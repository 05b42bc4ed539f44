/** A supervisor in this process, under mock timers: what it starts are real processes, how long it waits is up to the test. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startTimeOf } from "./process-identity.ts";
import { runningPid } from "./processes.ts";
import { newSupervisor, type Supervisor } from "./supervisor.ts";
import { logFile, type ProcessSpec, readState, type SupervisorPlace, writeState } from "./supervisor-state.ts";

interface Fixture {
  readonly place: SupervisorPlace;
  readonly supervisor: Supervisor;
  readonly lines: readonly string[];
  /** Resolves with the next line of the supervisor's log that matches, also a past one that was not asked for yet. */
  line(pattern: RegExp): Promise<string>;
  tick(ms: number): void;
}

function newFolder(t: TestContext): SupervisorPlace {
  const folder = mkdtempSync(join(tmpdir(), "cox-restarts-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["run", "logs"]) mkdirSync(join(folder, name));
  return { state: folder, run: join(folder, "run"), id: "c0ffee" };
}

function newFixture(t: TestContext, place = newFolder(t)): Fixture {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const lines: string[] = [];
  let asked = 0;
  let look = (): void => {};
  const supervisor = newSupervisor(place, "v1", (line) => {
    lines.push(line);
    look();
  });
  t.after(async () => {
    // Without restarts from here on: no timer fires any more.
    for (const [name, { state }] of Object.entries(supervisor.state().processes))
      if (state.phase !== "stopped") await supervisor.stop(name, 0);
  });
  return {
    place,
    supervisor,
    lines,
    line: (pattern) =>
      new Promise((resolve) => {
        look = () => {
          const at = lines.findIndex((line, index) => index >= asked && pattern.test(line));
          if (at === -1) return;
          asked = at + 1;
          resolve(lines[at]!);
        };
        look();
      }),
    tick: (ms) => t.mock.timers.tick(ms),
  };
}

const shell = (script: string, more: Partial<ProcessSpec> = {}): ProcessSpec => ({
  name: "one",
  command: "sh",
  args: ["-c", script],
  ...more,
});
const sleeper = shell("exec sleep 600");
const stateOf = ({ supervisor }: Fixture, name = "one") => supervisor.state().processes[name]?.state;

/** A process that an earlier supervisor has started; its state file is in place. */
function leftBy(t: TestContext, place: SupervisorPlace, phase: "running" | "stopping", spec = sleeper): ChildProcess {
  const child = spawn(spec.command, spec.args, { stdio: ["ignore", "pipe", "ignore"], detached: true });
  t.after(() => child.kill("SIGKILL"));
  const startTime = startTimeOf(child.pid!)!;
  const state = { phase, since: 1, pid: child.pid!, startTime, restarts: 4, quickEnds: 0 };
  writeState(place, { supervisor: { pid: 1, startTime: "1", since: 0, version: "" }, processes: { one: { spec, state } } });
  return child;
}

const ended = (child: ChildProcess): Promise<NodeJS.Signals | null> =>
  new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));

test("an adopted process that ends is started again once, with the command and environment it had", async (t) => {
  const place = newFolder(t);
  const child = leftBy(t, place, "running", shell('echo "$WORD"; exec sleep 600', { env: { WORD: "hello" } }));
  const fixture = newFixture(t, place);
  assert.deepEqual(fixture.lines, [`adopted one, pid ${child.pid}`]);
  assert.equal(stateOf(fixture)?.restarts, 4);
  fixture.tick(200);
  assert.equal(stateOf(fixture)?.pid, child.pid);
  child.kill("SIGKILL");
  await ended(child);
  fixture.tick(200);
  assert.equal(stateOf(fixture)?.phase, "waiting");
  fixture.tick(500);
  await fixture.line(/^started one, pid /);
  const again = stateOf(fixture)?.pid;
  fixture.tick(400);
  assert.deepEqual([stateOf(fixture)?.phase, stateOf(fixture)?.pid, stateOf(fixture)?.restarts], ["running", again, 5]);
  assert.equal(fixture.lines.filter((line) => line.startsWith("one ended")).length, 1, "its end is noticed once");
  while (readFileSync(logFile(place, "one"), "utf8") === "") await new Promise(setImmediate);
  assert.equal(readFileSync(logFile(place, "one"), "utf8"), "hello\n");
});

for (const { name, log, want } of [
  { name: "not a usual line", log: "I1123 17:09:26.493000 1 x] usual\n", want: /started it\)$/ },
  { name: "an error", log: "E1123 17:09:26.493000 1 x] bad\n", want: /started it\): E1123 17:09:26.493000 1 x\] bad$/ },
  { name: "an exception", log: "TypeError: no\n", want: /started it\): TypeError: no$/ },
]) {
  test(`the reason of an adopted process's end is the last line of its log: ${name}`, async (t) => {
    const place = newFolder(t);
    const child = leftBy(t, place, "running");
    writeFileSync(logFile(place, "one"), log);
    const fixture = newFixture(t, place);
    child.kill("SIGKILL");
    await ended(child);
    fixture.tick(200);
    assert.match(stateOf(fixture)?.lastEnd?.reason ?? "", want);
  });
}

test("a process that an earlier supervisor was stopping is stopped, and killed when it does not end", async (t) => {
  const place = newFolder(t);
  const child = leftBy(t, place, "stopping", shell("trap '' TERM; echo deaf; while :; do sleep 1; done"));
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  const fixture = newFixture(t, place);
  const end = ended(child);
  fixture.tick(9_800);
  assert.equal(startTimeOf(child.pid!) === undefined, false, "it has ten seconds");
  fixture.tick(200);
  assert.equal(await end, "SIGKILL");
  fixture.tick(200);
  assert.deepEqual([stateOf(fixture)?.phase, stateOf(fixture)?.pid], ["stopped", undefined]);
});

test("the time to kill a process is that of its own stop, not of one before", async (t) => {
  const fixture = newFixture(t);
  await fixture.supervisor.start(sleeper);
  await fixture.supervisor.stop("one", 10_000);
  await fixture.supervisor.start(shell("trap '' TERM; echo deaf; while :; do sleep 1; done"));
  while (readFileSync(logFile(fixture.place, "one"), "utf8") === "") await new Promise(setImmediate);
  const pid = runningPid(fixture.place, "one");
  fixture.tick(5_000);
  const stopped = fixture.supervisor.stop("one", 10_000);
  fixture.tick(9_999);
  assert.equal(runningPid(fixture.place, "one"), pid);
  fixture.tick(1);
  await stopped;
  assert.deepEqual([stateOf(fixture)?.phase, runningPid(fixture.place, "one")], ["stopped", undefined]);
});

test("all who wait for an end are answered, and a start during a stop happens behind it", async (t) => {
  const { supervisor, place } = newFixture(t);
  await supervisor.start(sleeper);
  const pid = runningPid(place, "one");
  await Promise.all([supervisor.stop("one", 9_000), supervisor.stop("one", 9_000), supervisor.start(sleeper)]);
  assert.equal([undefined, pid].includes(runningPid(place, "one")), false);
  await supervisor.stop("unknown", 0);
});

test("another environment replaces a process, and it keeps the rest of the supervisor's", async (t) => {
  const { supervisor, place } = newFixture(t);
  const withWord = (WORD: string) => shell('echo "$WORD $PATH $PWD $COX_PROCESS"; exec sleep 600', { env: { WORD } });
  await supervisor.start(withWord("a"));
  const pid = runningPid(place, "one");
  await supervisor.start(withWord("a"));
  assert.equal(runningPid(place, "one"), pid);
  await supervisor.start(withWord("b"));
  assert.notEqual(runningPid(place, "one"), pid);
  while (readFileSync(logFile(place, "one"), "utf8") === "") await new Promise(setImmediate);
  assert.equal(readFileSync(logFile(place, "one"), "utf8"), `b ${process.env["PATH"]} ${place.state} c0ffee/one\n`);
  assert.equal(statSync(logFile(place, "one")).mode & 0o777, 0o600, "logs are their owner's");
});

test("a start leaves no file open in the supervisor", async (t) => {
  const { supervisor } = newFixture(t);
  await supervisor.start({ ...sleeper, name: "warm" });
  const before = readdirSync("/proc/self/fd").length;
  for (const name of ["a", "b", "c"]) await supervisor.start({ ...sleeper, name });
  assert.equal(readdirSync("/proc/self/fd").length, before);
});

test("a process that cannot be started for a while is tried again, with the reason", async (t) => {
  const fixture = newFixture(t);
  const { supervisor, place, tick, line } = fixture;
  renameSync(join(place.state, "logs"), join(place.state, "away"));
  await supervisor.start(sleeper);
  assert.match(await line(/^one ended/), /^one ended: cannot be started: ENOENT: .*logs\/one\.log/);
  assert.equal(stateOf(fixture)?.phase, "waiting");
  tick(500);
  await line(/^one ended/);
  renameSync(join(place.state, "away"), join(place.state, "logs"));
  tick(999);
  assert.equal(stateOf(fixture)?.phase, "waiting");
  tick(1);
  assert.deepEqual([stateOf(fixture)?.phase, stateOf(fixture)?.restarts], ["running", 2]);
});

test("the reason of an end is what this run has written, at most 500 characters of it", async (t) => {
  const fixture = newFixture(t);
  const { supervisor, place, tick, line } = fixture;
  const long = "x".repeat(600);
  const script = `[ -e ran ] && exit 3; touch ran; echo "Error: ${long}"; exit 4`;
  await supervisor.start(shell(script));
  assert.equal(
    await line(/^one ended/),
    `one ended: exit code 4: Error: ${long.slice(7)}`.slice(0, 500 + "one ended: exit code 4: ".length),
  );
  assert.equal(stateOf(fixture)?.lastEnd?.reason.length, "exit code 4: ".length + 500);
  tick(500);
  assert.equal(await line(/^one ended/), "one ended: exit code 3");
  assert.ok(readFileSync(logFile(place, "one"), "utf8").includes(long), "the log of the earlier run is kept");
});

test("a state that cannot be written is said once and written later; the processes run on", async (t) => {
  const fixture = newFixture(t);
  const { supervisor, place, tick, lines } = fixture;
  const inTheWay = join(place.state, "run", "supervisor.json.new");
  mkdirSync(inTheWay);
  await supervisor.start(sleeper);
  tick(1_000);
  tick(1_000);
  const complaints = () => lines.filter((line) => line.startsWith("cannot keep the state, trying again: EISDIR"));
  assert.equal(complaints().length, 1);
  assert.equal(stateOf(fixture)?.phase, "running");
  assert.equal(readState(place)?.processes["one"], undefined);
  rmdirSync(inTheWay);
  tick(999);
  assert.equal(readState(place)?.processes["one"], undefined);
  tick(1);
  assert.equal(readState(place)?.processes["one"]?.state.phase, "running");
  mkdirSync(inTheWay);
  await supervisor.start({ ...sleeper, name: "two" });
  assert.equal(complaints().length, 2, "it is said again when it happens again");
});
