import assert from "node:assert/strict";
import { test } from "node:test";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { NodePod } from "./pod.ts";
import { PodDecisions } from "./pod-decisions.ts";

const pod = { metadata: { namespace: "web", name: "a", uid: "1" }, spec: { containers: [] } } as unknown as NodePod;
const ref = { group: "", resource: "pods", kind: "Pod", namespace: "web", name: "a", uid: "" };

function setUp() {
  const clock = newFakeClock(Date.parse("2026-01-02T03:04:05Z"));
  const log = new DecisionLog({ component: "kubelet", clock });
  const reported = () =>
    log
      .of(ref)
      .map(({ source, reason, summary, nextTryAt = "" }) => [source, reason, summary, nextTryAt].join("|"))
      .sort();
  return { log, reported, decisions: new PodDecisions(log, () => clock.now()) };
}

test("keeps decisions from events by topic and container until the operation succeeds", () => {
  const { decisions, reported } = setUp();
  decisions.event(pod, undefined, "Warning", "FailedMount", "no such secret");
  decisions.event(pod, undefined, "Warning", "FailedCreatePodSandBox", "no CNI");
  decisions.event(pod, "c", "Warning", "Failed", "Failed to pull image x: not found");
  decisions.event(pod, "b", "Warning", "Failed", "Error: ErrImagePull");
  decisions.event(pod, "e", "Warning", "Failed", "Error: services have not yet been read");
  decisions.event(pod, "c", "Warning", "BackOff", "Back-off pulling image x");
  decisions.event(pod, "c", "Warning", "Unhealthy", "Readiness probe failed: 500");
  decisions.event(pod, "d", "Warning", "BackOff", "Back-off restarting failed container");
  decisions.event(pod, "d", "Warning", "FailedPostStartHook", "exit 1");
  decisions.event(pod, undefined, "Warning", "FailedSync", "says nothing");
  assert.deepEqual(reported(), [
    "container/d|BackOff|Back-off restarting failed container|",
    "container/e|Failed|Error: services have not yet been read|",
    "hook/d|FailedPostStartHook|exit 1|",
    "image/b|Failed|Error: ErrImagePull|",
    "image/c|BackOff|Back-off pulling image x|",
    "probe/c|Unhealthy|Readiness probe failed: 500|",
    "sandbox|FailedCreatePodSandBox|no CNI|",
    "volumes|FailedMount|no such secret|",
  ]);
  for (const name of ["b", "c"]) decisions.event(pod, name, "Normal", "Pulled", "done");
  for (const name of ["d", "e"]) decisions.event(pod, name, "Normal", "Started", "done");
  decisions.synced(pod, { containerStatuses: [{ name: "c", ready: false }] } as never);
  assert.deepEqual(reported(), ["probe/c|Unhealthy|Readiness probe failed: 500|"]);
  decisions.synced(pod, { containerStatuses: [{ name: "c", ready: true }] } as never);
  assert.deepEqual(reported(), []);
});

for (const [topic, ...reasons] of [
  ["volumes", "FailedMount", "FailedMapVolume", "FailedAttachVolume", "VolumeResizeFailed", "FileSystemResizeFailed"],
  ["sandbox", "FailedCreatePodSandBox", "FailedPodSandBoxStatus", "NetworkNotReady", "FailedCreatePodContainer"],
  ["probe", "Unhealthy", "ProbeWarning"],
  ["hook", "FailedPostStartHook", "FailedPreStopHook"],
  ["termination", "FailedKillPod", "ExceededGracePeriod"],
  ["image", "InspectFailed", "ErrImageNeverPull"],
] as const) {
  for (const reason of reasons) {
    test(`the event ${reason} is about ${topic}`, () => {
      const { decisions, reported } = setUp();
      decisions.event(pod, undefined, "Warning", reason, "why");
      assert.deepEqual(reported(), [`${topic}|${reason}|why|`]);
    });
  }
}

test("reports failures with the next attempt, terminations with their grace, and refusals; forgets a Pod that is gone", () => {
  const { decisions, reported } = setUp();
  decisions.failed(pod, "sync", new Error("error syncing pod: x"), 10_000);
  decisions.terminating(pod, 30);
  decisions.rejected(pod, "OutOfcpu", "Node didn't have enough resource: cpu");
  assert.deepEqual(reported(), [
    "admission|OutOfcpu|Node didn't have enough resource: cpu|",
    "sync|Failed|error syncing pod: x|2026-01-02T03:04:15Z",
    "termination|Terminating|waits for its containers to end, which have 30 s for it|",
  ]);
  decisions.terminating(pod, Number.POSITIVE_INFINITY);
  assert.ok(reported().includes("termination|Terminating|waits for its containers to end|"));
  decisions.gone(pod);
  assert.deepEqual(reported(), []);
});

test("a static Pod is found by the uid of its mirror, and the node by its name", () => {
  const { decisions, log } = setUp();
  const metadata = { ...pod.metadata, annotations: { "kubernetes.io/config.source": "file" } };
  decisions.rejected({ ...pod, metadata }, "R", "m");
  assert.equal(log.of({ ...ref, uid: "of-the-mirror" }).length, 1);
  decisions.node("n1", "SystemOOM", "victim");
  assert.equal(log.of({ ...ref, resource: "nodes", kind: "Node", namespace: "", name: "n1" })[0]?.source, "node/SystemOOM");
});
