import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { decodeContinueToken, encodeContinueToken } from "../continue-token.ts";
import type { Entry } from "../storage.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdError } from "./errors.ts";
import { EtcdLists, type ListCounter } from "./lists.ts";
import type { KeyValue, RangeRequest, RangeResponse } from "./wire.ts";

const pageOf = (count: number): KeyValue[] =>
  Array.from({ length: count }, (_, i) => ({ key: `/registry/pods/${i}`, value: Buffer.alloc(0), modRevision: 1 }) as KeyValue);

/** @returns the maximum number of keys decoded in one event-loop turn */
async function readPerTurn(kvs: readonly KeyValue[], all: boolean, work: () => void): Promise<number> {
  const client = { range: async () => ({ kvs, more: false, count: kvs.length, revision: 7 }) } as unknown as EtcdClient;
  let read = 0;
  let readInTurn = 0;
  let most = 0;
  const nextTurn = (): void => {
    most = Math.max(most, readInTurn);
    readInTurn = 0;
    if (read < kvs.length) setImmediate(nextTurn);
  };
  setImmediate(nextTurn);
  const readOne = ({ key }: KeyValue): Entry => {
    read++;
    readInTurn++;
    work();
    return { key } as Entry;
  };
  const lists = new EtcdLists({
    client,
    prefix: "/registry/pods/",
    read: all ? () => assert.fail("it is not read soon") : readOne,
    readInitial: readOne,
    passOver: assert.fail,
    timed: (_, call) => call,
    turns: new Turns(),
  });
  const entries: Entry[] = [];
  if (all) assert.equal(await lists.readAll((page) => entries.push(...page)), 7);
  else entries.push(...(await lists.list({ prefix: "" })).entries);
  assert.deepEqual(
    entries.map(({ key }) => key),
    kvs.map(({ key }) => key),
  );
  return Math.max(most, readInTurn);
}

for (const { size, want } of [
  { size: 200, want: true },
  { size: 201, want: false },
]) {
  test(`the ${size} objects of an initial list are ${want ? "" : "not "}expected to be read soon, the first and the last`, async () => {
    const kvs = pageOf(size);
    const seen: boolean[] = [];
    const lists = new EtcdLists({
      client: { range: async () => ({ revision: 7, kvs, more: false, count: size }) } as unknown as EtcdClient,
      prefix: "/registry/pods/",
      read: () => assert.fail("it is no list of a client"),
      readInitial(kv, isReadSoon) {
        seen.push(isReadSoon);
        return { key: kv.key } as Entry;
      },
      passOver: assert.fail,
      timed: (_, call) => call,
      turns: new Turns(),
    });
    await lists.readAll(() => {});
    assert.deepEqual(seen, new Array(size).fill(want));
  });
}

for (const { what, at, want } of [
  { what: "the present", at: 0, want: [0, 7, 7] },
  { what: "an earlier revision", at: 5, want: [5, 5, 5] },
]) {
  test(`all pages of a full read of ${what} are of one revision, which is that of the list`, async () => {
    const pages = [2, 2, 1].map((count) => pageOf(count));
    const requested: number[] = [];
    const lists = new EtcdLists({
      client: {
        // Others write meanwhile.
        range: async ({ revision = 0 }: { revision?: number }) => {
          requested.push(revision);
          const kvs = pages[requested.length - 1];
          return { revision: 6 + requested.length, kvs, more: requested.length < pages.length, count: 5 };
        },
      } as unknown as EtcdClient,
      prefix: "/registry/pods/",
      read: () => assert.fail("it is no list of a client"),
      readInitial: ({ key }) => ({ key }) as Entry,
      passOver: assert.fail,
      timed: (_, call) => call,
      turns: new Turns(),
    });
    const read: Entry[] = [];
    assert.equal(await lists.readAll((page) => void read.push(...page), at), want[2]);
    assert.deepEqual([requested, read.length], [want, 5]);
  });
}

for (const all of [true, false]) {
  const what = all ? "all there is is read" : "a list is read";
  test(`others have their turns while ${what}`, async () => {
    const busy = (): void => {
      const end = performance.now() + 4;
      while (performance.now() < end);
    };
    const most = await readPerTurn(pageOf(30), all, busy);
    assert.ok(most > 0 && most <= 3, `${most} in one turn`);
  });
}

/** Lists over a client that answers with `range`. */
const listsOver = (
  range: (request: RangeRequest) => Promise<Partial<RangeResponse>>,
  read = readKey,
  listed: ListCounter = () => {},
  passOver: (err: unknown) => void = () => {},
) =>
  new EtcdLists({
    listed,
    client: { range } as unknown as EtcdClient,
    prefix: "/registry/pods/",
    ...{ read, readInitial: read, passOver, timed: (_, call) => call, turns: new Turns() },
  });
const readKey = ({ key }: KeyValue): Entry => ({ key, revision: 1, labels: {}, fields: {} }) as unknown as Entry;

test("keys that cannot be decoded are named relative to the resource, and the others are read", async () => {
  const lists = listsOver(
    async () => ({ kvs: pageOf(3), more: false, count: 3, revision: 7 }),
    (kv) => {
      if (kv.key.endsWith("1")) throw new Error("another key");
      return readKey(kv);
    },
  );
  const [read, unreadable]: [number[], string[]] = [[], []];
  await lists.readAll(
    (page) => read.push(page.length),
    0,
    (key) => unreadable.push(key),
  );
  assert.deepEqual([read, unreadable], [[2], ["1"]]);
});

test("an error that is not passed over ends the read, and no key is called unreadable", async () => {
  const lists = listsOver(
    async () => ({ kvs: pageOf(2), more: false, count: 2, revision: 7 }),
    () => assert.fail("the key service is away"),
    undefined,
    (err) => {
      throw err;
    },
  );
  const unreadable: string[] = [];
  await assert.rejects(
    lists.readAll(
      () => assert.fail("no page"),
      0,
      (key) => unreadable.push(key),
    ),
    /the key service is away/,
  );
  assert.deepEqual(unreadable, []);
});

test("a list that goes on at the present has the revision of its first page, and reads all pages at that", async () => {
  const requested: (number | undefined)[] = [];
  const lists = listsOver(async ({ revision }) => {
    requested.push(revision);
    return { kvs: pageOf(2), more: requested.length < 2, count: 4, revision: 6 + requested.length };
  });
  const { revision } = await lists.list({ prefix: "", continueToken: encodeContinueToken({ start: "b\0", revision: -1 }) });
  assert.deepEqual([requested, revision], [[undefined, 7], 7]);
});

test("a page of selected objects is read a hundred keys at a time; without a selector no more than wanted", async () => {
  const requested: (number | undefined)[] = [];
  const lists = listsOver(async ({ limit }) => {
    requested.push(limit);
    return { kvs: pageOf(requested.length < 3 ? 100 : 1), more: requested.length < 3, count: 201, revision: 7 };
  });
  await lists.list({ prefix: "", limit: 3, labels: LabelSelector.parse("app=none") });
  await lists.list({ prefix: "", limit: 1 });
  assert.deepEqual(requested, [100, 100, 100, 1]);
});

test("a continue token whose revision was compacted gets one with which the list goes on at the present", async () => {
  const lists = listsOver(() => Promise.reject(new EtcdError("compacted", "mvcc: required revision has been compacted")));
  for (const { prefix, start } of [
    { prefix: "", start: "web/b\0" },
    { prefix: "web/", start: "b\0" },
  ]) {
    const continueToken = encodeContinueToken({ start, revision: 5 });
    const err = await lists.list({ prefix, continueToken, limit: 2 }).then(
      () => assert.fail(),
      (thrown: StatusError) => thrown,
    );
    assert.equal(err.code, 410);
    assert.deepEqual(decodeContinueToken(err.status.metadata?.continue ?? ""), { start, revision: -1 });
  }
  const first = await lists.list({ prefix: "", revision: 5, match: "Exact" }).then(
    () => assert.fail(),
    (thrown: StatusError) => thrown,
  );
  assert.deepEqual([first.code, first.status.metadata?.continue], [410, undefined]);
});

test("a page that ends with the last object has no continue token; one that does not reports how many are left", async () => {
  const requested: (number | undefined)[] = [];
  const lists = listsOver(async ({ limit, revision }) => {
    requested.push(revision);
    return { kvs: pageOf(limit ?? 0), more: requested.length === 1, count: 10, revision: 7 };
  });
  const page = await lists.list({ prefix: "", limit: 4 });
  assert.deepEqual([page.entries.length, page.remainingItemCount, page.revision], [4, 6, 7]);
  const last = await lists.list({ prefix: "", limit: 4, continueToken: page.continueToken! });
  assert.deepEqual(
    [last.entries.length, last.remainingItemCount, last.continueToken, last.revision],
    [4, undefined, undefined, 7],
  );
  assert.deepEqual(requested, [undefined, 7]);
});

test("what is read of a member that lags behind the wanted revision is refused, of one object, too", async () => {
  const lists = listsOver(async () => ({ kvs: pageOf(1), more: false, count: 1, revision: 7 }));
  for (const prefix of ["", "web/a"]) {
    await assert.rejects(lists.list({ prefix, revision: 8 }), /Too large resource version: 8, current: 7/);
    assert.equal((await lists.list({ prefix, revision: 7 })).entries.length, 1);
  }
});

test("all pages of a list without a limit are of one revision, which is that of the list", async () => {
  const requested: (number | undefined)[] = [];
  const lists = listsOver(async ({ revision }) => {
    requested.push(revision);
    return { kvs: pageOf(2), more: requested.length < 3, count: 6, revision: 6 + requested.length };
  });
  const { entries, revision } = await lists.list({ prefix: "" });
  assert.deepEqual([requested, entries.length, revision], [[undefined, 7, 7], 6, 7]);
});

test("a list whose caller has gone reads no further page", async () => {
  const caller = new AbortController();
  let pages = 0;
  const lists = listsOver(async () => {
    caller.abort();
    return { kvs: pageOf(1), more: ++pages < 3, count: 3, revision: 7 };
  });
  await assert.rejects(lists.list({ prefix: "", signal: caller.signal }), { name: "AbortError" });
  assert.equal(pages, 1);
});

test("a list of one object at an exact revision is of that revision", async () => {
  const lists = listsOver(async () => ({ kvs: pageOf(1), more: false, count: 1, revision: 7 }));
  assert.equal((await lists.list({ prefix: "web/a", revision: 5, match: "Exact" })).revision, 5);
  assert.equal((await lists.list({ prefix: "web/a", revision: 5 })).revision, 7);
});

for (const { what, read } of [
  { what: "a list", read: (lists: EtcdLists) => lists.list({ prefix: "" }) },
  { what: "a read of all there is", read: (lists: EtcdLists) => lists.readAll(() => {}) },
]) {
  test(`${what} that fails is counted with what it has read until then`, async () => {
    const counted: number[][] = [];
    let pages = 0;
    const failure = new Error("unavailable");
    const lists = listsOver(
      async () => (++pages < 2 ? { kvs: pageOf(2), more: true, count: 4, revision: 7 } : Promise.reject(failure)),
      readKey,
      (...cost) => counted.push(cost),
    );
    for (let i = 0; i < 2; i++) await assert.rejects(read(lists), failure);
    assert.deepEqual(counted, [
      [2, 2, 2],
      [0, 0, 0],
    ]);
  });
}
