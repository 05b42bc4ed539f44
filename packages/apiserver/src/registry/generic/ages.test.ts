import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { agesAt, timelessCells } from "./ages.ts";
import { revisionOf } from "./revision.ts";
import type { TableColumns } from "./strategy.ts";

const object = { metadata: { name: "x" } };
const tableOf = (cells: TableColumns["cells"]): TableColumns => ({ columns: [], cells });

test("an age is the time from then to now", () => {
  assert.deepEqual([agesAt(120_000).since(0), agesAt(120_000).since(119_000)], ["2m", "1s"]);
});

for (const { name, cells, texts, since } of [
  { name: "without an age", cells: () => ["a", 1, true], texts: ['["a",1,true]'], since: [] },
  { name: "with one", cells: (_, ages) => ["a", ages.since(5)], texts: ['["a","', '"]'], since: [5] },
  {
    name: "with two, the later one first, and one of them twice",
    cells(_, ages) {
      const [first, second] = [ages.since(5), ages.since(7)];
      return [second, `${first} (${second})`];
    },
    texts: ['["', '","', " (", ')"]'],
    since: [7, 5, 7],
  },
  {
    name: "with one that is not shown",
    cells(_, ages) {
      ages.since(5);
      return [ages.since(6)];
    },
    texts: ['["', '"]'],
    since: [6],
  },
] as readonly { name: string; cells: TableColumns["cells"]; texts: string[]; since: number[] }[]) {
  test(`cells ${name} are split at their ages`, () => assert.deepEqual(timelessCells(tableOf(cells), object), { texts, since }));
}

test("a resource version of a client is a number of 64 bits, and none is 0", () => {
  const of = (resourceVersion: string | undefined) =>
    revisionOf({ metadata: resourceVersion === undefined ? {} : { resourceVersion } });
  assert.deepEqual([undefined, "", "0", "7", "18446744073709551615"].map(of), [0n, 0n, 0n, 7n, 18_446_744_073_709_551_615n]);
  for (const text of ["x", "-1", "1.5", "18446744073709551616"]) {
    assert.throws(
      () => of(text),
      (err: unknown) => err instanceof StatusError && err.status.code === 500 && err.status.reason === undefined,
    );
  }
});
