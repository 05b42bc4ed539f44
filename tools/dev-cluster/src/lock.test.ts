import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Failure, Interrupted } from "./failure.ts";
import { clusterLockFile, flock, holderOf, withClusterLock } from "./lock.ts";
import { startTimeOf } from "./process-identity.ts";

const cluster = (t: TestContext): { state: string; name: string } => {
  const state = mkdtempSync(join(tmpdir(), "lock-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  return { state, name: "b" };
};

/** A process that holds the lock until it is killed. */
async function otherHolder(t: TestContext, place: { state: string; name: string }, verb: string): Promise<ChildProcess> {
  const program = `
    import { withClusterLock } from ${JSON.stringify(join(import.meta.dirname, "lock.ts"))};
    await withClusterLock(${JSON.stringify(place)}, ${JSON.stringify(verb)}, () => {
      console.log("held");
      return new Promise((resolve) => setTimeout(resolve, 1e8));
    });`;
  const child = spawn(process.execPath, ["-C", "cox-source", "--input-type=module-typescript", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

test("the second process waits for the lock, names the holder, and gets it when the holder ends", async (t) => {
  const place = cluster(t);
  const first = Promise.withResolvers<void>();
  const order: string[] = [];
  const said: string[] = [];
  const waited = Promise.withResolvers<void>();
  const up = withClusterLock(place, "up", async () => {
    await first.promise;
    order.push("up");
  });
  const onWait = (text: string): void => {
    said.push(text);
    waited.resolve();
  };
  const down = withClusterLock(place, "down", async () => void order.push("down"), { onWait });
  await waited.promise;
  first.resolve();
  await Promise.all([up, down]);
  assert.deepEqual(order, ["up", "down"]);
  assert.match(
    said.join("\n"),
    new RegExp(`^waiting for ./cox up \\(pid ${process.pid}, since \\S+Z\\), which works on cluster b$`),
  );
});

test("a waiting process names each holder once, and keeps no file open that it has tried", async (t) => {
  const place = cluster(t);
  const holder = await otherHolder(t, place, "up");
  const said: string[] = [];
  const open = readdirSync("/proc/self/fd").length;
  await assert.rejects(
    withClusterLock(place, "down", async () => assert.fail("not reached"), { waitMs: 700, onWait: (text) => said.push(text) }),
    /is locked by/,
  );
  assert.equal(said.length, 1);
  assert.ok(said[0]?.includes(`pid ${holder.pid},`));
  assert.ok(readdirSync("/proc/self/fd").length < open + 3, "after some five attempts");
});

test("without a wait the second fails and names the holder, also in another process", async (t) => {
  const place = cluster(t);
  const holder = await otherHolder(t, place, "up");
  await assert.rejects(
    withClusterLock(place, "down", async () => assert.fail("not reached"), { waitMs: 0 }),
    new RegExp(`cluster b is locked by ./cox up \\(pid ${holder.pid}, since `),
  );
});

test("the lock of a killed holder is free", async (t) => {
  const place = cluster(t);
  const holder = await otherHolder(t, place, "up");
  holder.kill("SIGKILL");
  await once(holder, "exit");
  assert.equal(holderOf(clusterLockFile(place.state)), undefined);
  assert.equal(await withClusterLock(place, "down", async () => "done", { waitMs: 0 }), "done");
});

test("a holder that fails releases the lock", async (t) => {
  const place = cluster(t);
  const failing = withClusterLock(place, "up", () => Promise.reject(new Error("no")));
  await assert.rejects(failing, /^Error: no$/);
  assert.equal(await withClusterLock(place, "up", async () => 1, { waitMs: 0 }), 1);
});

test("a waiter and a later process do not both get a lock whose file its holder removed", async (t) => {
  const place = cluster(t);
  let inside = 0;
  const purge = async (): Promise<void> => {
    assert.equal(++inside, 1);
    await new Promise((resolve) => setImmediate(resolve));
    inside--;
    rmSync(clusterLockFile(place.state));
  };
  await Promise.all(Array.from({ length: 6 }, () => withClusterLock(place, "down", purge, { onWait: () => {} })));
  assert.deepEqual(readdirSync(place.state), []);
});

test("a waiting process can be interrupted", async (t) => {
  const place = cluster(t);
  await otherHolder(t, place, "up");
  const controller = new AbortController();
  const waiting = withClusterLock(place, "up", async () => assert.fail("not reached"), {
    signal: controller.signal,
    onWait: () => controller.abort(new Interrupted("SIGINT")),
  });
  await assert.rejects(waiting, Interrupted);
  assert.equal(existsSync(clusterLockFile(place.state)), true);
});

test("the file names its holder while the lock is held, however long the text of an earlier one was, and nobody afterwards", async (t) => {
  const place = { ...cluster(t) };
  place.state = join(place.state, "new");
  const file = clusterLockFile(place.state);
  const before = Date.now();
  const locked = (verb: string): Promise<void> =>
    withClusterLock(place, verb, async () => {
      const { since, ...holder } = holderOf(file)!;
      assert.deepEqual(holder, { pid: process.pid, startTime: startTimeOf(process.pid), verb });
      assert.ok(Date.parse(since) >= before && Date.parse(since) <= Date.now(), since);
    });
  await locked("up");
  assert.equal(readFileSync(file, "utf8"), "");
  assert.deepEqual([statSync(place.state).mode & 0o777, statSync(file).mode & 0o777], [0o711, 0o644]);
  writeFileSync(file, "x".repeat(500)); // of a holder that was killed
  await locked("down");
});

test("a process with the number of a former holder is not named as the holder", (t) => {
  const { state } = cluster(t);
  const file = clusterLockFile(state);
  const holder = { pid: process.pid, startTime: startTimeOf(process.pid)!, verb: "up", since: "2026-01-01T00:00:00.000Z" };
  writeFileSync(file, JSON.stringify(holder));
  assert.deepEqual(holderOf(file), holder);
  for (const text of [JSON.stringify({ ...holder, startTime: "1" }), "", "{"]) {
    writeFileSync(file, text);
    assert.equal(holderOf(file), undefined, text);
  }
  assert.equal(holderOf(join(state, "none")), undefined);
});

test("a holder that has not written its name is another ./cox, which a waiting process says on stderr", async (t) => {
  const place = cluster(t);
  const handle = openSync(clusterLockFile(place.state), "a+");
  t.after(() => closeSync(handle));
  assert.equal(flock(handle, { waits: true }), true);
  let printed = "";
  t.mock.method(process.stderr, "write", (text: string) => {
    printed += text;
    return true;
  });
  const refused = (waitMs: number): Promise<void> =>
    assert.rejects(
      withClusterLock(place, "down", async () => assert.fail("not reached"), { waitMs }),
      (err) => err instanceof Failure && err.message === "cluster b is locked by another ./cox; try again when that has ended",
    );
  await refused(0);
  assert.equal(printed, "");
  await refused(300);
  assert.equal(printed, "cox: waiting for another ./cox, which works on cluster b\n");
});

test("an interrupt before the lock is tried leaves it alone; without the program flock there is no lock", async (t) => {
  const place = cluster(t);
  const work = async (): Promise<void> => assert.fail("not reached");
  const signal = AbortSignal.abort(new Interrupted("SIGTERM"));
  await assert.rejects(withClusterLock(place, "up", work, { signal }), Interrupted);
  assert.deepEqual(readdirSync(place.state), []);
  const path = process.env["PATH"];
  t.after(() => {
    process.env["PATH"] = path;
  });
  process.env["PATH"] = place.state;
  const open = readdirSync("/proc/self/fd").length;
  await assert.rejects(withClusterLock(place, "up", work), {
    name: "Error",
    message: "flock is missing; install Debian's package util-linux",
  });
  assert.equal(readdirSync("/proc/self/fd").length, open);
});

test("a lock can be waited for", async (t) => {
  const file = clusterLockFile(cluster(t).state);
  // Holds the lock until another process waits for it. Source: proc(5), /proc/locks
  const script =
    'exec 9>>"$0"; flock 9; echo held; inode=$(stat -c %i "$0"); until grep -q -- "-> FLOCK .*:$inode " /proc/locks; do :; done';
  const child = spawn("sh", ["-c", script, file], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  const handle = openSync(file, "a+");
  t.after(() => closeSync(handle));
  assert.equal(flock(handle, { waits: false }), false);
  assert.equal(flock(handle, { waits: true }), true);
});
