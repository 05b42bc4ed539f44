import type { Cluster } from "../cluster/cluster.ts";
import type { Damage } from "./damage.ts";

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

/** What each kind does to a running cluster, and when it ends. `skew` is a property of daemons, drawn when they start. */
export const strikes: Readonly<Record<Exclude<FaultKind, "skew">, (damage: Damage, cluster: Cluster) => void>> = {
  delay: (damage) => {
    damage.trouble.slowMs = 50 + damage.upTo(2_000);
    damage.later(1_000 + damage.upTo(8_000), "fast again", () => {
      damage.trouble.slowMs = 0;
    });
  },
  "lose-answers": (damage) => {
    damage.trouble.loseAnswers = 0.1 + damage.random() * 0.4;
    damage.later(500 + damage.upTo(4_000), "answers arrive again", () => {
      damage.trouble.loseAnswers = 0;
    });
  },
  "lose-requests": (damage) => {
    damage.trouble.loseRequests = 0.1 + damage.random() * 0.4;
    damage.later(500 + damage.upTo(4_000), "requests arrive again", () => {
      damage.trouble.loseRequests = 0;
    });
  },
  "lose-etcd-answers": (damage) => {
    damage.trouble.loseEtcdAnswers = 0.05 + damage.random() * 0.2;
    damage.later(500 + damage.upTo(3_000), "etcd's answers arrive again", () => {
      damage.trouble.loseEtcdAnswers = 0;
    });
  },
  "break-watches": (damage, { daemons }) => {
    damage.pick(daemons).life?.transport.breakWatches();
  },
  "break-etcd-watches": (damage, { servers }) => {
    damage.pick(servers).server?.breakWatches();
  },
  blind: (damage, { daemons }) => damage.blind(damage.pick(daemons), 500 + damage.upTo(5_000)),
  crash: (damage, { daemons }) => damage.crash(damage.pick(daemons)),
  "crash-after-write": (damage, { daemons }) => {
    damage.trouble.doomed.set(damage.pick(daemons.filter(({ name }) => !name.startsWith("node"))).name, 1 + damage.upTo(5));
  },
  "crash-server": (damage, { servers }) => damage.crashServer(damage.pick(servers)),
  "crash-server-after-call": (damage, { servers }) => {
    damage.trouble.doomedServers.set(damage.upTo(servers.length), 1 + damage.upTo(20));
  },
  "time-travel": (damage, { daemons, servers, routes }) => {
    damage.counts.staleReads++;
    const victim = damage.pick(daemons);
    const server = servers.length - 1 - (routes.get(victim.name) ?? 0);
    damage.trouble.lagMs[server] = 2_000 + damage.upTo(10_000);
    damage.later(1_000 + damage.upTo(4_000), `${victim.name} sees the past`, () => {
      routes.set(victim.name, server);
      damage.crash(victim, 100);
    });
    damage.later(15_000, "caches keep up again", () => {
      damage.trouble.lagMs[server] = 0;
    });
  },
  "stale-reads": (damage, { daemons, servers, routes }) => {
    damage.counts.staleReads++;
    const server = damage.upTo(servers.length);
    damage.trouble.lagMs[server] = 200 + damage.upTo(5_000);
    const victim = damage.pick(daemons);
    routes.set(victim.name, server);
    damage.later(1_000 + damage.upTo(8_000), "caches keep up again", () => {
      damage.trouble.lagMs[server] = 0;
    });
  },
  compact: (damage) => damage.compact(),
  restore: (damage, { etcd }) => {
    const back = 1 + damage.upTo(60);
    etcd.restore(Math.max(etcd.compacted, damage.oldest, etcd.revision - back));
  },
};
