import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { provisionedBy } from "@coxswain/apimachinery/volumes/annotations";
import { hasSameMode } from "@coxswain/apimachinery/volumes/matching";
import type { EventData } from "./plan-claim.ts";

/** The next step for a volume. */
type VolumeStep =
  | { readonly do: "set phase"; readonly phase: "Available" | "Bound" }
  /** The claim is deleted or bound to another volume: set phase Released (unless Failed) and apply the reclaim policy. */
  | { readonly do: "reclaim" }
  /** The reconciliation of the claim completes the binding. */
  | { readonly do: "enqueue claim" }
  | { readonly do: "report"; readonly toVolume: EventData; readonly toClaim: EventData }
  | { readonly do: "unbind" };

/**
 * Pure: decides the next step for a volume.
 * @param claim the claim named in claimRef, whatever its uid
 * Source: pv_controller.go syncVolume
 */
export function planVolume(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): VolumeStep {
  const { claimRef } = volume.spec;
  // Without a uid the volume is only pre-bound; reconciling the claim completes the binding.
  if (!claimRef?.uid) return { do: "set phase", phase: "Available" };
  if (claim === undefined || claim.metadata.uid !== claimRef.uid) return { do: "reclaim" };
  const { volumeName } = claim.spec;
  if (volumeName === volume.metadata.name) return { do: "set phase", phase: "Bound" };
  if (!volumeName) return hasSameMode(volume, claim) ? { do: "enqueue claim" } : modesDiffer(volume, claim);
  const wasMadeForIt = volume.metadata.annotations?.[provisionedBy] !== undefined;
  return { do: wasMadeForIt && volume.spec.persistentVolumeReclaimPolicy === "Delete" ? "reclaim" : "unbind" };
}

/** A volume with another volumeMode is never matched to the claim it is pre-bound to, so Events explain why. */
function modesDiffer(volume: PersistentVolume, claim: PersistentVolumeClaim): VolumeStep {
  const notice = (what: string): EventData => ({
    type: "Warning",
    reason: "VolumeMismatch",
    message: `Cannot bind PersistentVolume ${what} due to incompatible volumeMode.`,
  });
  return {
    do: "report",
    toVolume: notice(`to requested PersistentVolumeClaim ${goQuote(claim.metadata.name ?? "")}`),
    toClaim: notice(`${goQuote(volume.metadata.name ?? "")} to requested PersistentVolumeClaim`),
  };
}

/**
 * Whether no claim can be bound to the volume any more, so that it may be reclaimed.
 * @param claim as in the informer cache
 * Source: pv_controller.go isVolumeReleased
 */
export function isReleased(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): boolean {
  const uid = volume.spec.claimRef?.uid;
  if (!uid) return false;
  if (claim === undefined || claim.metadata.uid !== uid) return true;
  return Boolean(claim.spec.volumeName) && claim.spec.volumeName !== volume.metadata.name;
}
