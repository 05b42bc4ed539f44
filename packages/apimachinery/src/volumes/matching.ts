import { Quantity } from "../objects/meta/quantity.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../objects/schema/kinds/core/v1.ts";
import type { StorageClass } from "../objects/schema/kinds/storage/v1.ts";
import { LabelSelector } from "../objects/selectors/label-selector.ts";
import { betaStorageClass, boundByController, selectedNode } from "./annotations.ts";
import { fitsNode } from "./node-affinity.ts";

/**
 * Matching of persistent volumes and claims, shared by the volume binder and the scheduler.
 * Source: pkg/controller/volume/persistentvolume/util/util.go, index.go
 */
interface MatchOptions {
  /** For the scheduler: only volumes reachable from a node with these labels. Also checks access modes. */
  readonly nodeLabels?: Readonly<Record<string, string>> | undefined;
  /** Names of volumes already assigned to other claims of the same Pod. */
  readonly taken?: ReadonlySet<string> | undefined;
  /** The claim's class is WaitForFirstConsumer: without `nodeLabels`, only a volume reserved for the claim matches. */
  readonly waits?: boolean | undefined;
  /** Reserved volumes come first, the others by size: the first that matches is the result. */
  readonly isSorted?: boolean | undefined;
}

/**
 * The volume reserved for the claim, else the smallest available one that is large enough.
 * @returns undefined when no volume matches, or when the reserved one is not reachable from the node
 */
export function findMatchingVolume(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
  options: MatchOptions = {},
): PersistentVolume | undefined {
  const fit = fitOf(claim, options);
  let best: PersistentVolume | undefined;
  for (const volume of volumes) {
    switch (fit(volume)) {
      case "reserved":
        return volume;
      case "reserved elsewhere":
        return undefined;
      case "free":
        if (options.isSorted) return volume;
        if (best === undefined || sizeOf(best).cmp(sizeOf(volume)) > 0) best = volume;
    }
  }
  return best;
}

/**
 * For the binder: among volumes with all requested access modes, prefers fewer access modes, then the reserved one, then
 * the smallest. So an available volume with fewer modes precedes a reserved one with more, as upstream.
 */
export function findBestVolume(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
  waits: boolean,
): PersistentVolume | undefined {
  const fit = fitOf(claim, { waits });
  let best: { volume: PersistentVolume; modes: number; reserved: boolean } | undefined;
  for (const volume of volumes) {
    const fits = fit(volume);
    if (fits === "no" || !hasAccessModes(volume, claim)) continue;
    const candidate = { volume, modes: new Set(volume.spec.accessModes).size, reserved: fits === "reserved" };
    if (best === undefined || isBetter(candidate, best)) best = candidate;
  }
  return best?.volume;
}

interface Candidate {
  readonly volume: PersistentVolume;
  readonly modes: number;
  readonly reserved: boolean;
}

function isBetter(one: Candidate, other: Candidate): boolean {
  if (one.modes !== other.modes) return one.modes < other.modes;
  if (one.reserved || other.reserved) return one.reserved && !other.reserved;
  return sizeOf(one.volume).cmp(sizeOf(other.volume)) < 0;
}

/** Access modes are only checked with `nodeLabels`: the binder checks them itself. */
type Fit = "no" | "free" | "reserved" | "reserved elsewhere";

/** Called with many volumes per claim: cheap and selective checks come first. */
function fitOf(
  claim: PersistentVolumeClaim,
  { nodeLabels, taken, waits = false }: MatchOptions,
): (volume: PersistentVolume) => Fit {
  const requested = requestedSize(claim);
  const selector = claim.spec.selector === undefined ? undefined : LabelSelector.ofCached(claim.spec.selector);
  const className = classNameOf(claim);
  const isInReach = (volume: PersistentVolume): boolean => nodeLabels === undefined || fitsNode(volume, nodeLabels);
  const isUsable = (volume: PersistentVolume): boolean =>
    hasSameMode(volume, claim) && !volume.metadata.deletionTimestamp && sizeOf(volume).cmp(requested) >= 0;

  return (volume) => {
    if (taken?.has(volume.metadata.name ?? "")) return "no";
    if (volume.spec.claimRef !== undefined) {
      if (!isBoundTo(volume, claim) || !isUsable(volume)) return "no";
      return isInReach(volume) ? "reserved" : "reserved elsewhere";
    }
    // Updating a volume that is still becoming available would only cause a conflict.
    if ((waits && nodeLabels === undefined) || volume.status?.phase !== "Available") return "no";
    if (classNameOf(volume) !== className || !isUsable(volume) || !isInReach(volume)) return "no";
    if (selector !== undefined && !selector.matches(volume.metadata.labels)) return "no";
    return nodeLabels === undefined || hasAccessModes(volume, claim) ? "free" : "no";
  };
}

/** Reason why the volume that a claim names cannot be bound to it; undefined when it can. */
export function mismatchOf(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  if (volume.metadata.deletionTimestamp) return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`;
  if (sizeOf(volume).cmp(requestedSize(claim)) < 0) return "requested PV is too small";
  if (classNameOf(volume) !== classNameOf(claim)) return "storageClassName does not match";
  if (!hasSameMode(volume, claim)) return "incompatible volumeMode";
  if (!hasAccessModes(volume, claim)) return "incompatible accessMode";
  return undefined;
}

/** True for a volume bound to the claim or reserved for it. A claimRef without uid matches by name. */
export function isBoundTo({ spec: { claimRef } }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  if (claimRef === undefined || claimRef.name !== metadata.name || claimRef.namespace !== metadata.namespace) return false;
  return !claimRef.uid || claimRef.uid === metadata.uid;
}

/** The storage class, `""` for none. The beta annotation takes precedence over the field. */
export function classNameOf({ metadata, spec }: PersistentVolumeClaim | PersistentVolume): string {
  return metadata.annotations?.[betaStorageClass] ?? spec.storageClassName ?? "";
}

/** True when the volume has all access modes that the claim requests. */
function hasAccessModes(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const offered = distinct(volume.spec.accessModes ?? []);
  return distinct(claim.spec.accessModes ?? []).every((mode) => offered.includes(mode));
}

/** There are four modes; a list may repeat them 100,000 times. */
const distinct = (modes: readonly string[]): readonly string[] => (modes.length > 4 ? [...new Set(modes)] : modes);

/** True for the same volumeMode; Filesystem by default. */
export function hasSameMode(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return (volume.spec.volumeMode ?? "Filesystem") === (claim.spec.volumeMode ?? "Filesystem");
}

/** True for a WaitForFirstConsumer class. @throws Error for a class without volumeBindingMode */
export function waitsForConsumer(storageClass: StorageClass | undefined): boolean {
  if (storageClass === undefined) return false;
  const { volumeBindingMode, metadata } = storageClass;
  if (volumeBindingMode === undefined)
    throw new Error(`VolumeBindingMode not set for StorageClass ${JSON.stringify(metadata.name)}`);
  return volumeBindingMode === "WaitForFirstConsumer";
}

/** True when the scheduler has selected a node, so that the volume may be provisioned. */
export function hasSelectedNode({ metadata }: PersistentVolumeClaim): boolean {
  return metadata.annotations?.[selectedNode] !== undefined;
}

/** The volume with its claimRef set to the claim; undefined when it is bound already. */
export function boundTo(volume: PersistentVolume, claim: PersistentVolumeClaim): PersistentVolume | undefined {
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  const { claimRef } = volume.spec;
  const refers = claimRef !== undefined && claimRef.name === name && claimRef.namespace === namespace && claimRef.uid === uid;
  if (refers) return undefined;
  const marked = isBoundTo(volume, claim) || volume.metadata.annotations?.[boundByController] !== undefined;
  const annotations = marked ? volume.metadata.annotations : { ...volume.metadata.annotations, [boundByController]: "yes" };
  const reference = { kind: "PersistentVolumeClaim", namespace, name, uid, apiVersion: "v1", resourceVersion };
  return {
    ...volume,
    metadata: annotations === undefined ? volume.metadata : { ...volume.metadata, annotations },
    // Cast: a copy has the type of its original.
    spec: { ...volume.spec, claimRef: JSON.parse(JSON.stringify(reference)) as typeof claimRef & object },
  };
}

/** A pure cache of parsed sizes: objects from listers never change. */
const sizes = new WeakMap<PersistentVolume | PersistentVolumeClaim, Quantity>();

/** The volume's storage capacity; 0 when it is absent or invalid. */
export function sizeOf(volume: PersistentVolume): Quantity {
  return sizes.getOrInsertComputed(volume, () => amountOf(volume.spec.capacity?.["storage"]));
}

/** The storage that the claim requests; 0 when it is absent or invalid. */
export function requestedSize(claim: PersistentVolumeClaim): Quantity {
  return sizes.getOrInsertComputed(claim, () => amountOf(claim.spec.resources?.requests?.["storage"]));
}

const nothing = Quantity.fromValue(0);

function amountOf(text: unknown): Quantity {
  return text === undefined ? nothing : (Quantity.tryParse(String(text)) ?? nothing);
}
