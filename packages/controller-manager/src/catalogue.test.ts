import assert from "node:assert/strict";
import { test } from "node:test";
import { catalogue, enabledControllers } from "./catalogue.ts";

test("knows the 38 controllers of 1.23, each once", () => {
  assert.equal(catalogue.length, 38);
  assert.equal(new Set(catalogue.map(({ name }) => name)).size, 38);
});

for (const { words, has, lacks } of [
  { words: ["*"], has: ["deployment", "namespace"], lacks: ["bootstrapsigner", "tokencleaner"] },
  { words: ["*", "-deployment"], has: ["replicaset"], lacks: ["deployment"] },
  { words: ["deployment"], has: ["deployment"], lacks: ["replicaset"] },
  { words: ["-deployment", "*", "deployment"], has: ["replicaset"], lacks: ["deployment"] },
  { words: [], has: [], lacks: ["deployment"] },
]) {
  test(`--controllers=${words.join(",")}`, () => {
    const errors: string[] = [];
    const enabled = enabledControllers(words, errors);
    assert.deepEqual(errors, []);
    for (const name of has) assert.ok(enabled.has(name), `${name} is on`);
    for (const name of lacks) assert.ok(!enabled.has(name), `${name} is off`);
  });
}

test("says what it does not know", () => {
  const errors: string[] = [];
  enabledControllers(["*", "nope", "-neither", "-job"], errors);
  assert.deepEqual(errors, [
    '"nope" is not in the list of known controllers',
    '"neither" is not in the list of known controllers',
  ]);
});
