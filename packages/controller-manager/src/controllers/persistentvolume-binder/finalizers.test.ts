import assert from "node:assert/strict";
import { test } from "node:test";
import { provisionedBy } from "@coxswain/apimachinery/volumes/annotations";
import { aVolume } from "../../testing/volumes.ts";
import { ownDeletion, withDeletionFinalizers } from "./finalizers.ts";

const theirs = "external-provisioner.volume.kubernetes.io/finalizer";
const hostPath = "kubernetes.io/host-path";
const ebs = "kubernetes.io/aws-ebs";

for (const { name, maker = hostPath, policy = "Delete", finalizers = [], off = "", want } of [
  { name: "is ours to delete", want: [ownDeletion] },
  { name: "is ours and held already", finalizers: ["x", ownDeletion], want: undefined },
  { name: "is to be kept by now", policy: "Retain", finalizers: [ownDeletion, "x"], want: ["x"] },
  { name: "is a CSI driver's by now", maker: ebs, finalizers: [ownDeletion, theirs], want: [theirs] },
  { name: "is ours again", maker: ebs, off: "CSIMigrationAWS", finalizers: [theirs], want: [ownDeletion] },
  { name: "another program made", maker: "disks.example.com", finalizers: [theirs], want: undefined },
  { name: "has no finalizer while the gate is off", off: "HonorPVReclaimPolicy", want: undefined },
] as { name: string; maker?: string; policy?: string; finalizers?: string[]; off?: string; want: string[] | undefined }[]) {
  test(`a volume that ${name}`, () => {
    const volume = aVolume("a", { persistentVolumeReclaimPolicy: policy }, { [provisionedBy]: maker });
    const held = { ...volume, metadata: { ...volume.metadata, finalizers } };
    const changed = withDeletionFinalizers(held, { enabled: (gate) => gate !== off });
    assert.deepEqual(changed?.metadata.finalizers, want);
  });
}
