import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { discardLogger, type Logger } from "@coxswain/apimachinery/logging/logger";
import type { KeyValue } from "@coxswain/apiserver/storage/etcd/wire";
import type { Observed } from "../invariants/observed.ts";
import { type Machine, newMachine, type PodRules, runFakeNode } from "../nodes/fake-node.ts";
import type { EtcdNetwork } from "../store/etcd-client.ts";
import { type MemoryEtcd, newMemoryEtcd } from "../store/memory-etcd.ts";
import { newProcess, newWorld, type SimulatedProcess, type World } from "../world/world.ts";
import { adminToken, type SimulatedApiServer, startSimulatedApiServer } from "./api-server.ts";
import { runControllerManager } from "./controller-manager.ts";
import { type Daemon, newDaemon } from "./daemon.ts";
import { type ApiNetwork, newSimulatedTransport } from "./network.ts";
import { runScheduler } from "./scheduler.ts";

/** Two API servers over one etcd, two controller managers, two schedulers, three nodes. */
export interface Cluster {
  readonly etcd: MemoryEtcd;
  readonly servers: readonly ServerSlot[];
  readonly daemons: readonly Daemon[];
  readonly machines: readonly Machine[];
  /** Of the user, over a network that loses nothing. */
  readonly client: Client;
  /** Which API server each daemon speaks with: changed by faults. */
  readonly routes: Map<string, number>;
  /** Lets go of everything, after the end. */
  release(): void;
}

/** The place of an API server, which can crash anywhere and is started again. */
export interface ServerSlot {
  /** undefined: it is down, or not ready yet. */
  readonly server: SimulatedApiServer | undefined;
  /** Resolves when it serves; does nothing when it runs. */
  start(): Promise<void>;
  crash(): void;
  /** After the end of the world. */
  release(): void;
}

export interface ClusterOptions {
  readonly world: World;
  /** What etcd holds at first. */
  readonly initial: readonly KeyValue[];
  readonly controllers: readonly string[];
  readonly rules: PodRules;
  readonly api: ApiNetwork;
  /** Called when the store is there, before anybody speaks with it. */
  readonly observe: (etcd: MemoryEtcd) => Observed;
  readonly etcd: (server: number) => EtcdNetwork;
  readonly skewMs: (daemon: string) => number;
  readonly log?: ((process: SimulatedProcess) => Logger) | undefined;
}

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { world, log = () => discardLogger } = options;
  const etcd = newMemoryEtcd(options.initial);
  const api: ApiNetwork = { ...options.api, observed: options.observe(etcd) };
  const servers = [0, 1].map((number) => newServerSlot(options, etcd, number));
  for (const slot of servers) await world.until("the start of an API server", slot.start(), 60_000);
  const routes = new Map<string, number>();
  const machines = [1, 2, 3].map((number) => newMachine(`node-${number}`));
  const daemon = (name: string, run: Parameters<typeof newDaemon>[0]["run"]): Daemon =>
    newDaemon({
      world,
      name,
      backend: () => servers[routes.get(name) ?? 0]?.server,
      network: api,
      skewMs: options.skewMs(name),
      log,
      run,
    });
  const daemons = [
    ...[1, 2].map((number) => daemon(`manager-${number}`, (life) => runControllerManager(life, options.controllers))),
    ...[1, 2].map((number) => daemon(`scheduler-${number}`, runScheduler)),
    ...machines.map((machine) => daemon(machine.name, (life) => runFakeNode(life, machine, options.rules))),
  ];
  for (const one of daemons) one.start();
  const user = newProcess(world, "user");
  const transport = newSimulatedTransport(world, user, () => servers[0]?.server, { delayMs: () => 1, loses: () => undefined });
  const client = newClient(
    { host: "http://simulated", token: adminToken, qps: -1, userAgent: "user" },
    { clock: user.clock, transport },
  );
  return {
    ...{ etcd, servers, daemons, machines, client, routes },
    release() {
      for (const slot of servers) slot.release();
      for (const one of daemons) one.release();
      transport.close();
    },
  };
}

function newServerSlot(
  { world, etcd: networkOf, log = () => discardLogger }: ClusterOptions,
  etcd: MemoryEtcd,
  number: number,
): ServerSlot {
  const name = `apiserver-${number}`;
  const network = networkOf(number);
  let lives = 0;
  let process: SimulatedProcess | undefined;
  let server: SimulatedApiServer | undefined;
  function end(): void {
    if (server === undefined) process?.crash();
    else server.crash();
    process = undefined;
    server = undefined;
  }
  return {
    get server() {
      return server;
    },
    async start() {
      if (process !== undefined) return;
      const mine = newProcess(world, ++lives === 1 ? name : `${name}#${lives}`);
      process = mine;
      const started = await startSimulatedApiServer({ world, process: mine, etcd, network, log: log(mine) });
      if (process === mine) server = started;
      else started.crash();
    },
    crash() {
      if (process === undefined) return;
      world.note(`${process.name} crashes`);
      end();
    },
    release: end,
  };
}

let first: Promise<readonly KeyValue[]> | undefined;

/** What the first API server writes into an empty etcd: made once, the same for every cluster. */
export function emptyCluster(): Promise<readonly KeyValue[]> {
  first ??= bootstrap();
  return first;
}

async function bootstrap(): Promise<readonly KeyValue[]> {
  const world = newWorld({ seed: 0 });
  try {
    const process = newProcess(world, "apiserver");
    const etcd = newMemoryEtcd();
    const network: EtcdNetwork = { delayMs: () => 1, lagMs: () => 0, losesAnswer: () => false };
    const options = { world, process, etcd, network, log: discardLogger, bootstrap: true };
    const server = await world.until("the first start", startSimulatedApiServer(options), 60_000);
    server.crash();
    return etcd.entries("");
  } finally {
    await world.end();
  }
}
