import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { forbidden, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { containerState } from "../runtime/runtime.ts";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { newTestRunner } from "../testing/runner.ts";
import { ContainerStarter } from "./container-starter.ts";
import type { PodRunnerOptions } from "./pod-runner-options.ts";

test("pull secrets that are missing or cannot be read are skipped, those behind them are used; only the latter are logged", async () => {
  const warnings: string[] = [];
  const secret = async (namespace: string, name: string) => {
    if (name === "missing") throw notFound(secrets, name);
    if (name === "refused") throw forbidden(secrets, name, "no");
    return { metadata: { namespace, name } };
  };
  const log = {
    ...discardLogger,
    warn: (text: string, fields: object = {}) => void warnings.push(`${text} ${JSON.stringify(fields)}`),
  };
  const starter = new ContainerStarter({ objects: { secret }, log } as unknown as PodRunnerOptions, () =>
    assert.fail("not needed"),
  );
  const names = ["missing", "first", "refused", "", "second"];
  const found = await starter.pullSecretsOf(aNodePod({ imagePullSecrets: names.map((name) => ({ name })) }));
  assert.deepEqual(
    found.map(({ metadata }) => metadata.name),
    ["first", "second"],
  );
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /refused/);
});

test("devices' variables, mounts and devices are added to the container's own; its resources are told of its start", async (t) => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const started: string[] = [];
  const access = {
    envs: { WHO: "device", LIGHT: "red" },
    mounts: ["/a", "/b"].map((path) => ({ hostPath: path, containerPath: path, readOnly: path === "/a" })),
    devices: [{ hostPath: "/dev/null", containerPath: "/dev/light", permissions: "rw" }],
    annotations: { light: "red" },
  };
  const resources = {
    placementOf: () => ({ cpusetCpus: "1" }),
    accessOf: async () => access,
    started: (pod: NodePod, { name }: { name: string }) => void started.push(`${pod.metadata.name}/${name}`),
  } as unknown as PodRunnerOptions["resources"];
  const { runner } = await newTestRunner(t, runtime, clock, { resources });
  await runner.sync(
    aNodePod({ containers: [aContainer({ env: [{ name: "WHO", value: "me" }] })] }),
    new AbortController().signal,
  );
  const config = runtime.find("main")?.config;
  const envs = Object.fromEntries((config?.envs ?? []).map(({ key, value }) => [key, value]));
  assert.deepEqual(envs, { WHO: "me", LIGHT: "red" });
  assert.deepEqual(
    config?.mounts?.slice(0, 2).map(({ hostPath, readonly }) => [hostPath, readonly]),
    [
      ["/a", true],
      ["/b", false],
    ],
  );
  assert.partialDeepStrictEqual(config, {
    devices: access.devices,
    annotations: { light: "red" },
    linux: { resources: { cpusetCpus: "1" } },
  });
  assert.deepEqual(started, ["web/main"]);
});

test("before the services are known only static pods start", async (t) => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const { runner, events } = await newTestRunner(t, runtime, clock, { services: () => undefined });
  const { signal } = new AbortController();
  await runner.sync(aNodePod({}, { uid: "static", annotations: { [configSourceAnnotation]: "file" } }), signal);
  assert.equal(runtime.find("main")?.state, containerState.running);
  await runner.sync(aNodePod({}, { uid: "other" }), signal);
  assert.equal(runtime.containers.size, 1);
  assert.equal(events.at(-1)?.message, "Error: services have not yet been read at least once, cannot construct envvars");
});

test("a hook is called at the first of the pod's addresses", async (t) => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const { podSandboxStatus } = runtime;
  runtime.podSandboxStatus = async (id) => ({
    ...(await podSandboxStatus(id)),
    network: { ip: "127.0.0.1", additionalIps: [{ ip: "fd00::1" }] },
  });
  const server = createServer((_, response) => void response.end());
  const port = await listening(t, server);
  const { runner } = await newTestRunner(t, runtime, clock);
  const lifecycle = { postStart: { httpGet: { port } } };
  const outcome = await runner.sync(aNodePod({ containers: [aContainer({ lifecycle })] }), new AbortController().signal);
  assert.equal(outcome.kind, "synced");
});

test("a container whose image cannot be pulled gets an event with the reason", async (t) => {
  const clock = newFakeClock();
  const { runner, events } = await newTestRunner(t, newFakeRuntime(clock), clock);
  await runner.sync(aNodePod(), new AbortController().signal);
  assert.partialDeepStrictEqual(events.at(-1), {
    container: "main",
    type: "Warning",
    reason: "Failed",
    message: "Error: ErrImagePull",
  });
});

test("an image that cannot be looked at for another reason is told as it is", async (t) => {
  const clock = newFakeClock();
  const images = { ensure: () => Promise.reject(new Error("disk full")) } as unknown as PodRunnerOptions["images"];
  const { runner, events } = await newTestRunner(t, newFakeRuntime(clock), clock, { images });
  const outcome = await runner.sync(aNodePod(), new AbortController().signal);
  assert.equal(
    outcome.kind === "failed" ? outcome.error.message : "",
    'error syncing pod: failed to "StartContainer" for "main" with CreateContainerError: "disk full"',
  );
  assert.partialDeepStrictEqual(events.at(-1), { reason: "Failed", message: "Error: disk full" });
});

test("keys that are no names of variables are an event of the pod, by object", async (t) => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const data = { "b b": "", "a a": "", ok: "" };
  const objects = {
    ...noObjects,
    secret: async () => ({ metadata: {}, data }),
    configMap: async () => ({ metadata: {}, data }),
  };
  const { runner, events } = await newTestRunner(t, runtime, clock, { objects });
  const envFrom = [{ secretRef: { name: "s" } }, { configMapRef: { name: "cm" } }];
  await runner.sync(aNodePod({ containers: [aContainer({ envFrom })] }), new AbortController().signal);
  const why = "were skipped since they are considered invalid environment variable names.";
  assert.deepEqual(
    events.filter(({ reason }) => reason === "InvalidEnvironmentVariableNames").map(({ type, message }) => `${type} ${message}`),
    [
      `Warning Keys [a a, b b] from the EnvFrom secret default/s ${why}`,
      `Warning Keys [a a, b b] from the EnvFrom configMap default/cm ${why}`,
    ],
  );
});
