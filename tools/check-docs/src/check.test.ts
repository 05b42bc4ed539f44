import assert from "node:assert/strict";
import { test } from "node:test";
import { checkCompatibility, checkReasons, ruleIds } from "./check.ts";
import { hasTest } from "./test-names.ts";

const head = "section\tid\twhat holds\tstate\tproof\n";
const all = ruleIds.map((id) => `Rules\t${id}\tsomething\tnot yet\t\n`).join("");
const files: Record<string, string> = { "a.test.ts": 'test("it does", () => {});' };
const check = (table: string, page = ""): string[] =>
  checkCompatibility(table, page, {
    sections: {
      Controllers: [
        { name: "job", built: false },
        { name: "deployment", built: true },
      ],
    },
    read: (path) => files[path],
  });
const good = `${head}${all}Controllers\tjob\ton\tnot yet\t\nControllers\tdeployment\ton\tworks\ta.test.ts "it does"\n`;

test("reports no problem of a correct document", () => assert.deepEqual(check(good), []));

for (const { name, from, to, want } of [
  { name: "a missing row", from: "Rules\tR007\tsomething\tnot yet\t\n", to: "", want: /R007 is there 0 times/ },
  { name: "a row that is there twice", from: "\tR007\t", to: "\tR008\t", want: /R008 is there 2 times/ },
  { name: "a row of no rule", from: "\tR007\t", to: "\tR999\t", want: /there is no rule R999/ },
  {
    name: "a state that is none",
    from: "R007\tsomething\tnot yet",
    to: "R007\tsomething\tyes",
    want: /:8: R007: the state/,
  },
  {
    name: "a claim without proof",
    from: "R007\tsomething\tnot yet",
    to: "R007\tsomething\tworks",
    want: /no test is named/,
  },
  { name: "a proof that is no file", from: "a.test.ts", to: "b.test.ts", want: /there is no b\.test\.ts/ },
  { name: "a proof that is no test", from: '"it does"', to: '"it did"', want: /has no test "it did"/ },
  {
    name: "a row that says something else than its rule",
    from: "job\ton\tnot yet\t",
    to: "job\ton\tpartly: x\tR007",
    want: /R007 says "not yet"/,
  },
  {
    name: "a controller that was built meanwhile",
    from: 'works\ta.test.ts "it does"',
    to: "not yet\t",
    want: /deployment is built by now/,
  },
  { name: "a controller that is not built", from: "job\ton\tnot yet", to: "job\ton\tpartly: x", want: /job is not built/ },
  { name: "a controller without a row", from: "Controllers\tjob\ton\tnot yet\t\n", to: "", want: /job is there 0 times/ },
  { name: "an unknown controller", from: "\tjob\t", to: "\tjobs\t", want: /knows no jobs/ },
]) {
  test(`finds ${name}`, () => {
    const problems = check(good.replace(from, to));
    assert.ok(
      problems.some((problem) => want.test(problem)),
      problems.join("\n"),
    );
  });
}

const source = [
  'test("plain, with a \\"quote\\"", () => {});',
  'for (const { name } of [{ name: "from a table" }]) test(name, () => {});',
  'test(`refuses ${name} with ${code === 1 ? `a ${b}` : "c"}`, () => {});',
  "test(`${may} ${name}`, () => {});",
  "const text = `says ${nothing}`; // test(`a comment ${x}`)",
].join("\n");

for (const { name, want } of [
  { name: 'plain, with a "quote"', want: true },
  { name: "from a table", want: true },
  { name: "refuses a list with 422", want: true },
  { name: "refuses a list", want: false },
  { name: "allows from a table", want: true },
  { name: "anything", want: false },
  { name: "says hello", want: false },
  { name: "a comment here", want: false },
]) {
  test(`${want ? "knows" : "does not know"} the test "${name}"`, () => assert.equal(hasTest(source, name), want));
}

test("finds reasons without a row, with another code, and rows without a reason", () => {
  const page = "| `Gone` | 410 | x |\n| `Conflict` | 400 | x |\n| `Odd` | 499 | x |\n";
  assert.equal(checkReasons(page, { Gone: 410, Conflict: 409, Invalid: 422 }).length, 3);
});
