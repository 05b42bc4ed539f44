import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newClusterSize } from "./cluster-size.ts";
import { newTtlController, ttlAnnotation } from "./controller.ts";

test("the time grows and shrinks with the cluster, at other sizes up than down", () => {
  const size = newClusterSize();
  let count = 0;
  const at = (wanted: number): number => {
    for (; count < wanted; count++) size.added();
    for (; count > wanted; count--) size.removed();
    return size.ttlSeconds;
  };
  const sizes = [1, 100, 101, 90, 89, 500, 501, 1000, 1001, 2000, 2001, 1800, 1799, 900, 899, 450, 449, 0];
  assert.deepEqual(sizes.map(at), [0, 0, 15, 15, 0, 15, 30, 30, 60, 60, 300, 300, 60, 60, 30, 30, 15, 0]);
});

test("writes the time on every node, once, and puts it right", async (t) => {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "new", annotations: { other: "stays" } }));
  world.client.put(nodes, aNode({ name: "wrong", annotations: { [ttlAnnotation]: "15" } }));
  world.client.put(nodes, aNode({ name: "right", annotations: { [ttlAnnotation]: "0" } }));
  await world.run(newTtlController(world.ctx));
  const annotations = (name: string) => world.client.object<Node>(nodes, name)?.metadata.annotations;
  assert.deepEqual(annotations("new"), { other: "stays", [ttlAnnotation]: "0" });
  assert.deepEqual(annotations("wrong"), { [ttlAnnotation]: "0" });
  assert.deepEqual(world.client.writes.map(({ verb, name }) => `${verb} ${name}`).toSorted(), ["patch new", "patch wrong"]);
});

test("in a larger cluster a node gets the longer time at its next change", async (t) => {
  const world = newTestContext(t);
  for (let i = 0; i < 100; i++) world.client.put(nodes, aNode({ name: `n${i}` }));
  await world.run(newTtlController(world.ctx));
  await settle(200);
  const ttlOf = (name: string) => world.client.object<Node>(nodes, name)?.metadata.annotations?.[ttlAnnotation];
  world.client.put(nodes, aNode({ name: "n100" }));
  await settle(30);
  assert.equal(ttlOf("n100"), "15");
  assert.equal(ttlOf("n0"), "0");
  world.client.put(nodes, aNode({ name: "n0", labels: { touched: "yes" } }));
  await settle(30);
  assert.equal(ttlOf("n0"), "15");
});

test("nodes that leave make the cluster smaller again", async (t) => {
  const world = newTestContext(t);
  for (let i = 0; i < 101; i++) world.client.put(nodes, aNode({ name: `n${i}` }));
  await world.run(newTtlController(world.ctx));
  await settle(200);
  for (let i = 0; i < 12; i++) world.client.remove(nodes, `n${i}`);
  await settle(50);
  world.client.put(nodes, aNode({ name: "n100", annotations: { [ttlAnnotation]: "15" } }));
  await settle(30);
  assert.equal(world.client.object<Node>(nodes, "n100")?.metadata.annotations?.[ttlAnnotation], "0");
});

test("a node that is deleted while it is annotated is no failure", async (t) => {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "going" }));
  world.client.react("patch", "nodes", ({ name }) => {
    throw notFound(nodes, name);
  });
  await world.run(newTtlController(world.ctx));
  await world.clock.advance(60_000);
  await settle(30);
  assert.equal(world.client.writes.length, 1);
});
