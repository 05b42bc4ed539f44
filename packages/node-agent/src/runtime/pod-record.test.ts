import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { annotationNames, labelNames } from "./labels.ts";
import { readPodRecord } from "./pod-record.ts";

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
  return { dir, host, message };
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
