import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { aContainerRecord, aPodRecord } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { annotationNames, labelNames } from "./labels.ts";
import { containersNamed, newestContainer, podIps, readPodRecord } from "./pod-record.ts";
import { RuntimeError } from "./runtime.ts";

const messagePath = "/dev/termination-log";
const podOf = { uid: "uid-1", name: "web", namespace: "default" };

/** An exited container; `host` is mounted at its termination message path. */
async function lastWords(
  t: TestContext,
  make: (host: string) => Promise<unknown>,
  more: Record<string, string> = {},
  exitCode = 1,
) {
  const dir = await mkdtemp(join(tmpdir(), "cox-words-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const host = join(dir, "words");
  await make(host);
  const runtime = newFakeRuntime(newFakeClock());
  const labels = { [labelNames.podUid]: podOf.uid };
  const sandboxConfig = { metadata: podOf, labels, logDirectory: dir };
  const sandbox = await runtime.runPodSandbox(sandboxConfig, "");
  const config = {
    metadata: { name: "main", attempt: 0 },
    labels: { ...labels, [labelNames.containerName]: "main" },
    annotations: { [annotationNames.terminationMessagePath]: messagePath, ...more },
    mounts: [{ containerPath: messagePath, hostPath: host }],
    logPath: "log",
  };
  const id = await runtime.createContainer(sandbox, config, sandboxConfig);
  await runtime.startContainer(id);
  runtime.exit(id, exitCode);
  const message = async () => (await readPodRecord(runtime, podOf)).containers[0]?.message;
  return { dir, host, message, runtime };
}

test("the end of a long termination message is reported", async (t) => {
  const { message } = await lastWords(t, (host) => writeFile(host, `${"x".repeat(10_000)}end`));
  assert.equal(await message(), `${"x".repeat(4093)}end`);
});

for (const { what, make, why } of [
  {
    what: "a pipe without a writer",
    make: async (host: string) => execFileSync("mkfifo", [host]),
    why: "not a regular file",
  },
  { what: "a folder", make: (host: string) => mkdir(host), why: "not a regular file" },
  { what: "a link to a file of the host", make: (host: string) => symlink("/etc/passwd", host), why: "ELOOP" },
]) {
  test(`${what} in place of the termination message is reported without blocking`, { timeout: 120_000 }, async (t) => {
    const { host, message } = await lastWords(t, make);
    const text = (await message()) ?? "";
    assert.ok(text.startsWith(`Error on reading termination message from ${host}: `) && text.includes(why), text);
  });
}

test("with FallbackToLogsOnError the end of the log is the message of a failed container without one", async (t) => {
  const policy = { [annotationNames.terminationMessagePolicy]: "FallbackToLogsOnError" };
  const { dir, message } = await lastWords(t, (host) => writeFile(host, ""), policy);
  const lines = Array.from({ length: 100 }, (_, i) => `2022-01-01T00:00:00Z stderr F line ${i}\n`);
  await writeFile(join(dir, "log"), lines.join(""));
  assert.equal(await message(), Array.from({ length: 80 }, (_, i) => `line ${i + 20}\n`).join(""));
  await writeFile(
    join(dir, "log"),
    lines.map((line) => line.replace("line", "a long line of fifty characters, all in all")).join(""),
  );
  const text = (await message()) ?? "";
  assert.deepEqual([text.length, text.endsWith("all in all 99\n")], [2048, true], "two kilobytes at most");
});

for (const { name, policy, exitCode } of [
  { name: "that did not fail", policy: "FallbackToLogsOnError", exitCode: 0 },
  { name: "that does not want it", policy: "File", exitCode: 1 },
]) {
  test(`the end of the log is not the message of a container ${name}`, async (t) => {
    const more = { [annotationNames.terminationMessagePolicy]: policy };
    const { dir, message } = await lastWords(t, (host) => writeFile(host, ""), more, exitCode);
    await writeFile(join(dir, "log"), "2022-01-01T00:00:00Z stderr F line\n");
    assert.equal(await message(), "");
  });
}

for (const { what, network, want } of [
  { what: "has one address", network: { ip: "10.0.0.1" }, want: ["10.0.0.1"] },
  { what: "has two", network: { ip: "10.0.0.1", additionalIps: [{ ip: "fd00::1" }] }, want: ["10.0.0.1", "fd00::1"] },
  { what: "has no first address", network: { ip: "", additionalIps: [{ ip: "fd00::1" }, { ip: "" }] }, want: ["fd00::1"] },
  { what: "has no network", network: null, want: [] },
]) {
  test(`a sandbox that ${what} has the IPs ${want.join(" and ") || "of none"}`, async () => {
    const runtime = newFakeRuntime(newFakeClock());
    const labels = { [labelNames.podUid]: podOf.uid };
    await runtime.runPodSandbox({ metadata: podOf, labels }, "");
    const status = runtime.podSandboxStatus.bind(runtime);
    runtime.podSandboxStatus = async (id) => ({ ...(await status(id)), network }) as Awaited<ReturnType<typeof status>>;
    const record = await readPodRecord(runtime, podOf);
    assert.deepEqual(record.sandboxes[0]?.ips, want);
    assert.deepEqual(podIps(record), want);
  });
}

test("a sandbox that is not ready has no IPs, and the newest attempt of one time comes first", async () => {
  const runtime = newFakeRuntime(newFakeClock());
  const labels = { [labelNames.podUid]: podOf.uid };
  const ids = [];
  for (const attempt of [0, 1]) ids.push(await runtime.runPodSandbox({ metadata: { ...podOf, attempt }, labels }, ""));
  const before = await readPodRecord(runtime, podOf);
  assert.deepEqual(
    before.sandboxes.map(({ attempt }) => attempt),
    [1, 0],
  );
  assert.equal(podIps(before).length, 1);
  await runtime.stopPodSandbox(ids[1] ?? "");
  const { podSandboxStatus } = runtime;
  runtime.podSandboxStatus = async (id) => ({ ...(await podSandboxStatus(id)), network: { ip: "10.0.0.9", additionalIps: [] } });
  assert.deepEqual(
    podIps(await readPodRecord(runtime, podOf)),
    [],
    "though the older one is ready, and the runtime still names it",
  );
});

test("of a container's instances of one time the later comes first, by the restart count that the agent noted", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const labels = { [labelNames.podUid]: podOf.uid, [labelNames.containerName]: "main" };
  const sandbox = await runtime.runPodSandbox({ metadata: podOf, labels }, "");
  for (const restartCount of [4, 5])
    await runtime.createContainer(
      sandbox,
      { metadata: { name: "main", attempt: 0 }, labels, annotations: { [annotationNames.restartCount]: String(restartCount) } },
      {},
    );
  const { containers } = await readPodRecord(runtime, podOf);
  assert.deepEqual(
    containers.map(({ restartCount }) => restartCount),
    [5, 4],
  );
});

for (const isReversed of [false, true]) {
  test(`of one time the later attempt and restart come first, whatever the runtime's order${isReversed ? ", reversed" : ""}`, async () => {
    const runtime = newFakeRuntime(newFakeClock());
    const labels = { [labelNames.podUid]: podOf.uid, [labelNames.containerName]: "main" };
    let sandbox = "";
    for (const attempt of [0, 1]) {
      sandbox = await runtime.runPodSandbox({ metadata: { ...podOf, attempt }, labels }, "");
      await runtime.createContainer(sandbox, { metadata: { name: "main", attempt }, labels }, {});
    }
    const { podSandboxStatus, containerStatus, listPodSandboxes, listContainers } = runtime;
    const inOrder = <T>(list: T[]): T[] => (isReversed ? list.toReversed() : list);
    runtime.podSandboxStatus = async (id) => ({ ...(await podSandboxStatus(id)), createdAt: 7e9 });
    runtime.containerStatus = async (id) => ({ ...(await containerStatus(id)), createdAt: 7e9 });
    runtime.listPodSandboxes = async (filter) => inOrder(await listPodSandboxes(filter));
    runtime.listContainers = async (filter) => inOrder(await listContainers(filter));
    const { sandboxes, containers } = await readPodRecord(runtime, podOf);
    assert.deepEqual(
      [sandboxes.map(({ attempt }) => attempt), containers.map(({ restartCount }) => restartCount)],
      [
        [1, 0],
        [1, 0],
      ],
    );
  });
}

test("the newest sandbox and container come first, and those that were removed since they were listed are left out", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const labels = { [labelNames.podUid]: podOf.uid, [labelNames.containerName]: "main" };
  const ids: string[] = [];
  for (const attempt of [5, 6, 4]) {
    const sandbox = await runtime.runPodSandbox({ metadata: { ...podOf, attempt }, labels }, "");
    ids.push(sandbox, await runtime.createContainer(sandbox, { metadata: { name: "main", attempt }, labels }, {}));
    await clock.advance(1_000);
  }
  const gone = [ids[2], ids[3]];
  const { podSandboxStatus, containerStatus } = runtime;
  const unlessGone = <T>(id: string, read: (id: string) => Promise<T>): Promise<T> =>
    gone.includes(id) ? Promise.reject(new RuntimeError("NotFound", "removed")) : read(id);
  runtime.podSandboxStatus = (id) => unlessGone(id, podSandboxStatus);
  runtime.containerStatus = (id) => unlessGone(id, containerStatus);
  const { sandboxes, containers } = await readPodRecord(runtime, podOf);
  assert.deepEqual(
    [sandboxes.map(({ attempt }) => attempt), containers.map(({ restartCount }) => restartCount)],
    [
      [4, 5],
      [4, 5],
    ],
  );
  runtime.containerStatus = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  await assert.rejects(readPodRecord(runtime, podOf), { code: "Unavailable" });
});

test("containers are found by their whole names, also among many", () => {
  for (const count of [3, 40]) {
    const record = aPodRecord(
      Array.from({ length: count }, (_, i) => aContainerRecord({ name: `c${i % 20}`, restartCount: -i })),
    );
    assert.deepEqual(
      containersNamed(record, "c1").map(({ restartCount }) => -restartCount),
      count === 3 ? [1] : [1, 21],
    );
    assert.equal(newestContainer(record, "c1")?.restartCount, -1);
    assert.deepEqual(containersNamed(record, "none"), []);
  }
});

test("the termination message is read from its own mount, and its file is closed", async (t) => {
  const { dir, host, message } = await lastWords(t, (path) => writeFile(path, "bye"));
  assert.equal(await message(), "bye");
  assert.deepEqual(await openFilesBelow(dir), []);
  const runtime = newFakeRuntime(newFakeClock());
  const labels = { [labelNames.podUid]: podOf.uid };
  const sandbox = await runtime.runPodSandbox({ metadata: podOf, labels }, "");
  const id = await runtime.createContainer(
    sandbox,
    {
      metadata: { name: "main" },
      labels: { ...labels, [labelNames.containerName]: "main" },
      annotations: { [annotationNames.terminationMessagePath]: messagePath },
      mounts: [
        { containerPath: "/data", hostPath: join(dir, "none") },
        { containerPath: messagePath, hostPath: host },
      ],
    },
    {},
  );
  await runtime.startContainer(id);
  runtime.exit(id, 0);
  assert.equal((await readPodRecord(runtime, podOf)).containers[0]?.message, "bye");
});

test("what a running container has written so far is not its termination message", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-words-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, "words"), "not yet");
  const runtime = newFakeRuntime(newFakeClock());
  const labels = { [labelNames.podUid]: podOf.uid };
  const sandbox = await runtime.runPodSandbox({ metadata: podOf, labels }, "");
  const id = await runtime.createContainer(
    sandbox,
    {
      metadata: { name: "main" },
      labels: { ...labels, [labelNames.containerName]: "main" },
      annotations: { [annotationNames.terminationMessagePath]: messagePath },
      mounts: [{ containerPath: messagePath, hostPath: join(dir, "words") }],
    },
    {},
  );
  await runtime.startContainer(id);
  const message = async () => (await readPodRecord(runtime, podOf)).containers[0]?.message;
  assert.equal(await message(), "");
  runtime.exit(id, 0);
  assert.equal(await message(), "not yet");
});

test("what the runtime says of a container comes before its termination message, and what cannot be read before the end of its log", async (t) => {
  const policy = { [annotationNames.terminationMessagePolicy]: "FallbackToLogsOnError" };
  const { host, dir, message, runtime } = await lastWords(t, (path) => writeFile(path, "bye"), policy);
  const status = runtime.containerStatus.bind(runtime);
  runtime.containerStatus = async (id) => ({ ...(await status(id)), message: "OOM" });
  assert.equal(await message(), "OOM: bye");
  await writeFile(host, "");
  await writeFile(join(dir, "log"), "2022-01-01T00:00:00Z stderr F line\n");
  assert.equal(await message(), "OOM: line\n");
  await rm(host);
  await mkdir(host);
  assert.match((await message()) ?? "", /^Error on reading termination message from .*\/words: .*not a regular file.*: line\n$/);
});

test("a container without the agent's labels and annotations has the name and attempt of its metadata", async () => {
  const runtime = newFakeRuntime(newFakeClock());
  const labels = { [labelNames.podUid]: podOf.uid };
  const sandbox = await runtime.runPodSandbox({ metadata: podOf, labels }, "");
  await runtime.createContainer(sandbox, { metadata: { name: "foreign", attempt: 4 }, labels }, { metadata: podOf, labels });
  const [container] = (await readPodRecord(runtime, podOf)).containers;
  assert.deepEqual([container?.name, container?.restartCount, container?.hash], ["foreign", 4, ""]);
});
