import type { EtcdNetwork } from "@coxswain/testing/store/etcd-client";
import type { Cluster } from "../cluster/cluster.ts";
import type { ApiNetwork } from "../cluster/network.ts";
import type { World } from "../world/world.ts";
import { type Aim, aimedManager } from "./aim.ts";
import { Damage } from "./damage.ts";
import { type FaultKind, strikes } from "./strikes.ts";

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
  readonly #damage: Damage;
  #active = false;
  readonly #strikers: readonly Exclude<FaultKind, "skew">[];

  constructor(world: World, { kinds: given, aim, time }: FaultOptions) {
    const kinds = aim === undefined ? given : [];
    this.#world = world;
    this.#kinds = kinds;
    this.#aim = aim;
    this.#writesLeft = aim?.nth ?? 0;
    this.#betweenMs = time * betweenMs;
    this.#damage = new Damage(world);
    this.#strikers = kinds.filter((kind) => kind !== "skew");
    this.api = {
      delayMs: () => this.#damage.delayMs(),
      loses: ({ name }, method) => {
        const daemon = daemonOf(name);
        if (method === "GET" && this.#damage.trouble.blind.has(daemon)) return "request";
        if (this.#aim !== undefined) return this.#losesAimed(this.#aim, daemon, method);
        if (this.#active && this.#damage.random() < this.#damage.trouble.loseRequests) return "request";
        if (!this.#active || this.#damage.random() >= this.#damage.trouble.loseAnswers) return undefined;
        this.#damage.counts.lostAnswers++;
        return "answer";
      },
      carriedOut: ({ name }, method) => {
        const daemon = daemonOf(name);
        if (this.#aim !== undefined) {
          this.#strikeAimed(this.#aim, daemon, method);
          return;
        }
        const left = this.#damage.trouble.doomed.get(daemon);
        if (!this.#active || left === undefined || method === "GET") return;
        this.#damage.trouble.doomed.set(daemon, left - 1);
        if (left > 1) return;
        this.#damage.trouble.doomed.delete(daemon);
        const victim = this.#damage.struck?.daemons.find((one) => one.name === daemon);
        if (victim?.life?.process.name === name) this.#damage.crash(victim);
      },
    };
    this.counts = this.#damage.counts;
  }

  /** The faults of one API server's connection to etcd. */
  etcd(server: number): EtcdNetwork {
    return {
      delayMs: () => this.#damage.delayMs(),
      lagMs: () => this.#damage.trouble.lagMs[server]!,
      carriedOut: () => {
        const left = this.#damage.trouble.doomedServers.get(server);
        if (!this.#active || left === undefined) return;
        this.#damage.trouble.doomedServers.set(server, left - 1);
        if (left > 1) return;
        this.#damage.trouble.doomedServers.delete(server);
        this.#damage.crashServer(this.#damage.struck?.servers[server]);
      },
      losesAnswer: () => {
        if (!this.#active || this.#damage.random() >= this.#damage.trouble.loseEtcdAnswers) return false;
        this.#damage.counts.lostAnswers++;
        return true;
      },
    };
  }

  /** Draws the offset of a daemon's wall clock, in ms; 0 without the fault kind `skew`. */
  skewMs(): number {
    return this.#kinds.includes("skew") ? this.#damage.upTo(2 * longestSkewMs) - longestSkewMs : 0;
  }

  /** Starts injecting faults at random times. */
  begin(cluster: Cluster): void {
    this.#active = true;
    this.#damage.begin(cluster);
    this.#next();
  }

  /** Stops all faults and restarts whatever has crashed. */
  end(): void {
    this.#active = false;
    this.#damage.repair();
  }

  /** True for the write at which the controller's fault occurs. */
  #isAimed(daemon: string, method: string): boolean {
    return this.#active && daemon === aimedManager && method !== "GET" && this.#writesLeft > 0 && --this.#writesLeft === 0;
  }

  #losesAimed({ pattern }: Aim, daemon: string, method: string): "request" | "answer" | undefined {
    if ((pattern !== "lost" && pattern !== "unheard") || !this.#isAimed(daemon, method)) return undefined;
    this.#world.note(`fault: ${pattern}`);
    if (pattern === "lost") return "request";
    this.#damage.counts.lostAnswers++;
    return "answer";
  }

  #strikeAimed({ pattern }: Aim, daemon: string, method: string): void {
    if (pattern === "lost" || pattern === "unheard") return;
    const { daemons = [], servers = [], routes } = this.#damage.struck ?? {};
    // The other server's caches stop just before the write.
    if (pattern === "stale state" && this.#active && this.#writesLeft === 1)
      this.#damage.trouble.lagMs[servers.length - 1] = 8_000;
    if (!this.#isAimed(daemon, method)) return;
    this.#world.note(`fault: ${pattern}`);
    const victim = daemons.find(({ name }) => name === aimedManager);
    if (victim === undefined) return;
    if (pattern === "unobserved") {
      this.#damage.blind(victim, 2_000 + this.#damage.upTo(3_000));
      return;
    }
    if (pattern === "stale state") {
      this.#damage.counts.staleReads++;
      routes?.set(aimedManager, servers.length - 1);
      this.#damage.later(6_000, "caches keep up again", () => this.#damage.trouble.lagMs.fill(0));
    }
    this.#damage.crash(victim, 300);
  }

  #next(): void {
    if (this.#strikers.length === 0) return;
    this.#damage.later(this.#damage.upTo(this.#betweenMs), "time for trouble", () => {
      const { struck } = this.#damage;
      if (!this.#active || struck === undefined) return;
      const kind = this.#damage.pick(this.#strikers);
      this.#world.note(`fault: ${kind}`);
      strikes[kind](this.#damage, struck);
      this.#next();
    });
  }
}
