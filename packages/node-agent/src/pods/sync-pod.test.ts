import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { ProbeResults } from "../probes/results.ts";
import type { ContainerRecord, SandboxRecord } from "../runtime/pod-record.ts";
import { aContainer, aContainerRecord, aNodePod, aPodRecord, aSandboxRecord, noProbes } from "../testing/builders.ts";
import { planPod } from "./sync-pod.ts";

interface Case {
  name: string;
  spec?: Partial<PodSpec>;
  containers?: Partial<ContainerRecord>[];
  sandboxes?: Partial<SandboxRecord>[];
  probes?: Partial<ProbeResults>;
  want: Partial<{
    killPod: boolean;
    createSandbox: boolean;
    attempt: number;
    init: string;
    start: string[];
    kill: string[];
    ephemeral: string[];
    sandboxId: string | undefined;
  }>;
}

const init = (...names: string[]): Partial<PodSpec> => ({ initContainers: names.map((name) => aContainer({ name })) });
const exited = (overrides: Partial<ContainerRecord> = {}): Partial<ContainerRecord> => ({
  state: "exited",
  finishedAt: 2000,
  ...overrides,
});

const cases: Case[] = [
  {
    name: "makes a sandbox for a new pod",
    sandboxes: [],
    want: { killPod: true, createSandbox: true, attempt: 0, start: ["main"] },
  },
  {
    name: "begins with the first init container",
    spec: init("a", "b"),
    sandboxes: [],
    want: { killPod: true, createSandbox: true, init: "a", start: [] },
  },
  {
    name: "starts the second init container after the first",
    spec: init("a", "b"),
    containers: [exited({ name: "a" })],
    want: { init: "b", start: [] },
  },
  {
    name: "starts the second init container after the first also when nothing restarts",
    spec: { ...init("a", "b"), restartPolicy: "Never" },
    containers: [exited({ name: "a" })],
    want: { init: "b", start: [] },
  },
  {
    name: "waits for an init container that runs",
    spec: init("a", "b"),
    containers: [{ name: "a" }],
    want: { init: undefined, start: [] },
  },
  {
    name: "waits for the second init container, which runs",
    spec: init("a", "b", "c"),
    containers: [exited({ name: "a" }), { name: "b" }],
    want: { init: undefined, start: [] },
  },
  {
    name: "starts the containers after the last init container",
    spec: init("a"),
    containers: [exited({ name: "a" })],
    want: { start: ["main"] },
  },
  {
    name: "runs a failed init container again",
    spec: init("a"),
    containers: [exited({ name: "a", exitCode: 1 })],
    want: { init: "a" },
  },
  {
    name: "ends the pod when an init container failed and nothing restarts",
    spec: { ...init("a"), restartPolicy: "Never" },
    containers: [exited({ name: "a", exitCode: 1 })],
    want: { killPod: true, start: [] },
  },
  {
    name: "makes the sandbox again under Never when no container was created yet",
    spec: { restartPolicy: "Never" },
    sandboxes: [{ ready: false }],
    containers: [],
    want: { killPod: true, createSandbox: true, attempt: 1, start: ["main"] },
  },
  {
    name: "makes the first sandbox under Never though containers of a lost one are left",
    spec: { restartPolicy: "Never" },
    sandboxes: [],
    containers: [exited()],
    want: { killPod: true, createSandbox: true, attempt: 0, start: ["main"] },
  },
  {
    name: "runs the init containers again in a new sandbox when all containers succeeded but nothing is left of theirs",
    spec: { ...init("a"), restartPolicy: "OnFailure" },
    sandboxes: [{ ready: false }],
    containers: [exited()],
    want: { killPod: true, createSandbox: true, init: "a", start: [] },
  },
  {
    name: "ends the pod when the state of an init container is unknown and nothing restarts",
    spec: { ...init("a"), restartPolicy: "Never" },
    containers: [{ name: "a", state: "unknown" }],
    want: { killPod: true, start: [], kill: [] },
  },
  {
    name: "starts all containers that do not run, whatever the state of the others",
    spec: { containers: ["a", "b", "c", "d"].map((name) => aContainer({ name })), restartPolicy: "OnFailure" },
    containers: [exited({ name: "a" }), exited({ name: "b", exitCode: 1 }), { name: "c" }],
    want: { killPod: false, start: ["b", "d"], kill: [] },
  },
  { name: "leaves a running pod alone", containers: [{}], want: { start: [], kill: [] } },
  { name: "restarts an exited container", containers: [exited()], want: { start: ["main"] } },
  {
    name: "restarts a failure on failure",
    spec: { restartPolicy: "OnFailure" },
    containers: [exited({ exitCode: 1 })],
    want: { start: ["main"] },
  },
  {
    name: "does not restart a success on failure",
    spec: { restartPolicy: "OnFailure" },
    containers: [exited()],
    want: { killPod: true, start: [] },
  },
  {
    name: "never restarts under Never",
    spec: { restartPolicy: "Never" },
    containers: [exited({ exitCode: 1 })],
    want: { killPod: true, start: [] },
  },
  {
    name: "starts a container that was only created",
    spec: { restartPolicy: "Never" },
    containers: [{ state: "created" }],
    want: { start: ["main"] },
  },
  {
    name: "replaces a container whose specification changed",
    spec: { restartPolicy: "Never" },
    containers: [{ hash: "old" }],
    want: { start: ["main"], kill: ["main"] },
  },
  { name: "keeps a container without a hash", containers: [{ hash: "" }], want: { start: [], kill: [] } },
  {
    name: "restarts after a failed liveness probe",
    containers: [{}],
    probes: { liveness: () => "failure" },
    want: { start: ["main"], kill: ["main"] },
  },
  {
    name: "only kills after a failed liveness probe under Never",
    spec: { restartPolicy: "Never" },
    containers: [{}],
    probes: { liveness: () => "failure" },
    want: { start: [], kill: ["main"], killPod: true },
  },
  {
    name: "restarts after a failed startup probe",
    containers: [{}],
    probes: { startup: () => "failure" },
    want: { start: ["main"], kill: ["main"] },
  },
  {
    name: "makes the sandbox anew when it is not ready",
    containers: [exited()],
    sandboxes: [{ ready: false }],
    want: { killPod: true, createSandbox: true, attempt: 1, start: ["main"] },
  },
  {
    name: "makes no sandbox for a pod that has ended under Never",
    spec: { restartPolicy: "Never" },
    containers: [exited()],
    sandboxes: [{ ready: false }],
    want: { killPod: true, createSandbox: false, start: [] },
  },
  {
    name: "makes no sandbox when everything has succeeded",
    spec: { restartPolicy: "OnFailure" },
    containers: [exited()],
    sandboxes: [{ ready: false }],
    want: { killPod: true, createSandbox: false, start: [] },
  },
  {
    name: "starts what was running, not what has succeeded, in the sandbox that it makes anew",
    spec: { restartPolicy: "OnFailure", containers: [aContainer(), aContainer({ name: "b" })] },
    containers: [{ exitCode: 0 }, exited({ name: "b" })],
    sandboxes: [{ ready: false }],
    want: { killPod: true, createSandbox: true, start: ["main"] },
  },
  {
    name: "makes the sandbox anew when there are two",
    containers: [{}],
    sandboxes: [{ id: "s2", attempt: 1 }, {}],
    want: { killPod: true, createSandbox: true, attempt: 2 },
  },
  {
    name: "makes the sandbox anew when it has no address",
    sandboxes: [{ ips: [] }],
    want: { killPod: true, createSandbox: true, attempt: 1 },
  },
  {
    name: "starts an ephemeral container once",
    spec: { ephemeralContainers: [{ name: "debug" }, { name: "old" }] },
    containers: [{}, exited({ name: "old", exitCode: 1 })],
    want: { ephemeral: ["debug"], start: [] },
  },
  {
    name: "restarts the second container alone when only that ended",
    spec: { containers: [aContainer(), aContainer({ name: "b" })] },
    containers: [{}, exited({ name: "b", exitCode: 1 })],
    want: { start: ["b"], kill: [] },
  },
  {
    name: "keeps the pod while the second container runs, though the first ended for good",
    spec: { restartPolicy: "Never", containers: [aContainer(), aContainer({ name: "b" })] },
    containers: [exited({ exitCode: 1 }), { name: "b" }],
    want: { killPod: false, start: [], kill: [] },
  },
  {
    name: "kills only the container whose probe failed",
    spec: { containers: [aContainer(), aContainer({ name: "b" })] },
    containers: [{ id: "first" }, { id: "second", name: "b" }],
    probes: { liveness: (id) => (id === "second" ? "failure" : "success") },
    want: { start: ["b"], kill: ["b"] },
  },
  {
    name: "uses the newest instance of a container, not the one before",
    spec: { restartPolicy: "OnFailure" },
    containers: [exited({ createdAt: 3000 }), exited({ exitCode: 1 })],
    want: { killPod: true, start: [] },
  },
  {
    name: "kills a container in an unknown state before it starts it again",
    containers: [{ state: "unknown" }],
    want: { start: ["main"], kill: ["main"] },
  },
  {
    name: "kills an init container in an unknown state before it runs again",
    spec: init("a"),
    containers: [{ name: "a", state: "unknown" }],
    want: { init: "a", kill: ["a"], start: [] },
  },
  {
    name: "runs the second init container again, not the first, when the second failed",
    spec: init("a", "b", "c"),
    containers: [exited({ name: "a" }), exited({ name: "b", exitCode: 1 })],
    want: { init: "b", start: [] },
  },
  {
    name: "runs the later of two failed init containers again",
    spec: init("a", "b", "c"),
    containers: [exited({ name: "a", exitCode: 1 }), exited({ name: "b", exitCode: 1 })],
    want: { init: "b", start: [] },
  },
  {
    name: "makes the sandbox anew for a pod in the host's network that had its own",
    spec: { hostNetwork: true },
    containers: [{}],
    want: { killPod: true, createSandbox: true, attempt: 1, sandboxId: undefined },
  },
  {
    name: "needs no address in the host's network",
    spec: { hostNetwork: true },
    containers: [{}],
    sandboxes: [{ hostNetwork: true, ips: [] }],
    want: { createSandbox: false, start: [] },
  },
  {
    name: "makes no second sandbox under Never when a container has run, though others have not",
    spec: { restartPolicy: "Never", containers: [aContainer(), aContainer({ name: "b" })] },
    containers: [exited()],
    sandboxes: [{ ready: false }],
    want: { killPod: true, createSandbox: false, start: [] },
  },
  {
    name: "starts again in a new sandbox only what has not succeeded",
    spec: { restartPolicy: "OnFailure", containers: [aContainer(), aContainer({ name: "b" })] },
    containers: [exited(), exited({ name: "b", exitCode: 1 })],
    sandboxes: [{ ready: false }],
    want: { killPod: true, createSandbox: true, start: ["b"] },
  },
  {
    name: "treats initialization as done when a container runs",
    spec: init("a"),
    containers: [{}],
    want: { start: [], kill: [] },
  },
];

for (const { name, spec, containers = [], sandboxes = [{}], probes, want } of cases) {
  test(`plan: ${name}`, () => {
    const record = aPodRecord(containers.map(aContainerRecord), sandboxes.map(aSandboxRecord));
    const plan = planPod(aNodePod(spec), record, { ...noProbes, ...probes }, () => "new");
    const got = {
      killPod: plan.killPod,
      createSandbox: plan.createSandbox,
      attempt: plan.attempt,
      sandboxId: plan.sandboxId,
      init: plan.nextInitContainer?.name,
      start: plan.toStart.map((container) => container.name),
      kill: plan.toKill.map((kill) => kill.record.name),
      ephemeral: plan.ephemeralToStart.map((container) => container.name),
    };
    assert.partialDeepStrictEqual(got, { killPod: false, createSandbox: false, ...want });
  });
}

test("plan: nothing is started for a pod that is being deleted", () => {
  const pod = aNodePod({}, { deletionTimestamp: "2026-01-01T00:00:00Z" });
  const plan = planPod(pod, aPodRecord([aContainerRecord(exited())]), noProbes, () => "new");
  assert.deepEqual(plan.toStart, []);
});
