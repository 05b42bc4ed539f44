import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { diffOf } from "./diff.ts";
import { outdated, readEquivalents } from "./equivalents.ts";
import { optionsOf, UsageError } from "./options.ts";

test("flags have defaults, folders may end in a slash", () => {
  const options = optionsOf(["./packages/a/src/", "--count", "3", "--kind", "boundary"]);
  assert.partialDeepStrictEqual(options, { folders: ["packages/a/src"], count: 3, seed: 1, kinds: ["boundary"], mostTests: 30 });
  assert.deepEqual([options?.lanes, optionsOf(["a", "--lanes", "2"])?.lanes], [1, 2]);
  assert.equal(optionsOf(["--help"]), undefined);
  const ofList = optionsOf(["--faults", "list.json"]);
  assert.deepEqual([ofList?.faults, ofList?.folders, ofList?.coverage], ["list.json", [], undefined]);
  assert.equal(optionsOf(["a", "--coverage", "reports"])?.coverage, "reports");
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

test("each entry of equivalent.json has a reason and occurs once", (t) => {
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
  assert.throws(() => read(entry, entry), /1 is listed twice/);
  assert.throws(() => read({ ...entry, why: " " }), /1 has no reason/);
  assert.deepEqual(
    outdated(known, new Set(["1"]), new Set(["a.ts", "b.ts"])).map(({ id }) => id),
    ["2"],
  );
  assert.deepEqual(outdated(known, new Set(["1"]), new Set(["a.ts"])), []);
});

test("a diff shows the change with one line of context", () => {
  assert.equal(diffOf("a\nb\nc\nd\ne", "a\nb\nC\nd\ne"), " b\n-c\n+C\n d");
  assert.equal(diffOf("a\nb", "a\nx\nb"), " a\n+x\n b");
  assert.equal(diffOf("a\nb", "b"), "-a\n b");
});
