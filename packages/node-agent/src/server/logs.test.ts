import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ContainerStatus, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { type ContainerRuntime, containerState, RuntimeError } from "../runtime/runtime.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { serveLogs } from "./logs.ts";

const now = Date.parse("2026-01-01T00:01:00Z");
const line = (seconds: number, text: string): string =>
  `2026-01-01T00:00:${String(seconds).padStart(2, "0")}.000000000Z stdout F ${text}\n`;

/** Serves logs over HTTP; the containers `old`, `now` and `other` have written three lines each. */
async function serving(t: TestContext, status: PodStatus | undefined, containers = runtimeOf) {
  const dir = await mkdtemp(join(tmpdir(), "cox-logs-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, "pod"));
  for (const id of ["old", "now", "other"])
    await writeFile(join(dir, "pod", `${id}.log`), line(10, `${id} 1`) + line(20, `${id} 2`) + line(30, `${id} 3`));
  const pod = aNodePod({
    initContainers: [aContainer({ name: "init" })],
    containers: [aContainer(), aContainer({ name: "second" })],
    ephemeralContainers: [{ ...aContainer({ name: "debug" }) }],
  });
  const context = {
    runtime: containers(dir),
    podLogsDir: dir,
    podByName: (namespace: string, name: string) => (namespace === "default" && name === "web" ? pod : undefined),
    statusOf: () => status,
    now: () => now,
  };
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    log: discardLogger,
    handler: (exchange) => {
      const [path = "", query] = exchange.url.split("?");
      return serveLogs(exchange, context, path.slice(1).split("/"), new URLSearchParams(query));
    },
  });
  t.after(() => server.close(0));
  return async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return `${response.status} ${await response.text()}`;
  };
}

const runtimeOf = (dir: string) =>
  ({
    containerStatus: async (id: string) => ({ logPath: join(dir, "pod", `${id}.log`), state: containerState.running }),
  }) as unknown as ContainerRuntime;

const one = (name: string, rest: Partial<ContainerStatus>): ContainerStatus => ({
  name,
  ready: true,
  restartCount: 0,
  image: "i",
  imageID: "i",
  ...rest,
});
const ended = (id: string) => ({ terminated: { exitCode: 1, ...(id === "" ? {} : { containerID: `containerd://${id}` }) } });
const running = { running: { startedAt: "2026-01-01T00:00:00Z" } };
const who = 'container "main" in pod "web"';

for (const { name, status, query = "", want } of [
  { name: "one that runs", status: { containerID: "containerd://now", state: running, lastState: ended("old") }, want: "now" },
  {
    name: "the life before that of one that runs",
    status: { containerID: "containerd://now", state: running, lastState: ended("old") },
    query: "?previous=true",
    want: "old",
  },
  { name: "one that has ended", status: { state: ended("now"), lastState: ended("old") }, want: "now" },
  { name: "one that ended without a log", status: { state: ended(""), lastState: ended("old") }, want: "old" },
  { name: "one that waits to be started again", status: { state: { waiting: {} }, lastState: ended("old") }, want: "old" },
  { name: "one that ended without any trace", status: { state: ended("") }, want: `400 ${who} is terminated` },
  {
    name: "one that waits after an end without any trace",
    status: { state: { waiting: { reason: "PodInitializing" } }, lastState: ended("") },
    want: `400 ${who} is terminated`,
  },
  {
    name: "one without a life before",
    status: { containerID: "containerd://now", state: running },
    query: "?previous=1",
    want: `400 previous terminated ${who} not found`,
  },
  {
    name: "one whose image is not there",
    status: { state: { waiting: { reason: "ErrImagePull" } } },
    want: `400 ${who} is waiting to start: image can't be pulled`,
  },
  {
    name: "one whose image is tried again",
    status: { state: { waiting: { reason: "ImagePullBackOff" } } },
    want: `400 ${who} is waiting to start: trying and failing to pull image`,
  },
  {
    name: "one that waits for something else",
    status: { state: { waiting: { reason: "PodInitializing" } } },
    want: `400 ${who} is waiting to start: PodInitializing`,
  },
  { name: "one of which nothing is known", status: { state: {} }, want: `400 ${who} is waiting to start - no logs yet` },
]) {
  test(`the log of ${name}`, async (t) => {
    const get = await serving(t, { containerStatuses: [one("second", { containerID: "x://other" }), one("main", status)] });
    const expected = want.startsWith("400") ? want : `200 ${want} 1\n${want} 2\n${want} 3\n`;
    assert.equal(await get(`/default/web/main${query}`), expected);
  });
}

test("init and ephemeral containers have logs; a container without a status has none yet", async (t) => {
  const get = await serving(t, {
    initContainerStatuses: [one("init", { state: ended("old") })],
    ephemeralContainerStatuses: [one("debug", { state: running, containerID: "containerd://now" })],
  });
  assert.match(await get("/default/web/init"), /^200 old 1/);
  assert.match(await get("/default/web/debug"), /^200 now 1/);
  assert.equal(await get("/default/web/main"), `400 ${who} is not available`);
});

for (const { query, want } of [
  { query: "tailLines=2", want: "200 now 2\nnow 3\n" },
  { query: "tailLines=0", want: "200 " },
  { query: "tail=1&tailLines=2", want: "200 now 3\n" },
  { query: "tail=all&tailLines=1", want: "200 now 1\nnow 2\nnow 3\n" },
  { query: "limitBytes=7", want: "200 now 1\nn" },
  { query: "limitBytes=1", want: "200 n" },
  { query: "sinceSeconds=40", want: "200 now 2\nnow 3\n" },
  { query: "sinceTime=2026-01-01T00:00:30Z", want: "200 now 3\n" },
  { query: "tailLines=1&timestamps=true", want: "200 2026-01-01T00:00:30.000000000Z now 3\n" },
  { query: "tailLines=1&timestamps", want: "200 2026-01-01T00:00:30.000000000Z now 3\n" },
  { query: "tailLines=1&timestamps=False", want: "200 now 3\n" },
  { query: "tailLines=1&timestamps=0", want: "200 now 3\n" },
  { query: "tailLines=x", want: '400 {"message": "Unable to decode query."}' },
  { query: "limitBytes=0", want: '422 {"message": "Invalid request: limitBytes: must be greater than 0"}' },
  { query: "sinceSeconds=0", want: '422 {"message": "Invalid request: sinceSeconds: must be greater than 0"}' },
  {
    query: "sinceSeconds=1&sinceTime=2026-01-01T00:00:30Z",
    want: '422 {"message": "Invalid request: at most one of `sinceTime` or `sinceSeconds` may be specified"}',
  },
]) {
  test(`a log with ${query}`, async (t) => {
    const get = await serving(t, { containerStatuses: [one("main", { state: running, containerID: "containerd://now" })] });
    assert.equal(await get(`/default/web/main?${query}`), want);
  });
}

test("a log request must name pod, namespace and container", async (t) => {
  const get = await serving(t, undefined);
  assert.equal(await get("/default"), '400 {"message": "Missing podID."}');
  assert.equal(await get("/default/web"), '400 {"message": "Missing container name."}');
  assert.equal(await get("//web/main"), '400 {"message": "Missing podNamespace."}');
});

test("following a log ends when its container is removed", async (t) => {
  let looks = 0;
  const get = await serving(
    t,
    { containerStatuses: [one("main", { state: running, containerID: "containerd://now" })] },
    (dir) => {
      const containerStatus = async (id: string) => {
        if (looks++ > 0) throw new RuntimeError("NotFound", "no such container");
        return { logPath: join(dir, "pod", `${id}.log`), state: containerState.running };
      };
      return { containerStatus } as unknown as ContainerRuntime;
    },
  );
  assert.equal(await get("/default/web/main?follow=true"), "200 now 1\nnow 2\nnow 3\n");
});

test("a runtime failure before the first byte of a log is a Status, later the response is cut off", async (t) => {
  let looks = 0;
  const status = { containerStatuses: [one("main", { state: running, containerID: "containerd://now" })] };
  const get = await serving(t, status, (dir) => {
    const containerStatus = async (id: string) => {
      if (looks++ !== 1) throw new RuntimeError("Unavailable", "the runtime is away");
      return { logPath: join(dir, "pod", `${id}.log`), state: containerState.running };
    };
    return { containerStatus } as unknown as ContainerRuntime;
  });
  assert.equal(await get("/default/web/main"), "500 rpc error: code = Unavailable desc = the runtime is away");
  await assert.rejects(get("/default/web/main?follow=true"), /terminated/);
});

for (const query of ["", "follow=true"]) {
  test(`the file of a client that goes before its first line is closed ${query}`, async (t) => {
    const dir = await mkdtemp(join(tmpdir(), "cox-logs-"));
    t.after(() => rm(dir, { recursive: true, force: true }));
    await mkdir(join(dir, "pod"));
    await writeFile(join(dir, "pod/now.log"), line(10, "1"));
    const status = { containerStatuses: [one("main", { containerID: "containerd://now", state: running })] };
    const context = {
      runtime: runtimeOf(dir),
      podLogsDir: dir,
      podByName: () => aNodePod(),
      statusOf: () => status,
      now: () => now,
    };
    let destroyed = 0;
    const gone = {
      write: () => false,
      drained: () => Promise.reject(new Error("the client disconnected")),
      end: () => undefined,
    };
    const exchange = { signal: new AbortController().signal, stream: () => gone, destroy: () => void destroyed++ };
    await serveLogs(exchange as unknown as Exchange, context, ["default", "web", "main"], new URLSearchParams(query));
    assert.equal(destroyed, 1);
    assert.deepEqual(await openFilesBelow(dir), []);
  });
}

for (const [what, later, ends] of [
  ["has ended", async () => ({ state: containerState.exited }), true],
  ["is gone", () => Promise.reject(new RuntimeError("NotFound", "gone")), true],
  ["cannot be looked at", () => Promise.reject(new RuntimeError("Unavailable", "away")), false],
] as const) {
  test(`following the log of a container that ${what} ${ends ? "ends" : "is cut off"}`, async (t) => {
    let looks = 0;
    const playing = (dir: string) => {
      const containerStatus = (id: string) => (looks++ === 0 ? runtimeOf(dir).containerStatus(id) : later());
      return { containerStatus } as unknown as ContainerRuntime;
    };
    const get = await serving(
      t,
      { containerStatuses: [one("main", { containerID: "containerd://now", state: running })] },
      playing,
    );
    const answer = get("/default/web/main?follow=true&tailLines=1");
    if (ends) assert.equal(await answer, "200 now 3\n");
    else await assert.rejects(answer);
    assert.ok(looks >= 2);
  });
}
