import { newControllerRef } from "@coxswain/apimachinery/meta/owner-references";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { statefulSets } from "@coxswain/apimachinery/schema/kinds/resources";
import { templateOf } from "../../history/revision-data.ts";
import { podFromTemplate } from "../../pods/pod-control.ts";
import { podName, withIdentity, withStorage } from "./identity.ts";

/** On pods: the name of the revision that they were made of. */
const revisionLabel = "controller-revision-hash";

export function revisionOf({ metadata }: Pod): string {
  return metadata.labels?.[revisionLabel] ?? "";
}

/** The two revisions of a set: what it was, and what it is to become; one and the same when nothing changes. */
export interface Revisions {
  readonly current: ControllerRevision;
  readonly update: ControllerRevision;
}

/**
 * The pod of an ordinal, not created yet: below the partition of the revision that was, else of the one that is to be.
 * Source: stateful_set_utils.go newVersionedStatefulSetPod
 */
export function newPod(set: StatefulSet, { current, update }: Revisions, ordinal: number): Pod {
  const revision = staysBehind(set, ordinal) ? current : update;
  const template = templateOf(revision) ?? set.spec.template;
  const name = podName(set, ordinal);
  const pod = podFromTemplate(set, template, newControllerRef(set, statefulSets));
  pod.metadata.name = name;
  pod.metadata.labels = { ...pod.metadata.labels, [revisionLabel]: revision.metadata.name ?? "" };
  pod.spec.hostname = name;
  pod.spec.subdomain = set.spec.serviceName;
  return withStorage(set, withIdentity(set, pod));
}

function staysBehind({ spec, status }: StatefulSet, ordinal: number): boolean {
  const { type, rollingUpdate } = spec.updateStrategy ?? {};
  if (rollingUpdate !== undefined) return ordinal < (rollingUpdate.partition ?? 0);
  return type === "RollingUpdate" && ordinal < (status?.currentReplicas ?? 0);
}
