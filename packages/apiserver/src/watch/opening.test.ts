import assert from "node:assert/strict";
import { test } from "node:test";
import { isResourceExpired } from "@coxswain/apimachinery/objects/errors/predicates";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import type { StoredResource } from "../storage/object-codec.ts";
import { openStorage, type StorageSet } from "../storage/open.ts";
import type { Entry } from "../storage/storage.ts";
import { aConfigMap, suiteResource, withData } from "../storage/testing.ts";

/** Deterministic pseudo-random numbers in [0, 1). */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Write {
  readonly key: string;
  readonly revision: number;
  /** undefined: deleted. */
  readonly color: string | undefined;
}

interface Selection {
  readonly prefix: string;
  readonly fields: string;
  takes(write: Write | undefined): boolean;
}

interface Watch {
  readonly of: StoredResource;
  readonly selection: Selection;
  readonly after: number;
  readonly seen: string[];
  over: boolean;
  stop(): void;
  ended: Promise<void>;
}

const resources: StoredResource[] = ["widgets", "gadgets", "gizmos"].map((resource) => ({
  ...suiteResource,
  resource,
  group: "example.com",
}));
const colors = ["red", "blue", ""];
const isColor = (take: (color: string) => boolean) => (write: Write | undefined) =>
  write?.color !== undefined && take(write.color);
const selections: Selection[] = [
  { prefix: "", fields: "", takes: isColor(() => true) },
  { prefix: "web/", fields: "data.color=red", takes: isColor((color) => color === "red") },
  { prefix: "", fields: "data.color=", takes: isColor((color) => color === "") },
  { prefix: "", fields: "data.color!=red", takes: isColor((color) => color !== "red") },
  { prefix: "web/a", fields: "", takes: (write) => write?.key === "web/a" && write.color !== undefined },
];

const shapeOf = ({ key, revision }: Pick<Write, "key" | "revision">): string => `${key} ${revision}`;

function stateAfter(writes: readonly Write[], { takes }: Selection): string[] {
  const state = new Map(writes.map((write) => [write.key, write]));
  return [...state.values()].filter(takes).map(shapeOf).sort();
}

function eventsAfter(after: number, writes: readonly Write[], { takes }: Selection): string[] {
  const state = new Map<string, Write>();
  const events: string[] = [];
  for (const write of writes) {
    const [before, now] = [takes(state.get(write.key)), takes(write)];
    state.set(write.key, write);
    if (write.revision > after && (before || now)) {
      events.push(`${before ? (now ? "MODIFIED" : "DELETED") : "ADDED"} ${shapeOf(write)}`);
    }
  }
  return events;
}

const seeds = process.env["COX_TEST_LONG"] ? 60 : 3;

for (let seed = 1; seed <= seeds; seed++) {
  test(`no event is missed while resources are opened and released, servers start and history is compacted (seed ${seed})`, async (t) => {
    const etcd = await startOwnEtcd(t);
    const random = numbersFrom(seed);
    const among = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
    const open = (watchCache: boolean): Promise<StorageSet> =>
      openStorage({ etcd: { servers: [etcd.endpoint] }, watchCache, clock: realClock, log: discardLogger });
    const client = newEtcdClient({ servers: [etcd.endpoint] });
    t.after(() => client.close());
    const writer = await open(false);
    t.after(() => writer.stop());
    const done = new Map(resources.map((of): [StoredResource, Write[]] => [of, []]));
    const doneTo = (of: StoredResource): Write[] => done.get(of) as Write[];
    const watches: Watch[] = [];
    let server = await open(true);
    t.after(() => server.stop());

    async function write(): Promise<void> {
      const of = among(resources);
      const key = `web/${among(["a", "b", "c", "d"])}`;
      const store = writer.for(of);
      if (random() < 0.25 && (await store.get(key)) !== undefined) {
        doneTo(of).push({ key, revision: (await store.delete(key)).revision, color: undefined });
        return;
      }
      const color = among(colors);
      const data = { color, n: String(random()) };
      const change = (e: Entry | undefined) => (e === undefined ? aConfigMap(key.slice(4), data) : withData(e, data));
      doneTo(of).push({ key, revision: (await store.guaranteedUpdate(key, change, { ignoreNotFound: true })).revision, color });
    }

    async function watch(of: StoredResource, selection: Selection, after: number): Promise<void> {
      const { prefix, fields } = selection;
      const request = { prefix, fields: FieldSelector.parse(fields), revision: after, signal: new AbortController().signal };
      const stream = await server.for(of).watch(request);
      const seen: string[] = [];
      const one: Watch = { of, selection, after, seen, over: false, stop: () => stream.stop(), ended: Promise.resolve() };
      one.ended = (async () => {
        for await (const event of stream) {
          if (event.type !== "ERROR" && event.type !== "BOOKMARK") seen.push(`${event.type} ${shapeOf(event.entry)}`);
        }
        one.over = true;
      })();
      watches.push(one);
    }

    /** Lists at the current revision or at that of an earlier change, whole or in pages, while others write. */
    async function list(): Promise<void> {
      const of = among(resources);
      const selection = among(selections);
      const writes = doneTo(of);
      const limit = random() < 0.5 ? { limit: 2 } : {};
      const at = writes.length > 0 && random() < 0.5 ? among(writes).revision : undefined;
      const request = { prefix: selection.prefix, fields: FieldSelector.parse(selection.fields), ...limit };
      const found: string[] = [];
      let revision: number;
      try {
        let page = await server.for(of).list({ ...request, ...(at !== undefined && { revision: at, match: "Exact" }) });
        revision = page.revision;
        for (;;) {
          assert.equal(page.revision, revision);
          found.push(...page.entries.map(shapeOf));
          if (!page.continueToken) break;
          if (random() < 0.3) await write();
          page = await server.for(of).list({ ...request, continueToken: page.continueToken });
        }
      } catch (err) {
        assert.ok(isResourceExpired(err), String(err));
        return;
      }
      const before = writes.filter((one) => one.revision <= revision);
      assert.deepEqual(found, stateAfter(before, selection));
      if (at === undefined) await watch(of, selection, revision);
      else assert.equal(revision, at);
    }

    async function resume(): Promise<void> {
      if (watches.length === 0) return;
      const { of, selection, after, seen } = among(watches);
      await watch(of, selection, seen.length === 0 ? after : Number(among(seen).split(" ")[2]));
    }

    for (let step = 0; step < 400; step++) {
      const what = random();
      if (what < 0.6) await write();
      else if (what < 0.75) await list();
      else if (what < 0.9) await resume();
      else if (what < 0.96) server.release(among(resources));
      else if (what < 0.98) {
        for (const one of watches) one.stop();
        server.stop();
        server = await open(true);
      } else {
        const { revision } = await client.range({ key: "x" });
        await client.compact(revision).catch(() => {}); // already compacted
      }
    }
    for (const one of watches) {
      const all = eventsAfter(one.after, doneTo(one.of), one.selection);
      await waitFor(() => one.over || one.seen.length >= all.length, { what: "the watch to have all" });
      one.stop();
      await one.ended;
      assert.deepEqual(one.seen, all.slice(0, one.seen.length));
    }
  });
}
