import assert from "node:assert/strict";
import { test } from "node:test";
import { queryObjects } from "node:v8";
import { volumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { newProgressTable } from "./progress.ts";

const id = (n: number) => volumeId("disks.example.com", `disk-${n}`);

test("an entry is made when it is asked for, and is the same until it is forgotten", () => {
  const table = newProgressTable();
  assert.equal(table.peek(id(1), "a"), undefined);
  const entry = table.of(id(1), "a");
  entry.leaving = true;
  assert.equal(table.of(id(1), "a"), entry);
  assert.equal(table.peek(id(1), "a"), entry);
  table.forget(id(1), "a");
  assert.deepEqual([table.peek(id(1), "a"), table.of(id(1), "a")], [undefined, {}]);
});

test("the entries of other nodes and volumes stay", () => {
  const table = newProgressTable();
  for (const node of ["a", "b", "c"]) table.of(id(1), node);
  table.of(id(2), "a");
  table.keep(id(1), new Set(["b"]));
  table.keep(id(3), new Set());
  assert.deepEqual(
    ["a", "b", "c"].map((node) => table.peek(id(1), node)),
    [undefined, {}, undefined],
  );
  assert.deepEqual(table.peek(id(2), "a"), {});
});

test("nothing is left in memory of volumes whose nodes were forgotten", () => {
  const table = newProgressTable();
  const maps = (): number => queryObjects(Map, { format: "count" });
  const before = maps();
  for (let n = 0; n < 1_000; n++) {
    table.of(id(n), "a");
    if (n % 2 === 0) table.forget(id(n), "a");
    else table.keep(id(n), new Set());
  }
  assert.ok(maps() - before < 100, `${maps() - before} maps`);
  assert.equal(table.peek(id(0), "a"), undefined);
});
