import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { LabelSelector as LabelSelectorObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  TopologySelectorTerm,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CSIDriver, StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { CSIStorageCapacity } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1beta1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { labelOf } from "@coxswain/apimachinery/scheduling/labels";
import { selectedNode } from "@coxswain/apimachinery/volumes/annotations";
import { classNameOf, findMatchingVolume, requestedSize, sizeOf } from "@coxswain/apimachinery/volumes/matching";
import { fitsNode } from "@coxswain/apimachinery/volumes/node-affinity";

/** Bindings and provisioning that a pod's claims need on one node. */
export interface PodVolumes {
  readonly bindings: readonly { readonly volume: PersistentVolume; readonly claim: PersistentVolumeClaim }[];
  /** Claims for which a volume has to be provisioned. */
  readonly provisions: readonly PersistentVolumeClaim[];
}

/** Volumes of one class, in the order in which a claim takes them. */
export interface ClassVolumes {
  /** By namespace and name of the claim for which they are reserved. */
  readonly reserved: ReadonlyMap<string, readonly PersistentVolume[]>;
  /** The others, smaller ones first. */
  readonly free: readonly PersistentVolume[];
}

/** Read access to the storage objects of the cluster. */
export interface StorageView {
  volume(name: string): PersistentVolume | undefined;
  /** The volume as the CSI driver sees it when its in-tree plugin is migrated on the node, else unchanged. */
  asOn(volume: PersistentVolume, node: Node): PersistentVolume;
  /** Volumes of a storage class; `""` for those without a class. */
  volumesOf(className: string): ClassVolumes;
  storageClass(name: string): StorageClass | undefined;
  driver(name: string): CSIDriver | undefined;
  capacities(): readonly CSIStorageCapacity[];
  /** Feature gate CSIStorageCapacity: capacity is checked before provisioning. */
  readonly checksCapacity: boolean;
}

const conflictReasons = {
  nodeAffinity: "node(s) had volume node affinity conflict",
  nothingToBind: "node(s) didn't find available persistent volumes to bind",
  noSpace: "node(s) did not have enough free storage",
  volumeGone: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
} as const;

const noProvisioner = "kubernetes.io/no-provisioner";

/**
 * Pure: checks whether the pod's claims can be satisfied on the node. Volumes of bound claims have to be reachable from
 * it. An unbound claim takes the smallest suitable volume, or one is to be provisioned.
 * @returns the reasons when the node does not fit
 * @throws Error for claims without a class or whose class does not exist
 * Source: pkg/scheduler/framework/plugins/volumebinding/binder.go FindPodVolumes
 */
export function findPodVolumes(
  bound: readonly PersistentVolumeClaim[],
  unbound: readonly PersistentVolumeClaim[],
  node: Node,
  view: StorageView,
): PodVolumes | string[] {
  const reasons: string[] = [];
  const problem = boundProblem(bound, node, view);
  if (problem === "nodeAffinity") reasons.push(conflictReasons.nodeAffinity);
  const found = findForUnbound(unbound, node, view);
  if (typeof found === "string") reasons.push(found);
  if (problem === "volumeGone") reasons.push(conflictReasons.volumeGone);
  return reasons.length > 0 || typeof found === "string" ? reasons : found;
}

function boundProblem(
  claims: readonly PersistentVolumeClaim[],
  node: Node,
  view: StorageView,
): "nodeAffinity" | "volumeGone" | undefined {
  for (const { spec } of claims) {
    const volume = view.volume(spec.volumeName ?? "");
    if (volume === undefined) return "volumeGone";
    if (!fitsNode(view.asOn(volume, node), node.metadata.labels ?? {})) return "nodeAffinity";
  }
  return undefined;
}

/** Puts volumes in order once for all claims and nodes. */
export function classVolumesOf(volumes: readonly PersistentVolume[]): ClassVolumes {
  const reserved = Map.groupBy(
    volumes.filter(({ spec }) => spec.claimRef !== undefined),
    ({ spec: { claimRef } }) => `${claimRef?.namespace}/${claimRef?.name}`,
  );
  const free = volumes.filter(({ spec }) => spec.claimRef === undefined);
  return { reserved, free: free.sort((a, b) => sizeOf(a).cmp(sizeOf(b))) };
}

function findForUnbound(claims: readonly PersistentVolumeClaim[], node: Node, view: StorageView): PodVolumes | string {
  const nodeLabels = node.metadata.labels ?? {};
  const provisions: PersistentVolumeClaim[] = [];
  const toMatch: PersistentVolumeClaim[] = [];
  for (const claim of claims) {
    const chosen = claim.metadata.annotations?.[selectedNode];
    if (chosen !== undefined && chosen !== node.metadata.name) return conflictReasons.nothingToBind;
    (chosen === undefined ? toMatch : provisions).push(claim);
  }
  const bindings: PodVolumes["bindings"][number][] = [];
  const taken = new Set<string>();
  // Of several claims none has to search among the volumes that the node does not reach.
  const inReach = new Map<string, readonly PersistentVolume[]>();
  const freeFor = (className: string): readonly PersistentVolume[] => {
    const { free } = view.volumesOf(className);
    if (toMatch.length < 2) return free;
    return inReach.getOrInsertComputed(className, () => free.filter((volume) => fitsNode(volume, nodeLabels)));
  };
  // Small claims first, so that they do not take a volume that a larger one needs.
  for (const claim of toMatch.toSorted((a, b) => requestedSize(a).cmp(requestedSize(b)))) {
    const className = classNameOf(claim);
    const reserved = view.volumesOf(className).reserved.get(`${claim.metadata.namespace}/${claim.metadata.name}`) ?? [];
    const candidates = reserved.length > 0 ? [...reserved, ...freeFor(className)] : freeFor(className);
    const volume = findMatchingVolume(claim, candidates, { nodeLabels, taken, waits: true, isSorted: true });
    if (volume === undefined) provisions.push(claim);
    else {
      taken.add(volume.metadata.name ?? "");
      bindings.push({ volume, claim });
    }
  }
  for (const claim of provisions) {
    const problem = provisionProblem(claim, nodeLabels, view);
    if (problem !== undefined) return problem;
  }
  return { bindings, provisions };
}

function provisionProblem(
  claim: PersistentVolumeClaim,
  labels: Readonly<Record<string, string>>,
  view: StorageView,
): string | undefined {
  const className = classNameOf(claim);
  const { namespace, name } = claim.metadata;
  if (className === "") throw new Error(`no class for claim ${JSON.stringify(`${namespace}/${name}`)}`);
  const storageClass = view.storageClass(className);
  if (storageClass === undefined) throw new Error(`failed to find storage class ${JSON.stringify(className)}`);
  const { provisioner, allowedTopologies = [] } = storageClass;
  if (!provisioner || provisioner === noProvisioner) return conflictReasons.nothingToBind;
  if (!matchesTopologies(allowedTopologies, labels)) return conflictReasons.nothingToBind;
  return hasSpace(claim, className, provisioner, labels, view) ? undefined : conflictReasons.noSpace;
}

/** Source: pkg/apis/core/v1/helper MatchTopologySelectorTerms */
function matchesTopologies(terms: readonly TopologySelectorTerm[], labels: Readonly<Record<string, string>>): boolean {
  if (terms.length === 0) return true;
  return terms.some(
    ({ matchLabelExpressions = [] }) =>
      matchLabelExpressions.length > 0 &&
      matchLabelExpressions.every(({ key, values }) => values.some((value) => value === labelOf(labels, key))),
  );
}

/** Checks CSIStorageCapacity objects; true for drivers that do not publish capacity. */
function hasSpace(
  claim: PersistentVolumeClaim,
  className: string,
  provisioner: string,
  labels: Readonly<Record<string, string>>,
  view: StorageView,
): boolean {
  if (!view.checksCapacity || claim.spec.resources?.requests?.["storage"] === undefined) return true;
  if (!view.driver(provisioner)?.spec.storageCapacity) return true;
  const size = requestedSize(claim);
  return view.capacities().some(({ storageClassName, capacity, maximumVolumeSize, nodeTopology }) => {
    const limit = Quantity.tryParse(maximumVolumeSize ?? capacity ?? "");
    return storageClassName === className && limit !== undefined && limit.cmp(size) >= 0 && reaches(nodeTopology, labels);
  });
}

const reaches = (topology: LabelSelectorObject | undefined, labels: Readonly<Record<string, string>>): boolean =>
  topology !== undefined && LabelSelector.ofCached(topology).matches(labels);
