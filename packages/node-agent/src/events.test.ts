import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newAgentEvents } from "./events.ts";
import type { PodDecisions } from "./pod/pod-decisions.ts";
import { aNodePod } from "./testing/builders.ts";

function recording() {
  const recorded: unknown[] = [];
  const decided: string[] = [];
  const recorder = { event: (...event: unknown[]) => void recorded.push(event) } as unknown as EventRecorder;
  const decisions = {
    node: (...given: string[]) => void decided.push(`node ${given.join(" ")}`),
    event: (_: unknown, container: string | undefined, ...rest: string[]) =>
      void decided.push(`pod ${container ?? "-"} ${rest.join(" ")}`),
  } as unknown as PodDecisions;
  return { recorded, decided, events: newAgentEvents({ recorder, nodeName: "n1", log: discardLogger, decisions }) };
}

test("events of the node refer to it by its name alone, and its warnings are decisions", () => {
  const { recorded, decided, events } = recording();
  events.node("Normal", "Starting", "Starting kubelet.");
  events.node("Warning", "SystemOOM", "no memory");
  const node = { apiVersion: "v1", kind: "Node", name: "n1", uid: "n1" };
  assert.deepEqual(recorded, [
    [node, "Normal", "Starting", "Starting kubelet."],
    [node, "Warning", "SystemOOM", "no memory"],
  ]);
  assert.deepEqual(decided, ["node n1 SystemOOM no memory"]);
});

test("events of a pod refer to it, or to the field of one of its containers, and keep their annotations", () => {
  const { recorded, decided, events } = recording();
  const pod = aNodePod({}, { resourceVersion: "7" });
  events.pod(pod, undefined, "Warning", "FailedMount", "no disk", { a: "b" });
  for (const kind of ["init", "regular", "ephemeral"] as const)
    events.pod(aNodePod(), { name: kind, kind }, "Normal", "Pulled", "pulled");
  const reference = { apiVersion: "v1", kind: "Pod", namespace: "default", name: "web", uid: "uid-1" };
  const pulled = (fieldPath: string) => [{ ...reference, fieldPath }, "Normal", "Pulled", "pulled", { annotations: undefined }];
  assert.deepEqual(recorded, [
    [{ ...reference, resourceVersion: "7" }, "Warning", "FailedMount", "no disk", { annotations: { a: "b" } }],
    pulled("spec.initContainers{init}"),
    pulled("spec.containers{regular}"),
    pulled("spec.ephemeralContainers{ephemeral}"),
  ]);
  assert.deepEqual(decided.slice(0, 2), ["pod - Warning FailedMount no disk", "pod init Normal Pulled pulled"]);
});

test("without an API server events are only logged", () => {
  const lines: string[] = [];
  const info = (message: string, fields: object = {}) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log = { ...discardLogger, v: () => ({ ...discardLogger, info }) };
  newAgentEvents({ recorder: undefined, nodeName: "n1", log }).node("Normal", "Starting", "Starting kubelet.");
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /^Event occurred .*"reason":"Starting"/);
});
