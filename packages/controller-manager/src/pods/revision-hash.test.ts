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

test("takes whole numbers beyond 53 bits as they are, and null as absent", () => {
  const hashOf = (spec: object) => computeHash({ ...template, spec: { ...template.spec, ...spec } }, undefined);
  const plain = computeHash(template, undefined);
  assert.equal(hashOf({ activeDeadlineSeconds: null }), plain);
  assert.notEqual(hashOf({ activeDeadlineSeconds: 9007199254740993n }), hashOf({ activeDeadlineSeconds: 9007199254740992n }));
  assert.equal(hashOf({ activeDeadlineSeconds: 30n }), hashOf({ activeDeadlineSeconds: 30 }));
  assert.notEqual(hashOf({ activeDeadlineSeconds: 30 }), plain);
});
