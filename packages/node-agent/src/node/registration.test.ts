import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists, conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node, NodeStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { initialNode } from "./node-status.ts";
import { Registration, type RegistrationOptions } from "./registration.ts";

/** A node `n1` that registers with an API server without Nodes. */
function registering(parts: Partial<RegistrationOptions> = {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const stop = new AbortController();
  const registration = new Registration({
    client,
    clock,
    log: discardLogger,
    initial: () => ({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} }),
    register: true,
    nodeName: "n1",
    status: async () => ({}),
    updateFrequencyMs: 10_000,
    reportFrequencyMs: 300_000,
    onUpdate: () => undefined,
    notify: () => undefined,
    ...parts,
  });
  return { clock, client, stop, registration };
}

test("the node's status is computed every --node-status-update-frequency, and sent when it changed or is due", async () => {
  let images = 1;
  let looks = 0;
  const status = async (): Promise<NodeStatus> => {
    looks++;
    return {
      conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: new Date(clock.now()).toISOString() }],
      images: Array.from({ length: images }, (_, i) => ({ names: [`i${i}`], sizeBytes: 1 })),
    };
  };
  const { clock, client, stop, registration } = registering({ status });
  const running = registration.run(stop.signal);
  await settle();
  const sent = (): string[] => client.writes.map(({ verb, subresource }) => `${verb} ${subresource}`);
  assert.deepEqual(sent(), ["create ", "patch status"], "made, and reported at once");
  client.clearActions();
  looks = 0;
  await clock.advance(9_999);
  assert.equal(looks, 0);
  await clock.advance(50_001);
  assert.deepEqual([looks, sent()], [6, []], "nothing but the time of the heartbeat is different");
  images = 2;
  await clock.advance(10_000);
  assert.deepEqual(sent(), ["patch status"]);
  client.clearActions();
  await clock.advance(290_000);
  assert.deepEqual(sent(), []);
  await clock.advance(10_000);
  assert.deepEqual(sent(), ["patch status"], "after --node-status-report-frequency it is reported again");
  looks = 0;
  registration.hurry();
  await settle();
  assert.equal(looks, 1, "what is urgent does not wait");
  stop.abort();
  await clock.advance(10_000);
  await running;
});

test("registration sets the agent's fields on an existing node and removes those it no longer has", async () => {
  const ours = {
    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    "volumes.kubernetes.io/keep-terminated-pod-volumes": "true",
  };
  const node = (controllerAttachDetach: boolean) =>
    initialNode({
      name: "n1",
      hostname: "host",
      labels: {},
      taints: [],
      schedulable: true,
      providerId: "",
      externalCloud: false,
      architecture: "amd64",
      controllerAttachDetach,
      keepTerminatedPodVolumes: true,
    });
  assert.deepEqual(node(true).metadata.annotations, ours);
  const { client, stop, registration } = registering({ initial: () => node(false) });
  client.put(nodes, { ...node(true), metadata: { name: "n1", labels: { team: "x" }, annotations: { ...ours, mine: "1" } } });
  const running = registration.run(stop.signal);
  await settle();
  const { metadata } = await client.get(nodes, { name: "n1" });
  assert.partialDeepStrictEqual(metadata.labels, { team: "x", "kubernetes.io/hostname": "host" });
  assert.deepEqual(metadata.annotations, { "volumes.kubernetes.io/keep-terminated-pod-volumes": "true", mine: "1" });
  stop.abort();
  await running;
});

test("cordoning and uncordoning a node are each reported once", async () => {
  const reported: string[] = [];
  const { clock, client, stop, registration } = registering({ notify: ({ message }) => void reported.push(message) });
  const running = registration.run(stop.signal);
  await settle();
  for (const unschedulable of [true, false]) {
    client.put(nodes, { ...(await client.get(nodes, { name: "n1" })), spec: { unschedulable } });
    for (let i = 0; i < 2; i++) await clock.advance(10_000);
  }
  assert.deepEqual(reported, ["Node n1 status is now: NodeNotSchedulable", "Node n1 status is now: NodeSchedulable"]);
  stop.abort();
  await running;
});

test("a failed registration is retried with delays that double up to seven seconds; a conflict counts as one failure", async () => {
  let away = true;
  const labels = { "kubernetes.io/hostname": "host" };
  const initial = () => ({ apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels }, spec: {} });
  const { clock, client, stop, registration } = registering({ initial });
  const at: number[] = [];
  client.react("create", "nodes", () => {
    at.push(clock.monotonic());
    if (away) throw new Error("connect ECONNREFUSED");
    throw alreadyExists(nodes, "n1");
  });
  const running = registration.run(stop.signal);
  for (let i = 0; i < 9; i++) await clock.advance([100, 200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000][i] ?? 0);
  assert.deepEqual(
    at.slice(1).map((ms, i) => ms - (at[i] as number)),
    [100, 200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000],
  );
  away = false;
  client.put(nodes, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1", labels: { "kubernetes.io/hostname": "old" } },
    spec: {},
  });
  let conflicts = 1;
  client.react("update", "nodes", () => {
    if (conflicts-- > 0) throw conflict(nodes, "n1", "changed");
    return undefined;
  });
  await clock.advance(7_000);
  assert.equal(client.writes.filter(({ subresource }) => subresource === "status").length, 0, "not registered yet");
  await clock.advance(7_000);
  assert.equal(client.writes.filter(({ subresource }) => subresource === "status").length, 1);
  stop.abort();
  await running;
  assert.equal(clock.waiting, 0);
});

test("a status update is attempted five times, then again at the next interval, and the server's error is logged", async () => {
  const heard: unknown[] = [];
  const { clock, client, stop, registration } = registering({ onUpdate: ({ status }) => void heard.push(status?.phase) });
  let failures = 5;
  let tries = 0;
  client.react("patch", "nodes", () => {
    tries++;
    if (failures-- > 0) throw new Error("connect ECONNRESET");
    return { metadata: { name: "n1" }, spec: {}, status: { phase: "patched" } };
  });
  const running = registration.run(stop.signal);
  await settle(30);
  assert.deepEqual([tries, heard], [5, [undefined]]);
  await clock.advance(10_000);
  await settle(30);
  assert.deepEqual([tries, heard], [6, [undefined, "patched"]]);
  stop.abort();
  await running;
});

test("a change of the node's spec is passed on by the next report though the status is the same", async () => {
  const heard: unknown[] = [];
  const { clock, client, stop, registration } = registering({ onUpdate: ({ spec }) => void heard.push(spec?.podCIDR) });
  const running = registration.run(stop.signal);
  await settle();
  client.put(nodes, { ...(await client.get<Node>(nodes, { name: "n1" })), spec: { podCIDR: "10.1.0.0/24" } });
  client.clearActions();
  await clock.advance(10_000);
  assert.deepEqual([heard.at(-1), client.writes], ["10.1.0.0/24", []]);
  stop.abort();
  await running;
});

test("an existing node is known from its registration on, not only after its first report", async () => {
  const heard: unknown[] = [];
  const { client, stop, registration } = registering({ onUpdate: ({ metadata }) => void heard.push(metadata.uid) });
  client.put(nodes, { apiVersion: "v1", kind: "Node", metadata: { name: "n1", uid: "node-uid" }, spec: {} } as Node);
  client.react("patch", "nodes", () => {
    throw new Error("connect ECONNRESET");
  });
  const running = registration.run(stop.signal);
  await settle(30);
  assert.deepEqual(heard, ["node-uid"]);
  stop.abort();
  await running;
});

test("an urgent change during a report causes another report immediately after it", async () => {
  const hold = Promise.withResolvers<void>();
  let looks = 0;
  const status = async (): Promise<NodeStatus> => {
    if (++looks === 2) await hold.promise;
    return {};
  };
  const { clock, stop, registration } = registering({ status });
  const running = registration.run(stop.signal);
  await settle(30);
  assert.equal(looks, 2, "one for the registration, one for the first report");
  registration.hurry();
  await settle(30);
  assert.equal(looks, 2, "one after the other");
  hold.resolve();
  await settle(30);
  assert.deepEqual([looks, clock.waiting], [3, 1]);
  stop.abort();
  await running;
});

test("after a conflict the status is computed from etcd's current node, not from the watch cache", async () => {
  const addresses = [{ type: "InternalIP", address: "192.0.2.2" }];
  const { client, stop, registration } = registering({ status: async () => ({ addresses }) });
  const get = client.get.bind(client);
  const patch = client.patch.bind(client);
  const versions: unknown[] = [];
  client.get = (...args: Parameters<typeof get>) => {
    versions.push(args[2]?.resourceVersion);
    return get(...args);
  };
  const bodies: unknown[] = [];
  client.patch = async (...args: Parameters<typeof patch>) => {
    bodies.push(args[2].body);
    if (bodies.length === 1) throw conflict(nodes, "n1", "changed meanwhile");
    return patch(...args);
  };
  client.put(nodes, {
    metadata: { name: "n1" },
    status: { addresses: [{ type: "InternalIP", address: "192.0.2.1" }] },
  } as Node);
  const running = registration.run(stop.signal);
  await settle();
  assert.deepEqual(versions.slice(-2), ["0", undefined]);
  hasFields(bodies, [{}, { status: { addresses: [...addresses, { $patch: "replace" }] } }]);
  stop.abort();
  await running;
});

test("a report from an outdated node keeps what others have written since: attached volumes and the configuration in use", async () => {
  const stale: NodeStatus = { volumesAttached: [], config: { error: "old" }, phase: "Pending" };
  const status = async ({ status: read }: Node): Promise<NodeStatus> => ({ ...read, images: [{ names: ["i"], sizeBytes: 1 }] });
  const { client, clock, stop, registration } = registering({ status });
  const fresh: NodeStatus = { volumesAttached: [{ name: "v", devicePath: "" }], config: { error: "" }, phase: "Running" };
  const live: Node = { metadata: { name: "n1" }, spec: {}, status: fresh };
  client.put(nodes, live);
  client.react("get", "nodes", () => ({ ...live, status: stale }));
  const running = registration.run(stop.signal);
  await settle();
  const now = client.object<Node>(nodes, "n1")?.status;
  assert.deepEqual(now?.images, [{ names: ["i"], sizeBytes: 1 }]);
  assert.deepEqual([now?.volumesAttached, now?.config, now?.phase], [fresh.volumesAttached, fresh.config, fresh.phase]);
  stop.abort();
  await clock.advance(10_000);
  await running;
});
