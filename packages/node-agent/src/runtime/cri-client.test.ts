import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { busyboxImage, canRunContainerd, type RunningContainerd, startContainerd } from "../testing/containerd.ts";
import { decodeCri, encodeCri, newCriClient, socketPath } from "./cri-client.ts";
import { criEnums, criMessages, criServices } from "./cri-schema.ts";
import { newMessageCodec } from "./messages.ts";
import type { ContainerRuntime } from "./runtime.ts";
import { runtimeSuite } from "./suite.ts";

test("messages have the CRI's wire format", () => {
  // 0a 04 "pod1": field 1, four bytes; 10 1e: field 2, thirty
  assert.equal(encodeCri("StopContainerRequest", { containerId: "pod1", timeout: 30 }).toString("hex"), "0a04706f6431101e");
  const decoded = decodeCri(
    "ContainerStatus",
    encodeCri("ContainerStatus", { id: "x", exitCode: -1, labels: { a: "b" }, startedAt: 1.7e18 }),
  );
  hasFields(decoded, {
    id: "x",
    exitCode: -1,
    labels: { a: "b" },
    startedAt: 1.7e18,
    mounts: [],
    image: null,
  });
});

test("only unix sockets are endpoints", () => {
  assert.equal(socketPath("unix:///run/c.sock"), "/run/c.sock");
  assert.equal(socketPath("/run/c.sock"), "/run/c.sock");
  assert.throws(() => socketPath("tcp://127.0.0.1:1"), /is not supported/);
});

test("calls of a missing runtime fail quickly with Unavailable", async () => {
  const runtime = newCriClient({ endpoint: "unix:///run/cox-no-such.sock", requestTimeoutMs: 2_000 });
  await assert.rejects(runtime.version(), /rpc error: code = Unavailable|DeadlineExceeded/);
  runtime.close();
});

const codec = newMessageCodec(criMessages, criEnums);
type Answers = Readonly<Record<string, object | { code: number; details: string }>>;

/** A runtime that answers the given methods, by version of the interface, and any other one with Unimplemented. */
async function playRuntime(t: TestContext, answers: { v1?: Answers; v1alpha2?: Answers }) {
  const dir = await mkdtemp(join(tmpdir(), "cox-cri-"));
  const endpoint = `unix://${join(dir, "cri.sock")}`;
  const calls: string[] = [];
  const deadlines: number[] = [];
  const requests: object[] = [];
  const server = new Server();
  const current: { v1?: Answers; v1alpha2?: Answers } = { ...answers };
  for (const version of ["v1", "v1alpha2"] as const) {
    for (const [service, methods] of Object.entries(criServices)) {
      for (const method of methods) {
        const definition = {
          path: `/runtime.${version}.${service}/${method}`,
          requestStream: false as const,
          responseStream: false as const,
          requestSerialize: (message: object) => codec.encode(`${method}Request`, message),
          requestDeserialize: (bytes: Buffer) => codec.decode(`${method}Request`, bytes),
          responseSerialize: (message: object) => codec.encode(`${method}Response`, message),
          responseDeserialize: (bytes: Buffer) => codec.decode(`${method}Response`, bytes),
        };
        const handler = (call: ServerUnaryCall<object, object>, answer: sendUnaryData<object>) => {
          calls.push(`${version} ${method}`);
          deadlines.push(Number(call.getDeadline()));
          requests.push(call.request);
          const given = current[version]?.[method];
          if (given === undefined) answer({ code: status.UNIMPLEMENTED, details: `unknown method ${method}` });
          else if ("code" in given) answer(given);
          else answer(null, given);
        };
        server.addService({ [method]: definition }, { [method]: handler });
      }
    }
  }
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (err) => (err === null ? resolve() : reject(err)));
  });
  t.after(async () => {
    server.forceShutdown();
    await rm(dir, { recursive: true, force: true });
  });
  return { endpoint, calls, deadlines, requests, current };
}

/** Longer than any call takes on a loaded machine. */
const requestTimeoutMs = 600_000;

function connectTo(t: TestContext, endpoint: string, imageEndpoint?: string) {
  const reported: string[] = [];
  const onCall = (method: string, _: number, err: unknown) => reported.push(`${method} ${err === undefined ? "ok" : "failed"}`);
  const runtime = newCriClient({ endpoint, imageEndpoint, requestTimeoutMs, onCall });
  t.after(() => runtime.close());
  return { runtime, reported };
}

const version = { runtimeName: "played", version: "0.1.0", runtimeVersion: "1", runtimeApiVersion: "v1" };

test("a runtime without v1 is called with v1alpha2, and with v1 again once v1alpha2 is unimplemented", async (t) => {
  const { endpoint, calls, current } = await playRuntime(t, { v1alpha2: { Version: version } });
  const { runtime, reported } = connectTo(t, endpoint);
  for (let i = 0; i < 2; i++) assert.equal((await runtime.version()).runtimeName, "played");
  assert.deepEqual(calls.splice(0), ["v1 Version", "v1alpha2 Version", "v1alpha2 Version"], "queried once");
  Object.assign(current, { v1: { Version: version }, v1alpha2: {} });
  await assert.rejects(runtime.version(), { code: "Unimplemented" });
  await runtime.version();
  await runtime.version();
  assert.deepEqual(calls, ["v1alpha2 Version", "v1 Version", "v1 Version"]);
  assert.deepEqual(reported, ["Version ok", "Version ok", "Version failed", "Version ok", "Version ok"]);
});

test("a failure other than Unimplemented is not retried with the other version, and keeps its code", async (t) => {
  const unavailable = { code: status.UNAVAILABLE, details: "starting" };
  const { endpoint, calls, current } = await playRuntime(t, { v1: { Version: unavailable }, v1alpha2: { Version: version } });
  const { runtime } = connectTo(t, endpoint);
  await assert.rejects(runtime.version(), { code: "Unavailable", message: "rpc error: code = Unavailable desc = starting" });
  Object.assign(current, { v1: { Version: version } });
  await runtime.version();
  assert.deepEqual(calls, ["v1 Version", "v1 Version"]);
});

test("answers of up to 16 MiB are read, as those of a machine with thousands of containers", async (t) => {
  const { endpoint, current } = await playRuntime(t, { v1: { Version: version } });
  const { runtime } = connectTo(t, endpoint);
  const answerWith = (mib: number) => {
    Object.assign(current, { v1: { Version: { ...version, runtimeVersion: "x".repeat(mib * 2 ** 20) } } });
    return runtime.version();
  };
  assert.equal((await answerWith(15)).runtimeVersion.length, 15 * 2 ** 20);
  await assert.rejects(answerWith(17), { code: "ResourceExhausted" });
});

test("image calls use the image endpoint, with a version of its own", async (t) => {
  const both = await playRuntime(t, { v1: { Version: version, ListImages: { images: [] } } });
  const images = await playRuntime(t, { v1alpha2: { ListImages: { images: [{ id: "i1" }] } } });
  const apart = connectTo(t, both.endpoint, images.endpoint).runtime;
  await apart.version();
  assert.deepEqual(
    (await apart.listImages()).map(({ id }) => id),
    ["i1"],
  );
  assert.deepEqual([both.calls.splice(0), images.calls], [["v1 Version"], ["v1 ListImages", "v1alpha2 ListImages"]]);
  const together = connectTo(t, both.endpoint).runtime;
  assert.deepEqual(await together.listImages(), []);
  assert.deepEqual(both.calls, ["v1 ListImages"]);
  apart.close();
  for (const call of [() => apart.listImages(), () => apart.version()]) await assert.rejects(call, { code: "Unavailable" });
});

test("a response without the requested field is a failure; an absent image is not", async (t) => {
  const empty = Object.fromEntries(
    ["RunPodSandbox", "CreateContainer", "PullImage", "PodSandboxStatus", "ContainerStatus", "Status", "ImageStatus"].map(
      (method): [string, object] => [method, {}],
    ),
  );
  const { endpoint, current } = await playRuntime(t, { v1: empty });
  const { runtime } = connectTo(t, endpoint);
  const config = { metadata: { name: "web" } };
  for (const [call, details] of [
    [() => runtime.runPodSandbox(config, ""), 'PodSandboxId is not set for sandbox "web"'],
    [() => runtime.createContainer("s", config, {}), 'ContainerId is not set for container "web"'],
    [() => runtime.pullImage("i:1", undefined, {}), 'imageRef of image "i:1" is not set'],
    [() => runtime.podSandboxStatus("s1"), "status of sandbox s1 is not set"],
    [() => runtime.containerStatus("c1"), "status of container c1 is not set"],
  ] as const)
    await assert.rejects(call, { code: "Unknown", details });
  assert.deepEqual((await runtime.status()).conditions, []);
  assert.equal(await runtime.imageStatus("i:1"), undefined);
  Object.assign(current, { v1: { ImageStatus: { code: status.NOT_FOUND, details: "no" } } });
  assert.equal(await runtime.imageStatus("i:1"), undefined);
  Object.assign(current, { v1: { ImageStatus: { code: status.INTERNAL, details: "no" } } });
  await assert.rejects(runtime.imageStatus("i:1"), { code: "Internal" });
});

test("each call has the timeout of its operation", async (t) => {
  const done = {
    ListContainers: {},
    StopContainer: {},
    ExecSync: {},
    PullImage: { imageRef: "r" },
    RunPodSandbox: { podSandboxId: "s" },
  };
  const { endpoint, deadlines } = await playRuntime(t, { v1: done });
  const { runtime } = connectTo(t, endpoint);
  const begun = Date.now();
  await runtime.listContainers();
  await runtime.stopContainer("c", 3_600);
  await runtime.execSync("c", ["true"], 3_600);
  await runtime.execSync("c", ["true"], 0);
  await runtime.pullImage("i", undefined, {});
  await runtime.runPodSandbox({}, "");
  const minutes = deadlines.map((deadline) => (deadline - begun) / 60_000);
  // The calls themselves take less than five minutes.
  for (const [i, least] of [10, 70, 70, 360, 360, 20].entries())
    assert.ok((minutes[i] as number) > least - 1 && (minutes[i] as number) < least + 5, `${i}: ${minutes[i]}`);
});

test("requests carry all their fields", async (t) => {
  const done = { PullImage: { imageRef: "r" }, RunPodSandbox: { podSandboxId: "s" }, CreateContainer: { containerId: "c" } };
  const quiet = [
    ...["ListContainers", "ListPodSandbox", "StopContainer", "UpdateRuntimeConfig", "UpdateContainerResources"],
    ...["ReopenContainerLog", "RemoveImage"],
  ];
  const { endpoint, requests } = await playRuntime(t, {
    v1: { ...done, ...Object.fromEntries(quiet.map((name) => [name, {}])) },
  });
  const { runtime } = connectTo(t, endpoint);
  const sandboxConfig = { metadata: { name: "web", uid: "u" } };
  const config = { metadata: { name: "main", attempt: 2 } };
  await runtime.pullImage("i:1", { username: "joe", password: "p" }, sandboxConfig);
  await runtime.runPodSandbox(sandboxConfig, "fast");
  await runtime.createContainer("s1", config, sandboxConfig);
  await runtime.listContainers({ sandboxId: "s1", labels: { a: "b" } });
  await runtime.listPodSandboxes({ id: "s1", labels: { a: "b" } });
  await runtime.stopContainer("c1", 7);
  await runtime.updatePodCidr("10.1.0.0/24");
  await runtime.updateContainerResources("c1", { cpuShares: 2 });
  await runtime.reopenContainerLog("c2");
  await runtime.removeImage("i:2");
  hasFields(requests, [
    { image: { image: "i:1" }, auth: { username: "joe", password: "p" }, sandboxConfig },
    { config: sandboxConfig, runtimeHandler: "fast" },
    { podSandboxId: "s1", config, sandboxConfig },
    { filter: { podSandboxId: "s1", labelSelector: { a: "b" } } },
    { filter: { id: "s1", labelSelector: { a: "b" } } },
    { containerId: "c1", timeout: 7 },
    { runtimeConfig: { networkConfig: { podCidr: "10.1.0.0/24" } } },
    { containerId: "c1", linux: { cpuShares: 2 } },
    { containerId: "c2" },
    { image: { image: "i:2" } },
  ]);
});

test("streams are requested with all their fields, and answered with their URL", async (t) => {
  const urls = { Exec: "http://exec", Attach: "http://attach", PortForward: "http://forward" };
  const { endpoint, calls, requests } = await playRuntime(t, {
    v1: Object.fromEntries(Object.entries(urls).map(([method, url]) => [method, { url }])),
  });
  const { runtime } = connectTo(t, endpoint);
  const exec = { containerId: "c1", cmd: ["sh", "-c"], tty: true, stdin: true, stdout: true, stderr: false };
  const attach = { containerId: "c2", tty: false, stdin: true, stdout: false, stderr: true };
  const forward = { podSandboxId: "s1", port: [80, 443] };
  assert.deepEqual(
    [await runtime.exec(exec), await runtime.attach(attach), await runtime.portForward(forward)],
    Object.values(urls),
  );
  assert.deepEqual(calls, ["v1 Exec", "v1 Attach", "v1 PortForward"]);
  assert.deepEqual(requests, [exec, attach, forward]);
});

test("the statistics of containers are those that the runtime lists", async (t) => {
  const stats = ["a", "b"].map((id) => ({ attributes: { id }, cpu: { usageCoreNanoSeconds: { value: 7 } } }));
  const { endpoint } = await playRuntime(t, { v1: { ListContainerStats: { stats } } });
  hasFields(await connectTo(t, endpoint).runtime.listContainerStats(), stats);
});

if (await canRunContainerd()) {
  let running: Promise<{ containerd: RunningContainerd; runtime: ContainerRuntime }> | undefined;
  runtimeSuite("containerd", async () => {
    running ??= startContainerd().then((containerd) => ({
      containerd,
      runtime: newCriClient({ endpoint: `unix://${containerd.socket}`, requestTimeoutMs: 120_000 }),
    }));
    const { containerd, runtime } = await running;
    return { runtime, image: busyboxImage, logDirectory: join(containerd.dir, "logs") };
  });
  after(async () => {
    const started = await running;
    started?.runtime.close();
    await started?.containerd.stop();
  });
}
