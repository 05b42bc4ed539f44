import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { bindCompleted, boundByController, provisionedBy, selectedNode } from "@coxswain/apimachinery/volumes/annotations";
import { aClaim, aVolume } from "../../testing/volumes.ts";
import { type ClaimStep, planClaim } from "./plan-claim.ts";
import { isReleased, planVolume } from "./plan-volume.ts";

const classes = new Map<string, Partial<StorageClass>>([
  ["now", { volumeBindingMode: "Immediate" }],
  ["later", { volumeBindingMode: "WaitForFirstConsumer" }],
]);

function decided(claim: PersistentVolumeClaim, volumes: PersistentVolume[] = [], waitingPods: string[] = []): ClaimStep {
  return planClaim(claim, {
    volume: (name) => volumes.find(({ metadata }) => metadata.name === name),
    volumes: () => volumes,
    storageClass: (name) => classes.get(name) as StorageClass | undefined,
    waitingPods: () => waitingPods,
  });
}

/** A step as one line of text. */
function text(step: ClaimStep): string {
  if (step.do === "bind") return `bind ${step.volume.metadata.name}`;
  if (step.do === "provision" || step.event === undefined) return step.do;
  return `${step.do}: ${step.event.type} ${step.event.reason} ${step.event.message}`;
}

const was = { [bindCompleted]: "yes" };
const other = { namespace: "default", name: "other", uid: "other-uid" };
const own = { namespace: "default", name: "data", uid: "data-uid" };

for (const { name, claim, volumes = [], pods = [], want } of [
  {
    name: "no volume and no class",
    claim: aClaim(),
    want: "wait: Normal FailedBinding no persistent volumes available for this claim and no storage class is set",
  },
  { name: "a volume that fits", claim: aClaim(), volumes: [aVolume("a")], want: "bind a" },
  { name: "a class that provisions", claim: aClaim({ storageClassName: "now" }), want: "provision" },
  { name: "an unknown class", claim: aClaim({ storageClassName: "none" }), want: "provision" },
  {
    name: "a class that waits",
    claim: aClaim({ storageClassName: "later" }),
    volumes: [aVolume("a", { storageClassName: "later" })],
    want: "wait: Normal WaitForFirstConsumer waiting for first consumer to be created before binding",
  },
  {
    name: "a class that waits, and a pod",
    claim: aClaim({ storageClassName: "later" }),
    pods: ["web"],
    want: "wait: Normal WaitForPodScheduled waiting for pod web to be scheduled",
  },
  {
    name: "a class that waits, and pods",
    claim: aClaim({ storageClassName: "later" }),
    pods: ["web", "db"],
    want: "wait: Normal WaitForPodScheduled waiting for pods web,db to be scheduled",
  },
  {
    name: "a class that waited, and a node",
    claim: aClaim({ storageClassName: "later" }, { [selectedNode]: "n" }),
    want: "provision",
  },
  {
    name: "a class that waits, and a volume that the scheduler reserved",
    claim: aClaim({ storageClassName: "later" }),
    volumes: [aVolume("a", { storageClassName: "later", claimRef: own })],
    want: "bind a",
  },
  { name: "a named volume that is not there", claim: aClaim({ volumeName: "a" }), want: "wait" },
  { name: "a named volume", claim: aClaim({ volumeName: "a" }), volumes: [aVolume("a")], want: "bind a" },
  {
    name: "a named volume that is too small",
    claim: aClaim({ volumeName: "a" }),
    volumes: [aVolume("a", { capacity: { storage: "1Mi" } })],
    want: 'wait: Warning VolumeMismatch Cannot bind to requested volume "a": requested PV is too small',
  },
  {
    name: "a named volume that is reserved for it",
    claim: aClaim({ volumeName: "a" }),
    volumes: [aVolume("a", { claimRef: { namespace: "default", name: "data" } })],
    want: "bind a",
  },
  {
    name: "a named volume that is another's",
    claim: aClaim({ volumeName: "a" }),
    volumes: [aVolume("a", { claimRef: other })],
    want: 'wait: Warning FailedBinding volume "a" already bound to a different claim.',
  },
  {
    name: "a volume that we named and that is another's",
    claim: aClaim({ volumeName: "a" }, { [boundByController]: "yes" }),
    volumes: [aVolume("a", { claimRef: other })],
    want: 'fail: Warning FailedBinding volume "a" already bound to a different claim.',
  },
  {
    name: "a bound claim without a volume's name",
    claim: aClaim({}, was),
    want: "lose: Warning ClaimLost Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
  },
  {
    name: "a bound claim without its volume",
    claim: aClaim({ volumeName: "a" }, was),
    want: "lose: Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!",
  },
  {
    name: "a bound claim whose volume is that of an older claim of its name",
    claim: aClaim({ volumeName: "a" }, was),
    volumes: [aVolume("a", { claimRef: { namespace: "default", name: "data", uid: "older" } })],
    want: "lose: Warning ClaimMisbound Two claims are bound to the same volume, this one is bound incorrectly",
  },
  {
    name: "a bound claim whose volume does not know it",
    claim: aClaim({ volumeName: "a" }, was),
    volumes: [aVolume("a")],
    want: "bind a",
  },
  {
    name: "a bound claim and its volume",
    claim: aClaim({ volumeName: "a" }, was),
    volumes: [aVolume("a", { claimRef: own })],
    want: "bind a",
  },
  {
    name: "a bound claim whose volume is another's",
    claim: aClaim({ volumeName: "a" }, was),
    volumes: [aVolume("a", { claimRef: other })],
    want: "lose: Warning ClaimMisbound Two claims are bound to the same volume, this one is bound incorrectly",
  },
]) {
  test(`a claim with ${name}`, () => assert.equal(text(decided(claim, volumes, pods)), want));
}

const ours = { [boundByController]: "yes" };
const made = { [provisionedBy]: "x.example.com" };
for (const { name, volume, claim, want } of [
  { name: "without a claim", volume: aVolume("a"), want: "set phase Available" },
  {
    name: "that is reserved",
    volume: aVolume("a", { claimRef: { namespace: "default", name: "data" } }),
    claim: aClaim(),
    want: "set phase Available",
  },
  { name: "whose claim is gone", volume: aVolume("a", { claimRef: own }), want: "reclaim" },
  {
    name: "whose claim was made anew",
    volume: aVolume("a", { claimRef: { ...own, uid: "old" } }),
    claim: aClaim(),
    want: "reclaim",
  },
  { name: "whose claim does not know yet", volume: aVolume("a", { claimRef: own }), claim: aClaim(), want: "enqueue claim" },
  {
    name: "whose claim wants blocks",
    volume: aVolume("a", { claimRef: own }),
    claim: aClaim({ volumeMode: "Block" }),
    want: "report",
  },
  { name: "that is bound", volume: aVolume("a", { claimRef: own }), claim: aClaim({ volumeName: "a" }), want: "set phase Bound" },
  {
    name: "whose claim has another, ours",
    volume: aVolume("a", { claimRef: own }, ours),
    claim: aClaim({ volumeName: "b" }),
    want: "unbind",
  },
  {
    name: "whose claim has another, made for it",
    volume: aVolume("a", { claimRef: own, persistentVolumeReclaimPolicy: "Delete" }, made),
    claim: aClaim({ volumeName: "b" }),
    want: "reclaim",
  },
  {
    name: "whose claim has another, made for it and to be kept",
    volume: aVolume("a", { claimRef: own, persistentVolumeReclaimPolicy: "Retain" }, made),
    claim: aClaim({ volumeName: "b" }),
    want: "unbind",
  },
] as { name: string; volume: PersistentVolume; claim?: PersistentVolumeClaim; want: string }[]) {
  test(`a volume ${name}`, () => {
    const step = planVolume(volume, claim);
    assert.equal(step.do === "set phase" ? `${step.do} ${step.phase}` : step.do, want);
  });
}

test("says on both sides that blocks are no file system", () => {
  const step = planVolume(aVolume("a", { claimRef: own }), aClaim({ volumeMode: "Block" }));
  assert.deepEqual(step, {
    do: "report",
    toVolume: {
      type: "Warning",
      reason: "VolumeMismatch",
      message: 'Cannot bind PersistentVolume to requested PersistentVolumeClaim "data" due to incompatible volumeMode.',
    },
    toClaim: {
      type: "Warning",
      reason: "VolumeMismatch",
      message: 'Cannot bind PersistentVolume "a" to requested PersistentVolumeClaim due to incompatible volumeMode.',
    },
  });
});

test("takes for released only what no claim can still be bound to", () => {
  const bound = aVolume("a", { claimRef: own });
  assert.deepEqual(
    [
      isReleased(aVolume("a"), undefined),
      isReleased(aVolume("a", { claimRef: { namespace: "default", name: "data" } }), undefined),
      isReleased(bound, undefined),
      isReleased(bound, aClaim()),
      isReleased(bound, aClaim({ volumeName: "a" })),
      isReleased(bound, aClaim({ volumeName: "b" })),
    ],
    [false, false, true, false, false, true],
  );
});
