/** What to do about a claim and a volume: pure, from the objects. */

import { join } from "node:path";
import type { Node, PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import {
  betaStorageProvisioner,
  provisionedBy,
  selectedNode,
  storageProvisioner,
} from "@coxswain/apimachinery/volumes/annotations";
import { className, provisioner } from "./names.ts";

const hostnameLabel = "kubernetes.io/hostname";

const isDefaultClass = "storageclass.kubernetes.io/is-default-class";
const uidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type ClaimPlan =
  | { readonly action: "none" }
  /** The claim can never be satisfied as it is. */
  | { readonly action: "refuse"; readonly reason: string }
  | { readonly action: "provision"; readonly volumeName: string };

const none = { action: "none" } as const;
const refuse = (reason: string): ClaimPlan => ({ action: "refuse", reason });

/** @param storageClass the claim's; undefined when it does not exist */
export function planClaim(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined, nodeName: string): ClaimPlan {
  const { metadata, spec = {} } = claim;
  const { annotations = {}, uid = "" } = metadata;
  if (metadata.deletionTimestamp || spec.volumeName) return none;
  if ((annotations[storageProvisioner] ?? annotations[betaStorageProvisioner]) !== provisioner) return none;
  // The scheduler selects the volume's node together with the pod's; with another binding mode no node is selected.
  if (storageClass?.provisioner !== provisioner || annotations[selectedNode] !== nodeName) return none;
  if (spec.volumeMode === "Block") return refuse("volumes of mode Block are not supported");
  if (spec.selector !== undefined && spec.selector !== null) return refuse("a selector is not supported");
  if (spec.dataSource || spec.dataSourceRef) return refuse("a data source is not supported");
  const shared = (spec.accessModes ?? []).filter((mode) => mode !== "ReadWriteOnce" && mode !== "ReadWriteOncePod");
  if (shared.length > 0) return refuse(`access mode ${shared.join(", ")} is not supported: the volume is on one node`);
  if (Object.keys(storageClass.parameters ?? {}).length > 0) return refuse("the StorageClass has parameters, and none is known");
  if (!uidForm.test(uid)) return refuse(`the uid ${JSON.stringify(uid)} cannot be a part of a name`);
  return { action: "provision", volumeName: volumeNameOf(claim) };
}

/** Name of the volume of a claim, and of its folder. */
export const volumeNameOf = ({ metadata }: PersistentVolumeClaim): string => `${namePrefix}${metadata.uid}`;
const namePrefix = "pvc-";

/** Pure: whether a name can be that of a volume made here. */
export const isVolumeName = (name: string): boolean => name.startsWith(namePrefix) && uidForm.test(name.slice(namePrefix.length));

/** The volume of a claim in a folder of the node. */
export function newVolume(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  { node, name, path }: { node: Node; name: string; path: string },
): PersistentVolume {
  const { namespace, name: claimName, uid, resourceVersion } = claim.metadata;
  const storage = claim.spec?.resources?.requests?.["storage"];
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name, annotations: { [provisionedBy]: provisioner } },
    spec: {
      capacity: storage === undefined ? {} : { storage },
      accessModes: claim.spec?.accessModes ?? [],
      claimRef: {
        kind: "PersistentVolumeClaim",
        apiVersion: "v1",
        ...JSON.parse(JSON.stringify({ namespace, name: claimName, uid, resourceVersion })),
      },
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? "Delete",
      storageClassName: storageClass.metadata.name ?? "",
      volumeMode: "Filesystem",
      local: { path },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: hostnameLabel, operator: "In", values: [hostnameOf(node)] }] }],
        },
      },
    },
  };
}

/** Value of the label kubernetes.io/hostname, by which volumes select their node; the name of a node without the label. */
export const hostnameOf = ({ metadata }: Node): string => metadata.labels?.[hostnameLabel] ?? metadata.name ?? "";

type VolumePlan =
  | { readonly action: "none" }
  | { readonly action: "refuse"; readonly reason: string }
  | { readonly action: "delete"; readonly name: string };

/**
 * @param claimUid uid of the claim that has the name in the volume's reference; undefined: there is none
 * @param root folder of all volumes
 */
export function planVolume(
  { metadata, spec = {}, status }: PersistentVolume,
  { hostname, root, claimUid }: { hostname: string; root: string; claimUid: string | undefined },
): VolumePlan {
  const { name = "" } = metadata;
  if (metadata.annotations?.[provisionedBy] !== provisioner || metadata.deletionTimestamp) return none;
  if (status?.phase !== "Released" || spec.persistentVolumeReclaimPolicy !== "Delete") return none;
  if (spec.claimRef?.uid === undefined || spec.claimRef.uid === claimUid) return none;
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const hosts = terms.flatMap(({ matchExpressions = [] }) =>
    matchExpressions.flatMap((one) => (one.key === hostnameLabel ? one.values : [])),
  );
  if (hosts.length !== 1 || hosts[0] !== hostname) return none;
  if (!isVolumeName(name) || spec.local?.path !== join(root, name)) {
    return { action: "refuse", reason: `${spec.local?.path ?? "its path"} is not the folder of a volume that was made here` };
  }
  return { action: "delete", name };
}

/** The class that is made when there is none of its name; default unless another one is. */
export function newStorageClass(existing: readonly StorageClass[]): StorageClass {
  const hasDefault = existing.some(({ metadata }) => metadata.annotations?.[isDefaultClass] === "true");
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: {
      name: className,
      labels: { "app.kubernetes.io/managed-by": "coxswain-services" },
      annotations: { [isDefaultClass]: String(!hasDefault) },
    },
    provisioner,
    reclaimPolicy: "Delete",
    volumeBindingMode: "WaitForFirstConsumer",
    // A folder has no size that could grow; the API server refuses with this as the reason.
    allowVolumeExpansion: false,
  };
}
