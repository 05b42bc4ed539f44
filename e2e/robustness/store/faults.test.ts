import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { unpackedPackage } from "../../framework/debian.ts";
import { waitFor } from "../../framework/wait-for.ts";
import type { ApiServer } from "./apiservers.ts";
import { noNamespaces } from "./etcd-cluster.ts";
import type { FaultPoint } from "./faulty-apiserver.ts";
import { newStage, type Stage } from "./stage.ts";
import { startWorkload, type Workload } from "./workload.ts";

/**
 * The store under faults: clients of every kind use API servers over three etcd members while faults are injected one at a time.
 * Afterwards all responses are checked against etcd's own history. Only safety is checked, not speed.
 * COX_TEST_LONG: more load and rounds, for minutes (a value above 1 is the number of rounds).
 */
const long = process.env["COX_TEST_LONG"];
const rounds = long === undefined ? 1 : Math.max(Number(long) || 1, 2);
const apiServers = long === undefined ? 2 : 3;
const clients = long === undefined ? { writers: 6, readers: 4, watchers: 12 } : { writers: 20, readers: 10, watchers: 50 };
/** How long a fault lasts; etcd elects a leader in one to two seconds. */
const faultMs = long === undefined ? 1_000 : 5_000;

const elsewhereMs = 20;
const enough = 200;
const points: readonly FaultPoint[] = ["before-txn", "after-txn", "before-answer", "before-fan-out"];
/** COX_TEST_FAULT: only faults whose names contain it. */
const chosen = process.env["COX_TEST_FAULT"] ?? "";

const oneOf = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)] as T;

/** Keyed by name, for failure messages. Each fault leaves everything running. */
const faults: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
  async "a member is killed"({ etcd }) {
    const member = oneOf(etcd.members);
    await member.kill();
    await delay(faultMs);
    member.start();
  },
  async "a member is paused"({ etcd }) {
    const member = oneOf(etcd.members);
    member.pause();
    await delay(faultMs * 2);
    member.resume();
  },
  async "a member is cut off from the others"({ etcd }) {
    const member = oneOf(etcd.members);
    await member.isolate("members");
    await delay(faultMs * 2);
    await member.rejoin();
  },
  async "a member is cut off from everybody"({ etcd }) {
    const member = oneOf(etcd.members);
    await member.isolate("all");
    await delay(faultMs * 2);
    await member.rejoin();
  },
  "the leader is moved": ({ etcd }) => etcd.moveLeader(),
  async "a disk is full"({ etcd }) {
    const member = oneOf(etcd.members);
    await member.fillDisk();
    await delay(faultMs);
    await member.kill();
    await member.freeDisk();
    member.start();
  },
  "history is compacted": ({ compact }) => compact(),
  async "a member is defragmented"({ etcd }) {
    await oneOf(etcd.members).defragment();
  },
  async "API servers are killed before and after the transaction, before the answer, before the fan-out"({ apis }) {
    const killed = async (server: ApiServer, points: readonly FaultPoint[]): Promise<void> => {
      await server.kill();
      for (const point of points) {
        server.start({ point, times: 1 + Math.floor(Math.random() * 20) });
        await server.gone();
      }
      server.start();
      await server.ready();
    };
    // All at once is faster; one at a time keeps others available to sustain the load.
    if (long === undefined)
      await Promise.all(
        apis.servers.map((server, i) =>
          killed(
            server,
            points.filter((_, p) => p % 2 === i % 2),
          ),
        ),
      );
    else for (const server of apis.servers) await killed(server, points);
  },
  async "an API server is paused, and history is compacted meanwhile"({ apis, compact }) {
    const server = oneOf(apis.servers);
    server.pause();
    await delay(faultMs);
    await compact();
    server.resume();
  },
};

/** How caches verify that they are up to date; both mechanisms are tested. */
const ways: readonly { title: string; trusted: boolean; program: () => string; faults: readonly string[] }[] = [
  {
    title: "every promise of the store holds while members and API servers fail in every way",
    trusted: false,
    program: () => "etcd",
    faults: Object.keys(faults),
  },
  {
    title: "every promise of the store holds so where fresh reads rely on the progress replies of a later etcd",
    trusted: true,
    program: laterEtcd,
    // The short run includes only faults that move watches to other members.
    faults:
      long === undefined
        ? [
            "a member is killed",
            "a member is cut off from everybody",
            "the leader is moved",
            "an API server is paused, and history is compacted meanwhile",
          ]
        : Object.keys(faults),
  },
];
const trustedText = "progress replies of etcd are trusted";

for (const way of ways) {
  test(way.title, async (t) => {
    const why = await noNamespaces();
    if (why) return t.skip(why);
    const program = way.program();
    const stage = await newStage(t, {
      members: 3,
      apiServers,
      flags: (server) => ["--v=2", ...(server === 2 ? ["--watch-cache=false"] : [])],
      etcdProgram: () => program,
    });
    const stopWriting = writeElsewhere(stage);
    t.after(stopWriting);
    const workload = startWorkload({ ...stage, ...clients });
    t.after(() => workload.stop());
    for (let round = 0; round < rounds; round++) {
      for (const name of way.faults.filter((fault) => fault.includes(chosen))) {
        for (let i = 0; i < 2; i++) workload.addWatcher(Math.floor(Math.random() * 201) - 100);
        const before = workload.acknowledged;
        await faults[name]?.(stage);
        await stage.etcd.healthy();
        t.diagnostic(`${name}: ${workload.acknowledged - before} writes meanwhile`);
      }
    }
    await waitFor("enough writes to judge by", async () => workload.acknowledged > enough);
    stopWriting();
    await finish(t, workload);
    for (const server of stage.apis.servers) assert.equal(server.log().includes(trustedText), way.trusted);
  });
}

/** Debian 13's etcd; the progress responses of this machine's own may be unreliable. */
function laterEtcd(): string {
  return join(unpackedPackage("etcd-server-trixie"), "usr/bin/etcd");
}

/** Periodically writes an unwatched key, so that readers need barriers or progress requests. */
function writeElsewhere({ etcd }: Stage): () => void {
  const stopping = new AbortController();
  void (async () => {
    while (!stopping.signal.aborted) {
      await etcd.writeElsewhere().catch(() => {});
      await delay(elsewhereMs);
    }
  })();
  return () => stopping.abort();
}

async function finish(t: TestContext, workload: Workload): Promise<void> {
  const { broken, figures } = await workload.finish();
  t.diagnostic(JSON.stringify(figures));
  assert.deepEqual(broken.slice(0, 20), []);
  assert.ok(figures.acknowledged > enough && figures.events > enough, "enough happened to judge by");
}
