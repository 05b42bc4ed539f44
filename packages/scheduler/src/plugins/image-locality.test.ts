import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";
import { normalizedImageName } from "./image-locality.ts";

const withImage = (name: string, ...images: [string, number][]): Node => {
  const node = aTestNode(name);
  return { ...node, status: { ...node.status, images: images.map(([image, sizeBytes]) => ({ names: [image], sizeBytes })) } };
};

test("a node that has a large image scores higher, the more nodes have it", () => {
  const mebibyte = 2 ** 20;
  const cluster = newTestCluster({ nodes: [withImage("has", ["busybox:1.36", 1_000 * mebibyte]), withImage("has-not")] });
  // Half of the nodes have the image, so half of its size counts, minus the lower threshold.
  assert.deepEqual(
    cluster.scores("ImageLocality", aTestPod("new", { spec: { containers: [{ name: "main", image: "busybox:1.36" }] } })),
    { has: 48, "has-not": 0 },
  );
});

for (const [image, want] of [
  ["busybox", "busybox:latest"],
  ["registry:5000/busybox", "registry:5000/busybox:latest"],
  ["busybox:1.36", "busybox:1.36"],
] as const) {
  test(`${image} is on nodes as ${want}`, () => assert.equal(normalizedImageName(image), want));
}

test("images score up to 1000 MiB for each container, and no more", () => {
  const mebibyte = 2 ** 20;
  const score = (sizeBytes: number, images: string[]) => {
    const containers = images.map((image, i) => ({ name: `c${i}`, image }));
    const cluster = newTestCluster({ nodes: [withImage("a", ["x:1", sizeBytes], ["y:1", sizeBytes])] });
    return cluster.scores("ImageLocality", aTestPod("new", { spec: { containers } }))["a"];
  };
  assert.equal(score(5_000 * mebibyte, ["x:1"]), 100);
  assert.equal(score(1_000 * mebibyte, ["x:1", "z:1"]), 49, "half of what two containers may score");
  assert.equal(score(1_000 * mebibyte, ["x:1", "y:1"]), 100);
  assert.deepEqual(
    [22, 32, 33].map((size) => score(size * mebibyte, ["x:1"])),
    [0, 0, 1],
    "23 MiB are not counted",
  );
});
