import assert from "node:assert/strict";
import { test } from "node:test";
import { internalError, serverTimeout } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodeIpamConfig } from "../../config/controller-manager-config.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newNodeIpamController } from "./controller.ts";

const ipv4 = { cidr: "10.0.0.0/22", maskSize: 24 };
const ipv6 = { cidr: "fd00::/60", maskSize: 64 };
const prepared = (t: { after(fn: () => void): void }, config: Partial<NodeIpamConfig> = {}): TestContext =>
  newTestContext(t, { nodeIpam: { ranges: [ipv4], serviceCidrs: [], ...config } });
const named = (name: string, ...podCIDRs: string[]): Node => {
  const node = aNode({ name });
  return podCIDRs.length === 0 ? node : { ...node, spec: { ...node.spec, podCIDR: podCIDRs[0], podCIDRs } };
};
const run = (world: TestContext) => world.run(newNodeIpamController(world.ctx));
const rangesOf = ({ client }: TestContext) =>
  Object.fromEntries(client.objects<Node>(nodes).map(({ metadata, spec }) => [metadata.name, spec?.podCIDRs?.join(",")]));

test("gives nodes that have none their range, and leaves the others theirs", async (t) => {
  const world = prepared(t);
  world.client.put(nodes, named("a"), named("b"), named("old", "10.0.0.0/24"));
  await run(world);
  assert.deepEqual(rangesOf(world), { old: "10.0.0.0/24", a: "10.0.1.0/24", b: "10.0.2.0/24" });
  assert.equal(world.client.object<Node>(nodes, "a")?.spec?.podCIDR, "10.0.1.0/24");
  world.client.put(nodes, named("later"));
  await settle(30);
  assert.equal(rangesOf(world)["later"], "10.0.3.0/24");
});

test("gives one range of each family", async (t) => {
  const world = prepared(t, { ranges: [ipv4, ipv6] });
  world.client.put(nodes, named("a"), named("b"));
  await run(world);
  assert.deepEqual(rangesOf(world), { a: "10.0.0.0/24,fd00::/64", b: "10.0.1.0/24,fd00:0:0:1::/64" });
  assert.equal(world.client.object<Node>(nodes, "a")?.spec?.podCIDR, "10.0.0.0/24");
});

test("the ranges of services are not assigned to nodes", async (t) => {
  const world = prepared(t, { serviceCidrs: ["10.0.0.0/23", "nonsense", "192.0.2.0/24"] });
  world.client.put(nodes, named("a"));
  await run(world);
  assert.deepEqual(rangesOf(world), { a: "10.0.2.0/24" });
});

test("a node that finds none left gets an event, and the first that is released", async (t) => {
  const world = prepared(t);
  for (let i = 0; i < 4; i++) world.client.put(nodes, named(`n${i}`));
  await run(world);
  world.client.put(nodes, named("late"));
  await settle(30);
  assert.equal(rangesOf(world)["late"], undefined);
  assert.deepEqual([...new Set(world.events)], ["Normal CIDRNotAvailable Node late status is now: CIDRNotAvailable"]);
  assert.equal(world.recorded[0]?.uid, named("late").metadata.uid);
  assert.ok(world.recorded[0]?.uid);
  const { n2 } = rangesOf(world);
  world.client.remove(nodes, "n2");
  await settle(10);
  await world.clock.advance(10_000);
  await settle(30);
  assert.equal(rangesOf(world)["late"], n2);
});

test("a range is not taken from one family when the other has none left", async (t) => {
  const world = prepared(t, { ranges: [ipv4, { cidr: "fd00::/64", maskSize: 64 }] });
  world.client.put(nodes, named("a"));
  await run(world);
  world.client.put(nodes, named("b"));
  await settle(30);
  world.client.remove(nodes, "a");
  await settle(10);
  await world.clock.advance(10_000);
  await settle(30);
  assert.match(rangesOf(world)["b"] ?? "", /^10\.0\.\d\.0\/24,fd00::\/64$/);
  const lines = (await world.ctx.registry.render()).split("\n");
  assert.ok(lines.includes('node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.0.0.0/22"} 0.25'));
});

test("nothing is given twice while the cache is behind", async (t) => {
  const world = prepared(t);
  let patches = 0;
  world.client.react("patch", "nodes", () => ({ metadata: { name: `unseen-${++patches}` } }));
  world.client.put(nodes, named("a"));
  await run(world);
  world.client.put(nodes, aNode({ name: "a", labels: { touched: "yes" } }));
  await settle(30);
  assert.equal(patches, 1);
});

test("a range that cannot be written is given back, and written later", async (t) => {
  const world = prepared(t);
  let refusals = 0;
  world.client.react("patch", "nodes", () => {
    if (refusals++ < 3) throw internalError(new Error("no"));
    return undefined;
  });
  world.client.put(nodes, named("a"));
  await run(world);
  assert.deepEqual(world.events, ["Normal CIDRAssignmentFailed Node a status is now: CIDRAssignmentFailed"]);
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(rangesOf(world)["a"], "10.0.1.0/24");
  const lines = (await world.ctx.registry.render()).split("\n");
  assert.ok(lines.includes('node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.0.0.0/22"} 0.25'));
});

test("a CIDR that another writer chose is kept, and the allocated one is released once", async (t) => {
  const world = prepared(t);
  let lost = true;
  world.client.react("patch", "nodes", () => (lost ? { metadata: {} } : undefined));
  world.client.put(nodes, named("a"));
  await run(world);
  world.client.put(nodes, named("a", "10.0.3.0/24"));
  await settle(30);
  const lines = (await world.ctx.registry.render()).split("\n");
  assert.ok(lines.includes('node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.0.0.0/22"} 0.25'));
  lost = false;
  for (const name of ["b", "c", "d"]) world.client.put(nodes, named(name));
  await settle(30);
  const given = rangesOf(world);
  assert.equal(new Set(Object.values(given)).size, 4);
  const { metadata, ...a } = named("a", "10.0.3.0/24");
  world.client.put(nodes, { ...a, metadata: { ...metadata, labels: { touched: "yes" } } }, named("e"));
  await settle(30);
  assert.deepEqual(rangesOf(world), { ...given, e: undefined });
});

for (const { name, cidrs, problem } of [
  {
    name: "outside of the range",
    cidrs: ["192.0.2.0/24"],
    problem:
      "failed to mark cidr[192.0.2.0/24] at idx [0] as occupied for node: a: cidr 192.0.2.0/24 is out the range of cluster cidr 10.0.0.0/22",
  },
  {
    name: "of a second family",
    cidrs: ["10.0.0.0/24", "fd00::/64"],
    problem: "node:a has an allocated cidr: fd00::/64 at index:1 that does not exist in cluster cidrs configuration",
  },
  { name: "that is none", cidrs: ["10.0.0.0/24", "nonsense"], problem: "failed to parse node a, CIDR nonsense" },
]) {
  for (const when of ["before the start", "later"] as const) {
    test(`a node with a range ${name}, ${when}, is reported once, and others get theirs`, async (t) => {
      const world = prepared(t);
      const errors: string[] = [];
      const log = { ...world.ctx.log, error: (_message: string, err?: unknown) => void errors.push(String(err)) };
      if (when === "before the start") world.client.put(nodes, named("a", ...cidrs));
      await world.run(newNodeIpamController({ ...world.ctx, log }));
      world.client.put(nodes, named("a", ...cidrs), named("b"));
      await settle(30);
      assert.match(rangesOf(world)["b"] ?? "", /^10\.0\.[0-3]\.0\/24$/);
      assert.deepEqual(errors, [`Error: ${problem}`]);
      assert.deepEqual(world.events, ["Normal CIDRNotInRange Node a status is now: CIDRNotInRange"]);
      // One of its CIDRs is valid and must not be assigned to another node.
      if (cidrs.length > 1) assert.notEqual(rangesOf(world)["b"], cidrs[0]);
    });
  }
}

test("a node is reported again when it has another range, and when it comes back after it was deleted", async (t) => {
  const world = prepared(t);
  await world.run(newNodeIpamController(world.ctx));
  const reports = async (...cidrs: string[]): Promise<number> => {
    const before = world.events.length;
    world.client.put(nodes, named("a", ...cidrs));
    await settle(30);
    return world.events.length - before;
  };
  assert.equal(await reports("192.0.2.0/24"), 1);
  assert.equal(await reports("192.0.2.0/24"), 0);
  assert.equal(await reports("198.51.100.0/24"), 1);
  world.client.remove(nodes, "a");
  await settle(30);
  assert.equal(await reports("198.51.100.0/24"), 1);
});

test("without ranges it is not started", (t) => {
  assert.equal(newNodeIpamController(prepared(t, { ranges: [] }).ctx), undefined);
});

test("the range of a node that was deleted while it was being written is another's, and stays so when the write fails", async (t) => {
  const world = prepared(t);
  for (let i = 0; i < 3; i++) world.client.put(nodes, named(`n${i}`));
  await run(world);
  const { promise, resolve } = Promise.withResolvers<void>();
  const patch = world.client.patch.bind(world.client);
  world.client.patch = async (...args: Parameters<typeof patch>) => {
    if (args[1].name === "gone") await promise;
    return patch(...args);
  };
  world.client.put(nodes, named("gone"));
  await settle(30);
  world.client.remove(nodes, "gone");
  await settle(10);
  world.client.put(nodes, named("next"));
  await settle(30);
  const { next } = rangesOf(world);
  assert.ok(next);
  resolve();
  await settle(30);
  world.client.put(nodes, named("late"));
  await settle(30);
  assert.equal(rangesOf(world)["late"], undefined, "none is left");
});

test("a range whose assignment got no answer is given to no other node, as it may have been assigned", async (t) => {
  const world = prepared(t);
  let timeouts = 3; // tried three times at once
  world.client.react("patch", "nodes", ({ name }) => {
    if (name === "a" && timeouts-- > 0) throw serverTimeout(nodes, "patch", 0);
  });
  world.client.put(nodes, named("a"));
  await run(world);
  for (let i = 0; i < 4; i++) world.client.put(nodes, named(`n${i}`));
  await settle(30);
  await world.clock.advance(1000);
  await settle(30);
  const given = Object.values(rangesOf(world)).filter((range) => range !== undefined);
  assert.deepEqual(given.toSorted(), ["10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"]);
});

test("the ranges of services are not assigned from any of the cluster's ranges", async (t) => {
  const world = prepared(t, { ranges: [ipv4, ipv6], serviceCidrs: ["10.0.0.0/24", "fd00::/108"] });
  world.client.put(nodes, named("a"));
  await run(world);
  assert.deepEqual(rangesOf(world), { a: "10.0.1.0/24,fd00:0:0:1::/64" });
});

test("of a deleted node each range that can be is released, whatever the others are", async (t) => {
  const world = prepared(t, { ranges: [ipv4, ipv6] });
  world.client.put(nodes, named("a", "192.0.2.0/24", "fd00::/64"));
  await run(world);
  const usage = async () => /cidrset_usage_cidrs\{clusterCIDR="fd00::\/60"\} (.*)/.exec(await world.ctx.registry.render())?.[1];
  assert.equal(await usage(), "0.0625");
  world.client.remove(nodes, "a");
  await settle(30);
  assert.equal(await usage(), "0");
});

test("a write that fails when the controller ends is not tried again", async (t) => {
  const world = prepared(t);
  const stop = new AbortController();
  let tries = 0;
  world.client.react("patch", "nodes", () => {
    tries++;
    stop.abort(new Error("leaderelection lost"));
    throw internalError(new Error("no"));
  });
  world.client.put(nodes, named("a"));
  await world.run();
  await newNodeIpamController(world.ctx)?.run(stop.signal);
  assert.equal(tries, 1);
});
