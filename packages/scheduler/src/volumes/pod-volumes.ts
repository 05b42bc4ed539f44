import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { LabelSelector as LabelSelectorObject } from "@coxswain/apimachinery/meta/types";
import { labelOf } from "@coxswain/apimachinery/scheduling/labels";
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  TopologySelectorTerm,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CSIDriver, StorageClass } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import type { CSIStorageCapacity } from "@coxswain/apimachinery/schema/kinds/storage/v1beta1";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import { selectedNode } from "@coxswain/apimachinery/volumes/annotations";
import { classNameOf, findMatchingVolume, requestedSize } from "@coxswain/apimachinery/volumes/matching";
import { fitsNode } from "@coxswain/apimachinery/volumes/node-affinity";

/** What has to happen on one node before a pod's volumes are there. */
export interface PodVolumes {
  readonly bindings: readonly { readonly volume: PersistentVolume; readonly claim: PersistentVolumeClaim }[];
  /** Claims for which a volume has to be made. */
  readonly provisions: readonly PersistentVolumeClaim[];
}

/** What is known of storage. */
export interface StorageView {
  volume(name: string): PersistentVolume | undefined;
  /** The same volume in terms of the CSI driver that has taken it over on the node, if one has. */
  asOn(volume: PersistentVolume, node: Node): PersistentVolume;
  /** Of one class; `""` for none. */
  volumesOf(className: string): readonly PersistentVolume[];
  storageClass(name: string): StorageClass | undefined;
  driver(name: string): CSIDriver | undefined;
  capacities(): readonly CSIStorageCapacity[];
  /** CSIStorageCapacity: space is looked at before a volume is asked for. */
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
 * Pure: can a pod's claims be served on the node, and by what? Claims that are bound have to have volumes in reach; for
 * the others a free volume is found, the smallest that will do, or one is to be made.
 * @returns the reasons why not
 * @throws Error for claims that can never be served
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
  // Small claims first, so that none takes what a larger one needs.
  for (const claim of toMatch.toSorted((a, b) => requestedSize(a).cmp(requestedSize(b)))) {
    const volume = findMatchingVolume(claim, view.volumesOf(classNameOf(claim)), { nodeLabels, taken, waits: true });
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

/** Only drivers that publish their capacity are held to it. */
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
  topology !== undefined && LabelSelector.fromObject(topology).matches(labels);
