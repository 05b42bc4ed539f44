import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { busyboxImage, canRunContainerd, type RunningContainerd, startContainerd } from "../testing/containerd.ts";
import { decodeCri, encodeCri, newCriClient, socketPath } from "./cri-client.ts";
import type { ContainerRuntime } from "./runtime.ts";
import { runtimeSuite } from "./suite.ts";

test("messages have the wire form of the interface", () => {
  // 0a 04 "pod1": field 1, four bytes; 10 1e: field 2, thirty
  assert.equal(encodeCri("StopContainerRequest", { containerId: "pod1", timeout: 30 }).toString("hex"), "0a04706f6431101e");
  const decoded = decodeCri(
    "ContainerStatus",
    encodeCri("ContainerStatus", { id: "x", exitCode: -1, labels: { a: "b" }, startedAt: 1.7e18 }),
  );
  assert.partialDeepStrictEqual(decoded, {
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

test("a runtime that is not there is Unavailable, soon", async () => {
  const runtime = newCriClient({ endpoint: "unix:///run/cox-no-such.sock", requestTimeoutMs: 2_000 });
  await assert.rejects(runtime.version(), /rpc error: code = Unavailable|DeadlineExceeded/);
  runtime.close();
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
