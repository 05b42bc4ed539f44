import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { haveEnded, signalAll, startedBySupervisor } from "./cluster-processes.ts";
import { Failure } from "./failure.ts";
import { runningPid, start } from "./processes.ts";
import { readSettings } from "./read-settings.ts";
import type { Settings } from "./settings.ts";
import { endSupervisor, ensureSupervisor, sendRequest, supervisorPid, timeoutOf } from "./supervisor-client.ts";
import { logFile, socketFile } from "./supervisor-state.ts";

for (const { request, want } of [
  { request: { verb: "status" }, want: 5_000 },
  { request: { verb: "exit" }, want: 5_000 },
  { request: { verb: "start", spec: { name: "x", command: "x", args: [] } }, want: 15_000 },
  { request: { verb: "stop", name: "x", graceMs: 10_000 }, want: 15_000 },
  { request: { verb: "stop", name: "x", graceMs: 0 }, want: 5_000 },
] as const)
  test(`an answer to ${JSON.stringify(request)} may take ${want / 1000} s`, () => assert.equal(timeoutOf(request), want));

/** Settings in a new folder; what runs for them is killed after the test. */
function newPlace(t: TestContext): Settings {
  const folder = mkdtempSync(join(tmpdir(), "cox-client-"));
  const own = readSettings(join(import.meta.dirname, "..", "..", ".."), { COX_STATE: join(folder, "state") });
  const settings = { ...own, run: join(folder, "run") };
  t.after(async () => {
    const left = startedBySupervisor(settings.id);
    signalAll(left, "SIGKILL");
    await haveEnded(left, 5_000);
    rmSync(folder, { recursive: true, force: true });
  });
  return settings;
}

/** Something else than a supervisor at its socket. */
function serving(t: TestContext, settings: Settings, serve: (connection: Socket) => void): Promise<void> {
  mkdirSync(settings.run, { recursive: true });
  const server = createServer(serve).listen(socketFile(settings));
  t.after(() => server.close());
  return new Promise((resolve) => server.once("listening", resolve));
}

for (const { name, serve, want } of [
  {
    name: "half an answer",
    serve: (connection: Socket) => void connection.resume().end('{"processes":'),
    want: /^the supervisor does not respond at \S+supervisor\.sock: it ended before it had answered$/,
  },
  {
    name: "a refusal",
    serve: (connection: Socket) => void connection.resume().end('{"error":"no"}\n'),
    want: /^the supervisor refused status: no$/,
  },
  {
    name: "no answer",
    serve: (connection: Socket) => void connection.resume(),
    want: /^the supervisor does not respond at \S+supervisor\.sock: nothing within 0\.02 s$/,
  },
])
  test(`${name} of a supervisor is a failure on one line`, async (t) => {
    const settings = newPlace(t);
    await serving(t, settings, serve);
    await assert.rejects(
      sendRequest(settings, { verb: "status" }, name === "no answer" ? 20 : undefined),
      (err) => err instanceof Failure && want.test(err.message),
    );
  });

test("without a supervisor a request fails, and there is none to end", async (t) => {
  const settings = newPlace(t);
  await assert.rejects(sendRequest(settings, { verb: "status" }), /^Error: the supervisor does not respond at \S+: .*ENOENT/);
  await endSupervisor(settings);
});

test("a supervisor that cannot start is reported at once, with its log", async (t) => {
  const settings = newPlace(t);
  const began = performance.now();
  await assert.rejects(ensureSupervisor({ ...settings, root: join(settings.state, "none") }), (err) => {
    assert.ok(err instanceof Failure);
    return /^the supervisor does not respond at .*; see \S+\/logs\/supervisor\.log$/.test(err.message);
  });
  assert.ok(performance.now() - began < 18_000, "it does not wait for one that has ended");
  assert.match(readFileSync(logFile(settings, "supervisor"), "utf8"), /Cannot find module/);
});

test("a supervisor outlives a closed terminal, clients that go and requests that are too large", async (t) => {
  const settings = newPlace(t);
  await ensureSupervisor(settings);
  const pid = supervisorPid(settings)!;
  process.kill(pid, "SIGHUP");
  await start(settings, { name: "one", command: "sleep", args: ["600"] });
  const gone = connect(socketFile(settings));
  await new Promise((resolve) => gone.write(`${JSON.stringify({ verb: "stop", name: "one", graceMs: 10_000 })}\n`, resolve));
  gone.destroy();
  for (let tries = 0; runningPid(settings, "one") !== undefined; tries++) {
    assert.ok(tries < 1_000, "it was not stopped");
    await delay(10);
  }
  const spec = { name: "x".repeat(1 << 20), command: "true", args: [] };
  await assert.rejects(sendRequest(settings, { verb: "start", spec }), /does not respond/);
  const { processes } = await sendRequest(settings, { verb: "status" });
  assert.deepEqual(Object.keys(processes), ["one"]);
  assert.equal(supervisorPid(settings), pid);
  await endSupervisor(settings);
  assert.equal(existsSync(socketFile(settings)), false, "it removes its socket");
  assert.match(
    readFileSync(logFile(settings, "supervisor"), "utf8"),
    / the supervisor ends: was requested to; what it started runs on\n$/,
  );
});

test("a supervisor that is asked to end by a signal says which, and removes its socket", async (t) => {
  const settings = newPlace(t);
  await ensureSupervisor(settings);
  const left = startedBySupervisor(settings.id);
  signalAll(left, "SIGTERM");
  assert.ok(await haveEnded(left, 5_000));
  assert.equal(existsSync(socketFile(settings)), false);
  assert.match(readFileSync(logFile(settings, "supervisor"), "utf8"), / the supervisor ends: SIGTERM; /);
});

test("a supervisor that does not answer is killed", async (t) => {
  const settings = newPlace(t);
  await ensureSupervisor(settings);
  process.kill(supervisorPid(settings)!, "SIGSTOP");
  await endSupervisor(settings, { answerMs: 50, endMs: 50, killMs: 5_000 });
  assert.equal(supervisorPid(settings), undefined);
});
