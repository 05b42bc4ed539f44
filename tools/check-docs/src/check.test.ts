import assert from "node:assert/strict";
import { test } from "node:test";
import { checkCompatibility, checkReasons, ruleIds } from "./check.ts";
import { hasTest } from "./test-names.ts";

const head = "| id | what holds | state | proof |\n|---|---|---|---|\n";
const all = ruleIds.map((id) => `| ${id} | something | not yet | |\n`).join("");
const files: Record<string, string> = { "a.test.ts": 'test("it does", () => {});' };
const check = (markdown: string): string[] =>
  checkCompatibility(markdown, {
    sections: {
      Controllers: [
        { name: "job", built: false },
        { name: "deployment", built: true },
      ],
    },
    read: (path) => files[path],
  });
const controllers = "\n## Controllers\n\n| controller | state | proof |\n|---|---|---|\n";
const good = `${head}${all}${controllers}| \`job\` | not yet | |\n| \`deployment\` | works | [a](../a.test.ts) "it does" |\n`;

test("has nothing to say about a document that is right", () => assert.deepEqual(check(good), []));

for (const { name, from, to, want } of [
  { name: "a missing row", from: "| R007 | something | not yet | |\n", to: "", want: /R007 is there 0 times/ },
  { name: "a row that is there twice", from: "| R007 |", to: "| R008 |", want: /R008 is there 2 times/ },
  { name: "a row of no rule", from: "| R007 |", to: "| R999 |", want: /there is no rule R999/ },
  {
    name: "a state that is none",
    from: "| R007 | something | not yet |",
    to: "| R007 | something | yes |",
    want: /:9: R007: the state/,
  },
  {
    name: "a claim without proof",
    from: "| R007 | something | not yet |",
    to: "| R007 | something | works |",
    want: /no test is named/,
  },
  { name: "a proof that is no file", from: "../a.test.ts", to: "../b.test.ts", want: /there is no b\.test\.ts/ },
  { name: "a proof that is no test", from: '"it does"', to: '"it did"', want: /has no test "it did"/ },
  {
    name: "a row that says something else than its rule",
    from: "| `job` | not yet | |",
    to: "| `job` | partly: x | R007 |",
    want: /R007 says "not yet"/,
  },
  {
    name: "a controller that was built meanwhile",
    from: '| works | [a](../a.test.ts) "it does" |',
    to: "| not yet | |",
    want: /deployment is built by now/,
  },
  { name: "a controller that is not built", from: "| `job` | not yet |", to: "| `job` | partly: x |", want: /job is not built/ },
  { name: "a controller without a row", from: "| `job` | not yet | |\n", to: "", want: /job is there 0 times/ },
  { name: "a controller that nobody knows", from: "`job`", to: "`jobs`", want: /knows no jobs/ },
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
