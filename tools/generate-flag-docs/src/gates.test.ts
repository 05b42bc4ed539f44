import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gates, idleGates } from "@coxswain/apimachinery/flags/gates";

const root = join(import.meta.dirname, "../../..");

test("a gate that is off by default is read by a program, or known to have nothing to do", () => {
  const source = globSync("packages/*/src/**/*.ts", { cwd: root })
    .filter((file) => !file.endsWith(".test.ts") && !file.endsWith("/flags/gates.ts"))
    .map((file) => readFileSync(join(root, file), "utf8"))
    .join("\n");
  const forgotten = Object.keys(gates).filter((name) => {
    const known = gates[name]?.default || name.startsWith("All") || idleGates.has(name);
    return !known && !source.includes(`"${name}"`);
  });
  assert.deepEqual(forgotten, []);
  assert.deepEqual(
    [...idleGates].filter((name) => gates[name] === undefined || source.includes(`"${name}"`)),
    [],
  );
});
