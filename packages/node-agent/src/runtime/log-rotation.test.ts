import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type FakeRuntime, newFakeRuntime } from "../testing/fake-runtime.ts";
import { rotateLogs, runLogRotation } from "./log-rotation.ts";
import { RuntimeError } from "./runtime.ts";

/** A running container that logs to `main/0.log`; as in a real runtime, reopening the log creates the file again. */
async function logging(
  t: TestContext,
): Promise<{ clock: FakeClock; runtime: FakeRuntime; dir: string; id: string; log: string }> {
  const folder = await mkdtemp(join(tmpdir(), "cox-rotate-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "p" }, logDirectory: folder }, "");
  const config = { metadata: { name: "main" }, image: { image: "i" }, logPath: "main/0.log" };
  const id = await runtime.createContainer(sandbox, config, {});
  await runtime.startContainer(id);
  const dir = join(folder, "main");
  const log = join(dir, "0.log");
  await mkdir(dir);
  const reopen = runtime.reopenContainerLog;
  runtime.reopenContainerLog = async (container) => {
    await reopen(container);
    await writeFile(log, "");
  };
  return { clock, runtime, dir, id, log };
}

test("a log above the size limit is rotated and the previous one compressed, up to the maximum number of files", async (t) => {
  const { clock, runtime, dir, log } = await logging(t);
  const stop = new AbortController();
  const options = { runtime, clock, log: discardLogger, maxSizeBytes: 10, maxFiles: 3 };
  await writeFile(log, "short");
  await rotateLogs(options);
  assert.deepEqual(await readdir(dir), ["0.log"], "within its size");
  for (const text of ["first, too long", "second, too long", "third, too long"]) {
    await writeFile(log, text);
    await rotateLogs(options);
    await clock.advance(1000);
  }
  const [current, packed, closed, ...more] = (await readdir(dir)).sort();
  assert.deepEqual(
    [current, packed, closed, more],
    ["0.log", "0.log.20220101-000001.gz", "0.log.20220101-000002", []],
    "three files: the oldest went",
  );
  assert.equal(gunzipSync(await readFile(join(dir, packed ?? ""))).toString(), "second, too long");
  assert.equal(await readFile(join(dir, closed ?? ""), "utf8"), "third, too long");
  assert.equal(await readFile(log, "utf8"), "", "the runtime writes to a new file");
  stop.abort();
});

test("a log of exactly the size limit is rotated, and a compressed one is not compressed again", async (t) => {
  const { clock, runtime, dir, log } = await logging(t);
  const options = { runtime, clock, log: discardLogger, maxSizeBytes: 10, maxFiles: 5 };
  for (let i = 0; i < 4; i++) {
    await writeFile(log, `${i} 3456789`.slice(0, 10).padEnd(10, "."));
    await rotateLogs(options);
    await clock.advance(1_000);
  }
  assert.deepEqual((await readdir(dir)).toSorted(), [
    "0.log",
    "0.log.20220101-000000.gz",
    "0.log.20220101-000001.gz",
    "0.log.20220101-000002.gz",
    "0.log.20220101-000003",
  ]);
});

test("a container whose log cannot be rotated does not prevent the rotation of others, nor the next look", async (t) => {
  const { clock, runtime, dir, id, log } = await logging(t);
  await writeFile(log, "long enough to be rotated");
  const { listContainers, containerStatus } = runtime;
  let looks = 0;
  runtime.listContainers = async (filter) => {
    if (looks++ === 0) throw new RuntimeError("Unavailable", "away");
    const [own] = await listContainers(filter);
    assert.ok(own);
    return [{ ...own, id: "broken" }, own];
  };
  runtime.containerStatus = async (container) => {
    if (container === "broken") throw new RuntimeError("Unknown", "no status");
    return containerStatus(container);
  };
  const errors: string[] = [];
  const logger = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const stop = new AbortController();
  const running = runLogRotation({ runtime, clock, log: logger, maxSizeBytes: 10, maxFiles: 3 }, stop.signal);
  await clock.advance(10_000);
  await waitFor(async () => (await readdir(dir)).length === 2, { what: "the rotation" });
  assert.deepEqual(errors, ["cannot rotate container logs", "cannot rotate a container's log"]);
  assert.equal(runtime.find("main")?.id, id);
  stop.abort();
  await running;
});

test("a log keeps its name when the runtime cannot reopen it; logs of exited containers are not rotated", async (t) => {
  const { clock, runtime, dir, id, log } = await logging(t);
  const options = { runtime, clock, log: discardLogger, maxSizeBytes: 10, maxFiles: 3 };
  await writeFile(log, "long enough to be rotated");
  const reopen = runtime.reopenContainerLog;
  runtime.reopenContainerLog = async () => {
    throw new RuntimeError("Unknown", "no");
  };
  await rotateLogs(options);
  assert.deepEqual(await readdir(dir), ["0.log"]);
  runtime.reopenContainerLog = reopen;
  runtime.exit(id, 0);
  await rotateLogs(options);
  assert.deepEqual(await readdir(dir), ["0.log"]);
});

test("a rotation interrupted between rename and reopen is completed", async (t) => {
  const { clock, runtime, dir } = await logging(t);
  await rotateLogs({ runtime, clock, log: discardLogger, maxSizeBytes: 10, maxFiles: 3 });
  assert.deepEqual(await readdir(dir), ["0.log"], "the runtime reopened its log");
});

test("log sizes are checked every ten seconds", async (t) => {
  const { clock, runtime } = await logging(t);
  let looks = 0;
  runtime.listContainers = async () => {
    looks++;
    return [];
  };
  const stop = new AbortController();
  const running = runLogRotation({ runtime, clock, log: discardLogger, maxSizeBytes: 10, maxFiles: 3 }, stop.signal);
  await clock.advance(30_000);
  assert.equal(looks, 4);
  stop.abort();
  await running;
});

test("a log that is a link is left alone, and what an interrupted compression left is removed by the next rotation", async (t) => {
  const { clock, runtime, dir, log } = await logging(t);
  const options = { runtime, clock, log: discardLogger, maxSizeBytes: 10, maxFiles: 3 };
  await writeFile(join(dir, "elsewhere"), "much too long");
  await symlink("elsewhere", log);
  await rotateLogs(options);
  assert.deepEqual((await readdir(dir)).toSorted(), ["0.log", "elsewhere"]);
  await rm(log);
  await writeFile(log, "much too long");
  await writeFile(join(dir, "0.log.20211231-000000.tmp"), "half");
  await rotateLogs(options);
  assert.deepEqual((await readdir(dir)).toSorted(), ["0.log", "0.log.20220101-000000", "elsewhere"]);
});

test("the runtime is asked once for the path of a running container's log", async (t) => {
  const { clock, runtime, id } = await logging(t);
  const asked: string[] = [];
  const status = runtime.containerStatus;
  runtime.containerStatus = (container) => {
    asked.push(container);
    return status(container);
  };
  const paths = new Map<string, string>();
  const options = { runtime, clock, log: discardLogger, maxSizeBytes: 10, maxFiles: 3 };
  await rotateLogs(options, paths);
  await rotateLogs(options, paths);
  assert.deepEqual(asked, [id]);
  runtime.exit(id, 0);
  await rotateLogs(options, paths);
  assert.equal(paths.size, 0);
});
