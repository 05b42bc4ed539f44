import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { configMirrorAnnotation, configSourceAnnotation } from "../pod/pod.ts";
import type { StatusManager } from "../status/status-manager.ts";
import { aNodePod } from "../testing/builders.ts";
import { newPodIntake, type PodIntake, reportDuplicate } from "./intake.ts";
import type { PodWorkers } from "./pod-workers.ts";

test("an admitted pod is passed to its worker, relevant changes too, and a deleted pod is ended", () => {
  const { intake, did } = anIntake();
  const pod = aNodePod({}, { uid: "a" });
  intake.sources.upsert("api", pod);
  intake.sources.upsert("api", { ...pod, status: { phase: "Running" } });
  intake.sources.upsert("api", { ...pod, metadata: { ...pod.metadata, labels: { color: "green" } } });
  intake.sources.remove("api", "a");
  assert.deepEqual(did, ["update a", "update a", "remove a"]);
});

test("a rejected pod has no worker, gets one event, and does not count as active", () => {
  const { intake, did } = anIntake({ refuse: (uid) => uid === "big" });
  const big = aNodePod({}, { uid: "big" });
  intake.sources.upsert("api", big);
  intake.sources.upsert("api", { ...big, metadata: { ...big.metadata, labels: { color: "green" } } });
  assert.deepEqual(did, ["rejected big beside "]);
  assert.equal(intake.isActive(big), false);
  intake.sources.upsert("api", { ...big, metadata: { ...big.metadata, deletionTimestamp: "2022-01-01T00:00:00Z" } });
  assert.deepEqual(did.slice(1), ["update big"], "its deletion is the worker's business again");
  intake.sources.remove("api", "big");
  assert.equal(intake.isKnown("big"), true, "the worker ends it");
});

test("a new pod is admitted beside the pods that hold resources", () => {
  const { intake, did, ended } = anIntake({ refuse: (uid) => uid === "late" });
  for (const uid of ["runs", "over"]) intake.sources.upsert("api", aNodePod({}, { uid, name: uid }));
  intake.sources.upsert("api", aNodePod({}, { uid: "failed", name: "failed" }, { phase: "Failed" }));
  ended.add("over");
  intake.sources.upsert("api", aNodePod({}, { uid: "late", name: "late" }));
  assert.equal(did.at(-1), "rejected late beside runs");
});

test("a pod is active by the agent's own status; the API server's counts only without one", () => {
  const { intake, phases } = anIntake();
  const seen = (phase: string) => aNodePod({}, { uid: "a" }, { phase });
  assert.deepEqual([intake.isActive(seen("Running")), intake.isActive(seen("Failed"))], [true, false]);
  phases.set("a", "Succeeded");
  assert.equal(intake.isActive(seen("Running")), false);
  phases.set("a", "Running");
  assert.equal(intake.isActive(seen("Failed")), true);
});

test("a change of a mirror pod wakes its static pod, and its name resolves to the static pod", () => {
  const { intake, did } = anIntake();
  const own = aNodePod({}, { uid: "own", annotations: { [configSourceAnnotation]: "file" } });
  const mirror = aNodePod({}, { uid: "mirror", annotations: { [configMirrorAnnotation]: "own" } });
  intake.sources.upsert("api", mirror);
  assert.equal(intake.named("default", "web")?.metadata.uid, "mirror");
  intake.sources.upsert("file", own);
  assert.equal(intake.named("default", "web")?.metadata.uid, "own");
  did.push("mirror changed");
  intake.sources.upsert("api", { ...mirror, metadata: { ...mirror.metadata, labels: { color: "green" } } });
  did.push("mirror removed");
  intake.sources.remove("api", "mirror");
  assert.equal(intake.named("default", "web")?.metadata.uid, "own");
  const woken = ["resync own", "wake own"];
  assert.deepEqual(did, ["update own", "mirror changed", ...woken, "mirror removed", ...woken]);
});

test("while an admission is pending, later pods wait in their order", async () => {
  const { intake, did, answer } = anIntake({ refuse: (uid) => uid === "b", slow: (uid) => uid !== "c" });
  const pod = (uid: string) => aNodePod({}, { uid, name: uid });
  for (const uid of ["a", "b", "c"]) intake.sources.upsert("api", pod(uid));
  intake.sources.upsert("api", { ...pod("a"), metadata: { ...pod("a").metadata, labels: { color: "green" } } });
  intake.sources.remove("api", "b");
  assert.deepEqual(did, []);
  await answer();
  assert.deepEqual(did, ["update a"], "the next one is being judged now");
  await answer();
  assert.deepEqual(did.slice(1), ["rejected b beside a", "update c", "update a", "forget b"]);
  intake.sources.upsert("api", { ...pod("c"), metadata: { ...pod("c").metadata, labels: { color: "red" } } });
  assert.equal(did.at(-1), "update c", "and nothing waits any more");
});

test("of two pods of one name in a source's list the first is used", () => {
  const { intake, did } = anIntake();
  intake.sources.set("file", [
    aNodePod({}, { uid: "a" }),
    aNodePod({}, { uid: "b" }),
    aNodePod({}, { uid: "c", namespace: "other" }),
  ]);
  assert.deepEqual(did, ["duplicate b of file", "update a", "update c"]);
});

test("a pod is found by namespace and name together", () => {
  const { intake } = anIntake();
  for (const [uid, name, namespace] of [
    ["a", "other", "default"],
    ["b", "web", "other"],
    ["c", "web", "default"],
  ] as const) {
    intake.sources.upsert("api", aNodePod({}, { uid, name, namespace }));
  }
  assert.equal(intake.named("default", "web")?.metadata.uid, "c");
  assert.equal(intake.named("default", "none"), undefined);
});

test("a rejected pod that was removed and added again is admitted anew", () => {
  let isFull = true;
  const { intake, did } = anIntake({ refuse: () => isFull });
  intake.sources.upsert("api", aNodePod({}, { uid: "a" }));
  intake.sources.remove("api", "a");
  isFull = false;
  intake.sources.upsert("api", aNodePod({}, { uid: "a" }));
  assert.deepEqual(did, ["rejected a beside ", "forget a", "update a"]);
  assert.equal(intake.isActive(aNodePod({}, { uid: "a" })), true);
});

test("a pod that is terminating or finished is not admitted when its source lists it", () => {
  const { intake, did } = anIntake({ refuse: () => true });
  intake.sources.upsert("api", aNodePod({}, { uid: "ending", name: "ending", deletionTimestamp: "2022-01-01T00:00:00Z" }));
  intake.sources.upsert("api", aNodePod({}, { uid: "over", name: "over" }, { phase: "Succeeded" }));
  assert.deepEqual(did, ["update ending", "update over"]);
});

test("a worker gets only relevant updates: grace period, conditions of readiness gates, annotations", () => {
  const { intake, did } = anIntake();
  const pod = aNodePod({}, { uid: "a" });
  const gated = aNodePod({ readinessGates: [{ conditionType: "x" }] }, { uid: "b", name: "gated" });
  for (const one of [pod, gated]) intake.sources.upsert("api", one);
  did.splice(0);
  const at = { deletionTimestamp: "2022-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 };
  intake.sources.upsert("api", { ...gated, status: { phase: "Running" } });
  intake.sources.upsert("api", { ...pod, metadata: { ...pod.metadata, resourceVersion: "7" } });
  intake.sources.upsert("api", { ...pod, metadata: { ...pod.metadata, annotations: { a: "b" } } });
  intake.sources.upsert("api", { ...pod, metadata: { ...pod.metadata, ...at } });
  intake.sources.upsert("api", { ...pod, metadata: { ...pod.metadata, ...at, deletionGracePeriodSeconds: 1 } });
  assert.deepEqual(did, ["update b", "update a", "update a", "update a"]);
});

/** Records the calls to workers and statuses; `answer` resolves a pending admission. */
function anIntake({
  refuse = () => false,
  slow = () => false,
}: {
  refuse?: (uid: string) => boolean;
  slow?: (uid: string) => boolean;
} = {}): {
  intake: PodIntake;
  did: string[];
  ended: Set<string>;
  /** Phases in the agent's own statuses, by uid. */
  phases: Map<string, string>;
  answer(): Promise<void>;
} {
  const requests: (() => void)[] = [];
  const did: string[] = [];
  const known = new Set<string>();
  const ended = new Set<string>();
  const phases = new Map<string, string>();
  const workers: Partial<PodWorkers> = {
    update({ metadata: { uid } }) {
      known.add(uid);
      did.push(`update ${uid}`);
    },
    remove: ({ metadata: { uid } }) => void did.push(`remove ${uid}`),
    wake: (uid) => void did.push(`wake ${uid}`),
    knows: (uid) => known.has(uid),
    hasEnded: (uid) => ended.has(uid),
  };
  const status: Partial<StatusManager> = {
    get(uid) {
      const phase = phases.get(uid);
      return phase === undefined ? undefined : { phase };
    },
    forget: (uid) => void did.push(`forget ${uid}`),
    resync: (uid) => void did.push(`resync ${uid}`),
  };
  let beside: string[] = [];
  const intake = newPodIntake({
    expected: ["api", "file"],
    workers: workers as PodWorkers,
    status: status as StatusManager,
    admit(pod, others) {
      beside = others.map(({ metadata }) => metadata.uid);
      const rejection = refuse(pod.metadata.uid) ? { reason: "OutOfcpu", message: "no" } : undefined;
      if (!slow(pod.metadata.uid)) return rejection;
      return new Promise((resolve) => requests.push(() => resolve(rejection)));
    },
    onDuplicate: (pod, source) => void did.push(`duplicate ${pod.metadata.uid} of ${source}`),
    onRejected: (pod) => void did.push(`rejected ${pod.metadata.uid} beside ${beside.join()}`),
  });
  const answer = async (): Promise<void> => {
    requests.shift()?.();
    await settle();
  };
  return { intake, did, ended, phases, answer };
}

test("a second pod of a name in one source is an event of that pod", () => {
  const events: unknown[] = [];
  const pod = aNodePod({}, { uid: "b", name: "web" });
  reportDuplicate({ pod: (of, container, ...event) => void events.push([of.metadata.uid, container, ...event]) }, pod, "file");
  const message = 'Error validating pod web_default(b) from file due to duplicate pod name "web", ignoring';
  assert.deepEqual(events, [["b", undefined, "Warning", "FailedValidation", message]]);
});
