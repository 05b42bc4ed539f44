import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Entry } from "../storage.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdLists } from "./lists.ts";
import type { KeyValue } from "./wire.ts";

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
