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
  { nodeLabels, taken, waits = false }: MatchOptions = {},
): PersistentVolume | undefined {
  const requested = requestedSize(claim);
  const selector = claim.spec.selector === undefined ? undefined : LabelSelector.fromObject(claim.spec.selector);
  const className = classNameOf(claim);
  let smallest: { volume: PersistentVolume; size: Quantity } | undefined;
  for (const volume of volumes) {
    if (taken?.has(volume.metadata.name ?? "")) continue;
    const reserved = isBoundTo(volume, claim);
    if (volume.spec.claimRef !== undefined && !reserved) continue;
    const size = sizeOf(volume);
    if (size.cmp(requested) < 0 || !hasSameMode(volume, claim) || volume.metadata.deletionTimestamp) continue;
    const isInReach = nodeLabels === undefined || fitsNode(volume, nodeLabels);
    if (reserved) return isInReach ? volume : undefined;
    if (!isInReach || (nodeLabels === undefined && waits)) continue;
    // A volume on its way to be available would only answer with a conflict.
    if (volume.status?.phase !== "Available" || classNameOf(volume) !== className) continue;
    if (selector !== undefined && !selector.matches(volume.metadata.labels)) continue;
    if (nodeLabels !== undefined && !hasAccessModes(volume, claim)) continue;
    if (smallest === undefined || smallest.size.cmp(size) > 0) smallest = { volume, size };
  }
  return smallest?.volume;
}

/** The binder's choice: among volumes with the fewest access modes beyond those asked for first. */
export function findBestVolume(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
  waits: boolean,
): PersistentVolume | undefined {
  const byModes = new Map<string, { count: number; volumes: PersistentVolume[] }>();
  for (const volume of volumes) {
    if (!hasAccessModes(volume, claim)) continue;
    const modes = new Set(volume.spec.accessModes);
    const key = [...modes].sort().join();
    const group = byModes.get(key);
    if (group === undefined) byModes.set(key, { count: modes.size, volumes: [volume] });
    else group.volumes.push(volume);
  }
  for (const group of [...byModes.values()].sort((a, b) => a.count - b.count)) {
    const found = findMatchingVolume(claim, group.volumes, { waits });
    if (found !== undefined) return found;
  }
  return undefined;
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
export function hasAccessModes(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
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

export function sizeOf(volume: PersistentVolume): Quantity {
  return amountOf(volume.spec.capacity?.["storage"]);
}

export function requestedSize(claim: PersistentVolumeClaim): Quantity {
  return amountOf(claim.spec.resources?.requests?.["storage"]);
}

const nothing = Quantity.fromValue(0);

function amountOf(text: unknown): Quantity {
  return text === undefined ? nothing : (Quantity.tryParse(String(text)) ?? nothing);
}
