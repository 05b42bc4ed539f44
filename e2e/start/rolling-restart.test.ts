/**
 * Two API servers behind a TCP load balancer are restarted one at a time while clients write: no write is lost or fails, using
 * upstream's flags for this purpose.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { daemonProcess, etcdProcess } from "@coxswain/dev-cluster/daemons";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile, pkiFile } from "@coxswain/dev-cluster/pki";
import type { Settings } from "@coxswain/dev-cluster/settings";
import * as k8s from "@kubernetes/client-node";
import { type ManualCluster, newManualCluster, type OwnProcess, type TestContext, untilReady } from "../framework/own-cluster.ts";
import { startTcpBalancer } from "./tcp-balancer.ts";

const rounds = process.env["COX_TEST_LONG"] ? 10 : 2;
const drainFlags = ["--shutdown-delay-duration=1s", "--shutdown-send-retry-after=true"];

interface Writer {
  readonly name: string;
  write(name: string): Promise<unknown>;
}

async function startTwo(t: TestContext, flags: readonly string[], checksHealth: boolean) {
  const cluster = await newManualCluster(t);
  const { settings } = cluster;
  const other = { ...settings, ports: { ...settings.ports, apiserver: await freePort() } };
  cluster.start(etcdProcess(settings));
  const start = (which: Settings): OwnProcess => {
    const spec = daemonProcess(which, "kube-apiserver");
    return cluster.start({ ...spec, args: [...spec.args, "--endpoint-reconciler-type=none", ...flags] });
  };
  const servers = [settings, other].map((which) => ({ which, process: start(which) }));
  for (const { which, process } of servers) await untilReady(settings, process, which.ports.apiserver);
  const ca = readFileSync(pkiFile(settings, "ca.crt"), "utf8");
  const backends = servers.map(({ which }) => which.ports.apiserver);
  const balancer = await startTcpBalancer(t, backends, checksHealth ? ca : undefined);
  const admin = kubeconfigFile(settings, "admin");
  const direct = `https://127.0.0.1:${settings.ports.apiserver}`;
  writeFileSync(admin, readFileSync(admin, "utf8").replaceAll(direct, `https://127.0.0.1:${balancer.port}`));
  return {
    ...cluster,
    async restartEach(): Promise<void> {
      for (const server of servers) {
        await server.process.stop("SIGTERM");
        assert.equal(server.process.end(), 0, server.process.log().slice(-2_000));
        server.process = start(server.which);
        await untilReady(settings, server.process, server.which.ports.apiserver);
      }
    },
  };
}

/**
 * Nothing of a request was sent. The kernel resets connections that were not accepted when a server stops listening, upstream's
 * too; only a balancer that checks the servers' health avoids it.
 */
const isBeforeTls = (err: unknown): boolean =>
  String((err as { cause?: unknown }).cause).includes("before secure TLS connection was established");

/** @param honoursRetryAfter retry what was not sent, and 429 and 503 with Retry-After, which client-node leaves to its caller */
async function writersOf({ settings, client }: ManualCluster, honoursRetryAfter: boolean): Promise<Writer[]> {
  const file = kubeconfigFile(settings, "admin");
  const ours = await client();
  const kubectl = await findKubectl(settings);
  const config = new k8s.KubeConfig();
  config.loadFromFile(file);
  const core = config.makeApiClient(k8s.CoreV1Api);
  const namespace = "default";
  const createByNode = async (name: string): Promise<unknown> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
      } catch (err) {
        if (honoursRetryAfter && isBeforeTls(err) && attempt < 10) continue;
        const seconds = err instanceof k8s.ApiException ? Number(err.headers["retry-after"]) : Number.NaN;
        if (!honoursRetryAfter || Number.isNaN(seconds) || attempt === 10) throw err;
        await delay(seconds * 1000);
      }
    }
  };
  return [
    { name: "ours", write: (name) => ours.create(configMaps, { metadata: { namespace, name } }) },
    {
      name: "kubectl",
      write: (name) => promisify(execFile)(kubectl, ["--kubeconfig", file, "create", "configmap", name, "--from-literal=a=b"]),
    },
    { name: "client-node", write: createByNode },
  ];
}

for (const { name, checksHealth } of [
  { name: "a balancer that asks /readyz", checksHealth: true },
  { name: "a balancer that only uses the next where the port is closed", checksHealth: false },
]) {
  test(`a rolling restart behind ${name} fails no write`, async (t) => {
    const cluster = await startTwo(t, drainFlags, checksHealth);
    const written: string[] = [];
    const failures: string[] = [];
    let goesOn = true;
    const writing = (await writersOf(cluster, !checksHealth)).map(async (writer) => {
      for (let i = 0; goesOn; i++) {
        const object = `${writer.name}-${i}`;
        await writer.write(object).then(
          () => written.push(object),
          (err: Error) => failures.push(`${object}: ${err.message} ${String((err as { cause?: Error }).cause ?? "")}`),
        );
        await delay(10);
      }
    });
    for (let round = 0; round < rounds; round++) await cluster.restartEach();
    goesOn = false;
    await Promise.all(writing);
    const client = await cluster.client();
    const stored = new Set((await client.list(configMaps, { namespace: "default" })).items.map(({ metadata }) => metadata.name));
    t.diagnostic(`${written.length} writes in ${rounds} rounds, ${failures.length} failed`);
    assert.deepEqual(failures, []);
    assert.deepEqual(
      written.filter((object) => !stored.has(object)),
      [],
    );
    for (const writer of ["ours", "kubectl", "client-node"]) {
      assert.ok(written.filter((object) => object.startsWith(writer)).length > 5, `${writer} wrote too little`);
    }
  });
}
