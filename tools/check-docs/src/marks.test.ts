import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsOf } from "./compatibility.ts";
import { type Mark, marksOf, type Outcome } from "./marks.ts";

const outcome = (name: string, how: Outcome["outcome"], file = "a.test.ts", where = `${file}:1`): Outcome => ({
  ...{ name, file, where },
  outcome: how,
});

for (const { name, proof, outcomes, want } of [
  { name: "its test passed", proof: 'a.test.ts "x"', outcomes: [outcome("x", "passed")], want: "passed" },
  { name: "its test failed", proof: 'a.test.ts "x"', outcomes: [outcome("x", "failed")], want: "failed" },
  { name: "its test was skipped", proof: 'a.test.ts "x"', outcomes: [outcome("x", "skipped")], want: "skipped" },
  { name: "its test is to be written", proof: 'a.test.ts "x"', outcomes: [outcome("x", "todo")], want: "skipped" },
  { name: "its file was skipped", proof: 'a.test.ts "x"', outcomes: [outcome("", "skipped", "a.test.ts")], want: "skipped" },
  { name: "its file did not run", proof: 'a.test.ts "x"', outcomes: [outcome("x", "passed", "b.test.ts")], want: "not run" },
  { name: "its file ran without the test", proof: 'a.test.ts "x"', outcomes: [outcome("y", "passed")], want: "not run" },
  {
    name: "the second of its tests failed",
    proof: 'a.test.ts "x"; b.test.ts "y"',
    outcomes: [outcome("x", "passed"), outcome("y", "failed", "b.test.ts")],
    want: "failed",
  },
  {
    name: "a shared suite ran twice, the second time with a failure",
    proof: 'suite.ts "x"',
    outcomes: [outcome("x", "passed", "a.test.ts", "suite.ts:3"), outcome("x", "failed", "b.test.ts", "suite.ts:3")],
    want: "failed",
  },
  {
    name: "its test is declared by another file",
    proof: 'a.test.ts "x"',
    outcomes: [outcome("x", "failed", "a.test.ts", "rules.ts:9"), outcome("x", "passed", "b.test.ts", "rules.ts:9")],
    want: "failed",
  },
  {
    name: "it names a part of a name, as entries of tables do",
    proof: 'a.test.ts "no quota"',
    outcomes: [outcome("refuses no quota", "failed"), outcome("accepts", "passed")],
    want: "failed",
  },
  {
    name: "one of the tests of its template failed",
    proof: 'a.test.ts "refuses ${what} of a pod"',
    outcomes: [outcome("refuses x of a pod", "passed"), outcome("refuses y of a pod", "failed"), outcome("refuses", "passed")],
    want: "failed",
  },
  {
    name: "another test's name contains that of its own",
    proof: 'a.test.ts "x"',
    outcomes: [outcome("x and more", "failed"), outcome("x", "passed")],
    want: "passed",
  },
] satisfies { name: string; proof: string; outcomes: Outcome[]; want: Mark }[]) {
  test(`a row is marked "${want}" when ${name}`, () => {
    const rows = rowsOf(`section\tid\twhat holds\tstate\tproof\ns\tR001\tit\tworks\t${proof}\n`);
    assert.deepEqual(marksOf(rows, outcomes), new Map([["R001", want]]));
  });
}

test("a row that refers to another has its mark; one without tests has none", () => {
  const rows = rowsOf('head\ns\tR001\ta\tworks\ta.test.ts "x"\ns\tR002\tb\tworks\tR001\ns\tR003\tc\tnot yet\t\n');
  assert.deepEqual(
    [...marksOf(rows, [outcome("x", "failed")])],
    [
      ["R001", "failed"],
      ["R002", "failed"],
    ],
  );
});
