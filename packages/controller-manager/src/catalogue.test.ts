import assert from "node:assert/strict";
import { test } from "node:test";
import { catalogue, enabledControllers } from "./catalogue.ts";
import { newTestContext } from "./testing/test-context.ts";

const off = () => false;

test("knows the 38 controllers of 1.23, and one of an alpha feature, each once", () => {
  assert.equal(catalogue.filter(({ onlyWith }) => onlyWith === undefined).length, 38);
  assert.equal(catalogue.length, 39);
  assert.equal(new Set(catalogue.map(({ name }) => name)).size, 39);
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
    const enabled = enabledControllers(words, errors, off);
    assert.deepEqual(errors, []);
    for (const name of has) assert.ok(enabled.has(name), `${name} is on`);
    for (const name of lacks) assert.ok(!enabled.has(name), `${name} is off`);
  });
}

test("says what it does not know", () => {
  const errors: string[] = [];
  enabledControllers(["*", "nope", "-neither", "-job"], errors, off);
  assert.deepEqual(errors, [
    '"nope" is not in the list of known controllers',
    '"neither" is not in the list of known controllers',
  ]);
});

test("a controller of a feature is there when all of its gates are on", () => {
  const gates = new Set(["APIServerIdentity"]);
  const errors: string[] = [];
  const has = (word: string) => enabledControllers([word], errors, (gate) => gates.has(gate)).has("storage-version-gc");
  assert.deepEqual([has("*"), has("storage-version-gc")], [false, false]);
  assert.deepEqual(errors, ['"storage-version-gc" is not in the list of known controllers']);
  gates.add("StorageVersionAPI");
  assert.deepEqual([has("*"), has("storage-version-gc"), errors.length], [true, true, 1]);
});

for (const { name, make } of catalogue) {
  test(`${name} can be started again over the same informers`, (t) => {
    const { ctx } = newTestContext(
      t,
      { nodeIpam: { ranges: [{ cidr: "10.244.0.0/16", maskSize: 24 }], serviceCidrs: [] }, rootCa: "PEM" },
      { TopologyAwareHints: true },
    );
    make(ctx);
    assert.doesNotThrow(() => make(ctx));
  });
}
