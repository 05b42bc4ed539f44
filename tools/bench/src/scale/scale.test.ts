import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { FrameCounter } from "./frame-counter.ts";
import { Churn, keptPod, namespaceOf } from "./kept-pods.ts";
import { parseScaleOptions, type ScaleSizes, scaleHelp } from "./options.ts";
import { isWithin, type ScaleFigures, verdictTable } from "./verdict.ts";

const sizes: ScaleSizes = {
  pods: 4,
  nodes: 2,
  namespaces: 3,
  watchers: 1,
  settleSeconds: 0,
  churn: 1,
  atOnce: 1,
  seconds: 1,
  podBytes: 5_000,
};

test("has the sizes of a large cluster by default, and takes others", () => {
  const large = {
    ...{ pods: 150_000, nodes: 5_000, namespaces: 100, watchers: 50, podBytes: 5_000 },
    ...{ settleSeconds: 20, churn: 100, atOnce: 1, seconds: 1_800 },
  };
  assert.deepEqual(parseScaleOptions([]), large);
  assert.deepEqual(parseScaleOptions(["--pods", "7", "--pod-bytes=900"]), { ...large, pods: 7, podBytes: 900 });
  assert.equal(parseScaleOptions(["--help"]), undefined);
  assert.match(scaleHelp(), / --pod-bytes <n> +size of a pod in JSON; default 5000\n/);
});

for (const argv of [
  ["--pods", "0"],
  ["--nodes", "5001"],
  ["--churn", "x"],
])
  test(`refuses ${argv.join(" ")}`, () =>
    assert.throws(() => parseScaleOptions(argv), /^Error: usage: --\w+ must be a whole number/));

test("a pod has the requested size, and a node only when one is given", () => {
  const [free, bound] = [keptPod(7, sizes), keptPod(7, sizes, "node-2")];
  assert.deepEqual([free.spec.nodeName, bound.spec.nodeName, free.metadata.name], [undefined, "node-2", "pod-7"]);
  for (const pod of [free, bound]) assert.ok(Math.abs(JSON.stringify(pod).length - 5_000) < 100);
  assert.equal(keptPod(7, { podBytes: 1 }).metadata.annotations?.["example.com/padding"], "");
});

test("the oldest pods are replaced, each in its namespace, and a binding counts once", async () => {
  const calls: string[] = [];
  const events: { type: string; object: Pod }[] = [];
  const more = Promise.withResolvers<void>();
  const client = {
    create: async (_: unknown, { metadata }: Pod, { namespace }: { namespace: string }) =>
      calls.push(`+${namespace}/${metadata.name}`),
    delete: async (_: unknown, { namespace, name }: { namespace: string; name: string }) => calls.push(`-${namespace}/${name}`),
    async *watch() {
      await more.promise;
      yield* events;
    },
  };
  const churn = new Churn(client as unknown as Client, sizes);
  await churn.replaceOne();
  await churn.replaceOne();
  assert.deepEqual(calls, ["+scale-1/pod-4", "-scale-0/pod-0", "+scale-2/pod-5", "-scale-1/pod-1"]);
  assert.deepEqual(churn.middle, { namespace: namespaceOf(4, sizes), name: "pod-4" });
  const event = (type: string, index: number) => ({ type, object: keptPod(index, sizes) });
  events.push(event("ADDED", 4), event("MODIFIED", 4), event("ADDED", 4), event("MODIFIED", 5), event("ADDED", 3));
  const following = churn.follow("1", new AbortController().signal);
  more.resolve();
  await following;
  await waitFor(() => churn.scheduleMs.length === 1);
  assert.equal(churn.unbound, 1);
});

const good: ScaleFigures = { getP99: 200, listP99: 1_000, scheduleP99: 5_000, mostServerMb: 3_072, endedWatches: 0, unbound: 0 };

test("figures at their limits pass", () => {
  assert.equal(isWithin(good), true);
  assert.doesNotMatch(verdictTable(good), /NOT OK/);
  assert.match(verdictTable(good), /\| GET of one pod, p99 ms \| 200\.0 \| 200 \| ok \|/);
});

for (const [figure, value] of Object.entries({
  getP99: 201,
  listP99: Number.NaN,
  scheduleP99: 5_001,
  mostServerMb: 3_073,
  endedWatches: 1,
  unbound: 1,
}))
  test(`${figure} of ${value} fails with one line`, () => {
    const figures = { ...good, [figure]: value };
    assert.equal(isWithin(figures), false);
    assert.equal(verdictTable(figures).match(/NOT OK/g)?.length, 1);
  });

for (const size of [1, 2, 3, 5, 7, 100])
  test(`frames of a protobuf stream are counted once, in pieces of ${size} bytes`, () => {
    const lengths = [0, 1, 300, 5, 0, 70_000];
    const frames = lengths.map((length) => {
      const frame = Buffer.alloc(4 + length, 255);
      frame.writeUInt32BE(length);
      return frame;
    });
    const stream = Buffer.concat([...frames, Buffer.from([0, 0, 0, 2, 255])]); // the last one is not complete
    const counter = new FrameCounter();
    let count = 0;
    for (let at = 0; at < stream.length; at += size) count += counter.push(stream.subarray(at, at + size));
    assert.equal(count, lengths.length);
  });
