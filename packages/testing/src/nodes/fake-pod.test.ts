import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { conflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { FakePod } from "./fake-pod.ts";
import type { PodRule } from "./pod-rules.ts";

const running: Pod = {
  metadata: { name: "web-0", namespace: "shop", uid: "u" },
  spec: { containers: [{ name: "web", image: "example.com/web:1" }], nodeName: "node-1" },
};
const deleted = (graceSeconds: number): Pod => ({
  ...running,
  metadata: { ...running.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", deletionGracePeriodSeconds: graceSeconds },
});

/** A running Pod whose node deletes it at most once. */
function started() {
  const clock = newFakeClock();
  const deletions: number[] = [];
  const client = {
    patch: async () => running,
    delete: async () => void deletions.push(clock.monotonic()),
  };
  const options = { client: client as unknown as Client, clock, log: discardLogger, rules: () => [], isSilent: () => false };
  const pod = new FakePod(options, running, "10.0.0.1", "10.1.0.1");
  pod.changed(running);
  return { pod, clock, client, deletions };
}

test("the node removes a deleted pod at once when its containers have ended", async () => {
  const { pod, clock, deletions } = started();
  pod.changed(deleted(30));
  await clock.advance(0);
  assert.equal(deletions.length, 1);
});

test("the node leaves a pod without a grace period to the API server, and removes one that is still there later", async () => {
  const { pod, clock, deletions } = started();
  pod.changed(deleted(0));
  await clock.advance(1_000);
  assert.deepEqual(deletions, []);
  await clock.advance(2_000);
  assert.equal(deletions.length, 1);
  const other = started();
  other.pod.changed(deleted(0));
  other.pod.stop();
  await other.clock.advance(10_000);
  assert.deepEqual(other.deletions, [], "the API server has removed it");
});

/** A Pod that follows a rule, and what its node writes, with the seconds since the start. */
function playing(rule: PodRule, spec: Partial<Pod["spec"]> = {}) {
  const clock = newFakeClock();
  const begin = clock.now();
  const pod: Pod = { ...running, spec: { ...running.spec, ...spec } };
  const written: string[] = [];
  const node = { isSilent: false, hold: undefined as Promise<void> | undefined };
  const client = {
    async patch(_: unknown, __: unknown, { body: { status } }: { body: { status: NonNullable<Pod["status"]> } }) {
      const [{ restartCount = 0, state = {}, ready = false } = {}] = status.containerStatuses ?? [];
      const exit = state.terminated === undefined ? "" : ` ${state.terminated.exitCode}`;
      const reason = state.waiting?.reason ?? status.reason ?? "";
      written.push([(clock.now() - begin) / 1000, status.phase, ready ? "ready" : reason, restartCount].join(" ") + exit);
      await node.hold;
      return { ...pod, status };
    },
    delete: async () => {},
  };
  const options = {
    client: client as unknown as Client,
    clock,
    log: discardLogger,
    rules: () => [rule],
    isSilent: () => node.isSilent,
  };
  const fake = new FakePod(options, pod, "10.0.0.1", "10.1.0.1");
  fake.changed(pod);
  /** Lets seconds pass. @returns what was written since */
  const passed = async (seconds: number): Promise<string[]> => {
    for (let i = 0; i < seconds * 10; i++) {
      await settle(2);
      await clock.advance(100);
    }
    await settle(2);
    return written.splice(0);
  };
  return { fake, pod, node, clock, passed, begin };
}

for (const { name, rule, spec, seconds, want } of [
  {
    name: "starts and becomes ready after its times",
    rule: { startAfter: "2s", readyAfter: "3s" },
    seconds: 10,
    want: ["2 Running  0", "5 Running ready 0"],
  },
  { name: "waits", rule: { waits: { reason: "ImagePullBackOff" } }, seconds: 5, want: ["0 Pending ImagePullBackOff 0"] },
  {
    name: "ends before it would be ready",
    rule: { readyAfter: "3s", ends: { after: "3s", exitCode: 2 } },
    spec: { restartPolicy: "Never" },
    seconds: 10,
    want: ["0 Running  0", "3 Failed  0 2"],
  },
  {
    name: "ends after it was ready",
    rule: { readyAfter: "2s", ends: { after: "3s" } },
    spec: { restartPolicy: "OnFailure" },
    seconds: 10,
    want: ["0 Running  0", "2 Running ready 0", "5 Succeeded  0 0"],
  },
  {
    name: "is never ready and ends",
    rule: { readyAfter: "never", ends: { after: "1s", exitCode: 1 } },
    spec: { restartPolicy: "Never" },
    seconds: 5,
    want: ["0 Running  0", "1 Failed  0 1"],
  },
  {
    name: "is restarted after longer and longer pauses, and counts them",
    rule: { ends: { after: "1s", exitCode: 1 } },
    seconds: 34,
    want: [
      "0 Running ready 0",
      "1 Running CrashLoopBackOff 0",
      "11 Running ready 1",
      "12 Running CrashLoopBackOff 1",
      "32 Running ready 2",
      "33 Running CrashLoopBackOff 2",
    ],
  },
] satisfies { name: string; rule: PodRule; spec?: Partial<Pod["spec"]>; seconds: number; want: string[] }[])
  test(`a pod that ${name}`, async () => {
    const { passed, fake } = playing(rule, spec);
    assert.deepEqual(await passed(seconds), want);
    fake.stop();
  });

test("a pod that takes longer than it may is killed", async () => {
  const { fake, pod, passed, begin } = playing({}, { activeDeadlineSeconds: 3 });
  assert.deepEqual(await passed(1), ["0 Running ready 0"]);
  fake.changed({ ...pod, status: { phase: "Running", startTime: new Date(begin).toISOString() } });
  assert.deepEqual(await passed(5), ["3 Failed DeadlineExceeded 0 137"]);
});

test("a state that comes while another is written is written next; a silent node tries again, one that has stopped does not", async () => {
  const { fake, node, passed } = playing({ startAfter: "1s", readyAfter: "1s" });
  const held = Promise.withResolvers<void>();
  node.hold = held.promise;
  assert.deepEqual(await passed(3), ["1 Running  0"]);
  node.hold = undefined;
  held.resolve();
  assert.deepEqual(await passed(1), ["3 Running ready 0"]);

  const silent = playing({ startAfter: "1s" });
  silent.node.isSilent = true;
  assert.deepEqual(await silent.passed(2), []);
  silent.node.isSilent = false;
  assert.deepEqual(await silent.passed(1), ["2.2 Running ready 0"]);

  const stopped = playing({ startAfter: "1s" });
  stopped.node.isSilent = true;
  await stopped.passed(2);
  stopped.fake.stop();
  stopped.node.isSilent = false;
  assert.deepEqual([await stopped.passed(2), stopped.clock.waiting], [[], 0]);
  fake.stop();
});

test("a removal that fails or finds the node silent is tried again, unless the pod is gone, another one, or the node has stopped", async () => {
  for (const { name, outcome, want } of [
    { name: "another failure", outcome: new Error("no connection"), want: 2 },
    { name: "no such pod", outcome: notFound({ group: "", resource: "pods" }, "web-0"), want: 1 },
    { name: "another pod", outcome: conflict({ group: "", resource: "pods" }, "web-0", "uid"), want: 1 },
  ]) {
    const { pod, clock, client, deletions } = started();
    const { delete: remove } = client;
    client.delete = async () => {
      await remove();
      client.delete = remove;
      throw outcome;
    };
    pod.changed(deleted(30));
    await clock.advance(60_000);
    assert.equal(deletions.length, want, name);
  }
  const stopping = started();
  stopping.client.delete = async () => {
    stopping.pod.stop();
    throw new Error("no connection");
  };
  stopping.pod.changed(deleted(30));
  await stopping.clock.advance(0);
  assert.equal(stopping.clock.waiting, 0);
});
