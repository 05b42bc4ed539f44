import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../storage.ts";
import type { EtcdClient } from "./client.ts";
import { newEtcdLists } from "./lists.ts";

test("others have their turns while all there is is read", async () => {
  const kvs = Array.from({ length: 200 }, (_, i) => ({ key: `/registry/pods/${i}`, value: Buffer.alloc(0), modRevision: 1 }));
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
  const lists = newEtcdLists({
    client,
    prefix: "/registry/pods/",
    read: () => assert.fail("nobody asks for it soon"),
    readCold({ key }) {
      read++;
      readInTurn++;
      return { key } as Entry;
    },
    passOver: assert.fail,
    timed: (_, call) => call,
  });
  const pages: Entry[][] = [];
  assert.equal(await lists.readAll((entries) => pages.push(entries)), 7);
  assert.deepEqual(
    pages.flat().map(({ key }) => key),
    kvs.map(({ key }) => key),
  );
  assert.ok(most > 0 && most <= 50, `${most} in one turn`);
});
