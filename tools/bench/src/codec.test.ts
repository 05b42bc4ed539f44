import assert from "node:assert/strict";
import { test } from "node:test";
import { codecRows } from "./codec-rows.ts";

test("every codec row encodes or decodes the same value as its baseline", () => {
  for (const { name, run, bare } of codecRows(3)) {
    const [own, theirs] = [run(), bare()];
    if (name.endsWith("encode")) assert.ok((own as Buffer).length > 1000 && (theirs as string).length > 1000, name);
    else assert.equal(kindOf(own), "Pod", name);
  }
});

/** Kind of a Pod, or of the items in a list. */
function kindOf(decoded: unknown): string {
  const object = ((decoded as { object?: unknown }).object ?? decoded) as { kind: string; items?: object[] };
  if (object.kind === "PodList") assert.equal(object.items?.length, 3);
  return object.kind === "PodList" ? "Pod" : object.kind;
}

test("the pods have the sizes that the rows say", () => {
  const sizes = codecRows(1)
    .map(({ bare }) => bare())
    .filter((made) => typeof made === "string")
    .map((text) => (text as string).length);
  assert.ok((sizes[0] as number) > 2_400 && (sizes[0] as number) < 4_000, String(sizes));
  assert.ok((sizes[2] as number) > 25_000 && (sizes[2] as number) < 35_000, String(sizes));
});
