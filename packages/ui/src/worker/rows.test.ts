import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { type Kind, kindOf } from "../model/kinds.ts";
import type { Row } from "../model/row.ts";
import { Rows } from "./rows.ts";

const event = (uid: string, second: number, message = ""): KubeObject =>
  ({
    metadata: { name: uid, uid },
    involvedObject: {},
    lastTimestamp: new Date(second * 1_000).toISOString(),
    message,
  }) as KubeObject;

function setUp(most?: number) {
  const said: string[] = [];
  const { most: _, ...kind } = kindOf("events") as Kind;
  const outbox = { set: (row: Row) => void said.push(`+${row.uid}`), gone: (uid: string) => void said.push(`-${uid}`) };
  const rows = new Rows({ ...kind, ...(most !== undefined && { most }) }, outbox);
  const take = (): string[] => said.splice(0);
  return { rows, take };
}

test("a row is sent when one of its fields has changed, and its removal once", () => {
  const { rows, take } = setUp();
  rows.set(event("a", 1));
  rows.set(event("a", 1));
  assert.deepEqual(take(), ["+a"]);
  rows.set(event("a", 1, "another message"));
  rows.remove(event("a", 1));
  rows.remove(event("a", 1));
  assert.deepEqual([take(), rows.size], [["+a", "-a"], 0]);
});

test("a list removes what it has not, and only then", () => {
  const { rows, take } = setUp();
  for (const uid of ["a", "b", "c"]) rows.set(event(uid, 1));
  take();
  rows.beginList();
  rows.set(event("b", 1));
  rows.set(event("d", 1));
  assert.deepEqual(take(), ["+d"]);
  rows.endList();
  assert.deepEqual([take(), rows.size], [["-a", "-c"], 2]);
  rows.clear();
  assert.deepEqual([take(), rows.size], [["-b", "-d"], 0]);
});

test("a tenth above the limit the oldest rows are removed down to it, during a list only at its end", () => {
  const { rows, take } = setUp(10);
  for (let i = 0; i < 11; i++) rows.set(event(`${i}`, 100 - i));
  assert.equal(rows.size, 11);
  take();
  rows.set(event("new", 200));
  assert.deepEqual([take(), rows.size], [["+new", "-9", "-10"], 10]);
  rows.beginList();
  for (let i = 20; i < 40; i++) rows.set(event(`${i}`, i));
  assert.equal(rows.size, 30);
  rows.endList();
  assert.equal(rows.size, 10);
  assert.deepEqual(
    take()
      .filter((one) => one.startsWith("-2"))
      .toSorted(),
    ["-20", "-21", "-22", "-23", "-24", "-25", "-26", "-27", "-28", "-29", "-2"].toSorted(),
  );
});
