import assert from "node:assert/strict";
import { test } from "node:test";
import { heightOf, pathsOf, squareAt, widthOf } from "./picture.ts";

const measures = { columns: 3, pitch: 10, side: 8 };

test("squares are in rows, without space behind the last", () => {
  assert.equal(widthOf(measures), 28);
  assert.deepEqual(
    [0, 1, 3, 4, 6, 7].map((count) => heightOf(count, measures)),
    [0, 8, 8, 18, 18, 28],
  );
});

test("each state has a form of its own, at the place of its pod", () => {
  const pods = (["good", "bad", "moving", "idle", "good"] as const).map((health) => ({ health }));
  assert.deepEqual(pathsOf(pods, measures), {
    good: "M0 0h8v8h-8zM10 10h8v8h-8z",
    bad: "M14 -1l5 5l-5 5l-5 -5z",
    moving: "M20 0h8v8h-8zM22 2h4v4h-4z",
    idle: "M2 12h4v4h-4z",
  });
});

test("a point is in the square of its row and column, the gap behind it included", () => {
  for (const [x, y, want] of [
    [0, 0, 0],
    [9, 9, 0],
    [10, 0, 1],
    [29, 0, 2],
    [30, 0, -1],
    [0, 10, 3],
    [10, 10, 4],
    [20, 10, -1],
    [-1, 0, -1],
    [0, -1, -1],
  ] as const) {
    assert.equal(squareAt(x, y, 5, measures), want, `${x} ${y}`);
  }
});
