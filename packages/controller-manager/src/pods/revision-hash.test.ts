import assert from "node:assert/strict";
import { test } from "node:test";
import { computeHash, fnv32, fnv32a, safeEncode } from "./revision-hash.ts";

const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main", image: "busybox" }] } };

test("is FNV-1a with 32 bits", () => {
  assert.equal(fnv32a(""), 0x811c9dc5);
  assert.equal(fnv32a("a"), 0xe40c292c);
  assert.equal(fnv32a("foobar"), 0xbf9cf968);
});

test("is FNV-1 where upstream's is", () => {
  assert.equal(fnv32(""), 0x811c9dc5);
  assert.equal(fnv32("a"), 0x050c5d7e);
  assert.equal(fnv32("foobar"), 0x31f0b262);
});

test("uses only letters and digits that spell no words", () => {
  assert.equal(safeEncode("0123456789"), "456789bcdf");
  assert.match(safeEncode("4294967295"), /^[bcdfghjklmnpqrstvwxz2456789]{10}$/);
});

test("does not depend on the order of keys, nor on empty lists", () => {
  const other = { spec: { volumes: [], containers: [{ image: "busybox", name: "main" }] }, metadata: { labels: { app: "web" } } };
  assert.equal(computeHash(template, undefined), computeHash(other, undefined));
});

test("changes with the template and with each collision", () => {
  const hashes = [
    computeHash(template, undefined),
    computeHash(template, 1),
    computeHash(template, 2),
    computeHash({ ...template, metadata: { labels: { app: "api" } } }, undefined),
  ];
  assert.equal(new Set(hashes).size, hashes.length);
});
