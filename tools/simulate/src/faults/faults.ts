import type { Cluster, ServerSlot } from "../cluster/cluster.ts";
import type { Daemon } from "../cluster/daemon.ts";
import type { ApiNetwork } from "../cluster/network.ts";
import type { EtcdNetwork } from "../store/etcd-client.ts";
import type { World } from "../world/world.ts";

export const faultKinds = [
  "delay",
  "lose-answers",
  "lose-requests",
  "lose-etcd-answers",
  "break-watches",
  "break-etcd-watches",
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

/** What goes wrong, and how much of it has: invariants allow for what cannot be avoided. */
export interface Faults {
  readonly api: ApiNetwork;
  etcd(server: number): EtcdNetwork;
  skewMs(daemon: string): number;
  /** From now on things go wrong, at random times. */
  begin(cluster: Cluster): void;
  /** Nothing goes wrong any more, and what has crashed is started again. */
  end(): void;
  readonly counts: { readonly lostAnswers: number; readonly crashes: number; readonly staleReads: number };
}

/** What a part of the system is suffering from at present. */
interface Trouble {
  slowMs: number;
  loseAnswers: number;
  loseRequests: number;
  loseEtcdAnswers: number;
  readonly lagMs: number[];
  /** Who crashes after how many more writes. */
  readonly doomed: Map<string, number>;
  /** Which API server crashes after how many more of its requests to etcd. */
  readonly doomedServers: Map<number, number>;
}

const longestSkewMs = 30_000;
const betweenMs = 6_000;

export function newFaults(world: World, kinds: readonly FaultKind[]): Faults {
  const { random } = world;
  const trouble: Trouble = {
    slowMs: 0,
    loseAnswers: 0,
    loseRequests: 0,
    loseEtcdAnswers: 0,
    lagMs: [0, 0],
    doomed: new Map(),
    doomedServers: new Map(),
  };
  const counts = { lostAnswers: 0, crashes: 0, staleReads: 0 };
  let active = false;
  /** Before that there was no cluster. */
  let oldest = 0;
  const upTo = (most: number): number => Math.floor(random() * most);
  const pick = <T>(from: readonly T[]): T => from[upTo(from.length)] as T;
  /** Mostly short, sometimes long. */
  const delayMs = (): number => 1 + upTo(4) + (trouble.slowMs > 0 && random() < 0.2 ? upTo(trouble.slowMs) : 0);
  const later = (ms: number, label: string, act: () => void): void => void world.after(ms, `fault: ${label}`, act);

  const crash = (victim: Daemon, restartMs = 100 + upTo(10_000)): void => {
    if (victim.life === undefined) return;
    counts.crashes++;
    victim.crash();
    later(restartMs, `${victim.name} is started again`, () => victim.start());
  };

  const crashServer = (slot: ServerSlot | undefined): void => {
    if (slot?.server === undefined) return;
    counts.crashes++;
    slot.crash();
    const restartMs = 100 + upTo(10_000);
    const forgets = random() < 0.5;
    later(restartMs, "an API server is started again", () => {
      // It cannot learn then what happened before, and watches cannot be resumed.
      if (forgets && struck !== undefined) strike.compact(struck);
      void slot.start();
    });
  };

  const strike: Record<FaultKind, (cluster: Cluster) => void> = {
    delay() {
      trouble.slowMs = 50 + upTo(2_000);
      later(1_000 + upTo(8_000), "fast again", () => {
        trouble.slowMs = 0;
      });
    },
    "lose-answers"() {
      trouble.loseAnswers = 0.1 + random() * 0.4;
      later(500 + upTo(4_000), "answers arrive again", () => {
        trouble.loseAnswers = 0;
      });
    },
    "lose-requests"() {
      trouble.loseRequests = 0.1 + random() * 0.4;
      later(500 + upTo(4_000), "requests arrive again", () => {
        trouble.loseRequests = 0;
      });
    },
    "lose-etcd-answers"() {
      trouble.loseEtcdAnswers = 0.05 + random() * 0.2;
      later(500 + upTo(3_000), "etcd's answers arrive again", () => {
        trouble.loseEtcdAnswers = 0;
      });
    },
    "break-watches"({ daemons }) {
      pick(daemons).life?.transport.breakWatches();
    },
    "break-etcd-watches"({ servers }) {
      pick(servers).server?.breakWatches();
    },
    crash: ({ daemons }) => crash(pick(daemons)),
    "crash-after-write"({ daemons }) {
      trouble.doomed.set(pick(daemons.filter(({ name }) => !name.startsWith("node"))).name, 1 + upTo(5));
    },
    "crash-server": ({ servers }) => crashServer(pick(servers)),
    "crash-server-after-call"() {
      trouble.doomedServers.set(upTo(2), 1 + upTo(20));
    },
    "time-travel"({ daemons, routes }) {
      counts.staleReads++;
      const victim = pick(daemons);
      const server = 1 - (routes.get(victim.name) ?? 0);
      trouble.lagMs[server] = 2_000 + upTo(10_000);
      later(1_000 + upTo(4_000), `${victim.name} sees the past`, () => {
        routes.set(victim.name, server);
        crash(victim, 100);
      });
      later(15_000, "caches keep up again", () => {
        trouble.lagMs[server] = 0;
      });
    },
    "stale-reads"({ daemons, routes }) {
      counts.staleReads++;
      const server = upTo(2);
      trouble.lagMs[server] = 200 + upTo(5_000);
      const victim = pick(daemons);
      routes.set(victim.name, server);
      later(1_000 + upTo(8_000), "caches keep up again", () => {
        trouble.lagMs[server] = 0;
      });
    },
    compact({ etcd }) {
      if (etcd.revision > etcd.compacted) etcd.compact(etcd.revision);
    },
    restore({ etcd }) {
      const back = 1 + upTo(60);
      etcd.restore(Math.max(etcd.compacted, oldest, etcd.revision - back));
    },
    skew() {},
  };
  const strikers = kinds.filter((kind) => kind !== "skew");
  let struck: Cluster | undefined;

  function next(): void {
    if (strikers.length === 0) return;
    later(upTo(betweenMs), "time for trouble", () => {
      if (!active || struck === undefined) return;
      const kind = pick(strikers);
      world.note(`fault: ${kind}`);
      strike[kind](struck);
      next();
    });
  }

  return {
    api: {
      delayMs,
      loses() {
        if (active && random() < trouble.loseRequests) return "request";
        if (!active || random() >= trouble.loseAnswers) return undefined;
        counts.lostAnswers++;
        return "answer";
      },
      carriedOut({ name }, method) {
        const daemon = name.split("#")[0] as string;
        const left = trouble.doomed.get(daemon);
        if (!active || left === undefined || method === "GET") return;
        trouble.doomed.set(daemon, left - 1);
        if (left > 1) return;
        trouble.doomed.delete(daemon);
        const victim = struck?.daemons.find((one) => one.name === daemon);
        if (victim?.life?.process.name === name) crash(victim);
      },
    },
    etcd: (server) => ({
      delayMs,
      lagMs: () => trouble.lagMs[server] as number,
      carriedOut() {
        const left = trouble.doomedServers.get(server);
        if (!active || left === undefined) return;
        trouble.doomedServers.set(server, left - 1);
        if (left > 1) return;
        trouble.doomedServers.delete(server);
        crashServer(struck?.servers[server]);
      },
      losesAnswer() {
        if (!active || random() >= trouble.loseEtcdAnswers) return false;
        counts.lostAnswers++;
        return true;
      },
    }),
    skewMs: () => (kinds.includes("skew") ? upTo(2 * longestSkewMs) - longestSkewMs : 0),
    begin(cluster) {
      active = true;
      struck = cluster;
      oldest = cluster.etcd.revision;
      next();
    },
    end() {
      active = false;
      Object.assign(trouble, { slowMs: 0, loseAnswers: 0, loseRequests: 0, loseEtcdAnswers: 0 });
      trouble.lagMs.fill(0);
      for (const slot of struck?.servers ?? []) void slot.start();
      for (const daemon of struck?.daemons ?? []) daemon.start();
    },
    counts,
  };
}
