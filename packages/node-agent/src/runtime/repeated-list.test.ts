import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeCri, encodeCri } from "./cri-client.ts";
import type { CriInput } from "./cri-schema.ts";
import { RepeatedList } from "./repeated-list.ts";

const listOf = (...containers: CriInput<"Container">[]): Buffer => encodeCri("ListContainersResponse", { containers });
const running = { id: "a", state: 1, labels: { app: "web" } };
const other = { id: "b", state: 1 };

function newList() {
  let decoded = 0;
  const list = new RepeatedList((bytes) => {
    decoded++;
    return decodeCri("Container", bytes);
  });
  return { list, decoded: () => decoded };
}

test("items of equal bytes are those of the last list, in the new order", () => {
  const { list, decoded } = newList();
  const [a, b] = list.decode(listOf(running, other));
  const again = list.decode(listOf(other, running));
  assert.deepEqual(again, decodeCri("ListContainersResponse", listOf(other, running)).containers);
  assert.equal(again[0], b);
  assert.equal(again[1], a);
  assert.equal(decoded(), 2);
});

test("a changed item is decoded, whether its length changes or not", () => {
  const { list } = newList();
  list.decode(listOf(running, other));
  const ended = { ...running, state: 2 };
  const longer = { ...other, labels: { app: "database" } };
  assert.deepEqual(list.decode(listOf(ended, longer)), decodeCri("ListContainersResponse", listOf(ended, longer)).containers);
});

test("an item that is new in a list is decoded", () => {
  const { list } = newList();
  list.decode(listOf(running));
  const both = listOf(other, running);
  assert.deepEqual(list.decode(both), decodeCri("ListContainersResponse", both).containers);
});

test("an item that is missing from a list is forgotten", () => {
  const { list, decoded } = newList();
  list.decode(listOf(running));
  assert.deepEqual(list.decode(listOf()), []);
  list.decode(listOf(running));
  assert.equal(decoded(), 2);
});

test("the bytes of a list may be used for the next one", () => {
  const { list } = newList();
  const bytes = listOf(running);
  const next = listOf({ ...running, state: 2 });
  list.decode(bytes);
  bytes.set(next);
  assert.deepEqual(list.decode(bytes), decodeCri("ListContainersResponse", next).containers);
});

test("items without an ID, or with a long one, are decoded", () => {
  const { list } = newList();
  const bytes = listOf({ state: 1 }, { id: "c".repeat(300) }, { state: 2 });
  list.decode(bytes);
  assert.deepEqual(list.decode(bytes), decodeCri("ListContainersResponse", bytes).containers);
});

test("fields of a list that are not known are skipped, those behind them are read", () => {
  const { list } = newList();
  const unknown = Buffer.from([0x10, 0x07, 0x1a, 0x02, 0x61, 0x62]); // a number and a text
  const bytes = Buffer.concat([unknown, listOf(running), unknown, listOf(other)]);
  assert.deepEqual(
    list.decode(bytes).map(({ id }) => id),
    ["a", "b"],
  );
});

test("a list that is cut off is refused", () => {
  const { list } = newList();
  assert.throws(() => list.decode(listOf(running).subarray(0, -1)));
});
