import { Quantity } from "../meta/quantity.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../schema/kinds/core/v1.ts";
import type { StorageClass } from "../schema/kinds/storage/v1.ts";
import { LabelSelector } from "../selectors/label-selector.ts";
import { betaStorageClass, boundByController, selectedNode } from "./annotations.ts";
import { fitsNode } from "./node-affinity.ts";

/**
 * Which volume fits which claim: the one answer that the binder and the scheduler share.
 * Source: pkg/controller/volume/persistentvolume/util/util.go, index.go
 */
export interface MatchOptions {
  /** The scheduler's question: which volume would do on a node with these labels? Access modes are checked then, too. */
  readonly nodeLabels?: Readonly<Record<string, string>> | undefined;
  /** Names of volumes that another claim of the same Pod takes already. */
  readonly taken?: ReadonlySet<string> | undefined;
  /** The claim waits for its first consumer: without a node only a volume that is reserved for it will do. */
  readonly waits?: boolean | undefined;
}

/**
 * The volume that is reserved for the claim, else the smallest free one that is large enough.
 * @returns undefined when there is none, and when the reserved one is out of the node's reach
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
        if (best === undefined || sizeOf(best).cmp(sizeOf(volume)) > 0) best = volume;
    }
  }
  return best;
}

/**
 * The binder's choice: of the volumes with the fewest access modes, and at least those asked for, the reserved one or the
 * smallest. (A free one with fewer modes is taken before a reserved one with more, as upstream does.)
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

/** Access modes count only on a node: the binder asks for them before. */
type Fit = "no" | "free" | "reserved" | "reserved elsewhere";

/** Looks at many volumes for one claim: what is cheap to see and rules most of them out comes first. */
function fitOf(
  claim: PersistentVolumeClaim,
  { nodeLabels, taken, waits = false }: MatchOptions,
): (volume: PersistentVolume) => Fit {
  const requested = requestedSize(claim);
  const selector = claim.spec.selector === undefined ? undefined : LabelSelector.fromObject(claim.spec.selector);
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
    // A volume on its way to be available would only answer with a conflict.
    if ((waits && nodeLabels === undefined) || volume.status?.phase !== "Available") return "no";
    if (classNameOf(volume) !== className || !isUsable(volume) || !isInReach(volume)) return "no";
    if (selector !== undefined && !selector.matches(volume.metadata.labels)) return "no";
    return nodeLabels === undefined || hasAccessModes(volume, claim) ? "free" : "no";
  };
}

/** Why a volume that a claim names will not do. @returns undefined when it does */
export function mismatchOf(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  if (volume.metadata.deletionTimestamp) return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`;
  if (sizeOf(volume).cmp(requestedSize(claim)) < 0) return "requested PV is too small";
  if (classNameOf(volume) !== classNameOf(claim)) return "storageClassName does not match";
  if (!hasSameMode(volume, claim)) return "incompatible volumeMode";
  if (!hasAccessModes(volume, claim)) return "incompatible accessMode";
  return undefined;
}

/** Bound to the claim, or reserved for it: by its name alone as long as the uid is not filled in. */
export function isBoundTo({ spec: { claimRef } }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  if (claimRef === undefined || claimRef.name !== metadata.name || claimRef.namespace !== metadata.namespace) return false;
  return !claimRef.uid || claimRef.uid === metadata.uid;
}

/** `""`: no class. An annotation from before there was a field beats the field. */
export function classNameOf({ metadata, spec }: PersistentVolumeClaim | PersistentVolume): string {
  return metadata.annotations?.[betaStorageClass] ?? spec.storageClassName ?? "";
}

/** A volume has all modes that the claim asks for. */
function hasAccessModes(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const offered = volume.spec.accessModes ?? [];
  return (claim.spec.accessModes ?? []).every((mode) => offered.includes(mode));
}

export function hasSameMode(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return (volume.spec.volumeMode ?? "Filesystem") === (claim.spec.volumeMode ?? "Filesystem");
}

/** The claim's class has volumes bound only when a Pod that uses them is placed. @throws Error for a class that does not say */
export function waitsForConsumer(storageClass: StorageClass | undefined): boolean {
  if (storageClass === undefined) return false;
  const { volumeBindingMode, metadata } = storageClass;
  if (volumeBindingMode === undefined)
    throw new Error(`VolumeBindingMode not set for StorageClass ${JSON.stringify(metadata.name)}`);
  return volumeBindingMode === "WaitForFirstConsumer";
}

/** The scheduler has chosen a node for it: its volume may be made. */
export function hasSelectedNode({ metadata }: PersistentVolumeClaim): boolean {
  return metadata.annotations?.[selectedNode] !== undefined;
}

/** The volume as it is once bound to the claim. @returns undefined when it is so already */
export function boundTo(volume: PersistentVolume, claim: PersistentVolumeClaim): PersistentVolume | undefined {
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  const { claimRef } = volume.spec;
  const refers = claimRef !== undefined && claimRef.name === name && claimRef.namespace === namespace && claimRef.uid === uid;
  const marked = isBoundTo(volume, claim) || volume.metadata.annotations?.[boundByController] !== undefined;
  if (refers && marked) return undefined;
  const annotations = marked ? volume.metadata.annotations : { ...volume.metadata.annotations, [boundByController]: "yes" };
  const reference = { kind: "PersistentVolumeClaim", namespace, name, uid, apiVersion: "v1", resourceVersion };
  return {
    ...volume,
    metadata: annotations === undefined ? volume.metadata : { ...volume.metadata, annotations },
    spec: { ...volume.spec, claimRef: refers ? claimRef : (JSON.parse(JSON.stringify(reference)) as typeof claimRef & object) },
  };
}

/** Read often and by everybody, of objects that never change. */
const sizes = new WeakMap<PersistentVolume, Quantity>();

export function sizeOf(volume: PersistentVolume): Quantity {
  let size = sizes.get(volume);
  if (size === undefined) {
    size = amountOf(volume.spec.capacity?.["storage"]);
    sizes.set(volume, size);
  }
  return size;
}

export function requestedSize(claim: PersistentVolumeClaim): Quantity {
  return amountOf(claim.spec.resources?.requests?.["storage"]);
}

const nothing = Quantity.fromValue(0);

function amountOf(text: unknown): Quantity {
  return text === undefined ? nothing : (Quantity.tryParse(String(text)) ?? nothing);
}
