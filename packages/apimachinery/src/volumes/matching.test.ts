import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec } from "../objects/schema/kinds/core/v1.ts";
import { betaStorageClass, boundByController } from "./annotations.ts";
import { boundTo, findBestVolume, findMatchingVolume, hasSelectedNode, mismatchOf, waitsForConsumer } from "./matching.ts";

const claimRef = { namespace: "web", name: "data", uid: "claim-uid" };

function aVolume(name: string, spec: Partial<PersistentVolumeSpec> & { size?: string } = {}): PersistentVolume {
  const { size = "1Gi", ...rest } = spec;
  return {
    metadata: { name, uid: `${name}-uid`, labels: { disk: name } },
    spec: { capacity: { storage: size }, accessModes: ["ReadWriteOnce"], ...rest },
    status: { phase: "Available" },
  };
}

function aClaim(spec: Partial<PersistentVolumeClaim["spec"]> & { size?: string } = {}): PersistentVolumeClaim {
  const { size = "1Gi", ...rest } = spec;
  return {
    metadata: { namespace: "web", name: "data", uid: "claim-uid" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: size } }, ...rest },
  };
}

const leaving = (volume: PersistentVolume): PersistentVolume => ({
  ...volume,
  metadata: { ...volume.metadata, deletionTimestamp: "2024-01-01T00:00:00Z" },
});
const onNode = (value: string): Partial<PersistentVolumeSpec> => ({
  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: [value] }] }] } },
});

for (const { name, claim = aClaim(), volumes, waits = false, want } of [
  {
    name: "the smallest that is large enough",
    volumes: [aVolume("l", { size: "8Gi" }), aVolume("m", { size: "2Gi" })],
    want: "m",
  },
  { name: "none that is too small", claim: aClaim({ size: "2Gi" }), volumes: [aVolume("s")], want: undefined },
  {
    name: "fewer access modes before a smaller size",
    volumes: [aVolume("any", { accessModes: ["ReadWriteOnce", "ReadWriteMany"] }), aVolume("once", { size: "4Gi" })],
    want: "once",
  },
  { name: "none without the mode", claim: aClaim({ accessModes: ["ReadWriteMany"] }), volumes: [aVolume("s")], want: undefined },
  {
    name: "one whose labels are selected",
    claim: aClaim({ selector: { matchLabels: { disk: "b" } } }),
    volumes: [aVolume("a"), aVolume("b", { size: "4Gi" })],
    want: "b",
  },
  { name: "none of another class", volumes: [aVolume("a", { storageClassName: "fast" })], want: undefined },
  {
    name: "one of its class",
    claim: aClaim({ storageClassName: "fast" }),
    volumes: [aVolume("a"), aVolume("b", { storageClassName: "fast" })],
    want: "b",
  },
  { name: "none for blocks", volumes: [aVolume("a", { volumeMode: "Block" })], want: undefined },
  { name: "none that is another's", volumes: [aVolume("a", { claimRef: { ...claimRef, name: "other" } })], want: undefined },
  {
    name: "none of a claim of the same name that was deleted",
    volumes: [aVolume("a", { claimRef: { ...claimRef, uid: "old" } })],
    want: undefined,
  },
  {
    name: "the one reserved for it, though another is smaller",
    volumes: [aVolume("small"), aVolume("own", { size: "9Gi", claimRef: { namespace: "web", name: "data" } })],
    want: "own",
  },
  {
    name: "the first of two reserved for it",
    volumes: [aVolume("first", { size: "9Gi", claimRef }), aVolume("second", { claimRef })],
    want: "first",
  },
  {
    name: "none that is reserved but too small",
    claim: aClaim({ size: "2Gi" }),
    volumes: [aVolume("own", { claimRef: { namespace: "web", name: "data" } })],
    want: undefined,
  },
  {
    name: "none of a claim of the same name in another namespace",
    volumes: [aVolume("a", { claimRef: { namespace: "shop", name: "data" } })],
    want: undefined,
  },
  { name: "none that is being deleted", volumes: [leaving(aVolume("a"))], want: undefined },
  {
    name: "none that is reserved for it and being deleted",
    volumes: [leaving(aVolume("a", { claimRef }))],
    want: undefined,
  },
  { name: "none that is released", volumes: [{ ...aVolume("a"), status: { phase: "Released" } }], want: undefined },
  { name: "none while it waits for its consumer", waits: true, volumes: [aVolume("a")], want: undefined },
  { name: "its own though it waits", waits: true, volumes: [aVolume("a", { claimRef })], want: "a" },
]) {
  test(`finds for a claim ${name}`, () => {
    assert.equal(findBestVolume(claim, volumes, waits)?.metadata.name, want);
  });
}

test("of volumes of one size the first is taken; when they are sorted, the first that fits", () => {
  const volumes = [
    aVolume("s", { size: "1Mi" }),
    aVolume("a", { size: "4Gi" }),
    aVolume("b", { size: "2Gi" }),
    aVolume("c", { size: "2Gi" }),
  ];
  assert.equal(findBestVolume(aClaim(), volumes, false)?.metadata.name, "b");
  assert.equal(findMatchingVolume(aClaim(), volumes)?.metadata.name, "b");
  assert.equal(findMatchingVolume(aClaim(), volumes, { isSorted: true })?.metadata.name, "a");
});

test("access modes that are listed twice count once, and sizes that cannot be read count as none", () => {
  const twice = aVolume("twice", { accessModes: ["ReadWriteOnce", "ReadWriteOnce"] });
  assert.equal(findBestVolume(aClaim(), [aVolume("other", { size: "2Gi" }), twice], false)?.metadata.name, "twice");
  assert.equal(findBestVolume(aClaim(), [aVolume("odd", { size: "much" })], false), undefined);
  assert.equal(findBestVolume(aClaim({ size: "much" }), [aVolume("a")], false)?.metadata.name, "a");
});

test("each access mode counts, however many times those before it are listed", () => {
  const often = ["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany"];
  const all = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
  for (const [offered, requested, want] of [
    [["ReadWriteOnce"], often, "incompatible accessMode"],
    [often, ["ReadOnlyMany"], undefined],
    [often, ["ReadWriteMany"], "incompatible accessMode"],
    [all, all, undefined],
    [all.slice(0, 3), all, "incompatible accessMode"],
    [all, ["ReadWriteOncePod"], undefined],
  ] as const) {
    const [accessModes, modes] = [[...offered], [...requested]];
    assert.equal(mismatchOf(aVolume("v", { accessModes }), aClaim({ accessModes: modes })), want, `${requested} of ${offered}`);
  }
});

test("a volume that is taken is not found though it is reserved", () => {
  const volumes = [aVolume("own", { claimRef }), aVolume("free")];
  const options = { nodeLabels: {}, waits: true };
  assert.equal(findMatchingVolume(aClaim(), volumes, options)?.metadata.name, "own");
  assert.equal(findMatchingVolume(aClaim(), volumes, { ...options, taken: new Set(["own"]) })?.metadata.name, "free");
});

test("on a node only volumes that it can access are found", () => {
  const volumes = [aVolume("a", onNode("east")), aVolume("b", { ...onNode("west"), size: "4Gi" })];
  const on = (zone: string, taken: string[] = []) =>
    findMatchingVolume(aClaim(), volumes, { nodeLabels: { zone }, waits: true, taken: new Set(taken) })?.metadata.name;
  assert.deepEqual([on("east"), on("west"), on("north"), on("west", ["b"])], ["a", "b", undefined, undefined]);
});

test("on a node that cannot access the reserved volume none is found", () => {
  const volumes = [aVolume("free"), aVolume("own", { ...onNode("west"), claimRef })].reverse();
  assert.equal(findMatchingVolume(aClaim(), volumes, { nodeLabels: { zone: "east" }, waits: true }), undefined);
});

for (const [want, volume] of [
  [undefined, aVolume("v")],
  ["requested PV is too small", aVolume("v", { size: "1Mi" })],
  ["storageClassName does not match", aVolume("v", { storageClassName: "x" })],
  ["incompatible volumeMode", aVolume("v", { volumeMode: "Block" })],
  ["incompatible accessMode", aVolume("v", { accessModes: ["ReadOnlyMany"] })],
  ['the volume is marked for deletion "v"', leaving(aVolume("v"))],
] as const) {
  test(`a requested volume is ${want === undefined ? "accepted" : `refused: ${want}`}`, () =>
    assert.equal(mismatchOf(volume, aClaim()), want));
}

test("the class of the annotation takes precedence over that of the field", () => {
  const claim = aClaim({ storageClassName: "new" });
  claim.metadata.annotations = { [betaStorageClass]: "old" };
  assert.equal(mismatchOf(aVolume("v", { storageClassName: "old" }), claim), undefined);
});

test("binds a free volume, fills the uid of a reserved one, and leaves a bound one", () => {
  const bound = boundTo(aVolume("v"), aClaim());
  assert.deepEqual(bound?.spec.claimRef, { kind: "PersistentVolumeClaim", apiVersion: "v1", ...claimRef });
  assert.deepEqual(bound?.metadata.annotations, { [boundByController]: "yes" });
  const reserved = boundTo(aVolume("v", { claimRef: { namespace: "web", name: "data" } }), aClaim());
  assert.equal(reserved?.spec.claimRef?.uid, "claim-uid");
  assert.equal(reserved?.metadata.annotations, undefined);
  assert.equal(boundTo(bound, aClaim()), undefined);
});

test("a volume's reference to another claim is replaced, and its other annotations stay", () => {
  const claim = aClaim();
  claim.metadata.resourceVersion = "7";
  const before = { ...aVolume("v", { claimRef: { ...claimRef, uid: "old" } }) };
  before.metadata = { ...before.metadata, annotations: { note: "x" } };
  const bound = boundTo(before, claim);
  assert.deepEqual(bound?.spec.claimRef, { kind: "PersistentVolumeClaim", apiVersion: "v1", resourceVersion: "7", ...claimRef });
  assert.deepEqual(bound?.metadata.annotations, { note: "x", [boundByController]: "yes" });
  assert.deepEqual(before.metadata.annotations, { note: "x" });
});

test("the scheduler's choice is a claim's annotation", () => {
  const claim = aClaim();
  assert.equal(hasSelectedNode(claim), false);
  claim.metadata.annotations = { "volume.kubernetes.io/selected-node": "" };
  assert.equal(hasSelectedNode(claim), true);
});

test("waits for a consumer only if the class has WaitForFirstConsumer", () => {
  const aClass = (volumeBindingMode?: string) => ({ metadata: { name: "fast" }, provisioner: "x", volumeBindingMode }) as never;
  assert.deepEqual(
    [waitsForConsumer(undefined), waitsForConsumer(aClass("Immediate")), waitsForConsumer(aClass("WaitForFirstConsumer"))],
    [false, false, true],
  );
  assert.throws(() => waitsForConsumer(aClass()), /VolumeBindingMode not set for StorageClass "fast"/);
});
