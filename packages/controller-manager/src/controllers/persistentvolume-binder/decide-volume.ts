import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { provisionedBy } from "@coxswain/apimachinery/volumes/annotations";
import { hasSameMode } from "@coxswain/apimachinery/volumes/matching";
import type { Notice } from "./decide-claim.ts";

export type VolumeStep =
  | { readonly do: "set phase"; readonly phase: "Available" | "Bound" }
  /** Its claim is gone, or served by another volume: Released (a failure stays to be seen), and what its policy says. */
  | { readonly do: "reclaim" }
  /** The claim's own turn finishes the binding. */
  | { readonly do: "wake claim" }
  | { readonly do: "complain"; readonly toVolume: Notice; readonly toClaim: Notice }
  | { readonly do: "unbind" };

/**
 * @param claim the one with the name that the volume gives, whatever its uid
 * Source: pv_controller.go syncVolume
 */
export function decideVolume(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): VolumeStep {
  const { claimRef } = volume.spec;
  // Without a uid it is only reserved: the claim's turn will bind it.
  if (!claimRef?.uid) return { do: "set phase", phase: "Available" };
  if (claim === undefined || claim.metadata.uid !== claimRef.uid) return { do: "reclaim" };
  const { volumeName } = claim.spec;
  if (volumeName === volume.metadata.name) return { do: "set phase", phase: "Bound" };
  if (!volumeName) return hasSameMode(volume, claim) ? { do: "wake claim" } : modesDiffer(volume, claim);
  const wasMadeForIt = volume.metadata.annotations?.[provisionedBy] !== undefined;
  return { do: wasMadeForIt && volume.spec.persistentVolumeReclaimPolicy === "Delete" ? "reclaim" : "unbind" };
}

/** Such a volume is never found for the claim that it is reserved for; somebody has to say why. */
function modesDiffer(volume: PersistentVolume, claim: PersistentVolumeClaim): VolumeStep {
  const notice = (what: string): Notice => ({
    type: "Warning",
    reason: "VolumeMismatch",
    message: `Cannot bind PersistentVolume ${what} due to incompatible volumeMode.`,
  });
  return {
    do: "complain",
    toVolume: notice(`to requested PersistentVolumeClaim ${goQuote(claim.metadata.name ?? "")}`),
    toClaim: notice(`${goQuote(volume.metadata.name ?? "")} to requested PersistentVolumeClaim`),
  };
}

/**
 * A released volume may be reclaimed: nobody can still be bound to it.
 * @param claim as the cache has it
 * Source: pv_controller.go isVolumeReleased
 */
export function isReleased(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): boolean {
  const uid = volume.spec.claimRef?.uid;
  if (!uid) return false;
  if (claim === undefined || claim.metadata.uid !== uid) return true;
  return Boolean(claim.spec.volumeName) && claim.spec.volumeName !== volume.metadata.name;
}
