import assert from "node:assert/strict";
import { test } from "node:test";
import { labelValueProblems, qualifiedNameProblems } from "./qualified-name.ts";

for (const [name, want] of [
  ["a", []],
  ["example.com/My_name.1-a", []],
  [`${"p".repeat(63)}.example/${"n".repeat(63)}`, []],
  ["n".repeat(64), ["name part must be no more than 63 characters"]],
  ["/a", ["prefix part must be non-empty"]],
  ["/", ["prefix part must be non-empty", "name part must be non-empty", "name part …"]],
  ["example.com/", ["name part must be non-empty", "name part …"]],
  ["Example/-", ["prefix part a lowercase RFC 1123 subdomain …", "name part …"]],
  ["a/b/c", ["a qualified name …"]],
] as const) {
  test(`problems of the name ${name}`, () => {
    const shown = qualifiedNameProblems(name).map((text) => text.replace(/ must (?:consist).*$/s, " …"));
    assert.deepEqual(shown, want);
  });
}

test("a label's value may be empty, and has 63 characters at most", () => {
  assert.deepEqual([labelValueProblems(""), labelValueProblems("v".repeat(63))], [[], []]);
  assert.deepEqual(labelValueProblems("v".repeat(64)), ["must be no more than 63 characters"]);
  assert.match(labelValueProblems("-").join(), /^a valid label must be an empty string or consist of alphanumeric characters/);
});
