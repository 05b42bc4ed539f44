import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "@coxswain/apimachinery/testing/fast-check";
import type { Entry } from "../storage/storage.ts";
import { isInRange, SortedEntries } from "./cache-state.ts";

const entry = (key: string, revision = 0): Entry => ({ key, revision }) as Entry;

for (const chunkEntries of [2, 4, 512])
  test(`ranges are what a sorted list of all keys says, after any sequence of changes, in chunks of ${chunkEntries}`, () => {
    const key = fc
      .tuple(
        fc.constantFrom("a", "a-b", "b", "b0"),
        fc.constantFrom("x", "y", "y0", "z.1", ...Array.from({ length: 20 }, (_, i) => `n${i}`)),
      )
      .map((parts) => parts.join("/"));
    const change = fc.record({
      key,
      remove: fc.integer({ min: 0, max: 9 }).map((n) => n < 2),
      ask: fc.integer({ min: 0, max: 9 }).map((n) => n < 2),
    });
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 120 }),
        fc.constantFrom("", "a/", "b/", "b0/", "a/x", "c/"),
        (changes, prefix) => {
          const state = new SortedEntries(chunkEntries);
          const model = new Map<string, Entry>();
          for (const [revision, { key, remove, ask }] of changes.entries()) {
            if (remove) {
              state.delete(key);
              model.delete(key);
            } else {
              const made = entry(key, revision);
              state.set(made);
              model.set(key, made);
            }
            if (ask) state.range(""); // populate the range cache, which the next change must invalidate
          }
          const whole = prefix !== "" && !prefix.endsWith("/");
          const wanted = [...model.values()]
            .filter(({ key }) => (whole ? key === prefix : key.startsWith(prefix)))
            .sort((a, b) => (a.key < b.key ? -1 : 1));
          assert.deepEqual(state.range(prefix), wanted);
          for (const { key } of model.values())
            assert.equal(
              isInRange(key, prefix),
              wanted.some((e) => e.key === key),
            );
          assert.equal(state.size, model.size);
        },
      ),
    );
  });

test("an object that was added and is deleted before the next list does not come back with it", () => {
  const state = new SortedEntries();
  for (const key of ["b/x", "b/y"]) state.set(entry(key));
  state.range("");
  for (const key of ["a/x", "b/z"]) state.set(entry(key));
  state.delete("b/z");
  state.delete("a/none");
  assert.deepEqual(
    state.range("").map(({ key }) => key),
    ["a/x", "b/x", "b/y"],
  );
});

test("a list that replaces the state leaves nothing of it, not even what was added since the last read", () => {
  const state = new SortedEntries();
  state.set(entry("b/x"));
  state.range("b/");
  state.set(entry("b/y"));
  state.reset([entry("a/x")]);
  for (const prefix of ["", "b/"]) assert.equal(state.range(prefix).length, prefix === "" ? 1 : 0);
  assert.deepEqual([state.size, state.get("b/x"), state.get("b/y")], [1, undefined, undefined]);
  state.reset([]);
  for (const prefix of ["", "a/"]) assert.deepEqual(state.range(prefix), []);
});

for (const kept of [0, 1, 5, 40])
  test(`a list of which all but ${kept} objects are deleted has the others in order, and takes new ones`, () => {
    const state = new SortedEntries(16);
    const keys = Array.from({ length: 200 }, (_, i) => `web/${String(i).padStart(3, "0")}`);
    for (const key of keys.toReversed()) state.set(entry(key));
    const isKept = (i: number): boolean => kept > 0 && i % (keys.length / kept) === 0;
    for (const [i, key] of keys.entries()) if (!isKept(i)) state.delete(key);
    const left = keys.filter((_, i) => isKept(i));
    const shown = (): string[] => state.range("web/").map(({ key }) => key);
    assert.deepEqual(shown(), left);
    for (const [i, key] of left.entries()) state.set(entry(key, i + 1));
    assert.deepEqual(
      state.range("").map(({ revision }) => revision),
      left.map((_, i) => i + 1),
    );
    for (const key of ["web/", "web/100a", "web/999"]) state.set(entry(key));
    assert.deepEqual(shown(), [...left, "web/", "web/100a", "web/999"].sort());
  });
