import type { EtcdNetwork } from "@coxswain/testing/store/etcd-client";
import type { Cluster, ServerSlot } from "../cluster/cluster.ts";
import type { Daemon } from "../cluster/daemon.ts";
import type { ApiNetwork } from "../cluster/network.ts";
import type { World } from "../world/world.ts";
import { type Aim, aimedManager } from "./aim.ts";

export const faultKinds = [
  "delay",
  "lose-answers",
  "lose-requests",
  "lose-etcd-answers",
  "break-watches",
  "break-etcd-watches",
  "blind",
  "crash",
  "crash-after-write",
  "crash-server",
  "crash-server-after-call",
  "stale-reads",
  "time-travel",
  "compact",
  "restore",
  "skew",
] as const;
export type FaultKind = (typeof faultKinds)[number];

/** The currently active faults. */
interface Trouble {
  slowMs: number;
  loseAnswers: number;
  loseRequests: number;
  loseEtcdAnswers: number;
  readonly lagMs: number[];
  /** Daemons whose reads fail. */
  readonly blind: Set<string>;
  /** Daemons that crash after so many more writes. */
  readonly doomed: Map<string, number>;
  /** API servers that crash after so many more of their requests to etcd. */
  readonly doomedServers: Map<number, number>;
}

/** `manager-1#3` → `manager-1`. */
const daemonOf = (process: string): string => process.split("#", 1)[0]!;

const longestSkewMs = 30_000;
const betweenMs = 6_000;

interface FaultOptions {
  readonly kinds: readonly FaultKind[];
  /** Replaces `kinds` by a single fault. */
  readonly aim?: Aim | undefined;
  /** Scale of fault intervals: 1, or less for a simulation of less virtual time. */
  readonly time: number;
}

/** Injects faults and counts them: invariants allow for unavoidable consequences of some. */
export class Faults {
  readonly api: ApiNetwork;
  readonly counts: { readonly lostAnswers: number; readonly crashes: number; readonly staleReads: number };
  readonly #world: World;
  readonly #kinds: readonly FaultKind[];
  readonly #aim: Aim | undefined;
  readonly #betweenMs: number;
  /** Remaining writes of the targeted controller before its fault. */
  #writesLeft = 0;
  readonly #random: () => number;
  readonly #trouble: Trouble = {
    slowMs: 0,
    loseAnswers: 0,
    loseRequests: 0,
    loseEtcdAnswers: 0,
    lagMs: [0, 0],
    blind: new Set(),
    doomed: new Map(),
    doomedServers: new Map(),
  };
  readonly #counts = { lostAnswers: 0, crashes: 0, staleReads: 0 };
  #active = false;
  /** Revision when the faults began; restores do not go further back. */
  #oldest = 0;
  readonly #strike: Record<FaultKind, (cluster: Cluster) => void>;
  readonly #strikers: (
    | "blind"
    | "break-etcd-watches"
    | "break-watches"
    | "compact"
    | "crash"
    | "crash-after-write"
    | "crash-server"
    | "crash-server-after-call"
    | "delay"
    | "lose-answers"
    | "lose-etcd-answers"
    | "lose-requests"
    | "restore"
    | "stale-reads"
    | "time-travel"
  )[];
  #struck: Cluster | undefined;

  constructor(world: World, { kinds: given, aim, time }: FaultOptions) {
    const kinds = aim === undefined ? given : [];
    this.#world = world;
    this.#kinds = kinds;
    this.#aim = aim;
    this.#writesLeft = aim?.nth ?? 0;
    this.#betweenMs = time * betweenMs;
    const { random } = world;
    this.#random = random;
    this.#strike = {
      delay: () => {
        this.#trouble.slowMs = 50 + this.#upTo(2_000);
        this.#later(1_000 + this.#upTo(8_000), "fast again", () => {
          this.#trouble.slowMs = 0;
        });
      },
      "lose-answers": () => {
        this.#trouble.loseAnswers = 0.1 + this.#random() * 0.4;
        this.#later(500 + this.#upTo(4_000), "answers arrive again", () => {
          this.#trouble.loseAnswers = 0;
        });
      },
      "lose-requests": () => {
        this.#trouble.loseRequests = 0.1 + this.#random() * 0.4;
        this.#later(500 + this.#upTo(4_000), "requests arrive again", () => {
          this.#trouble.loseRequests = 0;
        });
      },
      "lose-etcd-answers": () => {
        this.#trouble.loseEtcdAnswers = 0.05 + this.#random() * 0.2;
        this.#later(500 + this.#upTo(3_000), "etcd's answers arrive again", () => {
          this.#trouble.loseEtcdAnswers = 0;
        });
      },
      "break-watches": ({ daemons }) => {
        this.#pick(daemons).life?.transport.breakWatches();
      },
      "break-etcd-watches": ({ servers }) => {
        this.#pick(servers).server?.breakWatches();
      },
      blind: ({ daemons }) => this.#blind(this.#pick(daemons), 500 + this.#upTo(5_000)),
      crash: ({ daemons }) => this.#crash(this.#pick(daemons)),
      "crash-after-write": ({ daemons }) => {
        this.#trouble.doomed.set(this.#pick(daemons.filter(({ name }) => !name.startsWith("node"))).name, 1 + this.#upTo(5));
      },
      "crash-server": ({ servers }) => this.#crashServer(this.#pick(servers)),
      "crash-server-after-call": ({ servers }) => {
        this.#trouble.doomedServers.set(this.#upTo(servers.length), 1 + this.#upTo(20));
      },
      "time-travel": ({ daemons, servers, routes }) => {
        this.#counts.staleReads++;
        const victim = this.#pick(daemons);
        const server = servers.length - 1 - (routes.get(victim.name) ?? 0);
        this.#trouble.lagMs[server] = 2_000 + this.#upTo(10_000);
        this.#later(1_000 + this.#upTo(4_000), `${victim.name} sees the past`, () => {
          routes.set(victim.name, server);
          this.#crash(victim, 100);
        });
        this.#later(15_000, "caches keep up again", () => {
          this.#trouble.lagMs[server] = 0;
        });
      },
      "stale-reads": ({ daemons, servers, routes }) => {
        this.#counts.staleReads++;
        const server = this.#upTo(servers.length);
        this.#trouble.lagMs[server] = 200 + this.#upTo(5_000);
        const victim = this.#pick(daemons);
        routes.set(victim.name, server);
        this.#later(1_000 + this.#upTo(8_000), "caches keep up again", () => {
          this.#trouble.lagMs[server] = 0;
        });
      },
      compact({ etcd }) {
        if (etcd.revision > etcd.compacted) etcd.compact(etcd.revision);
      },
      restore: ({ etcd }) => {
        const back = 1 + this.#upTo(60);
        etcd.restore(Math.max(etcd.compacted, this.#oldest, etcd.revision - back));
      },
      skew() {},
    };
    this.#strikers = kinds.filter((kind) => kind !== "skew");
    this.api = {
      delayMs: () => this.#delayMs(),
      loses: ({ name }, method) => {
        const daemon = daemonOf(name);
        if (method === "GET" && this.#trouble.blind.has(daemon)) return "request";
        if (this.#aim !== undefined) return this.#losesAimed(this.#aim, daemon, method);
        if (this.#active && this.#random() < this.#trouble.loseRequests) return "request";
        if (!this.#active || this.#random() >= this.#trouble.loseAnswers) return undefined;
        this.#counts.lostAnswers++;
        return "answer";
      },
      carriedOut: ({ name }, method) => {
        const daemon = daemonOf(name);
        if (this.#aim !== undefined) {
          this.#strikeAimed(this.#aim, daemon, method);
          return;
        }
        const left = this.#trouble.doomed.get(daemon);
        if (!this.#active || left === undefined || method === "GET") return;
        this.#trouble.doomed.set(daemon, left - 1);
        if (left > 1) return;
        this.#trouble.doomed.delete(daemon);
        const victim = this.#struck?.daemons.find((one) => one.name === daemon);
        if (victim?.life?.process.name === name) this.#crash(victim);
      },
    };
    this.counts = this.#counts;
  }

  /** The faults of one API server's connection to etcd. */
  etcd(server: number): EtcdNetwork {
    return {
      delayMs: () => this.#delayMs(),
      lagMs: () => this.#trouble.lagMs[server]!,
      carriedOut: () => {
        const left = this.#trouble.doomedServers.get(server);
        if (!this.#active || left === undefined) return;
        this.#trouble.doomedServers.set(server, left - 1);
        if (left > 1) return;
        this.#trouble.doomedServers.delete(server);
        this.#crashServer(this.#struck?.servers[server]);
      },
      losesAnswer: () => {
        if (!this.#active || this.#random() >= this.#trouble.loseEtcdAnswers) return false;
        this.#counts.lostAnswers++;
        return true;
      },
    };
  }

  /** Draws the offset of a daemon's wall clock, in ms; 0 without the fault kind `skew`. */
  skewMs(): number {
    return this.#kinds.includes("skew") ? this.#upTo(2 * longestSkewMs) - longestSkewMs : 0;
  }

  /** Starts injecting faults at random times. */
  begin(cluster: Cluster): void {
    this.#active = true;
    this.#struck = cluster;
    this.#oldest = cluster.etcd.revision;
    this.#next();
  }

  /** Stops all faults and restarts whatever has crashed. */
  end(): void {
    this.#active = false;
    Object.assign(this.#trouble, { slowMs: 0, loseAnswers: 0, loseRequests: 0, loseEtcdAnswers: 0 });
    this.#trouble.lagMs.fill(0);
    this.#trouble.blind.clear();
    for (const slot of this.#struck?.servers ?? []) void slot.start();
    for (const daemon of this.#struck?.daemons ?? []) daemon.start();
  }

  /** Makes the daemon's reads fail for the duration, after which the changes meanwhile are compacted. */
  #blind(victim: Daemon, durationMs: number): void {
    this.#trouble.blind.add(victim.name);
    victim.life?.transport.breakWatches();
    this.#later(durationMs, `${victim.name} can read again`, () => {
      this.#trouble.blind.delete(victim.name);
      if (this.#struck !== undefined) this.#strike.compact(this.#struck);
    });
  }

  /** True for the write at which the controller's fault occurs. */
  #isAimed(daemon: string, method: string): boolean {
    return this.#active && daemon === aimedManager && method !== "GET" && this.#writesLeft > 0 && --this.#writesLeft === 0;
  }

  #losesAimed({ pattern }: Aim, daemon: string, method: string): "request" | "answer" | undefined {
    if ((pattern !== "lost" && pattern !== "unheard") || !this.#isAimed(daemon, method)) return undefined;
    this.#world.note(`fault: ${pattern}`);
    if (pattern === "lost") return "request";
    this.#counts.lostAnswers++;
    return "answer";
  }

  #strikeAimed({ pattern }: Aim, daemon: string, method: string): void {
    if (pattern === "lost" || pattern === "unheard") return;
    const { daemons = [], servers = [], routes } = this.#struck ?? {};
    // The other server's caches stop just before the write.
    if (pattern === "stale state" && this.#active && this.#writesLeft === 1) this.#trouble.lagMs[servers.length - 1] = 8_000;
    if (!this.#isAimed(daemon, method)) return;
    this.#world.note(`fault: ${pattern}`);
    const victim = daemons.find(({ name }) => name === aimedManager);
    if (victim === undefined) return;
    if (pattern === "unobserved") {
      this.#blind(victim, 2_000 + this.#upTo(3_000));
      return;
    }
    if (pattern === "stale state") {
      this.#counts.staleReads++;
      routes?.set(aimedManager, servers.length - 1);
      this.#later(6_000, "caches keep up again", () => this.#trouble.lagMs.fill(0));
    }
    this.#crash(victim, 300);
  }

  #upTo(most: number): number {
    return Math.floor(this.#random() * most);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#upTo(from.length)]!;
  }

  /** Mostly short, sometimes long. */
  #delayMs(): number {
    return 1 + this.#upTo(4) + (this.#trouble.slowMs > 0 && this.#random() < 0.2 ? this.#upTo(this.#trouble.slowMs) : 0);
  }

  #later(ms: number, label: string, act: () => void): void {
    void this.#world.after(ms, `fault: ${label}`, act);
  }

  #crash(victim: Daemon, restartMs = 100 + this.#upTo(10_000)): void {
    if (victim.life === undefined) return;
    this.#counts.crashes++;
    victim.crash();
    this.#later(restartMs, `${victim.name} is started again`, () => victim.start());
  }

  #crashServer(slot: ServerSlot | undefined): void {
    if (slot?.server === undefined) return;
    this.#counts.crashes++;
    slot.crash();
    const restartMs = 100 + this.#upTo(10_000);
    const forgets = this.#random() < 0.5;
    this.#later(restartMs, "an API server is started again", () => {
      // Compacts what happened meanwhile, so that watches cannot be resumed.
      if (forgets && this.#struck !== undefined) this.#strike.compact(this.#struck);
      void slot.start();
    });
  }

  #next(): void {
    if (this.#strikers.length === 0) return;
    this.#later(this.#upTo(this.#betweenMs), "time for trouble", () => {
      if (!this.#active || this.#struck === undefined) return;
      const kind = this.#pick(this.#strikers);
      this.#world.note(`fault: ${kind}`);
      this.#strike[kind](this.#struck);
      this.#next();
    });
  }
}
