import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { lanesOf } from "./lanes.ts";
import { longForms, longRunOf, nightHours, type PlannedForm, planOf } from "./long-forms.ts";

const root = resolve(import.meta.dirname, "..", "..", "..");
const lanes = {
  concurrency: 3,
  isEndToEnd: (file: string) => file.startsWith("e2e/"),
  isShared: (file: string) => lanesOf([file]).shared.length > 0,
};

test("the budgets of all long forms fit into a night, with half an hour for the other tests", () => {
  assert.ok(longestMinutes(planOf(nightHours), lanes) <= nightHours * 60 - 30);
});

test("each test with a long form is in one form of the table, and each file of the table exists", () => {
  const listed = longForms.flatMap(({ files }) => files);
  assert.deepEqual(
    listed.filter((file) => !existsSync(join(root, file))),
    [],
  );
  assert.equal(new Set(listed).size, listed.length);
  const sources = globSync(["packages/*/src/**/*.ts", "tools/*/src/**/*.ts", "e2e/**/*.ts"], {
    cwd: root,
    exclude: (name) => name === "node_modules",
  });
  const reads = (file: string): boolean => readFileSync(join(root, file), "utf8").includes(`${"process"}.env["COX_TEST_LONG"]`);
  const otherValues = "packages/apimachinery/src/testing/fast-check.ts"; // not a longer form
  const readers = new Set(sources.filter((file) => file !== otherValues && reads(file)));
  const isLong = (file: string): boolean =>
    readers.has(file) ||
    [...readFileSync(join(root, file), "utf8").matchAll(/from "(\.[^"]+)"/g)].some(([, path = ""]) =>
      readers.has(join(dirname(file), path)),
    );
  const missing = sources.filter((file) => file.endsWith(".test.ts") && isLong(file) && !listed.includes(file));
  assert.deepEqual(missing, [], "add them to long-forms.ts");
});

const forms = [
  { name: "timed", files: ["t.test.ts"], minutes: 80, isTimed: true },
  { name: "big", files: ["b.test.ts"], minutes: 30 },
  { name: "small", files: ["s.test.ts", "s2.test.ts"], minutes: 10 },
];

test("a shorter run gives timed forms their share, and runs the shortest of the others in full", () => {
  const shown = (hours: number) => planOf(hours, forms).map(({ minutes, isLong }) => [minutes, isLong]);
  assert.deepEqual(shown(8), [
    [80, true],
    [30, true],
    [10, true],
  ]);
  assert.deepEqual(shown(2), [
    [20, true],
    [30, false],
    [10, true],
  ]);
  assert.deepEqual(shown(1), [
    [10, true],
    [30, false],
    [10, false],
  ]);
});

test("a file's time is limited by the rest of its form's budget; a file without a long form gets none", () => {
  const plan = planOf(2, forms);
  assert.deepEqual(longRunOf("t.test.ts", plan, []), {
    env: { COX_TEST_LONG: "1", COX_TEST_MINUTES: "18" },
    fileMs: 22 * 60_000,
  });
  const done = [
    { file: "s2.test.ts", durationMs: 60_000 },
    { file: "t.test.ts", durationMs: 1 },
  ];
  assert.deepEqual(longRunOf("s.test.ts", plan, done), { env: { COX_TEST_LONG: "1" }, fileMs: 9 * 60_000 });
  assert.equal(longRunOf("b.test.ts", plan, []), undefined);
  const quick = planOf(2, [{ name: "quick", files: ["q.test.ts"], minutes: 80, isTimed: true, finishMinutes: 4 }]);
  assert.equal(longRunOf("q.test.ts", quick, [])?.env["COX_TEST_MINUTES"], "19");
  assert.equal(longRunOf("x.test.ts", plan, []), undefined);
});

/** Upper bound of the duration in minutes when the forms run as `./cox test` runs them. */
function longestMinutes(
  plan: readonly PlannedForm[],
  lanes: { readonly concurrency: number; isEndToEnd(file: string): boolean; isShared(file: string): boolean },
): number {
  const long = plan.filter(({ isLong }) => isLong);
  const sum = (forms: readonly PlannedForm[]): number => forms.reduce((total, { minutes }) => total + minutes, 0);
  const own = long.filter(({ files }) => files.some((file) => lanes.isEndToEnd(file) && !lanes.isShared(file)));
  const shared = long.filter(({ files }) => files.some((file) => lanes.isEndToEnd(file) && lanes.isShared(file)));
  const unit = long.filter(({ files }) => files.length > 0 && !files.some((file) => lanes.isEndToEnd(file)));
  /** Bound for greedy scheduling of files on `concurrency` workers: the average load plus the longest file. */
  const packed = (forms: readonly PlannedForm[]): number => {
    const longest = Math.max(0, ...forms.map(({ minutes }) => minutes));
    return Math.min(sum(forms), (sum(forms) - longest) / lanes.concurrency + longest);
  };
  return Math.max(packed(own) + packed(unit), sum(shared)) + sum(long.filter(({ files }) => files.length === 0));
}
