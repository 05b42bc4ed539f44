import assert from "node:assert/strict";
import { test } from "node:test";
import { Roster } from "./connections.ts";

const member = (name: string) => ({ name, place: -1 });

test("a roster knows its members whatever the order they leave in", () => {
  const roster = new Roster<ReturnType<typeof member>>();
  const [a, b, c] = [member("a"), member("b"), member("c")];
  for (const one of [a, b, c, b]) roster.add(one);
  assert.deepEqual(new Set(roster.all()), new Set([a, b, c]));
  roster.delete(a);
  roster.delete(a);
  roster.delete(c);
  assert.deepEqual(roster.all(), [b]);
  roster.add(a);
  roster.delete(b);
  assert.deepEqual(roster.all(), [a]);
  roster.delete(a);
  assert.equal(roster.size, 0);
});
