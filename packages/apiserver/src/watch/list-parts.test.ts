import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../storage/storage.ts";
import { partOf } from "./list-parts.ts";

const list = (size: number): Entry[] => Array.from({ length: size }, (_, index) => ({ key: `a/${index}` }) as Entry);

test("a part of a list is picked once, and again for another list", () => {
  const [first, second] = [list(3), list(3)];
  const pick = (of: Entry[]) => partOf(of, "one", () => of.slice(0, 1));
  assert.equal(pick(first), pick(first));
  assert.notEqual(pick(first), pick(second));
  assert.notEqual(
    partOf(first, "two", () => first.slice(0, 2)),
    pick(first),
  );
});

test("a list keeps no more than its last 64 parts, and none with an endless name", () => {
  const all = list(100);
  const pick = (name: string) => partOf(all, name, () => all.slice(1));
  const oldest = pick("0");
  for (let index = 1; index < 64; index++) pick(String(index));
  assert.equal(pick("0"), oldest);
  pick("64");
  assert.notEqual(pick("0"), oldest);
  assert.notEqual(pick("x".repeat(2000)), pick("x".repeat(2000)));
});
