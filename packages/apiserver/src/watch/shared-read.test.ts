import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { SharedRead } from "./freshness.ts";

/** A read whose responses the test controls. */
function aRead() {
  const running: PromiseWithResolvers<number>[] = [];
  const read = new SharedRead(() => {
    const one = Promise.withResolvers<number>();
    running.push(one);
    return one.promise;
  });
  return { read, running };
}

test("requests beyond the concurrent reads share the one that begins when a read has ended", async () => {
  const { read, running } = aRead();
  const answers: Promise<number>[] = [];
  for (let i = 0; i < 6; i++) {
    answers.push(read.get());
    await nextTurn();
  }
  assert.equal(running.length, 4);
  running[2]?.resolve(3);
  assert.equal(await answers[2], 3);
  await nextTurn();
  assert.equal(running.length, 5, "one read for the two requests that had to wait");
  running[4]?.resolve(5);
  assert.deepEqual(await Promise.all(answers.slice(4)), [5, 5]);
});

test("a read that fails rejects its own requests only, and makes room for the next", async () => {
  const { read, running } = aRead();
  const failing = read.get();
  await nextTurn();
  const second = read.get();
  await nextTurn();
  running[0]?.reject(new Error("etcd is away"));
  await assert.rejects(failing, /etcd is away/);
  running[1]?.resolve(7);
  assert.equal(await second, 7);
});

test("reads that fail do not use up the concurrent reads", async () => {
  const { read, running } = aRead();
  for (let i = 0; i < 4; i++) {
    const failing = read.get();
    await nextTurn();
    running[i]?.reject(new Error("etcd is away"));
    await assert.rejects(failing, /etcd is away/);
  }
  const later = read.get();
  await nextTurn();
  running[4]?.resolve(5);
  assert.equal(await later, 5);
});

test("a request made after a read has started gets a new read", async () => {
  let reads = 0;
  const during: Promise<number>[] = [];
  const read: SharedRead<number> = new SharedRead(async () => {
    if (++reads === 1) during.push(read.get());
    return reads;
  });
  assert.deepEqual([await read.get(), await during[0]], [1, 2]);
});

test("a read that was put off does not exceed the concurrent reads when its turn comes", async () => {
  const { read, running } = aRead();
  for (let i = 0; i < 4; i++) {
    void read.get();
    await nextTurn();
  }
  const end = async (i: number): Promise<void> => {
    running[i]?.resolve(i);
    for (let turns = 0; turns < 5; turns++) await undefined;
  };
  await end(0);
  void read.get();
  const between = nextTurn(); // after the turn of the request before, ahead of that of the next one
  await end(1); // begins the read at once
  void read.get();
  await between;
  void read.get();
  await nextTurn();
  assert.equal(running.length - 2, 4);
});
