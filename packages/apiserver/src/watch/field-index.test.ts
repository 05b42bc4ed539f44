import assert from "node:assert/strict";
import { test } from "node:test";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import fc from "@coxswain/apimachinery/testing/fast-check";
import type { Entry } from "../storage/storage.ts";
import { newFieldIndex } from "./cache-state.ts";

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
  index.reset([moved]);
  assert.deepEqual([candidates("status.phase=Running")?.keys, candidates("spec.nodeName=n1")?.keys], [new Set(), new Set()]);
});
