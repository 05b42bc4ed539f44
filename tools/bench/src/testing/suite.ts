/** `suite.ts cluster|server <package> | envtest <folder of kube-apiserver>`: starts a server, runs 50 tests with it, prints the cost of both as JSON. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, deployments, namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { cpuSeconds, residentMb } from "../process-usage.ts";
import { startProgram } from "../program.ts";
import { ourProgram } from "../target.ts";
import type { SuiteReport } from "./beside-envtest.ts";

interface Server {
  readonly client: Client;
  /** Processes besides this one. */
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

const [kind = "", folder = ""] = process.argv.slice(2);
const began = performance.now();
const own = process.pid;
const cpuBefore = cpuSeconds(own);
const server = kind === "envtest" ? await startEnvtest(folder) : await startInProcess(folder, kind === "cluster");
const all = [own, ...server.pids];
const cpuMs = (): number => all.reduce((sum, pid) => sum + cpuSeconds(pid), 0) * 1000 - cpuBefore * 1000;
const started = { startMs: performance.now() - began, startCpuMs: cpuMs() };
for (let i = 0; i < 50; i++) await oneTest(server.client, i);
const report: Omit<SuiteReport, "name"> = {
  ...started,
  suiteMs: performance.now() - began - started.startMs,
  suiteCpuMs: cpuMs() - started.startCpuMs,
  residentMb: all.reduce((sum, pid) => sum + residentMb(pid), 0),
};
console.log(JSON.stringify(report));
server.client.close();
await server.stop();

async function startInProcess(packageFolder: string, isWhole: boolean): Promise<Server> {
  const { createCluster } = (await import(
    pathToFileURL(join(packageFolder, "dist/index.js")).href
  )) as typeof import("@coxswain/testing");
  const cluster = await createCluster(isWhole ? { nodes: 1 } : { nodes: 0, controllers: false, scheduler: false });
  return {
    client: newClient({ ...parseKubeconfig(await cluster.kubeconfig()), qps: -1 }),
    pids: [],
    stop: () => cluster.stop(),
  };
}

/** Real etcd without fsync and kube-apiserver, until it is healthy. */
async function startEnvtest(bin: string): Promise<Server> {
  const etcd = await startOwnEtcd(undefined, ["--unsafe-no-fsync"]);
  const { program, remove } = await ourProgram();
  const flags = program.command.filter((word) => word.startsWith("--"));
  const port = await freePort();
  const running = await startProgram(
    { ...program, command: [join(bin, "kube-apiserver"), ...flags, "--disable-admission-plugins=ServiceAccount"] },
    { "secure-port": String(port), "etcd-servers": etcd.endpoint },
  );
  const { token, ca } = program;
  return {
    client: newClient({ host: running.url, token, ...(ca && { ca: ca.toString() }), qps: -1 }),
    pids: [running.pid, etcd.pid],
    async stop() {
      await running.stop();
      await etcd.stop();
      remove();
    },
  };
}

/** Typical steps of an operator's test, in a separate namespace: create, read, conflict, status, list, watch, apply, delete. */
async function oneTest(client: Client, index: number): Promise<void> {
  const namespace = `test-${index}`;
  await client.create(namespaces, { metadata: { name: namespace } } as never);
  const config = { namespace, name: "config" };
  const created = await client.create<ConfigMap>(configMaps, { metadata: config, data: { a: "1" } });
  const watch = client.watch<ConfigMap>(
    configMaps,
    { namespace },
    { resourceVersion: created.metadata.resourceVersion, signal: AbortSignal.timeout(60_000) },
  );
  await client.update<ConfigMap>(configMaps, { ...created, data: { a: "2" } });
  await assert.rejects(client.update<ConfigMap>(configMaps, { ...created, data: { a: "3" } }), isConflict);
  const labels = { app: "web" };
  const spec = {
    replicas: 2,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "nginx" }] } },
  };
  const web = { namespace, name: "web" };
  await client.create<Deployment>(deployments, { metadata: { ...web, labels }, spec });
  const status = { replicas: 2, readyReplicas: 2 };
  await client.patch(deployments, { ...web, subresource: "status" }, { type: "merge", body: { status } });
  const { items } = await client.list<Deployment>(deployments, { namespace }, { labelSelector: "app=web" });
  assert.equal(items.length, 1);
  const applied = { apiVersion: "v1", kind: "ConfigMap", metadata: config, data: { b: "1" } };
  await client.patch(configMaps, config, { type: "apply", body: applied }, { fieldManager: "test", force: true });
  await client.delete(configMaps, config);
  for await (const { type } of watch) if (type === "DELETED") break;
  await assert.rejects(client.get(configMaps, config), isNotFound);
}
