import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { MachineCluster } from "../cluster.ts";
import type { ClientsOptions, Command, RoundResult } from "./clients.ts";

/** Clients on the machines' network, in a separate process (`clients.ts`). */
export class ClusterClients {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** @param machines those of the control plane */
  static async start(cluster: MachineCluster, machines: readonly string[]): Promise<ClusterClients> {
    const [by = ""] = machines;
    const read = (path: string): string => readFileSync(cluster.machine(by).path(`/etc/kubernetes/pki/${path}`), "utf8");
    const [command = "", ...args] = cluster.network.inside;
    const child = fork(fileURLToPath(new URL("clients.ts", import.meta.url)), {
      execPath: command,
      execArgv: [...args, process.execPath, "-C", "cox-source"],
    });
    const addresses = machines.map((name) => cluster.address(name));
    const clients = new ClusterClients(child);
    const options: ClientsOptions = {
      servers: addresses.map((address) => `https://${address}:6443`),
      token: await adminToken(cluster, by),
      ca: read("ca.crt"),
      members: addresses,
      etcd: { ca: read("etcd/ca.crt"), cert: read("etcd/healthcheck-client.crt"), key: read("etcd/healthcheck-client.key") },
    };
    await clients.#tell({ verb: "open", options });
    return clients;
  }

  async begin(): Promise<void> {
    await this.#tell({ verb: "begin" });
  }

  async fault(): Promise<void> {
    await this.#tell({ verb: "fault" });
  }

  /** Resolves when the pod has moved. @param evict by a taint; otherwise what has happened to its node is the reason */
  async move(evict: boolean): Promise<void> {
    await this.#tell({ verb: "move", evict });
  }

  async end(): Promise<RoundResult> {
    return (await this.#tell({ verb: "end" })) as RoundResult;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }

  async #tell(command: Command): Promise<RoundResult | undefined> {
    const over = new AbortController();
    const { signal } = over;
    this.#child.send(command);
    const answers = once(this.#child, "message", { signal });
    const ends = once(this.#child, "exit", { signal }).then(() => [{ error: "it has ended" }]);
    const [answer] = await Promise.race([answers, ends]);
    over.abort();
    const { result, error } = answer as { result?: RoundResult; error?: string };
    if (error !== undefined) throw new Error(`clients, ${command.verb}: ${error}`);
    return result;
  }
}

async function adminToken(cluster: MachineCluster, by: string): Promise<string> {
  await cluster.kubectl(by, "create", "serviceaccount", "clients");
  await cluster.kubectl(
    by,
    "create",
    "clusterrolebinding",
    "clients",
    "--clusterrole=cluster-admin",
    "--serviceaccount=default:clients",
  );
  return waitFor(
    async () => {
      const name = await cluster.kubectl(by, "get", "serviceaccount", "clients", "--output=jsonpath={.secrets[0].name}");
      return cluster.kubectl(by, "get", "secret", name, "--output=go-template={{.data.token | base64decode}}");
    },
    { retry: hasExitCode, what: "a token" },
  );
}
