import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newBackground } from "../background.ts";
import { newAgentConfig } from "../config.ts";
import { newAgentEvents } from "../events.ts";
import { kubelet } from "../flags.ts";
import { type Machine, readMachine } from "../resources/machine.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { readIdentity } from "./identity.ts";
import { OwnNode, type OwnNodeOptions } from "./own-node.ts";
import { newRuntimeHealth } from "./runtime-health.ts";

async function ownNode(parts: Partial<OwnNodeOptions>, ...more: string[]) {
  const flags = [
    "--container-runtime=remote",
    "--container-runtime-endpoint=unix:///run/none.sock",
    `--root-dir=${tmpdir()}`,
    "--hostname-override= Node1 ",
    "--node-ip=192.0.2.7",
    "--fail-swap-on=false",
    "--max-pods=110",
    "--pods-per-core=1",
    "--pod-cidr=10.1.0.0/24",
    ...more,
  ];
  const { values, set } = parseFlags(kubelet.flags, flags);
  const config = newAgentConfig(values, set);
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const identity = await readIdentity(config);
  const node = new OwnNode({
    config,
    identity,
    api: undefined,
    runtime,
    runtimeHealth: newRuntimeHealth({ runtime, clock }),
    events: { problem: () => undefined },
    problems: () => [],
    devices: () => undefined,
    volumesInUse: () => undefined,
    metrics: newMetricsRegistry(),
    appArmor: false,
    notify: newAgentEvents({ recorder: undefined, nodeName: identity.nodeName, log: discardLogger }),
    clock,
    log: discardLogger,
    ...parts,
  });
  return { node, identity, runtime, background: newBackground({ clock, log: discardLogger }) };
}

test("swap is refused unless the agent is to start with it", async () => {
  const swapping = async (): Promise<Machine> => ({ ...(await readMachine()), swaps: ["Filename", "/swap.img"] });
  const flags = ["--container-runtime=remote", "--container-runtime-endpoint=unix:///run/none.sock", `--root-dir=${tmpdir()}`];
  const identityWith = (value: boolean) => {
    const { values, set } = parseFlags(kubelet.flags, [...flags, `--fail-swap-on=${value}`]);
    return readIdentity(newAgentConfig(values, set), swapping);
  };
  await assert.rejects(identityWith(true), /swap/i);
  assert.equal((await identityWith(false)).machine.swaps.length, 2);
});

test("a hostname of spaces is refused", async () => {
  await assert.rejects(ownNode({}, "--hostname-override= "), { message: "empty hostname is invalid" });
});

test("before registration the node is read as it will be registered", async () => {
  const { node, identity } = await ownNode({});
  assert.equal(node.registered(), undefined);
  assert.deepEqual([node.known().metadata.name, identity.hostname], ["node1", "node1"]);
  const { addresses, capacity } = await node.status(undefined);
  assert.deepEqual(addresses, [
    { type: "InternalIP", address: "192.0.2.7" },
    { type: "Hostname", address: "node1" },
  ]);
  assert.equal(capacity?.pods, String(Math.min(110, identity.machine.cpuCount)));
});

test("the reasons of a node that is not ready name the runtime first, then parts added later", async () => {
  const late = ["CSINode is not yet initialized", undefined, "node is shutting down"];
  const { node, runtime, background } = await ownNode({ events: { problem: () => "pleg is not healthy" }, problems: () => late });
  const ready = async () => (await node.status(undefined)).conditions?.find(({ type }) => type === "Ready");
  assert.equal(
    (await ready())?.message,
    "[container runtime status check may not have completed yet, pleg is not healthy, " +
      "container runtime network not ready: network state unknown, CSINode is not yet initialized, node is shutting down]",
  );
  runtime.addImage("example.com/app:1", { sizeBytes: 7 });
  node.watchRuntime(background);
  await settle();
  assert.equal((await ready())?.message, "[pleg is not healthy, CSINode is not yet initialized, node is shutting down]");
  late.length = 0;
  assert.equal((await ready())?.message, "pleg is not healthy");
  assert.deepEqual(
    (await node.status(undefined)).images?.map(({ sizeBytes }) => sizeBytes),
    [7],
  );
  await background.stop();
});

test("images are listed every 30 seconds, and a failed list keeps the previous one", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const { node } = await ownNode({ clock, runtime, runtimeHealth: newRuntimeHealth({ runtime, clock }) });
  const background = newBackground({ clock, log: discardLogger });
  const sizes = async () => (await node.status(undefined)).images?.map(({ sizeBytes }) => sizeBytes);
  runtime.addImage("example.com/app:1", { sizeBytes: 7 });
  node.watchRuntime(background);
  await settle();
  runtime.addImage("example.com/app:2", { sizeBytes: 8 });
  await clock.advance(29_999);
  assert.deepEqual(await sizes(), [7]);
  await clock.advance(1);
  await settle();
  assert.deepEqual(await sizes(), [8, 7]);
  const { listImages } = runtime;
  runtime.listImages = () => Promise.reject(new Error("the runtime is away"));
  await clock.advance(30_000);
  await settle();
  assert.deepEqual(await sizes(), [8, 7]);
  runtime.listImages = listImages;
  runtime.addImage("example.com/app:3", { sizeBytes: 9 });
  await clock.advance(30_000);
  await settle();
  assert.deepEqual(await sizes(), [9, 8, 7]);
  await background.stop();
});

test("conditions show pressure; devices and volumes are current at each report", async () => {
  const amounts = { capacity: { "example.com/light": "2" }, allocatable: { "example.com/light": "1" } };
  const { node } = await ownNode({ devices: () => amounts, volumesInUse: () => ["v1"] });
  node.setPressure({ memory: false, disk: true, pid: false });
  assert.equal(node.pressure().disk, true);
  const { conditions, allocatable, volumesInUse } = await node.status(undefined);
  assert.deepEqual(
    conditions?.filter(({ status }) => status === "True").map(({ type }) => type),
    ["DiskPressure"],
  );
  assert.deepEqual([allocatable?.["example.com/light"], volumesInUse], ["1", ["v1"]]);
});

test("a change of pressure is reported without waiting for the next interval", async () => {
  const { node } = await ownNode({});
  let hurries = 0;
  node.hurry = () => void hurries++;
  node.setPressure({ memory: true, disk: false, pid: false });
  assert.deepEqual([hurries, node.pressure().memory], [1, true]);
});

test("--pods-per-core does not raise the number of pods above --max-pods", async () => {
  const { node } = await ownNode({}, "--max-pods=1", "--pods-per-core=100");
  assert.equal((await node.status(undefined)).capacity?.pods, "1");
});

test("images are listed as soon as a runtime that was not ready at the start is", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const { node } = await ownNode({ clock, runtime, runtimeHealth: newRuntimeHealth({ runtime, clock }) });
  runtime.addImage("example.com/app:1", { sizeBytes: 7 });
  const { status, listImages } = runtime;
  const away = () => Promise.reject(new Error("connect ECONNREFUSED"));
  Object.assign(runtime, { status: away, listImages: away });
  const background = newBackground({ clock, log: discardLogger });
  node.watchRuntime(background);
  await settle();
  Object.assign(runtime, { status, listImages });
  await clock.advance(5_000);
  await settle();
  assert.equal((await node.status(undefined)).images?.length, 1);
  await background.stop();
});

test("the runtime learns both pod ranges that the node gets from the cluster", async () => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.react("patch", "nodes", () => ({ metadata: { name: "node1" }, spec: { podCIDRs: ["10.1.0.0/24", "fd00::/64"] } }));
  const api = { heartbeat: client, node: { lister: { get: () => undefined } }, certFile: undefined };
  const { node, runtime } = await ownNode({ clock, api: api as unknown as NonNullable<OwnNodeOptions["api"]> }, "--pod-cidr=");
  const background = newBackground({ clock, log: discardLogger });
  node.join(background);
  const updates = () => runtime.calls.filter((call) => call.startsWith("UpdateRuntimeConfig"));
  await waitFor(() => updates().length > 0, { what: "the range" });
  assert.deepEqual(updates(), ["UpdateRuntimeConfig 10.1.0.0/24,fd00::/64"]);
  assert.equal(node.registered()?.metadata.name, "node1");
  await background.stop();
});

test("without an API server the runtime learns the range of --pod-cidr", async () => {
  const { node, runtime, background } = await ownNode({});
  node.join(background);
  await background.stop();
  assert.deepEqual(runtime.calls.filter((call) => call.includes("10.1.0.0/24")).length, 1);
});

test("a status is due immediately when the runtime becomes unhealthy and when it recovers", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const { node } = await ownNode({ clock, runtime, runtimeHealth: newRuntimeHealth({ runtime, clock }) });
  let hurries = 0;
  node.hurry = () => void hurries++;
  const background = newBackground({ clock, log: discardLogger });
  node.watchRuntime(background);
  await settle();
  hurries = 0;
  for (const [isReady, want] of [
    [true, 0],
    [false, 1],
    [false, 1],
    [true, 2],
  ] as const) {
    runtime.networkReady = isReady;
    await clock.advance(5_000);
    await settle();
    assert.equal(hurries, want);
  }
  await background.stop();
});
