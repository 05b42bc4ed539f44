import assert from "node:assert/strict";
import { test } from "node:test";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { encodeContinueToken } from "../storage/continue-token.ts";
import type { Entry } from "../storage/storage.ts";
import { CacheState, newFieldIndex } from "./cache-state.ts";
import { HistoryMemory } from "./history.ts";

const fieldsOf = (nodeName: string, phase: string): Record<string, string> => ({
  "spec.nodeName": nodeName,
  "status.phase": phase,
});

test("candidates are those of the state that have the value, after any sequence of changes", () => {
  const change = fc.record({
    key: fc.constantFrom("a/x", "a/y", "b/x"),
    nodeName: fc.constantFrom("", "n1", "n2"),
    remove: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), fc.boolean(), (changes, again) => {
      const index = newFieldIndex(["spec.nodeName"]);
      const state = new Map<string, Entry>();
      for (const { key, nodeName, remove } of changes) {
        const current = remove ? undefined : ({ key, fields: fieldsOf(nodeName, "Running") } as unknown as Entry);
        index.change(state.get(key), current);
        if (current === undefined) state.delete(key);
        else state.set(key, current);
      }
      if (again) index.reset([...state.values()]);
      for (const node of ["n1", "n2", "n3"]) {
        const wanted = [...state.values()].filter(({ fields }) => fields["spec.nodeName"] === node).map(({ key }) => key);
        const found = index.candidates(FieldSelector.parse(`status.phase=Running,spec.nodeName=${node}`));
        assert.deepEqual(found, { field: "spec.nodeName", keys: new Set(wanted) });
      }
    }),
  );
});

test("a selector that no indexed field narrows has no candidates", () => {
  const index = newFieldIndex(["spec.nodeName"]);
  for (const text of ["status.phase=Running", "spec.nodeName!=n1", "spec.nodeName=", ""])
    assert.equal(index.candidates(FieldSelector.parse(text)), undefined, text);
  assert.equal(index.candidates(undefined), undefined);
});

test("of several indexed fields the one with the fewest objects narrows; none keeps what the others left", () => {
  const index = newFieldIndex(["spec.nodeName", "status.phase"]);
  const entries = ["n1", "n1", "n2"].map((node, i) => ({ key: `a/${i}`, fields: fieldsOf(node, "Running") }) as unknown as Entry);
  for (const entry of entries) index.change(undefined, entry);
  const candidates = (text: string) => index.candidates(FieldSelector.parse(text));
  assert.deepEqual(candidates("status.phase=Running,spec.nodeName=n2"), { field: "spec.nodeName", keys: new Set(["a/2"]) });
  assert.deepEqual(candidates("status.phase=Running"), { field: "status.phase", keys: new Set(["a/0", "a/1", "a/2"]) });
  const moved = { key: "a/2", fields: fieldsOf("n2", "Failed") } as unknown as Entry;
  index.change(entries[2], moved);
  assert.deepEqual(candidates("status.phase=Running")?.keys, new Set(["a/0", "a/1"]));
  assert.deepEqual(candidates("spec.nodeName=n1,status.phase=Failed"), { field: "status.phase", keys: new Set(["a/2"]) });
  index.reset([moved]);
  assert.deepEqual([candidates("status.phase=Running")?.keys, candidates("spec.nodeName=n1")?.keys], [new Set(), new Set()]);
});

/** A state at revision 10 with objects of two namespaces, on nodes n1 and n2. */
function aState() {
  const entry = (key: string, nodeName: string, revision: number) =>
    ({ key, revision, fields: fieldsOf(nodeName, "Running"), warm() {} }) as unknown as Entry;
  const state = new CacheState({ indexes: ["spec.nodeName"], clock: newFakeClock(), memory: new HistoryMemory(1024 * 1024) });
  const listed = [entry("a/1", "n1", 1), entry("a/2", "n2", 2), entry("a/3", "n1", 3), entry("b/1", "n1", 4)];
  state.reset(listed, new Set(["a/odd"]), 10);
  const select = (prefix: string, node?: string, limit?: number) => ({
    prefix,
    ...(node && { fields: FieldSelector.parse(`spec.nodeName=${node}`) }),
    ...(limit && { limit }),
  });
  const keysOf = (list: { entries: readonly Entry[] } | undefined) => list?.entries.map(({ key }) => key);
  return { state, entry, select, keysOf };
}

test("a state that was filled anew finds by fields what it holds, in key order, within the range, and no more", () => {
  const { state, entry, select, keysOf } = aState();
  state.apply("a/0", entry("a/0", "n1", 11), 11, true);
  assert.deepEqual(keysOf(state.present(select("a/", "n1"), "", 11)), ["a/0", "a/1", "a/3"]);
  assert.deepEqual(keysOf(state.present(select("", "n1"), "", 11)), ["a/0", "a/1", "a/3", "b/1"]);
  const failed = { prefix: "", fields: FieldSelector.parse("spec.nodeName=n1,status.phase=Failed") };
  assert.deepEqual(keysOf(state.present(failed, "", 11)), [], "the index narrows, the whole selector decides");
  state.apply("a/9", entry("a/9", "n1", 12), 12, true);
  state.reset([entry("a/5", "n1", 20)], new Set(), 20);
  assert.deepEqual(keysOf(state.present(select("", "n1"), "", 20)), ["a/5"]);
  assert.deepEqual(keysOf(state.present(select(""), "", 20)), ["a/5"]);
  assert.equal(state.isWhole("a/"), true);
});

test("only lists of what cannot be read are not whole, until it can be read", () => {
  const { state, entry } = aState();
  state.apply("b/odd", undefined, 11, false);
  state.apply("b/odder", undefined, 12, false);
  assert.deepEqual(
    [state.isWhole("a/"), state.isWhole("b/"), state.isWhole("c/"), state.isWhole("")],
    [false, false, true, false],
  );
  state.apply("b/odd", entry("b/odd", "n1", 13), 13, true);
  assert.deepEqual([state.isWhole("b/"), state.isUnreadable("b/odd"), state.isUnreadable("b/odder")], [false, false, true]);
  state.apply("b/odder", entry("b/odder", "n1", 14), 14, true);
  assert.equal(state.isWhole("b/"), true);
});

test("the past of a selection has what was in it then: within its range, by its fields, in key order", () => {
  const { state, entry, select, keysOf } = aState();
  state.apply("a/2", undefined, 11, true);
  state.apply("a/1", entry("a/1", "n2", 12), 12, true);
  state.apply("b/1", undefined, 13, true);
  state.apply("a/0", entry("a/0", "n1", 14), 14, true);
  assert.deepEqual(keysOf(state.past(select("a/"), "", 10)), ["a/1", "a/2", "a/3"]);
  assert.deepEqual(keysOf(state.past(select("a/", "n1"), "", 10)), ["a/1", "a/3"]);
  assert.deepEqual(keysOf(state.past(select("", "n2"), "", 12)), ["a/1"]);
});

test("a page reports the remaining item count of a list without selectors; the last page has no continue token", () => {
  const { state, select, keysOf } = aState();
  const all = state.present(select("a/", undefined, 2), "", 10);
  assert.deepEqual([keysOf(all), all.remainingItemCount], [["a/1", "a/2"], 1]);
  const some = state.present(select("", "n1", 2), "", 10);
  assert.deepEqual([keysOf(some), some.remainingItemCount], [["a/1", "a/3"], undefined]);
  assert.equal(some.continueToken, encodeContinueToken({ start: "a/3\0", revision: 10 }));
  const last = state.present(select("", "n1", 2), "a/3\0", 10);
  assert.deepEqual([keysOf(last), last.continueToken], [["b/1"], undefined]);
});

test("selections that share labels, or fields, or the text of another's, are kept apart", () => {
  const { entry } = aState();
  const state = new CacheState({ indexes: [], clock: newFakeClock(), memory: new HistoryMemory(1024 * 1024) });
  const labelled = (key: string, node: string, app: string): Entry =>
    ({ ...entry(key, node, 1), labels: { app } }) as unknown as Entry;
  state.reset([labelled("a/1", "n1", "x"), labelled("a/2", "n2", "x"), labelled("a/3", "n1", "y")], new Set(), 10);
  const list = (labels?: string, fields?: string, limit?: number): string[] =>
    state
      .present(
        {
          prefix: "a/",
          ...(labels && { labels: LabelSelector.parse(labels) }),
          ...(fields && { fields: FieldSelector.parse(fields) }),
          ...(limit && { limit }),
        },
        "",
        10,
      )
      .entries.map(({ key }) => key);
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(list("app=x"), ["a/1", "a/2"]);
    assert.deepEqual(list("app=x", "spec.nodeName=n1"), ["a/1"]);
    assert.deepEqual(list("app=x", "spec.nodeName=n2"), ["a/2"]);
    assert.deepEqual(list(undefined, "spec.nodeName=n1"), ["a/1", "a/3"]);
    assert.deepEqual(list("app=x", undefined, 1), ["a/1"]);
    assert.deepEqual(list(undefined, undefined, 1), ["a/1"]);
    assert.deepEqual(list(undefined, undefined, 2), ["a/1", "a/2"]);
    assert.deepEqual(list(), ["a/1", "a/2", "a/3"]);
  }
});

test("of a value that no object has any more nothing is kept", () => {
  const index = newFieldIndex(["spec.nodeName"]);
  const keysOf = (node: string) => index.candidates(FieldSelector.parse(`spec.nodeName=${node}`))?.keys;
  const pod = { key: "a/x", fields: fieldsOf("n1", "Running") } as unknown as Entry; // cast: no other part is used
  index.change(undefined, pod);
  index.change(pod, undefined);
  assert.equal(keysOf("n1"), keysOf("n2"), "both are the same as for a value that never was");
});
