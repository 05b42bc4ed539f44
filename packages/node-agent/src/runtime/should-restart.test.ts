import assert from "node:assert/strict";
import { test } from "node:test";
import { aContainerRecord, aNodePod, aPodRecord } from "../testing/builders.ts";
import type { ContainerRecord } from "./pod-record.ts";
import { shouldRestart } from "./should-restart.ts";

const policies = ["Always", "OnFailure", "Never"] as const;

for (const { name, containers, want } of [
  { name: "that was not made yet", containers: [], want: [true, true, true] },
  { name: "that runs", containers: [{}], want: [false, false, false] },
  { name: "of an unknown state", containers: [{ state: "unknown" }], want: [true, true, true] },
  { name: "that was created only", containers: [{ state: "created" }], want: [true, true, true] },
  { name: "that has succeeded", containers: [{ state: "exited", exitCode: 0 }], want: [true, false, false] },
  { name: "that has failed", containers: [{ state: "exited", exitCode: 1 }], want: [true, true, false] },
  {
    name: "that failed after it had succeeded",
    containers: [
      { state: "exited", exitCode: 1 },
      { state: "exited", exitCode: 0 },
    ],
    want: [true, true, false],
  },
] as { name: string; containers: Partial<ContainerRecord>[]; want: boolean[] }[]) {
  test(`a container ${name} is started under ${policies.filter((_, at) => want[at]).join(", ") || "no policy"}`, () => {
    const record = aPodRecord(containers.map((one) => aContainerRecord(one)));
    const started = (restartPolicy: string, metadata = {}) =>
      shouldRestart(aNodePod({ restartPolicy }, metadata), record, "main");
    assert.deepEqual(
      policies.map((policy) => started(policy)),
      want,
    );
    assert.equal(started("Always", { deletionTimestamp: "2026-01-01T00:00:00Z" }), false, "not for a pod that is being deleted");
  });
}
