import assert from "node:assert/strict";
import { test } from "node:test";
import { joinedFailures } from "./joined-failures.ts";

for (const { failures, want } of [
  { failures: ["a"], want: "a" },
  { failures: ["a", "b"], want: "[a, b]" },
  { failures: ["a", "a", "a"], want: "a" },
  { failures: ["b", "a", "b"], want: "[b, a]" },
]) {
  test(`failures ${failures.join(" and ")} are told as ${want}`, () => assert.equal(joinedFailures(failures), want));
}
