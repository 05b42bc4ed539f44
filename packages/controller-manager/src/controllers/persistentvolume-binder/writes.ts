import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { Newest } from "@coxswain/apimachinery/informers/newest";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { bindCompleted, boundByController } from "@coxswain/apimachinery/volumes/annotations";
import { boundTo } from "@coxswain/apimachinery/volumes/matching";
import type { EventData } from "./plan-claim.ts";

/** Writes of the binder. Each returns the stored object and sends no request when nothing changes. */
export interface BindingWriter {
  /**
   * Updates the volume, its phase, the claim and its status, in this order. After a failure the next reconciliation
   * writes the missing parts.
   */
  bind(volume: PersistentVolume, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void>;
  /** Removes the claimRef if the controller set it; a volume pre-bound by a user keeps the claimRef without its uid. */
  unbind(volume: PersistentVolume, signal: AbortSignal): Promise<void>;
  /** @param notice recorded as an Event when the phase changes */
  setClaimPhase(
    claim: PersistentVolumeClaim,
    phase: string,
    volume: PersistentVolume | undefined,
    signal: AbortSignal,
    notice?: EventData,
  ): Promise<PersistentVolumeClaim>;
  /** @param notice stored as the status message, and recorded as an Event when the phase changes */
  setVolumePhase(volume: PersistentVolume, phase: string, signal: AbortSignal, notice?: EventData): Promise<PersistentVolume>;
  updateClaim(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolumeClaim>;
  updateVolume(volume: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume>;
}

/** @param volumes receives the written objects, as `claims` does, so that the next reconciliation does not read an older state */
export function newBindingWriter(
  client: Client,
  recorder: EventRecorder,
  volumes: Newest<PersistentVolume>,
  claims: Newest<PersistentVolumeClaim>,
): BindingWriter {
  const updateClaim = async (claim: PersistentVolumeClaim, signal: AbortSignal, subresource?: "status") => {
    const stored = await client.update(persistentVolumeClaims, claim, { subresource, signal });
    claims.written(stored);
    return stored;
  };
  const updateVolume = async (volume: PersistentVolume, signal: AbortSignal, subresource?: "status") => {
    const stored = await client.update(persistentVolumes, volume, { subresource, signal });
    volumes.written(stored);
    return stored;
  };

  const writer: BindingWriter = {
    updateClaim: (claim, signal) => updateClaim(claim, signal),
    updateVolume: (volume, signal) => updateVolume(volume, signal),
    async bind(volume, claim, signal) {
      const changedVolume = boundTo(volume, claim);
      const bound = changedVolume === undefined ? volume : await updateVolume(changedVolume, signal);
      await writer.setVolumePhase(bound, "Bound", signal);
      const changedClaim = claimBoundTo(claim, bound);
      const complete = changedClaim === undefined ? claim : await updateClaim(changedClaim, signal);
      await writer.setClaimPhase(complete, "Bound", bound, signal);
    },
    async unbind(volume, signal) {
      await writer.setVolumePhase(await updateVolume(unbound(volume), signal), "Available", signal);
    },
    async setClaimPhase(claim, phase, volume, signal, notice) {
      // The Event is recorded only on the transition to the phase.
      if (notice !== undefined && claim.status?.phase === phase) return claim;
      const status = claimStatus(claim, phase, volume);
      if (status === undefined) return claim;
      const stored = await updateClaim({ ...claim, status }, signal, "status");
      if (notice !== undefined) recorder.event(stored, notice.type, notice.reason, notice.message);
      return stored;
    },
    async setVolumePhase(volume, phase, signal, notice) {
      if (volume.status?.phase === phase) return volume;
      const { message: _, ...rest } = volume.status ?? {};
      const status = { ...rest, phase, ...(notice === undefined ? {} : { message: notice.message }) };
      const stored = await updateVolume({ ...volume, status }, signal, "status");
      if (notice !== undefined) recorder.event(stored, notice.type, notice.reason, notice.message);
      return stored;
    },
  };
  return writer;
}

/** @returns undefined when the claim is bound to the volume already */
function claimBoundTo(claim: PersistentVolumeClaim, volume: PersistentVolume): PersistentVolumeClaim | undefined {
  const annotations = { ...claim.metadata.annotations };
  const isNamed = claim.spec.volumeName === volume.metadata.name;
  if (isNamed && annotations[bindCompleted] !== undefined) return undefined;
  if (!isNamed) annotations[boundByController] ??= "yes";
  annotations[bindCompleted] ??= "yes";
  return {
    ...claim,
    metadata: { ...claim.metadata, annotations },
    spec: { ...claim.spec, volumeName: volume.metadata.name ?? "" },
  };
}

function unbound(volume: PersistentVolume): PersistentVolume {
  const { [boundByController]: ours, ...annotations } = volume.metadata.annotations ?? {};
  const { claimRef, ...spec } = volume.spec;
  if (ours === undefined) {
    const { uid: _, ...reserved } = claimRef ?? {};
    return { ...volume, spec: { ...spec, claimRef: reserved } };
  }
  const { annotations: __, ...metadata } = volume.metadata;
  return { ...volume, metadata: Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations }, spec };
}

/**
 * Computes the claim's status. Access modes always follow the volume; the capacity only changes with the phase,
 * because the file system of a bound claim may be smaller than its volume until it is resized.
 * @returns undefined when nothing changes
 * @throws Error for a volume without a capacity
 */
function claimStatus(
  claim: PersistentVolumeClaim,
  phase: string,
  volume: PersistentVolume | undefined,
): PersistentVolumeClaimStatus | undefined {
  const { accessModes: _, capacity, ...rest } = claim.status ?? {};
  const status: PersistentVolumeClaimStatus = { ...rest, phase };
  if (volume !== undefined) {
    if (volume.spec.accessModes !== undefined) status.accessModes = volume.spec.accessModes;
    if (capacity !== undefined) status.capacity = capacity;
    if (claim.status?.phase !== phase) {
      const size = volume.spec.capacity?.["storage"];
      if (size === undefined)
        throw new Error(`PersistentVolume ${goQuote(volume.metadata.name ?? "")} is without a storage capacity`);
      if (!isSameSize(size, capacity?.["storage"])) status.capacity = { ...volume.spec.capacity };
    }
  }
  return deepEqual(status, claim.status ?? {}) ? undefined : status;
}

function isSameSize(one: unknown, other: unknown): boolean {
  return other !== undefined && Quantity.parse(String(one)).equals(Quantity.parse(String(other)));
}
