import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cluster } from "../cluster/cluster.ts";
import { uuidOf } from "../world/uuid.ts";
import type { World } from "../world/world.ts";
import { describeAim, drawAim } from "./aim.ts";
import { Damage } from "./damage.ts";
import { strikes } from "./strikes.ts";

/** A world whose random numbers are all the same, and whose time passes with `pass`. */
function aWorld(number = 0.5) {
  const due: (() => void)[] = [];
  const after = (_ms: number, _label: string, act: () => void): void => void due.push(act);
  const world = { random: () => number, after } as unknown as World;
  return { damage: new Damage(world), pass: () => due.splice(0).forEach((act) => void act()) };
}

function anEtcd(revision: number, compacted: number) {
  const calls: string[] = [];
  const compact = (to: number): void => void calls.push(`compact ${to}`);
  const restore = (to: number): void => void calls.push(`restore ${to}`);
  return { calls, cluster: { etcd: { revision, compacted, compact, restore }, servers: [], daemons: [] } as unknown as Cluster };
}

for (const [kind, figure, want] of [
  ["delay", "slowMs", 1_050],
  ["lose-answers", "loseAnswers", 0.3],
  ["lose-requests", "loseRequests", 0.3],
  ["lose-etcd-answers", "loseEtcdAnswers", 0.15],
] as const)
  test(`${kind} lasts until the fault's time has passed`, () => {
    const { damage, pass } = aWorld();
    strikes[kind](damage, anEtcd(1, 0).cluster);
    assert.equal(damage.trouble[figure].toFixed(2), want.toFixed(2));
    pass();
    assert.equal(damage.trouble[figure], 0);
  });

/** A cluster with the daemons a, b and node-1, and two API servers; each says what is done to it. */
function aCluster() {
  const calls: string[] = [];
  const daemon = (name: string) => {
    const transport = { breakWatches: () => void calls.push(`${name} loses its watches`) };
    const life = { transport };
    const one = {
      name,
      life: life as object | undefined,
      crash() {
        calls.push(`${name} crashes`);
        one.life = undefined;
      },
      start() {
        calls.push(`${name} starts`);
        one.life = life;
      },
    };
    return one;
  };
  const slot = (index: number) => {
    const server = { breakWatches: () => void calls.push(`server ${index} breaks watches`) };
    const one = {
      server: server as object | undefined,
      crash() {
        calls.push(`server ${index} crashes`);
        one.server = undefined;
      },
      async start() {
        calls.push(`server ${index} starts`);
        one.server = server;
      },
    };
    return one;
  };
  const etcd = { revision: 100, compacted: 40, compact: (to: number) => void calls.push(`compact ${to}`) };
  const daemons = ["a", "b", "node-1"].map(daemon);
  const servers = [0, 1].map(slot);
  const cluster = { etcd, daemons, servers, routes: new Map<string, number>() };
  return { calls, cluster: cluster as unknown as Cluster & typeof cluster, daemons, servers };
}

test("a crashed daemon is started again, and does not crash a second time meanwhile", () => {
  const { damage, pass } = aWorld();
  const { calls, cluster, daemons } = aCluster();
  strikes.crash(damage, cluster);
  damage.crash(daemons[1] as never);
  pass();
  assert.deepEqual(calls, ["b crashes", "b starts"]);
  assert.equal(damage.counts.crashes, 1);
});

for (const [number, index, want] of [
  [0.5, 1, ["server 1 crashes", "server 1 starts"]],
  [0.4, 0, ["server 0 crashes", "compact 100", "server 0 starts"]],
] as const)
  test(`a crashed API server is started again once${number < 0.5 ? ", after a compaction" : ""}`, () => {
    const { damage, pass } = aWorld(number);
    const { calls, cluster, servers } = aCluster();
    damage.begin(cluster);
    strikes["crash-server"](damage, cluster);
    damage.crashServer(servers[index] as never);
    damage.crashServer(undefined);
    pass();
    assert.deepEqual(calls, want);
    assert.equal(damage.counts.crashes, 1);
  });

test("a blind daemon loses its watches, and what it missed is compacted", () => {
  const { damage, pass } = aWorld();
  const { calls, cluster } = aCluster();
  damage.begin(cluster);
  strikes.blind(damage, cluster);
  assert.deepEqual([...damage.trouble.blind], ["b"]);
  pass();
  assert.deepEqual([...damage.trouble.blind], []);
  assert.deepEqual(calls, ["b loses its watches", "compact 100"]);
});

test("watches break at one daemon or one server; a write or a call dooms one that is no node", () => {
  const { damage } = aWorld();
  const { calls, cluster } = aCluster();
  strikes["break-watches"](damage, cluster);
  strikes["break-etcd-watches"](damage, cluster);
  strikes["crash-after-write"](damage, cluster);
  strikes["crash-server-after-call"](damage, cluster);
  assert.deepEqual(calls, ["b loses its watches", "server 1 breaks watches"]);
  assert.deepEqual([...damage.trouble.doomed], [["b", 3]]);
  assert.deepEqual([...damage.trouble.doomedServers], [[1, 11]]);
});

test("stale reads come from a server that lags for a while; a daemon that travels in time crashes and reads there", () => {
  for (const [kind, server, lagMs, said] of [
    ["stale-reads", 1, 2_700, []],
    ["time-travel", 1, 7_000, ["b crashes"]],
  ] as const) {
    const { damage, pass } = aWorld();
    const { calls, cluster } = aCluster();
    strikes[kind](damage, cluster);
    assert.deepEqual(damage.trouble.lagMs, [0, lagMs]);
    pass();
    assert.deepEqual([damage.trouble.lagMs, cluster.routes.get("b"), damage.counts.staleReads], [[0, 0], server, 1]);
    assert.deepEqual(calls, said);
  }
});

test("a repair ends all faults and starts what has crashed", () => {
  const { damage } = aWorld();
  const { calls, cluster } = aCluster();
  damage.begin(cluster);
  Object.assign(damage.trouble, { slowMs: 1, loseAnswers: 1, loseRequests: 1, loseEtcdAnswers: 1 });
  damage.trouble.lagMs.fill(7);
  damage.trouble.blind.add("a");
  damage.repair();
  const { slowMs, loseAnswers, loseRequests, loseEtcdAnswers, lagMs, blind } = damage.trouble;
  assert.deepEqual([slowMs, loseAnswers, loseRequests, loseEtcdAnswers, lagMs, blind], [0, 0, 0, 0, [0, 0], new Set()]);
  assert.deepEqual(calls, ["server 0 starts", "server 1 starts", "a starts", "b starts", "node-1 starts"]);
});

test("a delay is short, and long for some messages while the network is slow", () => {
  const { damage } = aWorld();
  assert.equal(damage.delayMs(), 3);
  damage.trouble.slowMs = 1_000;
  assert.equal(damage.delayMs(), 3, "not this one");
  const often = new Damage({ random: () => 0.1 } as unknown as World);
  often.trouble.slowMs = 1_000;
  assert.equal(often.delayMs(), 101);
});

test("about a third of the faults are aimed at one of a controller's first six writes", () => {
  const draw = (...numbers: number[]) => drawAim(() => numbers.shift() ?? 0, ["x", "y"]);
  assert.equal(draw(0.35), undefined);
  assert.deepEqual(draw(0.34, 0, 0, 0), { controller: "x", pattern: "intermediate state", nth: 1 });
  assert.deepEqual(draw(0, 0.99, 0.99, 0.99), { controller: "y", pattern: "unheard", nth: 6 });
  assert.equal(describeAim({ controller: "x", pattern: "lost", nth: 2 }), "lost of x at write 2");
});

test("a UUID is one of version 4", () => {
  assert.equal(
    uuidOf(() => 0),
    "00000000-0000-4000-8000-000000000000",
  );
  assert.equal(
    uuidOf(() => 0.999),
    "ffffffff-ffff-4fff-bfff-ffffffffffff",
  );
  let at = 0;
  assert.equal(
    uuidOf(() => (at++ % 16) / 16),
    "01234567-89ab-4def-8123-456789abcdef",
  );
});

test("a restore goes back neither behind the compacted revision nor behind the beginning of the faults", () => {
  for (const { began, compacted, want } of [
    { began: 10, compacted: 0, want: "restore 69" },
    { began: 90, compacted: 0, want: "restore 90" },
    { began: 10, compacted: 95, want: "restore 95" },
  ]) {
    const { damage } = aWorld();
    const { calls, cluster } = anEtcd(100, compacted);
    damage.begin(anEtcd(began, 0).cluster);
    strikes.restore(damage, cluster);
    assert.deepEqual(calls, [want]);
  }
});

test("a compaction that would change nothing is not requested", () => {
  for (const [compacted, want] of [
    [100, []],
    [40, ["compact 100"]],
  ] as const) {
    const { damage } = aWorld();
    const { calls, cluster } = anEtcd(100, compacted);
    damage.begin(cluster);
    strikes.compact(damage, cluster);
    assert.deepEqual(calls, want);
  }
});
