import assert from "node:assert/strict";
import { test } from "node:test";
import { castProblems, unexplainedCasts } from "./casts.ts";

const program = "packages/a/src/a.ts";

for (const { name, path = program, text, want } of [
  { name: "a cast alone is found", text: "const a = b as string;\n", want: [1] },
  { name: "each cast of a double one is found", text: "const a = b as unknown as string;\n", want: [1, 1] },
  { name: "a cast in TSX is found", path: "packages/a/src/a.tsx", text: "const a = <p>{b as string}</p>;\n", want: [1] },
  { name: "as const is none", text: "const a = [1] as const;\nconst b = c as\n  const;\n", want: [] },
  { name: "as const beside a cast is none", text: "const a = [1] as const;\nconst b = c as string;\n", want: [2] },
  { name: "a renamed import is none", text: 'import { a as b } from "./b.ts";\nexport { b as c };\n', want: [] },
  { name: "text is none", text: 'const a = "b as string"; // b as string\n', want: [] },
  { name: "a reason on its line explains it", text: "const a = b as string; // cast: b was checked\n", want: [] },
  { name: "a comment before it without the word does not", text: "// b was checked\nconst a = b as string;\n", want: [2] },
  { name: "a reason in a string does not", text: 'const a = f(b as string, "cast: no");\n', want: [1] },
  { name: "a comment that ends before it explains it", text: "// Cast: b was\n// checked.\nconst a = b as string;\n", want: [] },
  { name: "a reason two lines before does not", text: "// cast: b was checked\nc();\nconst a = b as string;\n", want: [3] },
  { name: "a reason before its statement explains it", text: "// cast: checked\nf(\n  c,\n  b as string,\n);\n", want: [] },
  { name: "a reason before the outer statement does not", text: "// cast: no\nif (c) {\n  f(b as string);\n}\n", want: [3] },
  {
    name: "a docstring explains the casts of its line",
    text: "/** Cast: b was checked. */\nexport const a = (b: unknown): string => b as string;\n",
    want: [],
  },
  { name: "tests may cast", path: "packages/a/src/a.test.ts", text: "const a = b as string;\n", want: [] },
  { name: "parts for tests may cast", path: "packages/a/src/b/testing/a.ts", text: "const a = b as string;\n", want: [] },
  { name: "a cast in a tool is found", path: "tools/a/src/a.ts", text: "const a = b as string;\n", want: [1] },
  { name: "end-to-end tests may cast", path: "e2e/a/a.ts", text: "const a = b as string;\n", want: [] },
]) {
  test(`casts: ${name}`, () => {
    assert.deepEqual(
      unexplainedCasts([{ path, text }]).map(({ line }) => line),
      want,
    );
  });
}

test("a package without a number may hold no cast, another not more than its number", () => {
  const casts = ["a", "b", "b", "c", "c"].map((name, i) => ({ path: `packages/${name}/src/x.ts`, line: i, text: "x as y" }));
  const problems = castProblems(casts, { b: 2, c: 1 });
  assert.deepEqual(problems, [
    "packages/a/src/x.ts:0: a cast without a reason: x as y",
    'a has 1 casts without a comment "cast: why" (at most 0)',
    'c has 2 casts without a comment "cast: why" (at most 1)',
  ]);
});
