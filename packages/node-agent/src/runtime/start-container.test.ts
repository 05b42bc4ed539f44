import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Container, EphemeralContainer } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { mostCharacters } from "../environment/expansion.ts";
import type { NodePod } from "../pod/pod.ts";
import { aContainer, aContainerRecord, aNodePod, aPodRecord } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { type ContainerDependencies, type ContainerOptions, startContainer } from "./containers.ts";
import type { RunHook } from "./hook-call.ts";
import { annotationNames } from "./labels.ts";
import { podLogDirectory } from "./pod-logs.ts";
import { containerState, RuntimeError } from "./runtime.ts";

async function bench(t: TestContext, runHook: RunHook = async () => undefined) {
  const dir = await mkdtemp(join(tmpdir(), "cox-start-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const sandboxId = await runtime.runPodSandbox({ metadata: { name: "web" } }, "");
  const [podLogsDir, containerLogsDir] = [join(dir, "pods"), join(dir, "containers")];
  const events: string[] = [];
  const event: ContainerDependencies["event"] = (_pod, _container, type, reason, message) =>
    void events.push(`${type} ${reason} ${message}`);
  const warnings: string[] = [];
  const deps = {
    runtime,
    clock,
    log: { ...discardLogger, warn: (message: string) => void warnings.push(message) },
    event,
    runHook,
    podLogsDir,
    containerLogsDir,
    seccompDefault: false,
    seccompRoot: dir,
  };
  const start = async (
    container: Container | EphemeralContainer,
    own: Partial<ContainerOptions> = {},
    pod: NodePod = aNodePod(),
    signal = new AbortController().signal,
    record = aPodRecord([]),
  ) => {
    await startContainer(deps, {
      pod,
      container,
      kind: "regular",
      record,
      sandboxId,
      sandboxConfig: {},
      podIp: "",
      imageRef: "sha256:registry.test/busybox:1",
      image: undefined,
      resources: {},
      signal,
      options: async () => ({ environment: new Map(), mounts: [], devices: [], volumeGroups: [], annotations: {}, ...own }),
    });
    return runtime.find(container.name)?.config;
  };
  return { start, runtime, events, warnings, podLogsDir, containerLogsDir, deps };
}

test("variables are expanded in the command and in its arguments", async (t) => {
  const { start } = await bench(t);
  const config = await start(aContainer({ command: ["echo", "$(WHO)"], args: ["$(WHO)", "$(NONE)"] }), {
    environment: new Map([["WHO", "me"]]),
  });
  assert.deepEqual(
    [config?.command, config?.args],
    [
      ["echo", "me"],
      ["me", "$(NONE)"],
    ],
  );
});

test("a command that is too long together with its arguments is refused", async (t) => {
  const { start } = await bench(t);
  const options = { environment: new Map([["HALF", "x".repeat(mostCharacters / 2)]]) };
  assert.ok(await start(aContainer({ name: "a", command: ["$(HALF)"], args: ["$(HALF)"] }), options));
  await assert.rejects(
    start(aContainer({ name: "b", command: ["$(HALF)"], args: ["$(HALF)", "y"] }), options),
    /is longer than 6291456 characters/,
  );
});

test("annotations of devices do not override those that identify the container", async (t) => {
  const { start } = await bench(t);
  const config = await start(aContainer(), { annotations: { device: "1", [annotationNames.restartCount]: "77" } });
  hasFields(config?.annotations, { device: "1", [annotationNames.restartCount]: "0" });
});

test("a container of which only a rotated log is left is started as the next attempt", async (t) => {
  const { start, podLogsDir } = await bench(t);
  const logs = join(podLogDirectory(podLogsDir, aNodePod()), "main");
  await mkdir(logs, { recursive: true });
  await writeFile(join(logs, "3.log.20220101-000000.gz"), "");
  assert.equal((await start(aContainer()))?.metadata?.attempt, 4);
});

test("the name of a log's link is cut to what a file's name may be, and ends with the container's ID", async (t) => {
  const { start, containerLogsDir } = await bench(t);
  await start(aContainer({ name: "c".repeat(63) }), {}, aNodePod({}, { name: "p".repeat(200) }));
  const [link = ""] = await readdir(containerLogsDir);
  assert.match(link, /^p{186}-[0-9a-f]{64}\.log$/);
  assert.equal(link.length, 255);
});

test("the start of a container whose pod is terminating already does not wait for its postStart hook", async (t) => {
  const { start } = await bench(t, () => new Promise(() => undefined));
  const lifecycle = { postStart: { exec: { command: ["hang"] } } };
  const config = await start(aContainer({ lifecycle }), {}, aNodePod(), AbortSignal.abort());
  assert.equal(config?.metadata?.name, "main");
});

test("a container is created with its working directory, terminal and standard input as specified", async (t) => {
  const { start } = await bench(t);
  const own = { workingDir: "/w", stdin: true, stdinOnce: true, tty: true };
  assert.partialDeepStrictEqual(await start(aContainer(own)), own);
  const config = await start(aContainer({ name: "plain" }));
  assert.partialDeepStrictEqual(config, { workingDir: "", stdin: false, stdinOnce: false, tty: false });
});

for (const { fails, reason } of [
  { fails: "createContainer", reason: "CreateContainerError" },
  { fails: "startContainer", reason: "RunContainerError" },
] as const) {
  test(`a container whose ${fails} fails has the runtime's own words, without the code of the call`, async (t) => {
    const { start, runtime, events } = await bench(t);
    Object.assign(runtime, { [fails]: () => Promise.reject(new RuntimeError("Unknown", "no such device")) });
    await assert.rejects(start(aContainer()), { reason, message: "no such device" });
    assert.equal(events.at(-1), "Warning Failed Error: no such device");
  });
}

test("a container whose postStart hook fails is stopped", async (t) => {
  const { start, runtime, events } = await bench(t, () => Promise.reject(new Error("no such command")));
  const lifecycle = { postStart: { exec: { command: ["x"] } } };
  await assert.rejects(start(aContainer({ lifecycle })), { reason: "PostStartHookError" });
  assert.deepEqual(runtime.calls.slice(-2), ["StartContainer main", "StopContainer main"]);
  const failure =
    'Exec lifecycle hook ([x]) for Container "main" in Pod "web_default(uid-1)" failed - error: no such command, message: ""';
  assert.deepEqual(events.slice(-2), [`Warning FailedPostStartHook ${failure}`, "Normal Killing FailedPostStartHook"]);
});

test("a link to a log that exists is kept, without a warning", async (t) => {
  const { start, runtime, warnings, containerLogsDir } = await bench(t);
  await mkdir(containerLogsDir);
  const { createContainer } = runtime;
  runtime.createContainer = async (...given) => {
    const id = await createContainer(...given);
    await writeFile(join(containerLogsDir, `web_default_main-${id}.log`), "");
    return id;
  };
  await start(aContainer());
  assert.deepEqual(warnings, []);
});

test("an ephemeral container joins the processes of the newest instance of the container that it names", async (t) => {
  const { start } = await bench(t);
  const debug = (targetContainerName: string) => ({ ...aContainer({ name: "debug" }), targetContainerName });
  const record = aPodRecord([
    aContainerRecord({ name: "other", id: "o" }),
    aContainerRecord({ name: "main", id: "new", createdAt: 2 }),
    aContainerRecord({ name: "main", id: "old", createdAt: 1 }),
  ]);
  const inPod = async (target: string) =>
    (await start(debug(target), {}, aNodePod(), undefined, record))?.linux?.securityContext?.namespaceOptions;
  hasFields(await inPod("main"), { pid: 3, targetId: "new" });
  await assert.rejects(start(debug("none"), {}, aNodePod(), undefined, record), {
    message: "unable to find target container none",
  });
});

test("a container runs though its log cannot be linked, which is logged", async (t) => {
  const { start, runtime, warnings, containerLogsDir, deps } = await bench(t);
  await writeFile(containerLogsDir, "a file in place of a folder above");
  deps.containerLogsDir = join(containerLogsDir, "below");
  await start(aContainer());
  assert.deepEqual([runtime.find("main")?.state, warnings], [containerState.running, ["cannot link a container's log"]]);
});
