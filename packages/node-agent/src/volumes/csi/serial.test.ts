import assert from "node:assert/strict";
import { test } from "node:test";
import { isReleased } from "@coxswain/apimachinery/testing/held-bytes";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newSerial } from "./serial.ts";

/** Calls that the test completes one by one. */
function working() {
  const serial = newSerial();
  const begun: string[] = [];
  const ends = new Map<string, (err?: Error) => void>();
  const call = (name: string, id: string): Promise<string> =>
    serial(name, () => {
      begun.push(id);
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      ends.set(id, (err) => (err === undefined ? resolve(id) : reject(err)));
      return promise;
    });
  const end = async (id: string, err?: Error): Promise<void> => {
    ends.get(id)?.(err);
    await settle();
  };
  return { call, begun, end };
}

test("three calls of one name run in sequence, those of another name concurrently", async () => {
  const { call, begun, end } = working();
  const all = Promise.all([call("a", "a1"), call("a", "a2"), call("a", "a3"), call("b", "b1")]);
  await settle();
  assert.deepEqual(begun, ["a1", "b1"]);
  await end("a1");
  await end("b1");
  assert.deepEqual(begun, ["a1", "b1", "a2"]);
  const late = call("a", "a4");
  await end("a2");
  assert.deepEqual(begun, ["a1", "b1", "a2", "a3"], "one that comes late waits for all before it");
  await end("a3");
  await end("a4");
  assert.deepEqual([await all, await late], [["a1", "a2", "a3", "b1"], "a4"]);
});

test("a failed call fails only its caller", async () => {
  const { call, begun, end } = working();
  const first = call("a", "a1");
  const second = call("a", "a2");
  await settle();
  const failed = assert.rejects(first, /busy/);
  await end("a1", new Error("busy"));
  await failed;
  assert.deepEqual(begun, ["a1", "a2"]);
  await end("a2");
  assert.equal(await second, "a2");
});

test("nothing is kept of a call that has ended, whether it failed or not", async () => {
  const serial = newSerial();
  const result = async (fails: boolean): Promise<WeakRef<object>> => {
    const made = new Error("made");
    await serial(`${fails}`, async () => {
      if (fails) throw made;
      return made;
    }).catch(() => undefined);
    return new WeakRef(made);
  };
  const refs = [await result(false), await result(true)];
  assert.deepEqual(await Promise.all(refs.map(isReleased)), [true, true]);
  await serial("false", async () => undefined);
});
