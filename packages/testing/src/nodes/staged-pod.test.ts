import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { conflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { PodStage } from "./pod-stages.ts";
import { StagedPod } from "./staged-pod.ts";

const startedAt = "2021-12-31T00:00:00Z";
const condition = (type: string, status: "True" | "False") => ({ type, status, lastTransitionTime: startedAt });
const pod: Pod = {
  metadata: { name: "web-0", namespace: "shop", uid: "u", finalizers: ["a", "b"] },
  spec: { containers: [] },
  status: { phase: "Pending", conditions: [condition("Ready", "False"), condition("Initialized", "True")] },
};

/** A Pod whose only stage has an outcome, and what its node sends. */
function playing(next: PodStage["next"], { delay = "1s", own = pod }: { delay?: PodStage["delay"]; own?: Pod } = {}) {
  const clock = newFakeClock();
  const sent: unknown[] = [];
  const node = { isSilent: false, failure: undefined as Error | undefined };
  const act = (what: unknown): void => {
    sent.push(what);
    if (node.failure !== undefined) throw node.failure;
  };
  const client = {
    patch: async (_: unknown, target: { subresource?: string }, { type, body }: { type: string; body: unknown }) =>
      act([target.subresource ?? "", type, body]),
    delete: async (_: unknown, __: unknown, options: unknown) => act(["delete", options]),
  };
  const recorder = { event: (object: { kind: string }, ...rest: string[]) => void sent.push([object.kind, ...rest]) };
  const stage: PodStage = {
    name: "s",
    delay,
    selector: { matchExpressions: [{ key: ".status.phase", operator: "In", values: ["Pending"] }] },
    next,
  };
  const staged = new StagedPod(
    {
      client: client as unknown as Client, // cast: the methods that are called
      recorder: recorder as unknown as EventRecorder, // cast: the method that is called
      ...{ clock, log: discardLogger, stages: [stage], isSilent: () => node.isSilent, hostIP: "10.0.0.1", podIP: "10.1.0.1" },
    },
    own,
  );
  staged.changed(own);
  const passed = async (ms: number): Promise<unknown[]> => {
    await clock.advance(ms);
    await settle(3);
    return sent.splice(0);
  };
  return { staged, node, clock, passed };
}

test("a stage is played after its delay, with the time of each condition that changes", async () => {
  const conditions = [
    { type: "Ready", status: "True" },
    { type: "Initialized", status: "True" },
    { type: "Other", status: "True" },
    { type: "Own", status: "True", lastTransitionTime: "2020-01-01T00:00:00Z" },
  ] as const;
  const { passed } = playing({ status: { phase: "Running", conditions: [...conditions] as never } });
  assert.deepEqual(await passed(999), []);
  const now = "2022-01-01T00:00:01Z";
  assert.deepEqual(await passed(1), [
    [
      "status",
      "strategic",
      {
        metadata: { uid: "u" },
        status: {
          ...{ hostIP: "10.0.0.1", podIP: "10.1.0.1", podIPs: [{ ip: "10.1.0.1" }], startTime: now, phase: "Running" },
          conditions: [
            { lastTransitionTime: now, type: "Ready", status: "True" },
            { lastTransitionTime: startedAt, type: "Initialized", status: "True" },
            { lastTransitionTime: now, type: "Other", status: "True" },
            { type: "Own", status: "True", lastTransitionTime: "2020-01-01T00:00:00Z" },
          ],
        },
      },
    ],
  ]);
  assert.deepEqual(await passed(10_000), [], "the next version of the pod continues, nothing else");
});

test("a status that is a function gets the pod and the moment; what it says counts more than the defaults", async () => {
  const own = { ...pod, status: { ...pod.status, startTime: startedAt } };
  const { passed } = playing(
    { status: ({ metadata }, at) => ({ podIP: `${metadata.name} ${at.now} ${at.hostIP} ${at.podIP}` }) },
    { own },
  );
  const [[, , body]] = (await passed(1_000)) as [[string, string, { status: unknown }]]; // cast: one patch
  assert.deepEqual(body.status, {
    ...{ hostIP: "10.0.0.1", podIPs: [{ ip: "10.1.0.1" }], startTime: startedAt },
    podIP: "web-0 2022-01-01T00:00:01Z 10.0.0.1 10.1.0.1",
  });
});

for (const { change, want } of [
  { change: { add: ["b", "c", "c"] }, want: ["a", "b", "c"] },
  { change: { remove: ["a"] }, want: ["b"] },
  { change: { remove: ["a", "x"], add: ["a"] }, want: ["b", "a"] },
  { change: { empty: true }, want: [] },
  { change: { empty: true, add: ["z"] }, want: ["z"] },
])
  test(`finalizers after ${JSON.stringify(change)} are ${JSON.stringify(want)}`, async () => {
    const { passed } = playing({ finalizers: change });
    assert.deepEqual(await passed(1_000), [["", "merge", { metadata: { uid: "u", finalizers: want } }]]);
  });

test("an event comes first, then the finalizers, then the deletion, of this pod only", async () => {
  const event = { type: "Normal", reason: "Gone", message: "m" } as const;
  const { passed } = playing({ event, finalizers: { empty: true }, delete: true, status: { phase: "Failed" } });
  assert.deepEqual(await passed(1_000), [
    ["Pod", "Normal", "Gone", "m"],
    ["", "merge", { metadata: { uid: "u", finalizers: [] } }],
    ["delete", { gracePeriodSeconds: 0, preconditions: { uid: "u" } }],
  ]);
});

test("a stage that fails is played again every half second; one of a pod that is gone, or of a stopped node, is not", async () => {
  const failing = playing({ delete: true });
  failing.node.failure = conflict(pods, "web-0", "changed");
  assert.equal((await failing.passed(1_000)).length, 1);
  assert.equal((await failing.passed(499)).length, 0);
  failing.node.failure = undefined;
  assert.equal((await failing.passed(1)).length, 1);
  assert.equal((await failing.passed(2_000)).length, 0);

  const silent = playing({ delete: true });
  silent.node.isSilent = true;
  assert.deepEqual(await silent.passed(1_000), []);
  silent.node.isSilent = false;
  assert.equal((await silent.passed(500)).length, 1);

  const gone = playing({ delete: true });
  gone.node.failure = notFound(pods, "web-0");
  assert.equal((await gone.passed(1_000)).length, 1);
  assert.equal((await gone.passed(2_000)).length, 0);

  const stopped = playing({ delete: true });
  stopped.staged.stop();
  assert.deepEqual([await stopped.passed(2_000), stopped.clock.waiting], [[], 0]);
});

test("a change that leaves the stage as it is does not begin its delay anew, and one that ends it cancels it", async () => {
  const { staged, passed } = playing({ delete: true });
  await passed(600);
  staged.changed({ ...pod, metadata: { ...pod.metadata, labels: { a: "b" } } });
  assert.equal((await passed(400)).length, 1);
  const other = playing({ delete: true });
  await other.passed(600);
  other.staged.changed({ ...pod, status: { phase: "Running" } });
  assert.deepEqual([await other.passed(2_000), other.clock.waiting], [[], 0]);
});
