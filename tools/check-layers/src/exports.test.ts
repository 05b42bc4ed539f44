import assert from "node:assert/strict";
import { test } from "node:test";
import { unusedExports } from "./exports.ts";

const source = (path: string, text: string) => ({ path, text });

test("an exported value or type that no other file mentions is reported", () => {
  const found = unusedExports([
    source(
      "packages/a/src/a.ts",
      "export const used = 1;\nexport function own() {}\nown();\nexport async function* dead() {}\nexport interface Shape {}\nexport type Alias = Shape;\n",
    ),
    source("packages/a/src/b.ts", 'import { used } from "./a.ts";\nexport class B {}\nconst local = used;\n'),
    source("tools/x/src/x.test.ts", "new B();\n"),
  ]);
  assert.deepEqual(found, [
    "packages/a/src/a.ts: own",
    "packages/a/src/a.ts: dead",
    "packages/a/src/a.ts: Shape",
    "packages/a/src/a.ts: Alias",
  ]);
});

test("unused exports of tests, tools and tables of kinds are not reported", () => {
  const text = "export const alone = 1;\n";
  assert.deepEqual(unusedExports([source("packages/a/src/a.test.ts", text)]), []);
  assert.deepEqual(unusedExports([source("tools/x/src/x.ts", text)]), []);
  assert.deepEqual(unusedExports([source("packages/apimachinery/src/objects/schema/kinds/x.ts", text)]), []);
});
