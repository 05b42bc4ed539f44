import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Source: pkg/apis/core/v1/defaults.go */
export function defaultPersistentVolumeClaim(claim: PersistentVolumeClaim): void {
  claim.status ??= {};
  claim.status.phase ||= "Pending";
  claim.spec ??= {};
  defaultClaimSpec(claim.spec);
}

/** Also used for the claim templates of ephemeral volumes; sets the default in place. */
export function defaultClaimSpec(spec: PersistentVolumeClaimSpec): void {
  spec.volumeMode ??= "Filesystem";
}
