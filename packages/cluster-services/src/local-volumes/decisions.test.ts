import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { newStorageClass, newVolume, planClaim, planVolume } from "./decisions.ts";

const uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
const local: StorageClass = { metadata: { name: "local" }, provisioner: "services.coxswain/local" };
const node: Node = { metadata: { name: "n1", labels: { "kubernetes.io/hostname": "host-1" } }, spec: {} };

const annotations = {
  "volume.kubernetes.io/storage-provisioner": "services.coxswain/local",
  "volume.kubernetes.io/selected-node": "n1",
};
function aClaim(spec: PersistentVolumeClaimSpec = {}, metadata: PersistentVolumeClaim["metadata"] = {}): PersistentVolumeClaim {
  return {
    metadata: { name: "data", namespace: "default", uid, annotations, ...metadata },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "8Gi" } }, storageClassName: "local", ...spec },
  };
}

for (const { name, claim, storageClass = local, want } of [
  { name: "makes a volume for a claim of this node", claim: aClaim(), want: { action: "provision", volumeName: `pvc-${uid}` } },
  {
    name: "the annotation counts before its beta",
    claim: aClaim({}, { annotations: { ...annotations, "volume.beta.kubernetes.io/storage-provisioner": "x" } }),
    want: { action: "provision", volumeName: `pvc-${uid}` },
  },
  {
    name: "makes a volume for a claim with the provisioner's beta annotation",
    claim: aClaim(
      {},
      {
        annotations: {
          "volume.beta.kubernetes.io/storage-provisioner": "services.coxswain/local",
          "volume.kubernetes.io/selected-node": "n1",
        },
      },
    ),
    want: { action: "provision" },
  },
  { name: "makes a volume for one pod", claim: aClaim({ accessModes: ["ReadWriteOncePod"] }), want: { action: "provision" } },
  {
    name: "refuses a copy of another kind",
    claim: aClaim({ dataSourceRef: { kind: "VolumeSnapshot", name: "a" } }),
    want: { action: "refuse", reason: "a data source is not supported" },
  },
  { name: "leaves a bound claim", claim: aClaim({ volumeName: "pv" }), want: { action: "none" } },
  {
    name: "leaves a claim that is being deleted",
    claim: aClaim({}, { deletionTimestamp: "2022-01-01T00:00:00Z" }),
    want: { action: "none" },
  },
  {
    name: "leaves a claim of another node",
    claim: aClaim({}, { annotations: { ...annotations, "volume.kubernetes.io/selected-node": "n2" } }),
    want: { action: "none" },
  },
  { name: "leaves a claim without a node", claim: aClaim({}, { annotations: {} }), want: { action: "none" } },
  {
    name: "leaves a claim of another provisioner's class",
    claim: aClaim(),
    storageClass: { ...local, provisioner: "x" },
    want: { action: "none" },
  },
  { name: "refuses a block device", claim: aClaim({ volumeMode: "Block" }), want: { action: "refuse" } },
  { name: "refuses a selector", claim: aClaim({ selector: {} }), want: { action: "refuse" } },
  {
    name: "refuses a copy",
    claim: aClaim({ dataSource: { kind: "PersistentVolumeClaim", name: "a" } }),
    want: { action: "refuse" },
  },
  {
    name: "refuses access from several nodes",
    claim: aClaim({ accessModes: ["ReadWriteOnce", "ReadWriteMany"] }),
    want: { action: "refuse", reason: "access mode ReadWriteMany is not supported: the volume is on one node" },
  },
  {
    name: "refuses unknown parameters",
    claim: aClaim(),
    storageClass: { ...local, parameters: { path: "/etc" } },
    want: { action: "refuse" },
  },
  { name: "refuses a uid with a path in it", claim: aClaim({}, { uid: "../../etc" }), want: { action: "refuse" } },
]) {
  test(name, () => assert.partialDeepStrictEqual(planClaim(claim, storageClass, "n1"), want));
}

test("gives the volume the claim's size, the class's policy and the node's host name", () => {
  const volume = newVolume(aClaim(), { ...local, reclaimPolicy: "Retain" }, { node, name: `pvc-${uid}`, path: `/v/pvc-${uid}` });
  hasFields(volume.spec, {
    capacity: { storage: "8Gi" },
    persistentVolumeReclaimPolicy: "Retain",
    claimRef: { namespace: "default", name: "data", uid },
    local: { path: `/v/pvc-${uid}` },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ values: ["host-1"] }] }] } },
  });
});

test("a volume has all that its claim and class say, and nothing that they do not say", () => {
  const claim = aClaim({}, { resourceVersion: "7" });
  const { resources: _, accessModes: __, ...spec } = claim.spec ?? {};
  assert.deepEqual(newVolume({ ...claim, spec }, local, { node, name: "pvc-1", path: "/v/pvc-1" }), {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "pvc-1", annotations: { "pv.kubernetes.io/provisioned-by": "services.coxswain/local" } },
    spec: {
      capacity: {},
      accessModes: [],
      claimRef: {
        kind: "PersistentVolumeClaim",
        apiVersion: "v1",
        namespace: "default",
        name: "data",
        uid,
        resourceVersion: "7",
      },
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "local",
      volumeMode: "Filesystem",
      local: { path: "/v/pvc-1" },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["host-1"] }] }],
        },
      },
    },
  });
});

const made = newVolume(aClaim(), local, { node, name: `pvc-${uid}`, path: `/v/pvc-${uid}` });
const released = (change: (volume: PersistentVolume) => void = () => {}): PersistentVolume => {
  const volume = structuredClone({ ...made, status: { phase: "Released" } });
  change(volume);
  return volume;
};
const spec = (volume: PersistentVolume): NonNullable<PersistentVolume["spec"]> => volume.spec;

for (const { name, volume, claimUid, hostname = "host-1", want } of [
  { name: "deletes a released volume", volume: released(), want: { action: "delete", name: `pvc-${uid}` } },
  { name: "deletes one whose claim was made anew", volume: released(), claimUid: "other", want: { action: "delete" } },
  { name: "keeps one whose claim is there", volume: released(), claimUid: uid, want: { action: "none" } },
  { name: "keeps a bound volume", volume: { ...made, status: { phase: "Bound" } }, want: { action: "none" } },
  { name: "keeps one that is not bound yet", volume: { ...made, status: { phase: "Available" } }, want: { action: "none" } },
  { name: "keeps one whose claim was lost", volume: { ...made, status: { phase: "Failed" } }, want: { action: "none" } },
  {
    name: "keeps one that is being deleted",
    volume: released((one) => {
      one.metadata.deletionTimestamp = "2022-01-01T00:00:00Z";
    }),
    want: { action: "none" },
  },
  {
    name: "keeps one whose reference has no uid",
    volume: released((one) => {
      spec(one).claimRef = { namespace: "default", name: "data" };
    }),
    want: { action: "none" },
  },
  {
    name: "keeps one of several nodes",
    volume: released((one) => {
      const [term] = spec(one).nodeAffinity?.required?.nodeSelectorTerms ?? [];
      term?.matchExpressions?.[0]?.values?.push("host-2");
    }),
    want: { action: "none" },
  },
  { name: "keeps one of another node", volume: released(), hostname: "host-2", want: { action: "none" } },
  {
    name: "keeps one that is to be retained",
    volume: released((one) => {
      spec(one).persistentVolumeReclaimPolicy = "Retain";
    }),
    want: { action: "none" },
  },
  {
    name: "keeps one that others made",
    volume: released((one) => {
      one.metadata.annotations = {};
    }),
    want: { action: "none" },
  },
  {
    name: "refuses to delete another path",
    volume: released((one) => {
      spec(one).local = { path: "/etc" };
    }),
    want: { action: "refuse", reason: "/etc is not the folder of a volume that was made here" },
  },
  {
    name: "refuses to delete under a name that is a path",
    volume: released((one) => {
      one.metadata.name = "pvc-..";
      spec(one).local = { path: "/v/pvc-.." };
    }),
    want: { action: "refuse" },
  },
]) {
  test(name, () => assert.partialDeepStrictEqual(planVolume(volume, { hostname, root: "/v", claimUid }), want));
}

test("makes the class the default one unless there is one", () => {
  const isDefault = "storageclass.kubernetes.io/is-default-class";
  assert.equal(newStorageClass([local]).metadata.annotations?.[isDefault], "true");
  const other = { ...local, metadata: { name: "nfs", annotations: { [isDefault]: "true" } } };
  assert.equal(newStorageClass([other]).metadata.annotations?.[isDefault], "false");
});
