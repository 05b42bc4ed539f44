import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { bindCompleted, boundByController } from "@coxswain/apimachinery/volumes/annotations";
import {
  classNameOf,
  findBestVolume,
  hasSelectedNode,
  isBoundTo,
  mismatchOf,
  waitsForConsumer,
} from "@coxswain/apimachinery/volumes/matching";

/** Event about an object. */
export interface EventData {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** The next step for a claim. */
export type ClaimStep =
  /** Write both references, where they are not set yet. */
  | { readonly do: "bind"; readonly volume: PersistentVolume }
  | { readonly do: "provision" }
  /** Stay Pending until something changes or the next resync. */
  | { readonly do: "wait"; readonly event?: EventData }
  /** The claim was bound and its volume is lost; the Event is recorded once. */
  | { readonly do: "lose"; readonly event: EventData }
  | { readonly do: "fail"; readonly event: EventData; readonly error: string };

interface ClaimLookups {
  volume(name: string): PersistentVolume | undefined;
  volumes(): Iterable<PersistentVolume>;
  storageClass(name: string): StorageClass | undefined;
  /** Names of the unscheduled Pods that use the claim. */
  waitingPods(): readonly string[];
}

/** Pure: decides the next step for a claim. Source: pv_controller.go syncClaim */
export function planClaim(claim: PersistentVolumeClaim, lookups: ClaimLookups): ClaimStep {
  if (claim.metadata.annotations?.[bindCompleted] !== undefined) return planBound(claim, lookups);
  return claim.spec.volumeName ? planNamed(claim, claim.spec.volumeName, lookups) : planUnbound(claim, lookups);
}

/**
 * Unbound claim without a volume name: selects any matching volume.
 * @throws Error for a storage class without volumeBindingMode
 */
function planUnbound(claim: PersistentVolumeClaim, lookups: ClaimLookups): ClaimStep {
  const className = classNameOf(claim);
  const waits = className !== "" && waitsForConsumer(lookups.storageClass(className));
  const volume = findBestVolume(claim, lookups.volumes(), waits);
  if (volume !== undefined) return { do: "bind", volume };
  if (waits && !hasSelectedNode(claim)) return { do: "wait", event: waitingEvent(lookups.waitingPods()) };
  if (className !== "") return { do: "provision" };
  const message = "no persistent volumes available for this claim and no storage class is set";
  return { do: "wait", event: { type: "Normal", reason: "FailedBinding", message } };
}

function waitingEvent(pods: readonly string[]): EventData {
  const [type, reason] = ["Normal", "WaitForPodScheduled"] as const;
  if (pods.length === 1) return { type, reason, message: `waiting for pod ${pods[0]} to be scheduled` };
  if (pods.length > 1) return { type, reason, message: `waiting for pods ${pods.join(",")} to be scheduled` };
  return { type, reason: "WaitForFirstConsumer", message: "waiting for first consumer to be created before binding" };
}

/** Claim that names its volume, set by a user or by an incomplete binding. */
function planNamed(claim: PersistentVolumeClaim, name: string, lookups: ClaimLookups): ClaimStep {
  const volume = lookups.volume(name);
  if (volume === undefined) return { do: "wait" };
  if (volume.spec.claimRef === undefined) {
    const mismatch = mismatchOf(volume, claim);
    if (mismatch === undefined) return { do: "bind", volume };
    const message = `Cannot bind to requested volume ${goQuote(name)}: ${mismatch}`;
    return { do: "wait", event: { type: "Warning", reason: "VolumeMismatch", message } };
  }
  if (isBoundTo(volume, claim)) return { do: "bind", volume };
  const message = `volume ${goQuote(name)} already bound to a different claim.`;
  const event: EventData = { type: "Warning", reason: "FailedBinding", message };
  if (claim.metadata.annotations?.[boundByController] === undefined) return { do: "wait", event };
  const { namespace, name: other } = volume.spec.claimRef;
  const what = `invalid binding of claim ${goQuote(keyOf(claim))} to volume ${goQuote(name)}`;
  return { do: "fail", event, error: `${what}: volume already claimed by ${goQuote(`${namespace}/${other}`)}` };
}

function planBound(claim: PersistentVolumeClaim, lookups: ClaimLookups): ClaimStep {
  const lost = (reason: string, message: string): ClaimStep => ({ do: "lose", event: { type: "Warning", reason, message } });
  const { volumeName } = claim.spec;
  if (!volumeName) return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
  const volume = lookups.volume(volumeName);
  if (volume === undefined) return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  const { claimRef } = volume.spec;
  // A volume without claimRef was unbound, or the cached volume is stale. Both cases are repaired by binding again.
  if (claimRef === undefined || claimRef.uid === claim.metadata.uid) return { do: "bind", volume };
  return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
}
