import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { aClaim, aVolume } from "../../testing/volumes.ts";
import { resolve, type VolumeSources } from "./resolve.ts";

const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
const csi = { hostPath: undefined, csi: { driver: "disks.example.com", volumeHandle: "h" }, claimRef };
const flexVolume = { driver: "example.com/disk", fsType: "ext4" };

/** Sources with a claim `default/data` that is bound to the volume. */
function sourcesOf(spec: object, attachRequired?: boolean): VolumeSources {
  const volume = aVolume("pv-1", spec as Partial<PersistentVolume["spec"]>);
  const claim = { ...aClaim({ volumeName: "pv-1" }), status: { phase: "Bound" } };
  const driver = { metadata: { name: "disks.example.com" }, spec: attachRequired === undefined ? {} : { attachRequired } };
  const lister = (objects: Readonly<Record<string, unknown>>) => ({ get: (key: string) => objects[key] }) as never;
  return {
    claims: lister({ "default/data": claim }),
    volumes: lister({ "pv-1": volume }),
    drivers: lister({ "disks.example.com": driver }),
    nodes: lister({}),
    gates: { enabled: () => true },
    flex: { attaches: (name) => name === "example.com/disk" },
  };
}

const claimed = (readOnly?: boolean): Volume => ({
  name: "v",
  persistentVolumeClaim: { claimName: "data", ...(readOnly === undefined ? {} : { readOnly }) },
});
const of = (volume: Volume, sources: VolumeSources) => resolve(aPod({ nodeName: "a" }), volume, sources);

for (const { readOnly, want } of [
  { readOnly: true, want: true },
  { readOnly: undefined, want: false },
])
  test(`a flex volume behind a claim that is used with readOnly ${readOnly} is attached with readOnly ${want}`, () => {
    const resolved = of(claimed(readOnly), sourcesOf({ hostPath: undefined, flexVolume, claimRef }));
    assert.partialDeepStrictEqual(resolved, { label: "pv-1", flex: { name: "pv-1", readOnly: want, fsType: "ext4" } });
  });

test("an inline flex volume has the name and the readOnly of the pod's volume, and may be shared", () => {
  const resolved = of({ name: "v", flexVolume: { ...flexVolume, readOnly: true } }, sourcesOf({}));
  assert.partialDeepStrictEqual(resolved, { label: "v", exclusive: false, flex: { name: "v", readOnly: true } });
});

for (const { accessModes, want } of [
  { accessModes: ["ReadWriteOnce"], want: true },
  { accessModes: ["ReadWriteOnce", "ReadOnlyMany"], want: false },
  { accessModes: ["ReadWriteMany"], want: false },
  { accessModes: ["ReadWriteOncePod"], want: true },
  { accessModes: [], want: false },
])
  test(`a volume with the access modes [${accessModes.join(", ")}] is ${want ? "" : "not "}exclusive to one node`, () => {
    const resolved = of(claimed(), sourcesOf({ ...csi, accessModes }));
    assert.partialDeepStrictEqual(resolved, { exclusive: want, driver: "disks.example.com" });
  });

for (const { name, sources, want } of [
  {
    name: "of a driver that is not known to attach",
    sources: sourcesOf({ flexVolume: { driver: "x/y" }, claimRef }),
    want: "not attached",
  },
  { name: "of a plugin that attaches nothing", sources: sourcesOf({ claimRef }), want: "not attached" },
  { name: "of a CSI driver that needs no attaching", sources: sourcesOf(csi, false), want: "not attached" },
  {
    name: "that is bound to another claim of the name",
    sources: sourcesOf({ ...csi, claimRef: { ...claimRef, uid: "x" } }),
    want: "unknown",
  },
])
  test(`a claimed volume ${name} is ${want}`, () => assert.equal(of(claimed(), sources), want));

test("a CSI driver that does not say whether it needs attaching does", () => {
  assert.equal(typeof of(claimed(), sourcesOf(csi)), "object");
  assert.equal(typeof of(claimed(), sourcesOf(csi, true)), "object");
});

for (const { owned, want } of [
  { owned: true, want: "object" },
  { owned: false, want: "string" },
])
  test(`an ephemeral volume is ${owned ? "that of the claim of its pod" : "unknown while the claim of its name is another's"}`, () => {
    const pod = aPod({ name: "web", nodeName: "a" });
    const sources = sourcesOf(csi);
    const owners = [{ apiVersion: "v1", kind: "Pod", name: "web", uid: "web-uid", controller: true }];
    const { metadata, ...claim } = { ...aClaim({ volumeName: "pv-1" }), status: { phase: "Bound" } };
    const made = { ...claim, metadata: { ...metadata, name: "web-v", ...(owned && { ownerReferences: owners }) } };
    const claims = { get: (key: string) => (key === "default/web-v" ? made : undefined) } as unknown as VolumeSources["claims"];
    const resolved = resolve(
      pod,
      { name: "v", ephemeral: { volumeClaimTemplate: { metadata: {}, spec: {} } } },
      { ...sources, claims },
    );
    assert.equal(typeof resolved, want);
  });
