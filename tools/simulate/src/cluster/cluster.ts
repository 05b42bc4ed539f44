import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { KeyValue } from "@coxswain/apiserver/storage/etcd/wire";
import { type Machine, newMachine, type PodRules, register, runFakeNode } from "@coxswain/testing/nodes/fake-node";
import type { EtcdNetwork } from "@coxswain/testing/store/etcd-client";
import { MemoryEtcd } from "@coxswain/testing/store/memory-etcd";
import { newProcess, type SimulatedProcess } from "@coxswain/testing/time/time-line";
import type { Observed } from "../invariants/observed.ts";
import { newWorld, type World } from "../world/world.ts";
import { type ApiChoice, adminToken, type SimulatedApiServer, startSimulatedApiServer } from "./api-server.ts";
import { runBinder } from "./binder.ts";
import { runControllerManager } from "./controller-manager.ts";
import { type Daemon, newDaemon } from "./daemon.ts";
import { type ApiNetwork, type Backend, newSimulatedTransport } from "./network.ts";
import { runScheduler } from "./scheduler.ts";
import { mostNodes, type Shape } from "./shape.ts";

/** One or two API servers over one etcd, controller managers, schedulers and nodes. */
export interface Cluster {
  readonly etcd: MemoryEtcd;
  readonly servers: readonly ServerSlot[];
  readonly daemons: readonly Daemon[];
  readonly machines: readonly Machine[];
  /** The user's client, over a network without losses. */
  readonly client: Client;
  /** Index of the API server that each daemon uses; changed by faults. */
  readonly routes: Map<string, number>;
  /** Starts the daemons. */
  start(): void;
  /** Releases all resources after the simulation. */
  release(): void;
}

/** An API server that can crash at any point and be started again. */
export interface ServerSlot {
  /** undefined while it is down or not ready. */
  readonly server: SimulatedApiServer | undefined;
  /** Resolves when it is ready; does nothing when it is running. */
  start(): Promise<void>;
  crash(): void;
  /** Called after the end of the simulation. */
  release(): void;
}

export interface ManagerWork {
  readonly controllers: readonly string[];
  readonly flags: readonly string[];
}

interface ClusterOptions {
  readonly world: World;
  readonly shape: Shape;
  /** Initial contents of etcd. */
  readonly initial: readonly KeyValue[];
  readonly apis: ApiChoice;
  /** Controllers and flags of each controller manager. */
  readonly managers: readonly ManagerWork[];
  readonly rules: PodRules;
  readonly api: ApiNetwork;
  /** Called when the store exists, before its first client. */
  readonly observe: (etcd: MemoryEtcd) => Observed;
  /** Responses of servers that are not simulated. */
  readonly answers?: ((path: string, etcd: MemoryEtcd) => object | undefined) | undefined;
  readonly etcd: (server: number) => EtcdNetwork;
  readonly skewMs: (daemon: string) => number;
  readonly log?: ((process: SimulatedProcess) => Logger) | undefined;
}

/** Starts the API servers; the daemons follow with `start`. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { world, shape, log = () => discardLogger } = options;
  const machines = range(shape.nodes).map((number) => newMachine(nodeName(number)));
  const absent = new Set(
    range(mostNodes)
      .slice(shape.nodes)
      .map((number) => `/registry/minions/${nodeName(number)}`),
  );
  const etcd = new MemoryEtcd(options.initial.filter(({ key }) => !absent.has(key)));
  const api: ApiNetwork = {
    ...options.api,
    storesEvents: shape.storesEvents,
    observed: options.observe(etcd),
    answers: (path) => options.answers?.(path, etcd),
  };
  const servers = range(shape.servers).map((number) => newServerSlot(options, etcd, number));
  for (const slot of servers) await world.until("the start of an API server", slot.start(), 60_000);
  const routes = new Map<string, number>();
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
    ...options.managers.map(({ controllers, flags }, number) =>
      daemon(`manager-${number + 1}`, (life) => runControllerManager(life, controllers, flags)),
    ),
    ...range(shape.schedulers).map((number) => daemon(`scheduler-${number + 1}`, (life) => runScheduler(life, shape.leases))),
    ...(shape.schedulers > 0
      ? []
      : [
          daemon("binder", (life) =>
            runBinder(
              life,
              machines.map(({ name }) => name),
            ),
          ),
        ]),
    ...machines.map((machine) =>
      daemon(machine.name, (life) => runFakeNode({ ...life, clock: life.process.clock }, machine, options.rules)),
    ),
  ];
  const client = reliableClient(world, newProcess(world, "user"), () => servers[0]?.server);
  return {
    ...{ etcd, servers, daemons, machines, client, routes },
    start() {
      for (const one of daemons) one.start();
    },
    release() {
      for (const slot of servers) slot.release();
      for (const one of daemons) one.release();
      client.close();
    },
  };
}

/** A client over a network without losses. */
function reliableClient(world: World, user: SimulatedProcess, backend: Backend): Client {
  const transport = newSimulatedTransport(world, user, backend, { delayMs: () => 1, loses: () => undefined });
  return newClient({ host: "http://simulated", token: adminToken, qps: -1, userAgent: "user" }, { clock: user.clock, transport });
}

const nodeName = (number: number): string => `node-${number + 1}`;

const range = (length: number): number[] => Array.from({ length }, (_, number) => number);

function newServerSlot(
  { world, etcd: networkOf, apis, log = () => discardLogger }: ClusterOptions,
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
      const started = await startSimulatedApiServer({ world, process: mine, etcd, network, apis, log: log(mine) });
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

/** Contents of etcd after the first start of an API server, with ready nodes; made once and used for every cluster. */
export function emptyCluster(): Promise<readonly KeyValue[]> {
  first ??= bootstrap();
  return first;
}

async function bootstrap(): Promise<readonly KeyValue[]> {
  const world = newWorld({ seed: 0 });
  try {
    const process = newProcess(world, "apiserver");
    const etcd = new MemoryEtcd();
    const network: EtcdNetwork = { delayMs: () => 1, lagMs: () => 0, losesAnswer: () => false };
    const apis = { needed: [], isSmall: false };
    const options = { world, process, etcd, network, apis, log: discardLogger, bootstrap: true };
    const server = await world.until("the first start", startSimulatedApiServer(options), 60_000);
    const user = newProcess(world, "user");
    const client = reliableClient(world, user, () => server);
    for (const number of range(mostNodes))
      await world.until(
        "registration",
        register(client, nodeName(number), (ms) => user.clock.sleep(ms)),
      );
    server.crash();
    return etcd.entries("");
  } finally {
    await world.end();
  }
}
