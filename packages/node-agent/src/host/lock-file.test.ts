import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { failingStat, openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { acquireLockFile, hasWaiter, lockOpenFile } from "./lock-file.ts";

test("one agent at a time holds the lock file; the holder is notified when another opens it", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "kubelet.lock");
  const clock = newFakeClock();
  const first = await acquireLockFile(path, { clock, log: discardLogger });
  let contended = false;
  const watching = first.contended(new AbortController().signal).then(() => {
    contended = true;
  });
  await waitFor(() => clock.waiting > 0, { what: "the first look" });
  assert.equal(contended, false);
  let acquired = false;
  const second = acquireLockFile(path, { clock, log: discardLogger }).then((lock) => {
    acquired = true;
    return lock;
  });
  await waitFor(
    async () => {
      await clock.advance(1_000);
      return contended;
    },
    { what: "the second agent to be seen" },
  );
  assert.equal(acquired, false, "the first one still holds it");
  await first.release();
  await (await second).release();
  await watching;
});

test("the holder in a separate PID namespace notices a process that waits outside of it", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "kubelet.lock");
  const script = `
    const { acquireLockFile } = await import(${JSON.stringify(import.meta.resolve("./lock-file.ts"))});
    const { realClock: clock } = await import("@coxswain/apimachinery/process/clock/clock");
    const { discardLogger: log } = await import("@coxswain/apimachinery/process/logging/logger");
    const lock = await acquireLockFile(${JSON.stringify(path)}, { clock, log });
    console.log("acquired");
    await lock.contended(new AbortController().signal);
    console.log("contended");
    process.exit();
  `;
  const node = [process.execPath, "-C", "cox-source", "--input-type=module", "--eval", script];
  const agent = spawn("unshare", ["--pid", "--fork", "--kill-child", "--mount-proc", ...node], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => agent.kill("SIGKILL"));
  let output = "";
  agent.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await waitFor(() => output === "acquired\n", { what: "the agent in the namespace to hold the lock" });
  const waiter = spawn("flock", ["--exclusive", path, "true"]);
  t.after(() => waiter.kill("SIGKILL"));
  const [status] = await once(waiter, "exit");
  assert.equal(status, 0, "the lock ends with the agent");
  await waitFor(() => output === "acquired\ncontended\n", { what: "the agent to say why it ended" });
});

for (const { what, line, want } of [
  { what: "a waiter", line: "1: -> FLOCK  ADVISORY  WRITE 42 fe:01:711 0 EOF", want: true },
  { what: "a waiter for a file whose number ends alike", line: "1: -> FLOCK  ADVISORY  WRITE 42 fe:01:4711 0 EOF", want: false },
  { what: "a waiter for a lock of another kind", line: "1: -> POSIX  ADVISORY  WRITE 42 fe:01:711 0 EOF", want: false },
]) {
  test(`a lock is ${want ? "contended" : "not contended"} with ${what}`, () => {
    const holder = "1: FLOCK  ADVISORY  WRITE 41 fe:01:711 0 EOF";
    assert.equal(hasWaiter(`${holder}\n${line}\n`, 711), want);
    assert.equal(hasWaiter(`${holder}\n`, 711), false);
  });
}

test("an agent that waits for another lock file is no contention", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const [own, other] = [join(dir, "own"), join(dir, "other")];
  const lock = await acquireLockFile(own, { clock, log: discardLogger });
  const taken = await acquireLockFile(other, { clock, log: discardLogger });
  const waiting = acquireLockFile(other, { clock, log: discardLogger });
  let isNoticed = false;
  const noticing = taken.contended(new AbortController().signal).then(() => {
    isNoticed = true;
  });
  await waitFor(
    async () => {
      await clock.advance(1_000);
      return isNoticed;
    },
    { what: "the waiting agent to be seen" },
  );
  await noticing;
  const stop = new AbortController();
  let contended = false;
  const watching = lock.contended(stop.signal).then(() => {
    contended = !stop.signal.aborted;
  });
  await waitFor(() => contended || clock.waiting > 0, { what: "the end of the first look" });
  assert.equal(contended, false);
  stop.abort();
  await watching;
  await taken.release();
  await (await waiting).release();
  await lock.release();
});

test("losing the lock ends the agent, like contention does", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const lock = await acquireLockFile(join(dir, "kubelet.lock"), { clock, log: discardLogger });
  await lock.release();
  await lock.contended(new AbortController().signal);
  let released = false;
  void lock.release().then(() => {
    released = true;
  });
  await waitFor(() => released, { what: "the release of a lock that is lost" });
});

test("a lock file that cannot be opened is an error that names it", async () => {
  const path = "/no/such/folder/kubelet.lock";
  await assert.rejects(acquireLockFile(path, { clock: newFakeClock(), log: discardLogger }), {
    message: /^unable to acquire file lock on "\/no\/such\/folder\/kubelet\.lock": ENOENT/,
  });
});

test("a lock file that cannot be locked is an error, and is not left open", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, "flock"), "#!/bin/sh\nexit 66\n", { mode: 0o755 });
  const { PATH } = process.env;
  t.after(() => {
    process.env.PATH = PATH;
  });
  process.env.PATH = dir;
  const path = join(dir, "kubelet.lock");
  const message = `unable to acquire file lock on ${JSON.stringify(path)}: flock ended with 66`;
  await assert.rejects(acquireLockFile(path, { clock: newFakeClock(), log: discardLogger }), { message });
  assert.deepEqual(await openFilesBelow(path), []);
});

test("a lock file whose state cannot be read is an error, and is not left open", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "kubelet.lock");
  await failingStat(t);
  await assert.rejects(acquireLockFile(path, { clock: newFakeClock(), log: discardLogger }), /ESTALE/);
  assert.deepEqual(await openFilesBelow(path), []);
});

test("an open file that flock cannot lock is an error with its exit code", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, "flock"), "#!/bin/sh\nexit 66\n", { mode: 0o755 });
  const { PATH } = process.env;
  process.env.PATH = `${dir}:${PATH}`;
  t.after(() => {
    process.env.PATH = PATH;
  });
  await using locked = await open(join(dir, "lock"), "a+");
  await assert.rejects(lockOpenFile(locked), { message: "flock ended with 66" });
});
