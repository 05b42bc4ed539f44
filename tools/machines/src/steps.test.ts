import assert from "node:assert/strict";
import { test } from "node:test";
import { type Remains, removeAll, runSteps, type Step } from "./steps.ts";

/** A step that adds its name to the set of completed steps. */
const step = (name: string, fails: () => boolean = () => false): Step<Set<string>> => ({
  name,
  missing: (done) => (done.has(name) ? [] : [`do ${name}`]),
  run(done) {
    if (fails()) throw new Error("first\nsecond");
    done.add(name);
  },
});

test("a failed command resumes at the failed phase when it is run again", async () => {
  let broken = true;
  const steps = [step("a"), step("b", () => broken), step("c")];
  const done = new Set<string>();
  const lines: string[] = [];
  const run = (dryRun = false) => runSteps(steps, done, { dryRun, print: (line) => lines.push(line) });
  await assert.rejects(run(), { message: "b: first\nb: second", exitCode: 1 });
  assert.deepEqual([...done], ["a"]);
  await run(true);
  assert.deepEqual([...done], ["a"]);
  broken = false;
  lines.length = 0;
  await run();
  assert.deepEqual(lines, ["[a] nothing to do", "[b] do b", "[c] do c"]);
  assert.deepEqual([...done], ["a", "b", "c"]);
});

test("phases can be left out", async () => {
  const done = new Set<string>();
  await runSteps([step("a"), step("b")], done, { dryRun: false, skip: ["a"], print: () => {} });
  assert.deepEqual([...done], ["b"]);
});

test("a failed removal is reported and does not prevent the others", async () => {
  const there = new Set(["a", "b", "c"]);
  const row = (name: string): Remains<Set<string>> => ({
    name,
    present: (all) => (all.has(name) ? [`remove ${name}`] : []),
    remove(all) {
      if (name === "b") throw new Error("busy");
      all.delete(name);
    },
  });
  const rows = ["a", "b", "c", "d"].map(row);
  const lines: string[] = [];
  await removeAll(rows, there, { dryRun: true, print: (line) => lines.push(line) });
  assert.deepEqual(lines, ["[a] would remove a", "[b] would remove b", "[c] would remove c"]);
  await assert.rejects(removeAll(rows, there, { dryRun: false, print: () => {} }), { message: "b: busy" });
  assert.deepEqual([...there], ["b"]);
});
