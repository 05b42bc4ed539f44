import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { plans } from "../plans/catalogue.ts";
import { productFaults } from "./catalogue.ts";

const packages = join(import.meta.dirname, "../../../../packages");

test("each fault's find string occurs once in the source, its replacement parses, and its plans exist", () => {
  const known = new Set(plans.map(({ name }) => name));
  for (const { name, file, find, replace, plans: named } of productFaults) {
    const source = readFileSync(join(packages, file), "utf8");
    assert.equal(source.split(find).length - 1, 1, `${name}: ${file} must contain this once: ${find}`);
    assert.doesNotThrow(() => stripTypeScriptTypes(source.replace(find, () => replace)), name);
    assert.deepEqual([named.length > 0, named.filter((plan) => !known.has(plan))], [true, []], name);
  }
  assert.equal(new Set(productFaults.map(({ name }) => name)).size, productFaults.length);
});
