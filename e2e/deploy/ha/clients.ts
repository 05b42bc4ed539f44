/** Clients of a cluster of machines, in a process on their network. Started by `ClusterClients`. */
import { createServer } from "node:net";
import { connect } from "node:tls";
import type { EtcdHistory } from "../../framework/history/etcd-history.ts";
import { followEtcd } from "../../framework/history/etcd-history.ts";
import { startWorkload, type Workload } from "../../robustness/store/workload.ts";
import { figuresOf, type RequestFigures } from "./figures.ts";
import { type Moved, Moves } from "./moves.ts";

export interface ClientsOptions {
  /** URLs of the API servers. */
  readonly servers: readonly string[];
  /** Of a user who may do everything. */
  readonly token: string;
  readonly ca: string;
  /** Addresses of etcd's members. */
  readonly members: readonly string[];
  readonly etcd: { readonly ca: string; readonly cert: string; readonly key: string };
}

export interface RoundResult extends RequestFigures {
  /** Violations of what the store promises. */
  readonly broken: readonly string[];
  readonly acknowledged: number;
  readonly unanswered: number;
  /** From the fault until the pod was asked to leave its node, and until another one was ready elsewhere. */
  readonly evictedMs: number;
  readonly readyMs: number;
}

/** What the process is told, in this order: each is answered when it is done. */
export type Command =
  | { readonly verb: "open"; readonly options: ClientsOptions }
  /** Requests of all kinds begin. */
  | { readonly verb: "begin" }
  /** A fault begins. */
  | { readonly verb: "fault" }
  /** With `evict` the pod's node gets a taint; without, the fault is to bring its eviction. Answered when another pod is ready. */
  | { readonly verb: "move"; readonly evict: boolean }
  /** Answered by the round's result. */
  | { readonly verb: "end" };

/** After which a client gives up a request and uses another server. */
const timeoutMs = 2_000;
/** For what waits until it is over by itself. */
const moveTimeoutMs = 240_000;

class Clients {
  readonly #options: ClientsOptions;
  readonly #history: EtcdHistory;
  readonly #moves: Moves;
  #rounds = 0;
  #workload: Workload | undefined;
  #faultAt = 0;
  #moved: Moved | undefined;

  private constructor(options: ClientsOptions, endpoints: readonly string[]) {
    this.#options = options;
    this.#history = followEtcd(endpoints, "/registry");
    this.#moves = new Moves({ ...options, timeoutMs });
  }

  static async open(options: ClientsOptions): Promise<Clients> {
    const endpoints = await Promise.all(options.members.map((member) => plainEtcd(member, options.etcd)));
    return new Clients(options, endpoints);
  }

  async begin(): Promise<void> {
    const round = ++this.#rounds;
    const namespaces = [`ha-${round}-a`, `ha-${round}-b`] as const;
    for (const name of namespaces) await this.#moves.request("POST", "/api/v1/namespaces", { metadata: { name } });
    const { servers, ca, token } = this.#options;
    this.#workload = startWorkload({
      ...{ apis: { servers: servers.map((url) => ({ url })), ca, token }, history: this.#history, namespaces },
      ...{ writers: 4, readers: 2, watchers: 4, paceMs: 50, timeoutMs },
    });
    await this.#moves.settled(moveTimeoutMs);
  }

  async fault(): Promise<void> {
    this.#faultAt = performance.now();
  }

  async move(evict: boolean): Promise<void> {
    this.#moved = await this.#moves.next({ evict, timeoutMs: moveTimeoutMs });
  }

  async end(): Promise<RoundResult> {
    const workload = this.#workload as Workload;
    const { broken, figures } = await workload.finish();
    const { acknowledged, unanswered } = figures;
    const moved = this.#moved as Moved;
    return {
      ...figuresOf(workload.recording, this.#faultAt),
      ...{ broken, acknowledged, unanswered },
      evictedMs: moved.evictedAt - this.#faultAt,
      readyMs: moved.readyAt - this.#faultAt,
    };
  }
}

/** A member of etcd without TLS, for `followEtcd`. */
async function plainEtcd(host: string, identity: ClientsOptions["etcd"]): Promise<string> {
  const server = createServer((inner) => {
    const outer = connect({ host, port: 2379, ...identity });
    inner.pipe(outer).pipe(inner);
    inner.on("error", () => outer.destroy());
    outer.on("error", () => inner.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

let clients: Clients | undefined;
async function obey(command: Command): Promise<RoundResult | undefined> {
  if (command.verb === "open") clients = await Clients.open(command.options);
  else if (command.verb === "move") await clients?.move(command.evict);
  else return (await clients?.[command.verb]()) ?? undefined;
  return undefined;
}

process.on("message", (command: Command) => {
  obey(command).then(
    (result) => process.send?.({ result }),
    (err: Error) => process.send?.({ error: `${err.stack} ${err.cause ?? ""}` }),
  );
});
process.on("disconnect", () => process.exit());
