import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inNetworkOfItsOwn, lanesOf, lastInSharedCluster, longestFirst, nodeFlags, slow, withoutSharedCluster } from "./lanes.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const tests = globSync("{packages/*/src,tools/*/src,e2e}/**/*.test.ts", {
  cwd: root,
  exclude: (name) => name === "node_modules",
}).sort();
const endToEnd = tests.filter((file) => file.startsWith("e2e/"));

test("each end-to-end file is in one lane; what disturbs the shared cluster comes last there", () => {
  const { shared, own } = lanesOf(endToEnd);
  assert.deepEqual([...shared, ...own].sort(), endToEnd);
  assert.deepEqual(shared.slice(-lastInSharedCluster.length), lastInSharedCluster);
});

test("the tables name only existing files", () => {
  const isThere = (path: string): boolean => tests.some((file) => file === path || file.startsWith(`${path}/`));
  assert.deepEqual(
    [...withoutSharedCluster, ...inNetworkOfItsOwn, ...lastInSharedCluster, ...Object.keys({ ...nodeFlags, ...slow })].filter(
      (path) => !isThere(path),
    ),
    [],
  );
});

test("a file with a separate network does not need the shared cluster", () => {
  const { own } = lanesOf(endToEnd);
  assert.deepEqual(
    inNetworkOfItsOwn.filter((file) => !own.includes(file)),
    [],
  );
});

/** Imports that only use folder names of the shared cluster's settings. */
const harmless = /^import (type \{.*?\}|\{ settings \}) from/;

test("no file in the lane without the shared cluster uses it", () => {
  const helpers = /^import .*? from ".*\/framework\/(kubectl|api|namespace|pods)\.ts";$/gm;
  const found = lanesOf(endToEnd).own.flatMap((file) =>
    [...readFileSync(join(root, file), "utf8").matchAll(helpers)]
      .filter(([line]) => !harmless.test(line))
      .map(([line]) => `${file}: ${line}`),
  );
  assert.deepEqual(found, []);
});

test("the slowest files start first, the others keep their order", () => {
  const [slowest = ""] = Object.entries(slow).toSorted(([, a], [, b]) => b - a)[0] ?? [];
  assert.deepEqual(longestFirst(["b", "a", slowest, "c"]), [slowest, "b", "a", "c"]);
});
