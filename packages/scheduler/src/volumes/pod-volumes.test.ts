import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { selectedNode } from "@coxswain/apimachinery/volumes/annotations";
import { classVolumesOf, findPodVolumes, type StorageView } from "./pod-volumes.ts";

const node = { metadata: { name: "n1", labels: { zone: "a", rack: "1" } } } as unknown as Node;

const aClaim = (name: string, storage: string, more: { volumeName?: string; node?: string; className?: string } = {}) =>
  ({
    metadata: { name, namespace: "default", ...(more.node && { annotations: { [selectedNode]: more.node } }) },
    spec: {
      storageClassName: more.className ?? "disk",
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage } },
      ...(more.volumeName && { volumeName: more.volumeName }),
    },
  }) as PersistentVolumeClaim;

const aVolume = (name: string, storage: string, zone?: string) =>
  ({
    metadata: { name },
    spec: {
      storageClassName: "disk",
      accessModes: ["ReadWriteOnce"],
      capacity: { storage },
      ...(zone && {
        nodeAffinity: {
          required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: [zone] }] }] },
        },
      }),
    },
    status: { phase: "Available" },
  }) as PersistentVolume;

function view(volumes: readonly PersistentVolume[], more: object = {}): StorageView {
  return {
    volume: (name: string) => volumes.find(({ metadata }) => metadata.name === name),
    asOn: (volume: PersistentVolume) => volume,
    volumesOf: (className: string) => classVolumesOf(className === "disk" ? volumes : []),
    storageClass: (name: string) => (name === "disk" ? { provisioner: "example.com/disk" } : undefined),
    driver: () => ({ spec: { storageCapacity: true } }),
    capacities: () => [],
    checksCapacity: false,
    ...more,
  } as unknown as StorageView;
}

/** The result as names, or the reasons. */
function found(bound: PersistentVolumeClaim[], unbound: PersistentVolumeClaim[], storage: StorageView): readonly string[] {
  const result = findPodVolumes(bound, unbound, node, storage);
  if (Array.isArray(result)) return result;
  const { bindings, provisions } = result;
  return [
    ...bindings.map(({ claim, volume }) => `${claim.metadata.name} takes ${volume.metadata.name}`),
    ...provisions.map(({ metadata }) => `${metadata.name} is made`),
  ];
}

const conflict = "node(s) had volume node affinity conflict";
const nothing = "node(s) didn't find available persistent volumes to bind";
const gone = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const noSpace = "node(s) did not have enough free storage";

test("every bound volume must exist and be accessible from the node", () => {
  const storage = view([aVolume("near", "1Gi", "a"), aVolume("far", "1Gi", "b"), aVolume("anywhere", "1Gi")]);
  const bound = (...names: string[]) => names.map((volumeName) => aClaim(volumeName, "1Gi", { volumeName }));
  assert.deepEqual(found(bound("near", "anywhere"), [], storage), []);
  assert.deepEqual(found(bound("near", "far"), [], storage), [conflict]);
  assert.deepEqual(found(bound("near", "lost"), [], storage), [gone]);
  const elsewhere = [aClaim("c", "1Gi", { node: "n2" })];
  assert.deepEqual(found(bound("far"), elsewhere, storage), [conflict, nothing]);
  assert.deepEqual(found(bound("lost"), elsewhere, storage), [nothing, gone]);
  assert.deepEqual(found([], [aClaim("here", "1Gi", { node: "n1" }), ...elsewhere], storage), [nothing]);
  const taken = view([aVolume("near", "1Gi", "a")], { asOn: () => aVolume("near", "1Gi", "b") });
  assert.deepEqual(found(bound("near"), [], taken), [conflict], "what its driver says counts");
});

test("smaller claims get smaller volumes, each its own; volumes for the others are provisioned", () => {
  const storage = view([aVolume("big", "10Gi"), aVolume("small", "1Gi"), aVolume("far", "10Gi", "b")]);
  const claims = [aClaim("large", "5Gi"), aClaim("little", "1Gi")];
  assert.deepEqual(found([], claims, storage), ["little takes small", "large takes big"]);
  const one = view([aVolume("big", "10Gi")]);
  assert.deepEqual(found([], claims, one), ["little takes big", "large is made"]);
  assert.deepEqual(found([], [aClaim("c", "1Gi", { node: "n1" })], storage), ["c is made"], "its volume is being made here");
});

test("a claim that asks for no amount needs no capacity", () => {
  const storage = view([], { checksCapacity: true });
  const { metadata, spec } = aClaim("c", "1Gi");
  const { resources: _, ...without } = spec;
  assert.deepEqual(found([], [{ metadata, spec: without }], storage), ["c is made"]);
});

test("a claim that no volume or class can satisfy is an error", () => {
  assert.throws(() => found([], [aClaim("c", "1Gi", { className: "" })], view([])), /^Error: no class for claim "default\/c"$/);
  assert.throws(() => found([], [aClaim("c", "1Gi", { className: "x" })], view([])), /failed to find storage class "x"/);
});

const term = (...expressions: [key: string, ...values: string[]][]) => ({
  matchLabelExpressions: expressions.map(([key, ...values]) => ({ key, values })),
});
for (const { name, allowedTopologies, provisioner = "example.com/disk", want } of [
  { name: "anywhere", allowedTopologies: undefined, want: "c is made" },
  { name: "in the node's zone, the second that is named", allowedTopologies: [term(["zone", "b", "a"])], want: "c is made" },
  { name: "by the second term", allowedTopologies: [term(["zone", "b"]), term(["zone", "a"])], want: "c is made" },
  { name: "in its zone, but another rack", allowedTopologies: [term(["zone", "a"], ["rack", "2"])], want: nothing },
  { name: "by a term that says nothing", allowedTopologies: [term()], want: nothing },
  { name: "by no provisioner", provisioner: "kubernetes.io/no-provisioner", want: nothing },
]) {
  test(`a volume that may be made ${name}`, () => {
    const storage = view([], { storageClass: () => ({ provisioner, allowedTopologies }) });
    assert.deepEqual(found([], [aClaim("first", "1Gi"), aClaim("c", "1Gi")], storage).at(-1), want);
  });
}

const capacity = (size: string, zone = "a", more: object = {}) => ({
  storageClassName: "disk",
  capacity: size,
  nodeTopology: { matchLabels: { zone } },
  ...more,
});
for (const { name, capacities, more, want } of [
  { name: "just enough", capacities: [capacity("2Gi")], want: "c is made" },
  { name: "too little, and enough", capacities: [capacity("1Gi"), capacity("3Gi")], want: "c is made" },
  { name: "too little", capacities: [capacity("1Gi")], want: noSpace },
  { name: "enough elsewhere", capacities: [capacity("3Gi", "b")], want: noSpace },
  { name: "enough nowhere", capacities: [capacity("3Gi", "a", { nodeTopology: undefined })], want: noSpace },
  { name: "enough of another class", capacities: [capacity("3Gi", "a", { storageClassName: "x" })], want: noSpace },
  { name: "enough in pieces", capacities: [capacity("3Gi", "a", { maximumVolumeSize: "1Gi" })], want: noSpace },
  { name: "an unknown amount", capacities: [capacity("", "a", { capacity: undefined })], want: noSpace },
  { name: "none that is queried", capacities: [], more: { checksCapacity: false }, want: "c is made" },
  { name: "none that its driver reports", capacities: [], more: { driver: () => ({ spec: {} }) }, want: "c is made" },
]) {
  test(`a driver that has ${name}`, () => {
    const storage = view([], { checksCapacity: true, capacities: () => capacities, ...more });
    assert.deepEqual(found([], [aClaim("c", "2Gi")], storage), [want]);
  });
}
