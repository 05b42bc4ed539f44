import { byCreation } from "@coxswain/apimachinery/objects/meta/creation";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { controllerRevisions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { RevisionData } from "./revision-data.ts";

/** Oldest first: by revision, then age, then name. Source: pkg/controller/history SortControllerRevisions */
export function byRevision(a: ControllerRevision, b: ControllerRevision): number {
  return Number(a.revision) - Number(b.revision) || byCreation(a, b); // an int64, which users may set to any value
}

/** The highest revision plus one, starting at 1. */
export function nextRevision(revisions: readonly ControllerRevision[]): number {
  return revisions.reduce((most, { revision }) => Math.max(most, Number(revision)), 0) + 1;
}

/** The `count` oldest revisions that are not in use. */
export function oldestIdle(
  revisions: readonly ControllerRevision[],
  count: number,
  isLive: (revision: ControllerRevision) => boolean,
): ControllerRevision[] {
  if (count <= 0) return [];
  return revisions
    .toSorted(byRevision)
    .filter((revision) => !isLive(revision))
    .slice(0, count);
}

/**
 * Builds a ControllerRevision of the owner's pod template.
 * @param data of the template
 * @param hashLabel name of the label that holds the hash
 */
export function newRevision(
  owner: KubeObject,
  gvk: GroupVersionKind,
  template: PodTemplateSpec,
  { data, hash, hashLabel, revision }: { data: RevisionData; hash: string; hashLabel: string; revision: number },
): ControllerRevision {
  const { name = "", namespace, annotations } = owner.metadata;
  return {
    apiVersion: formatGroupVersion(controllerRevisions),
    kind: controllerRevisions.kind,
    metadata: {
      name: `${name.slice(0, longestPrefix)}-${hash}`,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...template.metadata?.labels, [hashLabel]: hash },
      ...(annotations === undefined ? {} : { annotations: deepClone(annotations) }),
      ownerReferences: [newControllerRef(owner, gvk)],
    },
    data,
    revision,
  };
}

/** Source: controller_history.go ControllerRevisionName */
const longestPrefix = 223;
