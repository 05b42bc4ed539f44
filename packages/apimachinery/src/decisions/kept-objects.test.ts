import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectRef } from "./decision.ts";
import { KeptObjects } from "./kept-objects.ts";

const ref = (name: string, more: Partial<ObjectRef> = {}): ObjectRef => ({
  ...{ group: "", resource: "pods", kind: "Pod", namespace: "web", name, uid: "" },
  ...more,
});

test("finds namesakes by resource and group, whichever of them is removed first", () => {
  const others: readonly Partial<ObjectRef>[] = [{}, { resource: "services" }, { group: "x" }, { namespace: "" }];
  for (const gone of others) {
    const objects = new KeptObjects<string>();
    for (const other of others) objects.add(ref("a", other), [JSON.stringify(other)], 10, false);
    const removed = objects.get(ref("a", gone));
    assert.ok(removed);
    objects.remove(removed);
    const found = others.map((other) => objects.get(ref("a", other))?.entries[0]);
    assert.deepEqual(
      found,
      others.map((other) => (other === gone ? undefined : JSON.stringify(other))),
    );
    assert.equal(objects.bytes, 30);
  }
});

test("orders the open and the settled by their last change, and counts the bytes of each", () => {
  const objects = new KeptObjects<string>();
  for (const name of ["a", "b", "c"]) objects.add(ref(name), [], 10, false);
  const of = (name: string) => objects.get(ref(name)) ?? assert.fail(name);
  objects.touch(of("a"), 5, false);
  assert.equal(objects.oldestOpen?.ref.name, "b");
  assert.equal(of("a").sizeBytes, 15);
  objects.touch(of("b"), 0, true);
  objects.touch(of("a"), -5, true);
  assert.deepEqual([objects.oldestOpen?.ref.name, objects.oldestSettled?.ref.name], ["c", "b"]);
  assert.deepEqual([objects.bytes, objects.settledBytes], [30, 20]);
  objects.remove(of("c"));
  assert.equal(objects.bytes, 20);
  objects.touch(of("b"), 7, true);
  objects.remove(of("b"));
  assert.deepEqual([objects.bytes, objects.settledBytes], [10, 10]);
  objects.remove(of("a"));
  assert.deepEqual(
    [objects.oldestOpen, objects.oldestSettled, objects.bytes, objects.settledBytes],
    [undefined, undefined, 0, 0],
  );
});
