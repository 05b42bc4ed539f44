import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { runTogether } from "./define-controller.ts";

test("parts that run together end when the last has ended, or when one fails", async () => {
  const last = Promise.withResolvers<void>();
  const parts = [{ run: () => Promise.resolve() }, { run: () => last.promise }];
  const states: string[] = [];
  const run = (name: string, ...more: typeof parts) =>
    runTogether(...parts, ...more)
      .run(new AbortController().signal)
      .then(
        () => states.push(`${name} ended`),
        (err: Error) => states.push(`${name}: ${err.message}`),
      );
  const all = [run("both"), run("three", { run: () => Promise.reject(new Error("no")) })];
  await settle();
  assert.deepEqual(states, ["three: no"]);
  last.resolve();
  await Promise.all(all);
  assert.deepEqual(states, ["three: no", "both ended"]);
});
