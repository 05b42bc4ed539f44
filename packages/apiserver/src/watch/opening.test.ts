import assert from "node:assert/strict";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { isResourceExpired } from "@coxswain/apimachinery/errors/predicates";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import type { StoredResource } from "../storage/object-codec.ts";
import { openStorage, type StorageSet } from "../storage/open.ts";
import type { Entry, ListRequest } from "../storage/storage.ts";
import { aConfigMap, suiteResource, withData } from "../storage/suite.ts";

/** Always the same numbers for a seed, from 0 up to 1. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const resources: StoredResource[] = ["widgets", "gadgets", "gizmos"].map((resource) => ({
  ...suiteResource,
  resource,
  group: "example.com",
}));

const seeds = process.env["COX_TEST_LONG"] ? 60 : 3;

for (let seed = 1; seed <= seeds; seed++) {
  test(`whenever resources are opened and released, servers begin and history goes, nothing is missed (seed ${seed})`, async (t) => {
    const etcd = await startOwnEtcd(t);
    const random = numbersFrom(seed);
    const among = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
    const open = (watchCache: boolean): Promise<StorageSet> =>
      openStorage({ etcd: { servers: [etcd.endpoint] }, watchCache, clock: realClock, log: discardLogger });
    const client = newEtcdClient({ servers: [etcd.endpoint] });
    t.after(() => client.close());
    const writer = await open(false);
    t.after(() => writer.stop());
    /** What was done to each resource, in order. */
    const done = new Map(resources.map((of) => [of, [] as string[]]));
    const doneTo = (of: StoredResource): string[] => done.get(of) as string[];
    const watches: { of: StoredResource; after: number; seen: string[]; over: boolean; stop(): void; ended: Promise<void> }[] =
      [];
    let server = await open(true);
    t.after(() => server.stop());

    async function write(): Promise<void> {
      const of = among(resources);
      const key = `web/${among(["a", "b", "c", "d"])}`;
      const [log, store] = [doneTo(of), writer.for(of)];
      if ((await store.get(key)) === undefined) log.push(shapeOf("ADDED", await store.create(key, aConfigMap(key.slice(4)))));
      else if (random() < 0.3) log.push(shapeOf("DELETED", await store.delete(key)));
      else log.push(shapeOf("MODIFIED", await store.guaranteedUpdate(key, (e) => withData(e, { n: String(random()) }))));
    }

    async function watch(of: StoredResource, after: number): Promise<void> {
      const stream = await server.for(of).watch({ prefix: "", revision: after, signal: new AbortController().signal });
      const seen: string[] = [];
      const one = { of, after, seen, over: false, stop: () => stream.stop(), ended: Promise.resolve() };
      one.ended = (async () => {
        for await (const event of stream)
          if (event.type !== "ERROR" && event.type !== "BOOKMARK") seen.push(shapeOf(event.type, event.entry));
        one.over = true;
      })();
      watches.push(one);
    }

    /** A list of now, or of a moment that one of its changes was made in, whole or in pages. */
    async function list(): Promise<void> {
      const of = among(resources);
      const log = doneTo(of);
      const at = log.length > 0 && random() < 0.5 ? { revision: revisionOf(among(log)), match: "Exact" as const } : {};
      const limit = random() < 0.5 ? 2 : undefined;
      const found: string[] = [];
      let first: number | undefined;
      try {
        for (let request: ListRequest | undefined = { prefix: "", ...at, ...(limit && { limit }) }; request !== undefined; ) {
          const { entries, revision, continueToken } = await server.for(of).list(request);
          first ??= revision;
          assert.equal(revision, first);
          found.push(...entries.map((entry) => `${entry.key} ${entry.revision}`));
          if (limit && random() < 0.3) await write();
          request = continueToken ? { prefix: "", limit: 2, continueToken } : undefined;
        }
      } catch (err) {
        assert.ok(isResourceExpired(err), String(err));
        return;
      }
      const revision = first as number;
      assert.deepEqual(found, stateAfter(log.filter((line) => revisionOf(line) <= revision)));
      if (at.revision === undefined) await watch(of, revision);
      else assert.equal(revision, at.revision);
    }

    async function resume(): Promise<void> {
      if (watches.length === 0) return;
      const { of, after, seen } = among(watches);
      await watch(of, seen.length === 0 ? after : revisionOf(among(seen)));
    }

    for (let step = 0; step < 400; step++) {
      const what = random();
      if (what < 0.6) await write();
      else if (what < 0.75) await list();
      else if (what < 0.9) await resume();
      else if (what < 0.96) server.release(among(resources));
      else if (what < 0.98) {
        for (const watch of watches) {
          watch.over = true;
          watch.stop();
        }
        server.stop();
        server = await open(true);
      } else {
        const { revision } = await client.range({ key: "x" });
        await client.compact(revision).catch(() => {}); // just done
      }
    }
    for (const one of watches) {
      const all = doneTo(one.of).filter((line) => revisionOf(line) > one.after);
      await waitFor(() => one.over || one.seen.length >= all.length, { what: "the watch to have all" });
      one.stop();
      await one.ended;
      assert.deepEqual(one.seen, all.slice(0, one.seen.length));
    }
  });
}

const shapeOf = (type: string, { key, revision }: Entry): string => `${type} ${key} ${revision}`;
const revisionOf = (line: string): number => Number(line.split(" ")[2]);

function stateAfter(lines: readonly string[]): string[] {
  const state = new Map<string, string>();
  for (const line of lines) {
    const [type, key, revision] = line.split(" ") as [string, string, string];
    if (type === "DELETED") state.delete(key);
    else state.set(key, revision);
  }
  return [...state].map(([key, revision]) => `${key} ${revision}`).sort();
}
