/** PersistentVolumeClaims, PersistentVolumes and VolumeAttachments. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StorageClass, VolumeAttachment, VolumeError } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { classNameOf, mismatchOf, requestedSize, sizeOf } from "@coxswain/apimachinery/volumes/matching";
import {
  detail,
  firstTimeOfEvent,
  isOlder,
  isSeen,
  type Look,
  latestEvent,
  oneLine,
  type Problem,
  plural,
  type Rule,
  rulesFor,
  sinceTime,
} from "../rule.ts";
import { claimNameOf } from "./pod-facts.ts";

interface ClaimFacts {
  /** Also "missing" when the claim names no class. */
  readonly storageClass: Look<StorageClass> | undefined;
  readonly volume: Look<PersistentVolume> | undefined;
  /** Pods that use the claim; undefined when the user may not list pods. */
  readonly users: readonly { readonly pod: Pod; readonly ref: ObjectRef }[] | undefined;
  readonly volumes: readonly PersistentVolume[] | undefined;
}

const binder = "persistentvolume-controller";

const usesClaim = (pod: Pod, claim: string): boolean =>
  (pod.spec.volumes ?? []).some((volume) => claimNameOf(pod, volume) === claim);

const isPending = ({ status }: PersistentVolumeClaim): boolean => (status?.phase ?? "Pending") === "Pending";
const created = ({ metadata }: PersistentVolumeClaim): { since?: string } => sinceTime(metadata.creationTimestamp);

const claimRules: Rule<PersistentVolumeClaim, ClaimFacts>[] = [
  ({ object }) => {
    if (object.status?.phase !== "Lost") return undefined;
    return {
      by: binder,
      reason: "VolumeLost",
      summary: `its volume ${object.spec.volumeName} does not exist any more: its data are lost`,
      remedy: "Delete the claim and create it again, or restore the persistent volume under its name from a backup.",
      ...created(object),
    };
  },
  ({ object, related: { volume } }) => {
    const name = object.spec.volumeName;
    if (!isPending(object) || !name || volume === undefined || volume === "hidden") return undefined;
    if (volume === "missing") {
      return {
        by: binder,
        reason: "VolumeMissing",
        summary: `requests volume ${name}, which does not exist`,
        remedy: "Create the persistent volume, or leave volumeName out of the claim.",
        ...created(object),
      };
    }
    const { claimRef } = volume.spec;
    const isOwn = claimRef?.name === object.metadata.name && claimRef?.namespace === object.metadata.namespace;
    if (claimRef !== undefined && !isOwn) {
      return {
        by: binder,
        reason: "VolumeTaken",
        summary: `requests volume ${name}, which is bound to another claim`,
        remedy: "Name another volume, or none.",
        ...created(object),
      };
    }
    const mismatch = mismatchOf(volume, object);
    if (mismatch === undefined) return undefined;
    return {
      by: binder,
      reason: "VolumeMismatch",
      summary: `requests volume ${name}, which does not match: ${mismatch}`,
      remedy: "Give the claim the size, access modes, volume mode and class of the volume.",
      ...created(object),
    };
  },
  ({ object, related: { storageClass, volumes } }) => {
    if (!isPending(object)) return undefined;
    const name = classNameOf(object);
    if (name !== "" && storageClass === "missing") {
      return {
        by: binder,
        reason: "StorageClassMissing",
        summary: `storage class ${name} does not exist${noVolumeOfClass(object, volumes)}`,
        remedy: "Create the storage class, or name one that exists: kubectl get storageclass.",
        ...created(object),
      };
    }
    const isStatic =
      name === "" ||
      // Cast: `isSeen` has refused the others.
      (isSeen(storageClass ?? "hidden") && (storageClass as StorageClass).provisioner === "kubernetes.io/no-provisioner");
    if (!isStatic) return undefined;
    const why = whyNone(object, volumes);
    if (why === undefined) return undefined;
    return {
      by: binder,
      reason: "NoVolumeMatches",
      summary: `${name === "" ? "has no storage class, and " : `storage class ${name} provisions none, and `}no persistent volume matches: ${why}`,
      remedy: "Create a persistent volume of that size, class and access mode; or name a storage class with a provisioner.",
      ...created(object),
    };
  },
  ({ object, events }) => {
    const failed = isPending(object) ? latestEvent(events, ["ProvisioningFailed"]) : undefined;
    if (failed === undefined || /storageclass\.storage\.k8s\.io ".+" not found/.test(failed.message ?? "")) return undefined;
    return {
      by: failed.source?.component || binder,
      reason: "ProvisioningFailed",
      summary: `no volume can be provisioned: ${oneLine(failed.message)}`,
      remedy: "Look at the log of the provisioner and at the parameters of the storage class.",
      ...sinceTime(firstTimeOfEvent(failed)),
    };
  },
  ({ object, related: { storageClass, users } }) => {
    if (!isPending(object) || storageClass === undefined || !isSeen(storageClass)) return undefined;
    if (storageClass.volumeBindingMode !== "WaitForFirstConsumer") return undefined;
    if (object.metadata.annotations?.["volume.kubernetes.io/selected-node"] !== undefined || users === undefined)
      return undefined;
    const waiting = users.filter(({ pod }) => !pod.spec.nodeName);
    const [first] = waiting;
    return {
      by: binder,
      reason: "WaitsForFirstConsumer",
      summary:
        first === undefined
          ? "waits for the first pod that uses it: no pod does"
          : `waits until pod ${first.ref.name}, which uses it, is scheduled`,
      remedy:
        first === undefined ? "Nothing is wrong if its pod comes later: it is bound then." : "See why the pod is not scheduled.",
      follow: waiting.map(({ ref }) => ref),
      ...created(object),
    };
  },
  ({ object, related: { storageClass } }) => {
    if (!isPending(object)) return undefined;
    const provisioner =
      object.metadata.annotations?.["volume.kubernetes.io/storage-provisioner"] ??
      object.metadata.annotations?.["volume.beta.kubernetes.io/storage-provisioner"];
    if (provisioner !== undefined) {
      return {
        by: binder,
        reason: "ProvisionerSilent",
        summary: `provisioner ${provisioner} of its storage class has not created a volume yet`,
        remedy: "Check that the provisioner runs, and its log; or create a persistent volume manually.",
        ...created(object),
      };
    }
    const known = storageClass !== undefined && isSeen(storageClass) ? ` (storage class ${storageClass.metadata.name})` : "";
    return { by: binder, reason: "NotBound", summary: `is not bound to a volume yet${known}`, ...created(object) };
  },
  ({ object: { status, metadata } }) => {
    const resize = (status?.conditions ?? []).find(
      ({ type, status: state }) => state === "True" && /^(FileSystemResizePending|Resizing)$/.test(type),
    );
    if (resize === undefined) return undefined;
    return {
      by: "explain",
      reason: resize.type,
      summary:
        resize.type === "FileSystemResizePending"
          ? "its volume has grown; the file system grows when a pod mounts it"
          : `its volume is being resized${detail(resize.message)}`,
      remedy: "Start a pod that uses the claim, or look at the resizer of the driver.",
      ...sinceTime(resize.lastTransitionTime ?? metadata.creationTimestamp),
    };
  },
];

/** Why no volume matches the claim: the mismatch of the closest one. */
function whyNone(claim: PersistentVolumeClaim, volumes: readonly PersistentVolume[] | undefined): string | undefined {
  if (volumes === undefined) return undefined;
  if (volumes.length === 0) return "there is none";
  const ofClass = volumes.filter((volume) => classNameOf(volume) === classNameOf(claim));
  if (ofClass.length === 0) return `none of ${plural(volumes.length, "volume")} is of its class`;
  const free = ofClass.filter(({ spec, status }) => spec.claimRef === undefined && status?.phase === "Available");
  if (free.length === 0) {
    const released = ofClass.filter(({ status }) => status?.phase === "Released").length;
    return `none of ${ofClass.length} is available${released > 0 ? ` (${released} released, still reserved for deleted claims)` : ""}`;
  }
  const size = requestedSize(claim);
  const large = free.filter((volume) => sizeOf(volume).cmp(size) >= 0);
  if (large.length === 0) {
    const largest = free.map(sizeOf).toSorted((a, b) => b.cmp(a))[0];
    return `it requests ${size.toString()}, the largest available has ${largest?.toString()}`;
  }
  const modes = claim.spec.accessModes ?? [];
  const fitting = large.filter(({ spec }) => modes.every((mode) => spec.accessModes?.includes(mode)));
  if (fitting.length === 0) return `none has access mode ${modes.join(", ")}`;
  return `${plural(fitting.length, "volume")} of the size and class ${fitting.length === 1 ? "has" : "have"} other labels or another volume mode`;
}

const noVolumeOfClass = (claim: PersistentVolumeClaim, volumes: readonly PersistentVolume[] | undefined): string => {
  const why = whyNone(claim, volumes);
  return why === undefined ? "" : `, and no persistent volume matches: ${why}`;
};

export const claimKind = rulesFor<PersistentVolumeClaim, ClaimFacts>({
  async gather(object, reader) {
    const { namespace = "", name = "" } = object.metadata;
    const className = classNameOf(object);
    const pods = await reader.list<Pod>("pods", "", namespace);
    return {
      storageClass:
        className === "" ? undefined : await reader.get<StorageClass>("storageclasses", "storage.k8s.io", "", className),
      volume: object.spec.volumeName
        ? await reader.get<PersistentVolume>("persistentvolumes", "", "", object.spec.volumeName)
        : undefined,
      users: pods?.filter((pod) => usesClaim(pod, name)).map((pod) => ({ pod, ref: reader.refOf(pod, "pods", "") })),
      volumes: isPending(object) ? await reader.list<PersistentVolume>("persistentvolumes", "", "") : undefined,
    };
  },
  deletion: [
    ({ object: { metadata }, related: { users } }) => {
      const using = (users ?? []).filter(({ pod: { status } }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
      if (!metadata.finalizers?.includes("kubernetes.io/pvc-protection") || using.length === 0) return undefined;
      return {
        by: "pvc-protection-controller",
        reason: "ClaimInUse",
        summary: `is being deleted; it is removed when no pod uses it any more: ${using.map(({ ref }) => ref.name).join(", ")} ${using.length === 1 ? "does" : "do"}`,
        remedy: "Delete the pod (or scale down its controller); the claim is then removed.",
        ...sinceTime(metadata.deletionTimestamp),
      };
    },
  ],
  rules: claimRules,
});

interface VolumeFacts {
  readonly claim: Look<PersistentVolumeClaim> | undefined;
}

const volumeRules: Rule<PersistentVolume, VolumeFacts>[] = [
  ({ object: { spec, status, metadata } }) => {
    if (status?.phase !== "Failed") return undefined;
    return {
      by: binder,
      reason: status.reason || "VolumeFailed",
      summary: `its reclaim policy ${spec.persistentVolumeReclaimPolicy} could not be carried out: ${oneLine(status.message)}`,
      remedy: "Delete or clean the storage behind it manually, then delete the persistent volume.",
      ...sinceTime(metadata.creationTimestamp),
    };
  },
  ({ object: { spec, status, metadata }, now }) => {
    if (status?.phase !== "Released") return undefined;
    const retained = spec.persistentVolumeReclaimPolicy === "Retain";
    if (!retained && !isOlder(metadata.creationTimestamp, 30_000, now)) return undefined;
    return {
      by: binder,
      reason: "VolumeReleased",
      summary: retained
        ? `its claim ${spec.claimRef?.namespace}/${spec.claimRef?.name} was deleted; reclaim policy Retain keeps it reserved for that claim`
        : `its claim was deleted and reclaim policy ${spec.persistentVolumeReclaimPolicy} is still to be carried out by its provisioner`,
      remedy: retained
        ? `Save the data; then delete the volume, or make it available again: kubectl patch pv ${metadata.name} --type=json -p '[{"op":"remove","path":"/spec/claimRef"}]'`
        : "Look at the log of the provisioner of its storage class.",
    };
  },
];

export const volumeKind = rulesFor<PersistentVolume, VolumeFacts>({
  async gather({ spec: { claimRef } }, reader) {
    if (claimRef === undefined) return { claim: undefined };
    return { claim: await reader.get("persistentvolumeclaims", "", claimRef.namespace ?? "", claimRef.name ?? "") };
  },
  deletion: [
    ({ object: { metadata, spec, status } }) => {
      if (!metadata.finalizers?.includes("kubernetes.io/pv-protection") || status?.phase !== "Bound") return undefined;
      const { claimRef } = spec;
      return {
        by: "pv-protection-controller",
        reason: "VolumeInUse",
        summary: `is being deleted; it is removed when claim ${claimRef?.namespace}/${claimRef?.name}, to which it is bound, is deleted`,
        remedy: "Delete the claim, if its data are not needed any more.",
        ...sinceTime(metadata.deletionTimestamp),
      };
    },
  ],
  rules: volumeRules,
});

export const volumeAttachmentKind = rulesFor<VolumeAttachment, undefined>({
  gather: async () => undefined,
  deletion: [
    ({ object: { status, spec } }) => driverFailed(spec, status?.detachError, { reason: "DetachFailed", what: "detached from" }),
  ],
  rules: [
    ({ object: { status, spec } }) =>
      status?.attached === true
        ? undefined
        : driverFailed(spec, status?.attachError, { reason: "AttachFailed", what: "attached to" }),
  ],
});

function driverFailed(
  { attacher, source, nodeName }: VolumeAttachment["spec"],
  error: VolumeError | undefined,
  { reason, what }: { reason: string; what: string },
): Problem | undefined {
  if (error === undefined) return undefined;
  return {
    by: attacher,
    reason,
    summary: `volume ${source.persistentVolumeName} cannot be ${what} node ${nodeName}: ${oneLine(error.message)}`,
    remedy: `Look at the log of driver ${attacher}.`,
    ...sinceTime(error.time),
  };
}
