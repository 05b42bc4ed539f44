import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { CriInput } from "./cri-schema.ts";
import { type ContainerRuntime, containerState, isRuntimeNotFound, RuntimeError, sandboxState } from "./runtime.ts";

interface RuntimeUnderTest {
  runtime: ContainerRuntime;
  /** An image that is present in the runtime, with `sh`, `sleep` and `true`. */
  image: string;
  logDirectory: string;
}

/** Conformance tests, run against the fake and against a real runtime. */
export function runtimeSuite(name: string, open: () => Promise<RuntimeUnderTest>): void {
  const sandboxOf = (under: RuntimeUnderTest, uid: string): CriInput<"PodSandboxConfig"> => ({
    metadata: { name: `pod-${uid}`, namespace: "suite", uid, attempt: 0 },
    labels: { "io.kubernetes.pod.uid": uid },
    annotations: { note: "ä 'quoted'" },
    logDirectory: `${under.logDirectory}/${uid}`,
    linux: { cgroupParent: "/", securityContext: { namespaceOptions: { network: 2 } } },
  });
  const containerOf = (under: RuntimeUnderTest, uid: string, attempt = 0): CriInput<"ContainerConfig"> => ({
    metadata: { name: "main", attempt },
    image: { image: under.image },
    command: ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"],
    labels: { "io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": "main" },
    annotations: { "io.kubernetes.container.restartCount": String(attempt) },
    logPath: `main/${attempt}.log`,
    linux: { securityContext: { namespaceOptions: { network: 2 } } },
  });

  test(`${name}: a sandbox and its container are created, stopped and removed`, async () => {
    const under = await open();
    const { runtime } = under;
    const config = sandboxOf(under, "life");
    const sandbox = await runtime.runPodSandbox(config, "");
    const listed = await runtime.listPodSandboxes({ labels: { "io.kubernetes.pod.uid": "life" } });
    assert.deepEqual(
      listed.map(({ id, state, labels, annotations }) => ({ id, state, labels, annotations })),
      [{ id: sandbox, state: sandboxState.ready, labels: config.labels, annotations: config.annotations }],
    );
    const container = await runtime.createContainer(sandbox, containerOf(under, "life"), config);
    assert.equal((await runtime.containerStatus(container)).state, containerState.created);
    await runtime.startContainer(container);
    const running = await runtime.containerStatus(container);
    assert.equal(running.state, containerState.running);
    assert.ok(running.startedAt > 1e18, `nanoseconds since the epoch: ${running.startedAt}`);
    assert.equal(running.logPath, `${under.logDirectory}/life/main/0.log`);
    assert.equal((await runtime.execSync(container, ["true"], 60)).exitCode, 0);
    const measured = (await runtime.listPodSandboxStats()).find(({ attributes }) => attributes?.id === sandbox);
    assert.equal(measured?.attributes?.metadata?.uid, "life");

    await runtime.stopContainer(container, 5);
    await runtime.stopContainer(container, 5); // idempotent
    const stopped = await runtime.containerStatus(container);
    assert.equal(stopped.state, containerState.exited);
    assert.ok(stopped.finishedAt >= stopped.startedAt);

    await runtime.stopPodSandbox(sandbox);
    assert.equal((await runtime.podSandboxStatus(sandbox)).state, sandboxState.notReady);
    await runtime.removeContainer(container);
    await runtime.removePodSandbox(sandbox);
    await runtime.removePodSandbox(sandbox);
    await runtime.removeContainer(container);
    assert.deepEqual(await runtime.listPodSandboxes({ labels: { "io.kubernetes.pod.uid": "life" } }), []);
    assert.deepEqual(await runtime.listContainers({ labels: { "io.kubernetes.pod.uid": "life" } }), []);
  });

  test(`${name}: stopping a sandbox ends its containers`, async () => {
    const under = await open();
    const { runtime } = under;
    const config = sandboxOf(under, "stop");
    const sandbox = await runtime.runPodSandbox(config, "");
    try {
      const container = await runtime.createContainer(sandbox, containerOf(under, "stop"), config);
      await runtime.startContainer(container);
      await runtime.stopPodSandbox(sandbox);
      await waitFor(async () => (await runtime.containerStatus(container)).state === containerState.exited, {
        what: "the end of the container",
      });
    } finally {
      await runtime.removePodSandbox(sandbox);
    }
  });

  test(`${name}: reading a missing sandbox or container is NotFound`, async () => {
    const { runtime } = await open();
    for (const call of [() => runtime.containerStatus("no-such-container"), () => runtime.podSandboxStatus("no-such-sandbox")]) {
      await assert.rejects(
        call,
        (err) =>
          isRuntimeNotFound(err) && err instanceof RuntimeError && err.message.startsWith("rpc error: code = NotFound desc = "),
      );
    }
    assert.equal(await runtime.imageStatus("registry.test/no-such-image:1"), undefined);
  });

  test(`${name}: two attempts of a container have separate records`, async () => {
    const under = await open();
    const { runtime } = under;
    const config = sandboxOf(under, "again");
    const sandbox = await runtime.runPodSandbox(config, "");
    try {
      for (const attempt of [0, 1]) {
        const id = await runtime.createContainer(sandbox, containerOf(under, "again", attempt), config);
        await runtime.startContainer(id);
        await runtime.stopContainer(id, 1);
      }
      const listed = await runtime.listContainers({ labels: { "io.kubernetes.pod.uid": "again" } });
      assert.deepEqual(listed.map((container) => container.annotations["io.kubernetes.container.restartCount"]).sort(), [
        "0",
        "1",
      ]);
      assert.equal(new Set(listed.map((container) => container.createdAt)).size, 2);
    } finally {
      await runtime.removePodSandbox(sandbox);
    }
  });
}
