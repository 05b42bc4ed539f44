import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startTimeOf } from "./process-identity.ts";
import { runningPid } from "./processes.ts";
import { supervisorPid } from "./supervisor-client.ts";
import { readState, recordAllStopped, type SupervisorState, writeState } from "./supervisor-state.ts";

function newPlace(t: TestContext): { state: string; id: string; file: string } {
  const state = mkdtempSync(join(tmpdir(), "cox-state-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  mkdirSync(join(state, "run"));
  return { state, id: "c0ffee", file: join(state, "run", "supervisor.json") };
}

const startTime = startTimeOf(process.pid)!;
const spec = { name: "etcd", command: "etcd", args: [] };
const running = { phase: "running", since: 1, pid: process.pid, startTime, restarts: 2, quickEnds: 0 } as const;
const written: SupervisorState = {
  supervisor: { pid: process.pid, startTime, since: 5, version: "v1" },
  processes: { etcd: { spec, state: running } },
};

test("a state is read as it was written, by its owner only, and replaced as a whole", (t) => {
  const place = newPlace(t);
  assert.equal(readState(place), undefined);
  writeState(place, written);
  assert.deepEqual(readState(place), written);
  const { ino, mode } = statSync(place.file);
  assert.equal(mode & 0o777, 0o600);
  writeState(place, { ...written, processes: {} });
  assert.notEqual(statSync(place.file).ino, ino, "a reader of the old file reads it to its end");
});

for (const text of [
  "",
  "null",
  "{}",
  '{"supervisor":{"pid":1}}',
  '{"supervisor":{"pid":"1"},"processes":{}}',
  '{"processes":{}}',
])
  test(`a state file with ${text || "nothing"} counts as missing`, (t) => {
    const place = newPlace(t);
    writeFileSync(place.file, text);
    assert.equal(readState(place), undefined);
    assert.equal(runningPid(place, "etcd"), undefined);
    recordAllStopped(place);
  });

test("after down nothing is recorded as running", (t) => {
  const place = newPlace(t);
  writeState(place, written);
  assert.equal(runningPid(place, "etcd"), process.pid);
  const before = Date.now();
  recordAllStopped(place);
  const { since = 0, ...state } = readState(place)?.processes["etcd"]?.state ?? {};
  assert.deepEqual(state, { phase: "stopped", restarts: 2, quickEnds: 0 }, "neither pid nor start time");
  assert.ok(since >= before);
});

test("the pid of a process or supervisor that another process has got since does not count", (t) => {
  const place = newPlace(t);
  const other = `${startTime}1`;
  writeState(place, { ...written, processes: { etcd: { spec, state: { ...running, startTime: other } } } });
  assert.equal(supervisorPid(place), process.pid);
  assert.equal(runningPid(place, "etcd"), undefined);
  writeState(place, { ...written, supervisor: { ...written.supervisor, startTime: other } });
  assert.equal(supervisorPid(place), undefined);
  const { startTime: _, ...unknown } = running;
  writeState(place, { ...written, processes: { etcd: { spec, state: unknown } } });
  assert.equal(runningPid(place, "etcd"), undefined);
});
