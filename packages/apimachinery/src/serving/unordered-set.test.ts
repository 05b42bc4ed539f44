import assert from "node:assert/strict";
import { test } from "node:test";
import { UnorderedSet } from "./connections.ts";

const member = (name: string) => ({ name, place: -1 });

test("a set has the right members after removals in any order", () => {
  const set = new UnorderedSet<ReturnType<typeof member>>();
  const [a, b, c] = [member("a"), member("b"), member("c")];
  for (const one of [a, b, c, b]) set.add(one);
  assert.deepEqual(new Set(set.all()), new Set([a, b, c]));
  set.delete(a);
  set.delete(a);
  set.delete(c);
  assert.deepEqual(set.all(), [b]);
  set.add(a);
  set.delete(b);
  assert.deepEqual(set.all(), [a]);
  set.delete(a);
  assert.equal(set.size, 0);
});
