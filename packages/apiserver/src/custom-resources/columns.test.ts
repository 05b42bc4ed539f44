import assert from "node:assert/strict";
import { test } from "node:test";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { agesAt } from "../registry/generic/ages.ts";
import { columnsOf } from "./columns.ts";

const nowMs = Date.UTC(2022, 0, 1, 1);

/** The cell of a column of this type. */
function cellOf(type: string, value: unknown): unknown {
  const table = columnsOf([{ name: "c", type, jsonPath: ".value" }]);
  const object = { metadata: { name: "a" }, ...(value !== undefined && { value }) } as unknown as Unstructured;
  return table.cells(object, agesAt(nowMs))[1];
}

for (const { type, cells } of [
  {
    type: "integer",
    cells: [
      [7, 7],
      [7.9, 7],
      [-7.9, -7],
      [2n ** 60n, 2n ** 60n],
      ["7", null],
      [true, null],
      [undefined, null],
    ],
  },
  {
    type: "number",
    cells: [
      [7.5, 7.5],
      [8n, 8],
      ["7", null],
      [undefined, null],
    ],
  },
  {
    type: "boolean",
    cells: [
      [false, false],
      [true, true],
      ["true", null],
      [0, null],
    ],
  },
  {
    type: "string",
    cells: [
      ["a", "a"],
      ["", ""],
      [1.5, "1.5"],
      [false, "false"],
      [null, "<nil>"],
      [{ a: [1] }, '{"a":[1]}'],
      [undefined, null],
    ],
  },
  {
    type: "date",
    cells: [
      ["2022-01-01T00:00:00Z", "60m"],
      ["", "<unknown>"],
      ["null", "<unknown>"],
      ["soon", "<invalid>"],
      [5, null],
    ],
  },
  { type: "other", cells: [["a", null]] },
] as { type: string; cells: [unknown, unknown][] }[]) {
  test(`a column of type ${type} shows the first value of its path as that type, or nothing`, () => {
    for (const [value, want] of cells) assert.deepEqual(cellOf(type, value), want, String(value));
  });
}

test("a version without columns has the age, and a column without a description describes its path", () => {
  const object = { metadata: { name: "a", creationTimestamp: "2022-01-01T00:00:00Z" } } as Unstructured;
  for (const none of [undefined, []]) {
    const table = columnsOf(none);
    assert.deepEqual(
      table.columns.map(({ name, type }) => [name, type]),
      [
        ["Name", "string"],
        ["Age", "date"],
      ],
    );
    assert.deepEqual(table.cells(object, agesAt(nowMs)), ["a", "60m"]);
  }
  const [, column] = columnsOf([{ name: "C", type: "string", jsonPath: ".c", priority: 1 }]).columns;
  assert.deepEqual(column, {
    ...{ name: "C", type: "string", format: "", priority: 1 },
    description: "Custom resource definition column (in JSONPath format): .c",
  });
});

test("a path that fails for one object leaves its cell empty, and the others filled", () => {
  const table = columnsOf([
    { name: "a", type: "string", jsonPath: ".list[3]" },
    { name: "b", type: "string", jsonPath: ".list[1]" },
  ]);
  assert.deepEqual(table.cells({ metadata: { name: "x" }, list: ["y", "z"] } as unknown as Unstructured, agesAt(0)), [
    "x",
    null,
    "z",
  ]);
  assert.throws(
    () => columnsOf([{ name: "a", type: "string", jsonPath: ".a[" }]),
    /^Error: unrecognized column definition ".a\["$/,
  );
});
