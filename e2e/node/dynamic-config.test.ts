/**
 * The real kubelet, with only a node's permissions, and a real API server. The kubelet checks its config source every ten
 * seconds.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ConfigMap, Event, Node, NodeConfigStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, events, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "@coxswain/apiserver/testing/start-test-server";
import { startKubelet } from "../framework/daemon-process.ts";

const skip =
  process.env["COX_TEST_LONG"] === undefined ? "long: only with ./cox test --long" : process.getuid?.() !== 0 && "needs root";
const gate = "--feature-gates=DynamicKubeletConfig=true";
const timeoutMs = 30_000;

test("a kubelet ends for the configuration of its node's source, uses it, and falls back from a bad one", { skip }, async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-dynamic-config-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const server = await startTestServer(t, [gate]);
  const { client } = server;
  const map = { namespace: "kube-system", name: "settings" };
  const kubelet = () => startKubelet(t, server, dir, gate, `--dynamic-config-dir=${join(dir, "dynamic")}`);
  const node = (): Promise<Node> => client.get<Node>(nodes, { name: "n1" });
  const status = async (): Promise<NodeConfigStatus | undefined> => (await node()).status?.config;
  const content = (maxPods: number): Record<string, string> => ({
    kubelet: JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", maxPods }),
  });

  await client.create<Node>(nodes, { metadata: { name: "n1" } } as Node);
  const made = await client.create<ConfigMap>(configMaps, { metadata: map, data: content(7) } as ConfigMap);
  const configSource = { configMap: { ...map, kubeletConfigKey: "kubelet" } };
  await client.patch<Node>(nodes, { name: "n1" }, { type: "merge", body: { spec: { configSource } } });
  const first = await kubelet();
  assert.equal(
    await waitFor(() => first.end() === 0 && "ended", { timeoutMs, what: `the end of the kubelet: ${first.log()}` }),
    "ended",
  );
  const inUse = {
    configMap: { ...configSource.configMap, uid: made.metadata.uid, resourceVersion: made.metadata.resourceVersion },
  };
  const [event] = (await client.list<Event>(events, { namespace: "default" })).items.filter(
    ({ reason }) => reason === "KubeletConfigChanged",
  );
  const version = `UID: ${made.metadata.uid}, ResourceVersion: ${made.metadata.resourceVersion}, KubeletConfigKey: kubelet`;
  assert.equal(event?.message, `Kubelet restarting to use /api/v1/namespaces/kube-system/configmaps/settings, ${version}`);

  const second = await kubelet();
  await waitFor(async () => (await status())?.active, { timeoutMs, what: "the configuration to be in use" });
  assert.deepEqual(await status(), { assigned: inUse, active: inUse });
  await waitFor(async () => (await node()).status?.capacity?.pods === "7", {
    timeoutMs,
    what: "the node to have room for 7 pods",
  });

  const spoilt = await client.update<ConfigMap>(configMaps, { ...made, data: content(-1) });
  await waitFor(() => second.end() === 0, { timeoutMs, what: "the end of the kubelet" });
  const third = await kubelet();
  await waitFor(async () => (await status())?.error, { timeoutMs, what: "the error to be reported" });
  const assigned = { configMap: { ...inUse.configMap, resourceVersion: spoilt.metadata.resourceVersion } };
  assert.deepEqual(await status(), { assigned, error: "failed to validate config, see Kubelet log for details" });
  await waitFor(async () => (await node()).status?.capacity?.pods === "110", { timeoutMs, what: "the kubelet's own settings" });
  assert.equal(third.end(), undefined);
});
