import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "../objects/schema/kinds/core/v1.ts";
import fc from "../testing/fast-check.ts";
import { findBestVolume, findMatchingVolume } from "./matching.ts";

const modes = fc.subarray(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"], { minLength: 1 });
const sizes = fc.integer({ min: 1, max: 4 });
const classes = fc.constantFrom("", "fast");
const zones = fc.constantFrom(undefined, "east", "west");

const aVolume = fc
  .record({
    mode: modes,
    size: sizes,
    storageClassName: classes,
    volumeMode: fc.constantFrom("Filesystem", "Block"),
    phase: fc.constantFrom("Available", "Available", "Released"),
    claim: fc.constantFrom(undefined, undefined, "data", "other"),
    zone: zones,
  })
  .map(
    ({ mode, size, storageClassName, volumeMode, phase, claim, zone }): PersistentVolume => ({
      metadata: {},
      spec: {
        accessModes: mode,
        capacity: { storage: `${size}Gi` },
        storageClassName,
        volumeMode,
        ...(claim && { claimRef: { namespace: "web", name: claim } }),
        ...(zone && {
          nodeAffinity: {
            required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: [zone] }] }] },
          },
        }),
      },
      status: { phase },
    }),
  );

const aClaim = fc.record({ mode: modes, size: sizes, storageClassName: classes }).map(
  ({ mode, size, storageClassName }): PersistentVolumeClaim => ({
    metadata: { namespace: "web", name: "data", uid: "u" },
    spec: { accessModes: mode, resources: { requests: { storage: `${size}Gi` } }, storageClassName, volumeMode: "Filesystem" },
  }),
);

const gibibytes = ({ spec }: PersistentVolume): number => Number.parseInt(String(spec.capacity?.["storage"]), 10);
const wanted = (claim: PersistentVolumeClaim): number => Number.parseInt(String(claim.spec.resources?.requests?.["storage"]), 10);
const zoneOf = ({ spec }: PersistentVolume) =>
  spec.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values?.[0];
const offers = (volume: PersistentVolume, claim: PersistentVolumeClaim): boolean =>
  (claim.spec.accessModes ?? []).every((mode) => volume.spec.accessModes?.includes(mode));

/** The documented rules: large enough and same volume mode; unreserved volumes also need the same class and phase Available. */
function mayServe(volume: PersistentVolume, claim: PersistentVolumeClaim): "reserved" | "free" | undefined {
  if (gibibytes(volume) < wanted(claim) || volume.spec.volumeMode !== "Filesystem") return undefined;
  if (volume.spec.claimRef !== undefined) return volume.spec.claimRef.name === "data" ? "reserved" : undefined;
  const isFree = volume.status?.phase === "Available" && volume.spec.storageClassName === claim.spec.storageClassName;
  return isFree ? "free" : undefined;
}

test("the binder chooses the best of the volumes that match the claim", () => {
  fc.assert(
    fc.property(aClaim, fc.array(aVolume, { maxLength: 8 }), fc.boolean(), (claim, volumes, waits) => {
      const good = volumes.filter((volume) => {
        const how = offers(volume, claim) ? mayServe(volume, claim) : undefined;
        return how === "reserved" || (how === "free" && !waits);
      });
      const found = findBestVolume(claim, volumes, waits);
      assert.equal(found === undefined, good.length === 0);
      if (found === undefined) return;
      assert.ok(good.includes(found));
      const fewest = Math.min(...good.map(({ spec }) => spec.accessModes?.length ?? 0));
      assert.equal(found.spec.accessModes?.length, fewest);
      const peers = good.filter(({ spec }) => spec.accessModes?.length === fewest);
      const reserved = peers.some((volume) => volume.spec.claimRef !== undefined);
      assert.equal(found.spec.claimRef !== undefined, reserved);
      if (!reserved) assert.equal(gibibytes(found), Math.min(...peers.map(gibibytes)));
    }),
    { numRuns: 2000 },
  );
});

test("the scheduler chooses the best of the volumes that the node can access", () => {
  fc.assert(
    fc.property(aClaim, fc.array(aVolume, { maxLength: 8 }), zones, (claim, volumes, zone) => {
      const nodeLabels: Record<string, string> = zone === undefined ? {} : { zone };
      const reaches = (volume: PersistentVolume) => zoneOf(volume) === undefined || zoneOf(volume) === zone;
      const found = findMatchingVolume(claim, volumes, { nodeLabels, waits: true });
      const reserved = volumes.find((volume) => mayServe(volume, claim) === "reserved");
      if (reserved !== undefined) return assert.equal(found, reaches(reserved) ? reserved : undefined);
      const free = volumes.filter((volume) => mayServe(volume, claim) === "free" && reaches(volume) && offers(volume, claim));
      if (free.length === 0) return assert.equal(found, undefined);
      assert.ok(found !== undefined && free.includes(found));
      assert.equal(gibibytes(found), Math.min(...free.map(gibibytes)));
    }),
    { numRuns: 2000 },
  );
});
