import type { Cluster, ServerSlot } from "../cluster/cluster.ts";
import type { Daemon } from "../cluster/daemon.ts";
import type { World } from "../world/world.ts";

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

/** What is broken in a cluster, how more is broken and how it is repaired; what breaks when is drawn elsewhere. */
export class Damage {
  readonly trouble: Trouble = {
    slowMs: 0,
    loseAnswers: 0,
    loseRequests: 0,
    loseEtcdAnswers: 0,
    lagMs: [0, 0],
    blind: new Set(),
    doomed: new Map(),
    doomedServers: new Map(),
  };
  readonly counts = { lostAnswers: 0, crashes: 0, staleReads: 0 };
  readonly random: () => number;
  readonly #world: World;
  #struck: Cluster | undefined;
  #oldest = 0;

  constructor(world: World) {
    this.#world = world;
    this.random = world.random;
  }

  /** The cluster that is struck; undefined before `begin`. */
  get struck(): Cluster | undefined {
    return this.#struck;
  }

  /** Revision when the faults began; restores do not go further back. */
  get oldest(): number {
    return this.#oldest;
  }

  begin(cluster: Cluster): void {
    this.#struck = cluster;
    this.#oldest = cluster.etcd.revision;
  }

  /** Ends all faults and restarts whatever has crashed. */
  repair(): void {
    Object.assign(this.trouble, { slowMs: 0, loseAnswers: 0, loseRequests: 0, loseEtcdAnswers: 0 });
    this.trouble.lagMs.fill(0);
    this.trouble.blind.clear();
    for (const slot of this.#struck?.servers ?? []) void slot.start();
    for (const daemon of this.#struck?.daemons ?? []) daemon.start();
  }

  compact(): void {
    const etcd = this.#struck?.etcd;
    if (etcd !== undefined && etcd.revision > etcd.compacted) etcd.compact(etcd.revision);
  }

  /** Makes the daemon's reads fail for the duration, after which the changes meanwhile are compacted. */
  blind(victim: Daemon, durationMs: number): void {
    this.trouble.blind.add(victim.name);
    victim.life?.transport.breakWatches();
    this.later(durationMs, `${victim.name} can read again`, () => {
      this.trouble.blind.delete(victim.name);
      this.compact();
    });
  }

  upTo(most: number): number {
    return Math.floor(this.random() * most);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.upTo(from.length)]!;
  }

  /** Mostly short, sometimes long. */
  delayMs(): number {
    return 1 + this.upTo(4) + (this.trouble.slowMs > 0 && this.random() < 0.2 ? this.upTo(this.trouble.slowMs) : 0);
  }

  later(ms: number, label: string, act: () => void): void {
    void this.#world.after(ms, `fault: ${label}`, act);
  }

  crash(victim: Daemon, restartMs = 100 + this.upTo(10_000)): void {
    if (victim.life === undefined) return;
    this.counts.crashes++;
    victim.crash();
    this.later(restartMs, `${victim.name} is started again`, () => victim.start());
  }

  crashServer(slot: ServerSlot | undefined): void {
    if (slot?.server === undefined) return;
    this.counts.crashes++;
    slot.crash();
    const restartMs = 100 + this.upTo(10_000);
    const forgets = this.random() < 0.5;
    this.later(restartMs, "an API server is started again", () => {
      // Compacts what happened meanwhile, so that watches cannot be resumed.
      if (forgets) this.compact();
      void slot.start();
    });
  }
}
