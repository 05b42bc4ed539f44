import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { namespaces, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { cpuSeconds, proportionalMb, residentMb } from "../process-usage.ts";
import { startProgram } from "../program.ts";
import { ourProgram } from "../target.ts";
import { type DaemonProgram, type RunningDaemon, startDaemon } from "./daemon.ts";
import { OwnCalls } from "./own-calls.ts";
import { PodView } from "./pod-view.ts";

/** Cumulative usage of a daemon and its cluster; subtract two of them to get the usage of an interval. */
export interface Usage {
  readonly atMs: number;
  readonly cpuSeconds: number;
  readonly serverCpuSeconds: number;
  /** Requests that the API server has answered, except those of this process. */
  readonly apiCalls: number;
  readonly residentMb: number;
  readonly proportionalMb: number;
}

/** A cluster of etcd, our API server and one daemon; nodes are API objects without machines. */
export interface DaemonCluster {
  readonly name: DaemonProgram["name"];
  readonly client: Client;
  readonly pods: PodView;
  readonly namespace: string;
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

/** @param flags flags of the daemon besides kubeconfig and port */
export async function startDaemonCluster(program: DaemonProgram, flags: readonly string[]): Promise<DaemonCluster> {
  const parts = new Parts();
  try {
    return await start(parts, program, flags);
  } catch (err) {
    await parts.stop();
    throw err;
  }
}

/** Everything that was started, in start order. */
export class Parts {
  readonly #stops: (() => unknown)[] = [];

  add(stop: () => unknown): void {
    this.#stops.push(stop);
  }

  /** Stops in reverse order. */
  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).toReversed()) await stop();
  }
}

/** etcd, our API server and a namespace, without a daemon. */
export interface ControlPlane {
  readonly client: Client;
  readonly namespace: string;
  /** Path of the file. */
  readonly kubeconfig: string;
  readonly apiPid: number;
  readonly etcdPid: number;
  readonly url: string;
  /** Token of an administrator. */
  readonly token: string;
  /** Requests that the API server has answered, except those of this process. */
  apiCalls(): Promise<number>;
}

interface ControlPlaneFlags {
  readonly etcd?: readonly string[];
  /** Flags of Node for the API server. */
  readonly node?: readonly string[];
}

/** Starts etcd and our API server on free ports; both are stopped by `parts`. */
export async function startControlPlane(parts: Parts, flags: ControlPlaneFlags = {}): Promise<ControlPlane> {
  const etcd = await startOwnEtcd(undefined, flags.etcd);
  parts.add(() => etcd.stop());
  const server = await ourProgram({ nodeFlags: flags.node ?? [] });
  parts.add(() => server.remove());
  const { token, ca } = server.program;
  const api = await startProgram(server.program, { "etcd-servers": etcd.endpoint, "secure-port": String(await freePort()) });
  parts.add(() => api.stop());
  const own = new OwnCalls();
  const encoding = { contentType: protobufMediaType, omitsManagedFields: true };
  const config = { host: api.url, ca: ca?.toString(), token, qps: -1, ...encoding };
  const client = newClient(config, { observer: own.observer });
  parts.add(() => client.close());
  const namespace = "bench";
  await makeNamespace(client, namespace);
  const folder = mkdtempSync(join(tmpdir(), "cox-bench-"));
  parts.add(() => rmSync(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(kubeconfig, kubeconfigText(api.url, ca, token), { mode: 0o600 });
  return {
    ...{ client, namespace, kubeconfig, apiPid: api.pid, etcdPid: etcd.pid, url: api.url, token },
    apiCalls: () => own.othersOf(client),
  };
}

async function start(parts: Parts, program: DaemonProgram, flags: readonly string[]): Promise<DaemonCluster> {
  const { client, namespace, kubeconfig, apiPid, apiCalls } = await startControlPlane(parts);
  const daemon: RunningDaemon = await startDaemon(program, [`--kubeconfig=${kubeconfig}`, ...flags]);
  parts.add(() => daemon.stop());
  const pods = new PodView(client);
  parts.add(() => pods.stop());
  await pods.start();
  return {
    name: program.name,
    client,
    pods,
    namespace,
    async usage() {
      const calls = await apiCalls();
      return {
        atMs: performance.now(),
        cpuSeconds: cpuSeconds(daemon.pid),
        serverCpuSeconds: cpuSeconds(apiPid),
        apiCalls: calls,
        residentMb: residentMb(daemon.pid),
        proportionalMb: proportionalMb(daemon.pid),
      };
    },
    stop: () => parts.stop(),
  };
}

/** Creates a namespace in which Pods can be created even without a controller manager. */
export async function makeNamespace(client: Client, name: string): Promise<void> {
  const ifMissing = (err: unknown): void => {
    if (!isAlreadyExists(err)) throw err;
  };
  await client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name } }).catch(ifMissing);
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default", namespace: name } };
  await client.create(serviceAccounts, account).catch(ifMissing);
}

function kubeconfigText(server: string, ca: Buffer | undefined, token: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, ...(ca && { "certificate-authority-data": ca.toString("base64") }) } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
}
