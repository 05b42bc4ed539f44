/** Tests of the whole module with an in-memory API server; each agent starts with the files that its predecessor left. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { ConfigMap, Event, Node, NodeConfigStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, events, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newBackground } from "../background.ts";
import { newAgentConfig } from "../config.ts";
import { newAgentEvents } from "../events.ts";
import { kubelet } from "../flags.ts";
import { openDynamicConfig } from "./dynamic-config.ts";

const log = discardLogger;
const nodeName = "n1";
const minute = 60_000;
const settings = { namespace: "kube-system", name: "settings" };
const named = { ...settings, kubeletConfigKey: "kubelet" };

/** A node with its agent and the cluster, as users see them. */
interface Cluster {
  /** `--dynamic-config-dir` */
  dir: string;
  client: FakeClient;
  clock: FakeClock;
  /** Writes the config map: a KubeletConfiguration with these fields, or a raw text. */
  put(content: Record<string, unknown> | string): Promise<NodeConfigStatus["active"]>;
  assign(configMap: typeof named | null): Promise<void>;
  /** Starts the agent with the state on disk, as a service manager does. */
  start(...flags: string[]): Promise<Agent>;
  /** Starts it in standalone mode. */
  startAlone(): Promise<Agent>;
  status(): NodeConfigStatus | undefined;
}

interface Agent {
  /** Undefined when the local configuration is used. */
  maxPods: number | undefined;
  ended: boolean;
  metrics(): Promise<string[]>;
  stop(): Promise<void>;
}

async function aCluster(t: TestContext): Promise<Cluster> {
  const dir = await mkdtemp(join(tmpdir(), "cox-dynamic-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const node: Node = { apiVersion: "v1", kind: "Node", metadata: { name: nodeName } } as Node;
  client.put(nodes, node);
  const status = (): NodeConfigStatus | undefined => client.object<Node>(nodes, nodeName)?.status?.config;
  return {
    dir,
    client,
    clock,
    status,
    async put(content) {
      const fields = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
      const text = typeof content === "string" ? content : JSON.stringify({ ...fields, ...content });
      const map = { metadata: { ...settings }, data: { kubelet: text } } as ConfigMap;
      const { metadata } = await client.update<ConfigMap>(configMaps, map).catch(() => client.create(configMaps, map));
      return { configMap: { ...named, uid: metadata.uid ?? "", resourceVersion: metadata.resourceVersion ?? "" } };
    },
    async assign(configMap) {
      const body = { spec: { configSource: configMap && { configMap } } };
      await client.patch<Node>(nodes, { name: nodeName }, { type: "merge", body });
    },
    start: (...more) => begin(true, more),
    startAlone: () => begin(false, []),
  };

  async function begin(isConnected: boolean, more: readonly string[]): Promise<Agent> {
    const argv = [
      "--container-runtime=remote",
      "--container-runtime-endpoint=unix:///run/c.sock",
      "--feature-gates=DynamicKubeletConfig=true",
      `--dynamic-config-dir=${dir}`,
      ...more,
    ];
    const { values, set } = parseFlags(kubelet.flags, argv);
    const dynamic = openDynamicConfig(values, set, newAgentConfig(values, set), { clock, log });
    const background = newBackground({ clock, log });
    const informers = newInformerFactory(client, { log, clock });
    const recorder = newEventRecorder({ client, component: "kubelet", host: nodeName, log, clock });
    const metrics = newMetricsRegistry({});
    const api = isConnected ? { client, recorder, node: informers.for<Node>(nodes) } : undefined;
    dynamic.follow({ api, nodeName, notify: newAgentEvents({ recorder, nodeName, log }), metrics, background });
    informers.start(background.signal);
    const agent: Agent = {
      maxPods: dynamic.config?.maxPods,
      ended: false,
      metrics: async () => (await metrics.render()).split("\n").filter((line) => line.startsWith("kubelet_node_config")),
      stop: background.stop,
    };
    void dynamic.replaced.then(() => {
      agent.ended = true;
    });
    t.after(background.stop);
    await settle();
    return agent;
  }
}

/** Advances the clock by one sync interval and waits for its effects. */
async function aLook({ clock }: Cluster): Promise<void> {
  await settle();
  await clock.advance(10_000);
  await settle();
}

async function eventsOf({ client }: Cluster): Promise<string[]> {
  return client.objects<Event>(events).map(({ reason, type, message }) => `${type} ${reason}: ${message}`);
}

/** @returns an agent that was restarted to use the assigned configuration */
async function startAssigned(cluster: Cluster): Promise<Agent> {
  const before = await cluster.start();
  await cluster.assign(named);
  await aLook(cluster);
  assert.equal(before.ended, true);
  await before.stop();
  return cluster.start();
}

test("a node takes its configuration from the config map named in its Node object, by an exit and a new start", async (t) => {
  const cluster = await aCluster(t);
  const source = await cluster.put({ maxPods: 7 });
  const first = await cluster.start();
  assert.deepEqual([first.maxPods, cluster.status()], [undefined, {}]);
  await aLook(cluster);
  assert.equal(first.ended, false);
  await cluster.assign(named);
  await aLook(cluster);
  assert.equal(first.ended, true);
  const version = `UID: ${source?.configMap?.uid}, ResourceVersion: ${source?.configMap?.resourceVersion}, KubeletConfigKey: kubelet`;
  assert.deepEqual(await eventsOf(cluster), [
    `Normal KubeletConfigChanged: Kubelet restarting to use /api/v1/namespaces/kube-system/configmaps/settings, ${version}`,
  ]);
  await first.stop();

  const second = await cluster.start();
  assert.equal(second.maxPods, 7);
  assert.deepEqual(cluster.status(), { assigned: source, active: source });
  const uid = source?.configMap?.uid;
  const labels = `node_config_source="/api/v1/namespaces/kube-system/configmaps/settings",node_config_uid="${uid}",node_config_resource_version="${source?.configMap?.resourceVersion}",node_config_kubelet_key="kubelet"`;
  const local = `node_config_source="local",node_config_uid="",node_config_resource_version="",node_config_kubelet_key=""`;
  assert.deepEqual(await second.metrics(), [
    `kubelet_node_config_assigned{${labels}} 1`,
    `kubelet_node_config_active{${labels}} 1`,
    `kubelet_node_config_last_known_good{${local}} 1`,
    "kubelet_node_config_error 0",
  ]);
  await aLook(cluster);
  assert.equal(second.ended, false, "what it has is what it shall have");
  await second.stop();
  assert.equal((await cluster.start("--max-pods=9")).maxPods, 9, "flags go before it");
});

for (const { name, content, error } of [
  { name: "cannot be read", content: "{0xdeadbeef", error: "failed to load config, see Kubelet log for details" },
  { name: "is of another kind", content: "kind: Pod", error: "failed to load config, see Kubelet log for details" },
  {
    name: "has a value of the wrong type",
    content: { maxPods: "7" },
    error: "failed to load config, see Kubelet log for details",
  },
  { name: "is not valid", content: { kubeAPIQPS: -1 }, error: "failed to validate config, see Kubelet log for details" },
  {
    name: "sets unknown feature gates",
    content: { featureGates: { NoSuchGate: true } },
    error: "failed to validate config, see Kubelet log for details",
  },
] as const) {
  test(`a node keeps its local configuration when the assigned one ${name}`, async (t) => {
    const cluster = await aCluster(t);
    const source = await cluster.put(content);
    const agent = await startAssigned(cluster);
    assert.equal(agent.maxPods, undefined);
    assert.deepEqual(cluster.status(), { assigned: source, error });
    assert.ok((await agent.metrics()).includes("kubelet_node_config_error 1"));
  });
}

test("a configuration used for ten minutes is the fallback when its config map becomes invalid", async (t) => {
  const cluster = await aCluster(t);
  const good = await cluster.put({ maxPods: 7 });
  const second = await startAssigned(cluster);
  await aLook(cluster);
  await cluster.clock.advance(10 * minute - 20_000);
  await settle();
  assert.deepEqual(cluster.status(), { assigned: good, active: good });
  await cluster.clock.advance(minute);
  await aLook(cluster);
  assert.deepEqual(cluster.status(), { assigned: good, active: good, lastKnownGood: good });
  assert.equal(second.ended, false);
  assert.equal((await second.metrics()).filter((line) => line.startsWith("kubelet_node_config_last_known_good")).length, 1);

  const bad = await cluster.put({ maxPods: -1 });
  await aLook(cluster);
  assert.equal(second.ended, true);
  await second.stop();
  const third = await cluster.start();
  assert.equal(third.maxPods, 7);
  const error = "failed to validate config, see Kubelet log for details";
  assert.deepEqual(cluster.status(), { assigned: bad, active: good, lastKnownGood: good, error });
  await cluster.clock.advance(30 * minute);
  await settle();
  assert.deepEqual(cluster.status()?.lastKnownGood, good, "what failed never becomes good");
  const { uid = "", resourceVersion = "" } = good?.configMap ?? {};
  const shown = `node_config_uid="${uid}",node_config_resource_version="${resourceVersion}",node_config_kubelet_key="kubelet"} 1`;
  assert.ok((await third.metrics()).some((line) => line.startsWith("kubelet_node_config_active{") && line.endsWith(shown)));

  await cluster.assign(null);
  await aLook(cluster);
  assert.equal(third.ended, true);
  assert.equal((await eventsOf(cluster)).at(-1), "Normal KubeletConfigChanged: Kubelet restarting to use local config");
  await third.stop();
  const fourth = await cluster.start();
  assert.deepEqual([fourth.maxPods, cluster.status()], [undefined, {}]);
});

test("the agent does not start when it cannot read the assigned configuration and has no fallback", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  const agent = await startAssigned(cluster);
  await agent.stop();
  const store = join(cluster.dir, "store");
  const assigned = await readFile(join(store, "meta/assigned"));
  await writeFile(join(store, "meta/last-known-good"), assigned);
  await rm(join(store, "checkpoints"), { recursive: true });
  const refusal = (message: RegExp) => (err: unknown) => err instanceof ConfigError && message.test(err.message);
  const gone = /^failed to determine a valid configuration, error: no checkpoint for source \/api\/v1\/namespaces\/kube-system/;
  await assert.rejects(cluster.start(), refusal(gone));
  await writeFile(join(store, "meta/assigned"), "kind: Pod");
  const broken = /^failed to determine a valid configuration, error: failed to decode/;
  await assert.rejects(cluster.start(), refusal(broken));
});

test("a missing config map is reported until it exists again", async (t) => {
  const cluster = await aCluster(t);
  const source = await cluster.put({ maxPods: 7 });
  const agent = await startAssigned(cluster);
  await aLook(cluster);
  await cluster.client.delete(configMaps, settings);
  await aLook(cluster);
  await aLook(cluster);
  const error = "failed to sync: failed to download config, see Kubelet log for details";
  assert.deepEqual(cluster.status(), { assigned: source, active: source, error });
  assert.equal(agent.ended, false);
  assert.equal((await agent.metrics()).at(-1), "kubelet_node_config_error 1");
  cluster.client.put(configMaps, {
    metadata: { ...settings, uid: source?.configMap?.uid ?? "" },
    data: { kubelet: "again" },
  });
  await aLook(cluster);
  assert.equal(agent.ended, true, "it is another version");
});

test("a configuration source of an unknown kind is reported", async (t) => {
  const cluster = await aCluster(t);
  const agent = await cluster.start();
  await cluster.client.patch<Node>(nodes, { name: nodeName }, { type: "merge", body: { spec: { configSource: { other: {} } } } });
  await aLook(cluster);
  await aLook(cluster);
  const error = "failed to sync: invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil";
  assert.deepEqual([cluster.status(), agent.ended], [{ error }, false]);
  await cluster.assign(null);
  await aLook(cluster);
  await aLook(cluster);
  assert.deepEqual(cluster.status(), {});
});

test("a status whose write failed is written later", async (t) => {
  const cluster = await aCluster(t);
  let away = true;
  cluster.client.react("patch", "nodes", () => {
    if (away) throw new Error("away");
  });
  await cluster.start();
  assert.equal(cluster.status(), undefined);
  away = false;
  await aLook(cluster);
  assert.deepEqual(cluster.status(), {});
});

test("a configuration that is unassigned during its trial does not become the last known good one", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  const agent = await startAssigned(cluster);
  await aLook(cluster);
  await cluster.assign(null);
  await aLook(cluster);
  assert.equal(agent.ended, true);
  await cluster.clock.advance(30 * minute);
  await settle();
  assert.equal(await readFile(join(cluster.dir, "store/meta/last-known-good"), "utf8"), "");
});

test("the end of a trial is written and reported once", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  await startAssigned(cluster);
  await cluster.clock.advance(11 * minute);
  await aLook(cluster);
  const file = join(cluster.dir, "store/meta/last-known-good");
  const [writtenAt, requests] = [(await stat(file)).mtimeMs, cluster.client.writes.length];
  for (let i = 0; i < 3; i++) await aLook(cluster);
  assert.deepEqual([(await stat(file)).mtimeMs, cluster.client.writes.length], [writtenAt, requests]);
});

test("a trial goes on when the node's status or another config map changes", async (t) => {
  const cluster = await aCluster(t);
  const source = await cluster.put({ maxPods: 7 });
  const agent = await startAssigned(cluster);
  await cluster.clock.advance(6 * minute);
  const body = { status: { phase: "Running" } };
  await cluster.client.patch<Node>(nodes, { name: nodeName, subresource: "status" }, { type: "merge", body });
  await cluster.client.create<ConfigMap>(configMaps, { metadata: { ...settings, name: "other" } } as ConfigMap);
  await aLook(cluster);
  await cluster.clock.advance(4.5 * minute);
  await aLook(cluster);
  assert.deepEqual([agent.ended, cluster.status()?.lastKnownGood], [false, source]);
});

test("a standalone agent uses what it was assigned, and notes it as the fallback after ten minutes", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  await (await startAssigned(cluster)).stop();
  const alone = await cluster.startAlone();
  assert.equal(alone.maxPods, 7);
  await cluster.clock.advance(11 * minute);
  await settle();
  const assigned = await readFile(join(cluster.dir, "store/meta/assigned"), "utf8");
  assert.equal(await readFile(join(cluster.dir, "store/meta/last-known-good"), "utf8"), assigned);
});

test("another key of the same config map is another configuration", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  const agent = await startAssigned(cluster);
  await aLook(cluster);
  await cluster.assign({ ...named, kubeletConfigKey: "other" });
  await aLook(cluster);
  assert.equal(agent.ended, true);
});

test("an agent whose node is unknown keeps its configuration though the config map changes", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  const agent = await startAssigned(cluster);
  await aLook(cluster);
  cluster.client.remove(nodes, nodeName);
  await cluster.put({ maxPods: 8 });
  await aLook(cluster);
  assert.equal(agent.ended, false);
  await agent.stop();
  assert.equal((await cluster.start()).maxPods, 7);
});

test("an error of the configuration's source is shown before the one at the start, and written once", async (t) => {
  const cluster = await aCluster(t);
  const source = await cluster.put({ maxPods: -1 });
  await startAssigned(cluster);
  await aLook(cluster);
  assert.equal(cluster.status()?.error, "failed to validate config, see Kubelet log for details");
  await cluster.client.delete(configMaps, settings);
  for (let i = 0; i < 2; i++) await aLook(cluster);
  const error = "failed to sync: failed to download config, see Kubelet log for details";
  assert.deepEqual(cluster.status(), { assigned: source, error });
  const requests = cluster.client.writes.length;
  for (let i = 0; i < 3; i++) await aLook(cluster);
  assert.equal(cluster.client.writes.length, requests);
});

test("an error that stays is written once the API server takes writes again", async (t) => {
  const cluster = await aCluster(t);
  await cluster.start();
  let isAway = true;
  cluster.client.react("patch", "nodes", ({ subresource }) => {
    if (isAway && subresource === "status") throw new Error("away");
    return undefined;
  });
  await cluster.client.patch<Node>(nodes, { name: nodeName }, { type: "merge", body: { spec: { configSource: { other: {} } } } });
  for (let i = 0; i < 3; i++) await aLook(cluster);
  assert.equal(cluster.status()?.error, undefined);
  isAway = false;
  await aLook(cluster);
  assert.match(cluster.status()?.error ?? "", /^failed to sync: invalid NodeConfigSource/);
});

test("the agent exits though the event about it cannot be sent within ten seconds", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  const agent = await cluster.start();
  await aLook(cluster);
  cluster.client.react("create", "events", () => new Promise(() => undefined));
  await cluster.assign(named);
  await aLook(cluster);
  assert.equal(agent.ended, false);
  await aLook(cluster);
  assert.equal(agent.ended, true);
});

test("an agent that exits leaves no timer of its last event", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  const agent = await cluster.start();
  await aLook(cluster);
  await cluster.assign(named);
  await settle();
  const { waiting } = cluster.clock;
  await aLook(cluster);
  assert.deepEqual([agent.ended, cluster.clock.waiting], [true, waiting]);
});

test("a source whose download failed is retried without a change of the Node", async (t) => {
  const cluster = await aCluster(t);
  await cluster.put({ maxPods: 7 });
  const agent = await cluster.start();
  await aLook(cluster);
  let isAway = true;
  cluster.client.react("get", "configmaps", () => {
    if (isAway) throw new Error("connect ECONNREFUSED");
    return undefined;
  });
  await cluster.assign(named);
  await aLook(cluster);
  assert.equal(agent.ended, false);
  isAway = false;
  await aLook(cluster);
  assert.equal(agent.ended, true);
});

test("the ten minutes of a trial restart with each start of the agent", async (t) => {
  const cluster = await aCluster(t);
  const source = await cluster.put({ maxPods: 7 });
  const first = await startAssigned(cluster);
  await cluster.clock.advance(9 * minute);
  await first.stop();
  await cluster.start();
  await aLook(cluster);
  await cluster.clock.advance(5 * minute);
  await aLook(cluster);
  assert.equal(cluster.status()?.lastKnownGood, undefined);
  await cluster.clock.advance(5 * minute);
  await aLook(cluster);
  await aLook(cluster);
  assert.deepEqual(cluster.status()?.lastKnownGood, source);
});
