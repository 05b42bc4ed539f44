import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import { daemonProcess } from "@coxswain/dev-cluster/daemons";
import { stop as stopSupervised } from "@coxswain/dev-cluster/processes";
import { readSettings } from "@coxswain/dev-cluster/read-settings";
import type { Settings } from "@coxswain/dev-cluster/settings";
import { adminClient } from "@coxswain/dev-cluster/up";
import { cpuSeconds, proportionalMb, residentMb } from "../process-usage.ts";
import { type DaemonCluster, makeNamespace, type Usage } from "./cluster.ts";
import { type DaemonProgram, type RunningDaemon, root, spawnDaemon } from "./daemon.ts";
import { OwnCalls } from "./own-calls.ts";
import { PodView } from "./pod-view.ts";

/** A cluster of `./cox up` with a real container runtime, on which the kubelets run one at a time. */
export class NodeStage {
  readonly settings: Settings;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(settings: Settings, env: NodeJS.ProcessEnv) {
    this.settings = settings;
    this.#env = env;
  }

  /** @throws Error with the output of `./cox up` when the cluster does not start */
  static start(): NodeStage {
    const state = mkdtempSync(join(tmpdir(), "cox-bench-"));
    const env = { ...process.env, COX_STATE: state, COX_NODE_NAME: "bench-node", COX_ETCD_WITHOUT_SYNC: "1" };
    try {
      execFileSync(cox, ["up"], { env, stdio: ["ignore", "ignore", "pipe"] });
      const stage = new NodeStage(readSettings(root, env), env);
      process.once("SIGTERM", stage.#endedBySignal);
      return stage;
    } catch (err) {
      remove(state, env);
      throw err;
    }
  }

  /** Stops daemons that `up` has started, so that their supervisor does not restart them. */
  async stopDaemons(...names: string[]): Promise<void> {
    for (const name of names) await stopSupervised(this.settings, name);
  }

  /** Removes the cluster on a signal, because it would outlive this process. */
  readonly #endedBySignal = (): void => {
    this.remove();
    process.exit(143);
  };

  remove(): void {
    process.off("SIGTERM", this.#endedBySignal);
    remove(this.settings.state, this.#env);
  }
}

const cox = join(root, "cox");

function remove(state: string, env: NodeJS.ProcessEnv): void {
  execFileSync(cox, ["down", "--purge"], { env, stdio: ["ignore", "ignore", "inherit"] });
  rmSync(state, { recursive: true, force: true });
}

/** The node with one implementation of the kubelet. */
export class NodeCluster implements DaemonCluster {
  readonly name: DaemonProgram["name"];
  readonly client: Client;
  readonly pods: PodView;
  readonly namespace = "bench";
  readonly settings: Settings;
  readonly #program: DaemonProgram;
  readonly #own: OwnCalls;
  #kubelet: RunningDaemon | undefined;
  /** CPU time of the kubelet processes that have exited. */
  #endedCpuSeconds = 0;

  private constructor(settings: Settings, program: DaemonProgram, client: Client, own: OwnCalls) {
    this.name = program.name;
    this.settings = settings;
    this.client = client;
    this.pods = new PodView(client);
    this.#program = program;
    this.#own = own;
  }

  /** Does not start the kubelet yet. */
  static async open(settings: Settings, program: DaemonProgram): Promise<NodeCluster> {
    const own = new OwnCalls();
    const client = await adminClient(settings, { observer: own.observer });
    const cluster = new NodeCluster(settings, program, client, own);
    await makeNamespace(client, cluster.namespace);
    await cluster.pods.start();
    return cluster;
  }

  async startKubelet(): Promise<void> {
    const { args: all, env } = daemonProcess(this.settings, "kubelet");
    const [, ...args] = all; // the first argument is our program
    const health = `http://127.0.0.1:${this.settings.ports.kubeletHealthz}`;
    this.#kubelet = await spawnDaemon(this.#program, args, health, undefined, env);
  }

  async stopKubelet(): Promise<void> {
    if (this.#kubelet === undefined) return;
    this.#endedCpuSeconds += cpuSeconds(this.#kubelet.pid);
    await this.#kubelet.stop();
    this.#kubelet = undefined;
  }

  /** CPU time of all kubelet processes so far, including those that have exited; memory of the running one, 0 without one. */
  async usage(): Promise<Usage> {
    const apiCalls = await this.#own.othersOf(this.client);
    const pid = this.#kubelet?.pid;
    return {
      atMs: performance.now(),
      cpuSeconds: this.#endedCpuSeconds + (pid === undefined ? 0 : cpuSeconds(pid)),
      serverCpuSeconds: 0,
      apiCalls,
      residentMb: pid === undefined ? 0 : residentMb(pid),
      proportionalMb: pid === undefined ? 0 : proportionalMb(pid),
    };
  }

  async stop(): Promise<void> {
    await this.stopKubelet();
    await this.pods.stop();
    this.client.close();
  }
}
