/** Pods and what they refer to as large as the API server stores: no event-loop turn exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cpuMsOf, leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { environmentOf } from "./environment/env-vars.ts";
import { serviceEnvironment } from "./environment/service-links.ts";
import { misplaced } from "./pods/admission-checks.ts";
import { containerHash } from "./runtime/labels.ts";
import { noObjects } from "./sources/api-objects.ts";
import { aContainer, aNodePod } from "./testing/builders.ts";
import { writeAtomically } from "./volumes/atomic-writer.ts";
import { configMapFiles, downwardFiles } from "./volumes/payload.ts";

const longestTurnMs = 300;
const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const dict = (count: number, value = "v"): Record<string, string> => Object.fromEntries(many(count, (at) => [`k${at}`, value]));
const downward = { nodeName: "n1", hostIps: ["192.0.2.1"], podIps: ["10.0.0.1"], allocatable: {} };

async function takesNoLongTurn(t: TestContext, turn: () => void): Promise<void> {
  const least = await leastOf(longestTurnMs, async () => cpuMsOf(turn));
  t.diagnostic(`${least} ms`);
  assert.ok(least < longestTurnMs, `${least} ms`);
}

const configMap = { metadata: { name: "c" }, data: dict(100_000) };
const secret = { metadata: { name: "s" }, data: dict(50_000, "dg==") };
const tooLong = /the container's environment or command is longer than 6291456 characters/;

for (const { name, env, labels, refused } of [
  {
    name: "of 30,000 keys of a large ConfigMap",
    env: many(30_000, (at) => ({ name: `E${at}`, valueFrom: { configMapKeyRef: { name: "c", key: `k${at}` } } })),
  },
  {
    name: "of 30,000 keys of a large Secret",
    env: many(30_000, (at) => ({ name: `E${at}`, valueFrom: { secretKeyRef: { name: "s", key: `k${at}` } } })),
  },
  {
    name: "that double thirty times",
    env: many(30, (at) => ({ name: `E${at}`, value: at === 0 ? "0123456789" : `$(E${at - 1})$(E${at - 1})` })),
    refused: tooLong,
  },
  {
    name: "one of which names a long one 300,000 times",
    env: [
      { name: "E0", value: "x".repeat(100_000) },
      { name: "E1", value: "$(E0)".repeat(300_000) },
    ],
    refused: tooLong,
  },
  {
    name: "that show 50,000 labels 10,000 times",
    env: many(10_000, (at) => ({ name: `E${at}`, valueFrom: { fieldRef: { fieldPath: "metadata.labels" } } })),
    labels: dict(50_000),
    refused: tooLong,
  },
]) {
  test(`variables ${name} are ${refused === undefined ? "made" : "refused"} without a long turn`, async (t) => {
    const container = aContainer({ env });
    const pod = aNodePod({ containers: [container] }, labels === undefined ? {} : { labels });
    const context = {
      ...{ ...downward, services: [], onInvalidNames: () => {} },
      objects: { ...noObjects, configMap: async () => configMap, secret: async () => secret },
    };
    const longest = await longestTurnOf(longestTurnMs, async () => {
      const made = environmentOf(pod, container, context);
      if (refused === undefined) assert.equal((await made).size, env.length);
      else await assert.rejects(made, refused);
    });
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `${longest} ms`);
  });
}

test("the links of a Service of 20,000 ports are made without a long turn", (t) =>
  takesNoLongTurn(t, () => {
    const ports = many(20_000, (at) => ({ name: `p${at}`, port: at + 1, protocol: "TCP" as const }));
    const service = { metadata: { name: "web", namespace: "default" }, spec: { clusterIP: "10.96.0.1", ports } };
    assert.ok(serviceEnvironment([service], "default", true).size > 100_000);
  }));

test("10,000 files that show 50,000 labels share their content", (t) => {
  const pod = aNodePod({}, { labels: dict(50_000) });
  const items = many(10_000, (at) => ({ path: `f${at}`, fieldRef: { fieldPath: "metadata.labels" } }));
  return takesNoLongTurn(t, () => {
    const files = downwardFiles(pod, items, 0o644, downward);
    assert.equal(files.get("f0")?.data, files.get("f9999")?.data);
  });
});

test("the files of a ConfigMap of 100,000 keys are made, and their paths checked, each without a long turn", async (t) => {
  const objects = { ...noObjects, configMap: async () => configMap };
  const make = () => configMapFiles(objects, "default", { name: "c" }, 0o644);
  const longest = await longestTurnOf(longestTurnMs, async () => void (await make()));
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `${longest} ms`);
  const files = (await make()).set("..", { data: Buffer.alloc(0), mode: 0o644 });
  const checked = await longestTurnOf(longestTurnMs, () => assert.rejects(writeAtomically("/absent", files, 0), /invalid path/));
  t.diagnostic(`${checked} ms`);
  assert.ok(checked < longestTurnMs, `${checked} ms`);
});

test("pods of 10,000 ports of the host each are compared without a long turn", (t) => {
  const pod = (first: number) =>
    aNodePod({ containers: [aContainer({ ports: many(10_000, (at) => ({ containerPort: 1, hostPort: first + at })) })] });
  const [one, others] = [pod(1), [pod(10_001), pod(20_001)]];
  const input = { pod: one, others, node: { metadata: {}, spec: {}, name: "n1" }, allocatable: {} };
  return takesNoLongTurn(t, () => assert.equal(misplaced(input), undefined));
});

test("a container of 40,000 variables is hashed without a long turn, and once", async (t) => {
  const make = () => aContainer({ env: many(40_000, (at) => ({ name: `E${at}`, value: "v" })) });
  await takesNoLongTurn(t, () => void containerHash(make()));
  const container = make();
  const hash = containerHash(container);
  const again = cpuMsOf(() => assert.equal(containerHash(container), hash));
  assert.ok(again < 5, `${again} ms`);
});
