import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { diffOf } from "./diff.ts";
import { outdated, readEquivalents } from "./equivalents.ts";
import { optionsOf, UsageError } from "./options.ts";
import { jsonOfReport, lineOf, type Outcome, textOfReport } from "./report.ts";

test("flags have defaults, folders may end in a slash", () => {
  const options = optionsOf(["./packages/a/src/", "--count", "3", "--kind", "boundary"]);
  assert.partialDeepStrictEqual(options, { folders: ["packages/a/src"], count: 3, seed: 1, kinds: ["boundary"], mostTests: 12 });
  assert.equal(optionsOf(["--help"]), undefined);
});

for (const [args, message] of [
  [[], /name at least one folder/],
  [["a", "--count", "-1"], /count/],
  [["a", "--count", "x"], /--count takes a whole number, not x/],
  [["a", "--kind", "typo"], /there is no kind typo/],
  [["a", "--unknown"], /--unknown/],
] as const)
  test(`${args.join(" ") || "nothing"} is refused`, () => {
    assert.throws(
      () => optionsOf(args),
      (err) => err instanceof UsageError && message.test(err.message),
    );
  });

test("what is written down as equivalent has a reason and stands there once", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-mutate-options-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "equivalent.json");
  const read = (...entries: object[]) => {
    writeFileSync(path, JSON.stringify(entries));
    return readEquivalents(path);
  };
  const entry = { id: "1", kind: "k", file: "a.ts", why: "the same" };
  const known = read(entry, { ...entry, id: "2", file: "b.ts" });
  assert.deepEqual([...known.keys()], ["1", "2"]);
  assert.throws(() => read(entry, entry), /1 stands there twice/);
  assert.throws(() => read({ ...entry, why: " " }), /1 has no reason/);
  assert.deepEqual(
    outdated(known, new Set(["1"]), new Set(["a.ts", "b.ts"])).map(({ id }) => id),
    ["2"],
  );
  assert.deepEqual(outdated(known, new Set(["1"]), new Set(["a.ts"])), []);
});

test("a diff shows what changed with a line around it", () => {
  assert.equal(diffOf("a\nb\nc\nd\ne", "a\nb\nC\nd\ne"), " b\n-c\n+C\n d");
  assert.equal(diffOf("a\nb", "a\nx\nb"), " a\n+x\n b");
  assert.equal(diffOf("a\nb", "b"), "-a\n b");
});

test("the report shows survivors with their diffs, and how many were caught", () => {
  const mutant = { id: "1", kind: "boundary", file: "a.ts", line: 3, edit: { start: 0, end: 0, text: "" } };
  const outcomes: Outcome[] = [
    { mutant, diff: "-a\n+b", result: "survived", tests: 2, seconds: 1 },
    { mutant, diff: "-a\n+c", result: "caught", by: "a.test.ts", tests: 1, seconds: 0.5 },
    { mutant, diff: "-a\n+d", result: "no tests", tests: 0, seconds: 0 },
  ];
  const text = textOfReport(outcomes);
  assert.match(text, /^SURVIVED {2}1 boundary a\.ts:3 \(2 test files, 1\.0 s\)\n-a\n\+b$/m);
  assert.match(text, /^NO TESTS/m);
  assert.match(text, /\n1 of 3 faults caught \(33\.3 %\), 2 survived$/);
  assert.doesNotMatch(text, /\+c/);
  assert.equal(lineOf(outcomes[1] as Outcome), "caught    1 boundary a.ts:3 by a.test.ts (1 test file, 0.5 s)");
  assert.partialDeepStrictEqual(JSON.parse(jsonOfReport(7, ["a"], outcomes)), {
    seed: 7,
    tried: 3,
    caught: 1,
    mutants: [{ result: "survived" }, {}, {}],
  });
});
