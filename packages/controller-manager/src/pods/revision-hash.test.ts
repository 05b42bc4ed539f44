import assert from "node:assert/strict";
import { test } from "node:test";
import { computeHash } from "./revision-hash.ts";

const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main", image: "busybox" }] } };

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
