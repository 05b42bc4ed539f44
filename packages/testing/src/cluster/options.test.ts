import assert from "node:assert/strict";
import { test } from "node:test";
import { controllersOf, nodesOf, startOf } from "./options.ts";

test("a number of nodes names them, from none to 5,000; a list is taken as it is", () => {
  assert.deepEqual(nodesOf(), [{ name: "node-1" }]);
  assert.deepEqual(nodesOf(2), [{ name: "node-1" }, { name: "node-2" }]);
  assert.deepEqual([nodesOf(0).length, nodesOf(5_000).length, nodesOf(5_000).at(-1)?.name], [0, 5_000, "node-5000"]);
  const own = [{ name: "a" }];
  assert.equal(nodesOf(own), own);
  for (const wrong of [-1, 1.5, 5_001, Number.NaN])
    assert.throws(() => nodesOf(wrong), { message: `nodes: ${wrong} must be a whole number from 0 to 5000` });
});

test("controllers are all, none, or those that are named", () => {
  assert.deepEqual(
    [controllersOf(), controllersOf(true), controllersOf(false), controllersOf(["job"])],
    [["*"], ["*"], [], ["job"]],
  );
});

test("virtual time starts in 2022, or when it is told to", () => {
  assert.deepEqual([startOf(), startOf("real"), startOf("virtual")], [undefined, undefined, Date.UTC(2022, 0, 1)]);
  assert.deepEqual([startOf({ startsAt: 0 }), startOf({ startsAt: "1970-01-01T00:00:01Z" })], [0, 1_000]);
  for (const startsAt of ["soon", Number.POSITIVE_INFINITY])
    assert.throws(
      () => startOf({ startsAt }),
      /^Error: clock: .* is no time; give a date such as "2022-01-01T00:00:00Z", or ms since 1970$/,
    );
});
