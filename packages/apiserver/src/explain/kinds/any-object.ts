/** Rules for objects of any kind: finalizers, owners, decisions. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { type Facts, isOlder, isSeen, oneLine, type Problem, type Reader, sinceTime } from "../rule.ts";

export interface AnyFacts {
  /** Dependents that block a foreground deletion. */
  readonly blocking: readonly ObjectRef[];
  /** Owners that do not exist any more. */
  readonly goneOwners: readonly string[];
  readonly hasOwner: boolean;
}

type AnyRule = (facts: Facts<KubeObject, AnyFacts>) => Problem | undefined;

/** Resources that are searched for dependents. */
const dependentResources: readonly (readonly [resource: string, group: string])[] = [
  ["replicasets", "apps"],
  ["pods", ""],
  ["jobs", "batch"],
  ["deployments", "apps"],
  ["statefulsets", "apps"],
  ["daemonsets", "apps"],
  ["controllerrevisions", "apps"],
  ["persistentvolumeclaims", ""],
  ["configmaps", ""],
  ["secrets", ""],
  ["services", ""],
  ["endpointslices", "discovery.k8s.io"],
];

/** Reads the object's owners and, during a foreground deletion, the dependents that block it. */
export async function gatherAny(object: KubeObject, reader: Reader): Promise<AnyFacts> {
  const { namespace = "", ownerReferences = [], finalizers = [], deletionTimestamp, uid } = object.metadata;
  const blocking: ObjectRef[] = [];
  if (deletionTimestamp && finalizers.includes("foregroundDeletion") && namespace !== "") {
    for (const [resource, group] of dependentResources) {
      for (const found of (await reader.list(resource, group, namespace)) ?? []) {
        const owner = found.metadata.ownerReferences?.find((one) => one.uid === uid);
        if (owner?.blockOwnerDeletion) blocking.push(reader.refOf(found, resource, group));
      }
    }
  }
  const goneOwners: string[] = [];
  for (const owner of ownerReferences) {
    const served = reader.resourceOf(owner.apiVersion, owner.kind);
    if (served === undefined) continue;
    const found = await reader.get(served.resource, served.group, namespace, owner.name);
    if (found === "missing" || (isSeen(found) && found.metadata.uid !== owner.uid)) {
      goneOwners.push(`${owner.kind.toLowerCase()}/${owner.name}`);
    }
  }
  return { blocking, goneOwners, hasOwner: ownerReferences.length > goneOwners.length };
}

const foreground: AnyRule = ({ object: { metadata }, related: { blocking } }) => {
  if (!metadata.finalizers?.includes("foregroundDeletion")) return undefined;
  const since = sinceTime(metadata.deletionTimestamp);
  if (blocking.length === 0) {
    return { by: "garbage-collector", reason: "ForegroundDeletion", summary: "is being deleted after its dependents", ...since };
  }
  return {
    by: "garbage-collector",
    reason: "DependentsRemaining",
    summary: `is being deleted in the foreground, after ${blocking
      .slice(0, 3)
      .map(({ kind, name }) => `${kind.toLowerCase()}/${name}`)
      .join(", ")}${blocking.length > 3 ? ` and ${blocking.length - 3} more` : ""}`,
    follow: blocking,
    ...since,
  };
};

const finalizers: AnyRule = ({ object: { metadata } }) => {
  const { finalizers: all = [], deletionTimestamp, name, namespace } = metadata;
  const since = sinceTime(deletionTimestamp);
  if (all.length === 0) {
    return { by: "explain", reason: "BeingDeleted", summary: "is being deleted", ...since };
  }
  const orphan = all.length === 1 && all[0] === "orphan";
  return {
    by: orphan ? "garbage-collector" : "explain",
    reason: "FinalizerPending",
    summary: `is being deleted; finalizer ${all.join(", ")} keeps it until its controller has cleaned up and removed it`,
    remedy: `Start or repair the controller that owns the finalizer. Only if it is gone for good: kubectl patch <kind> ${name}${namespace ? ` -n ${namespace}` : ""} --type=merge -p '{"metadata":{"finalizers":null}}'`,
    ...since,
  };
};

const ownerGone: AnyRule = ({ related: { goneOwners, hasOwner } }) => {
  if (goneOwners.length === 0 || hasOwner) return undefined;
  return {
    by: "garbage-collector",
    reason: "OwnerGone",
    summary: `its owner ${goneOwners.join(", ")} does not exist any more: the garbage collector will delete it`,
    remedy: "Remove the owner reference to keep the object.",
  };
};

/** Older decisions may concern problems that have been fixed. */
const decisionsCountMs = 10 * 60_000;

/**
 * Decisions of daemons about an object of a kind without rules of its own. Refusals by admission are left out, because they did
 * not change the object.
 */
export const decisionRule: AnyRule = ({ decisions, now }) => {
  const recent = decisions.filter(
    ({ lastAt, component }) => component !== "kube-apiserver" && !isOlder(lastAt, decisionsCountMs, now),
  );
  const known = recent.find(({ verdict }) => verdict !== "waiting") ?? recent[0];
  if (known === undefined) return undefined;
  const { component: by, reason, summary, since, remedy, related } = known;
  return {
    by,
    reason,
    summary: oneLine(summary),
    since,
    ...(remedy !== undefined && { remedy }),
    ...(related && { follow: related }),
  };
};

export const anyDeletionRules: readonly AnyRule[] = [foreground, finalizers];
export const anyRules: readonly AnyRule[] = [ownerGone];
