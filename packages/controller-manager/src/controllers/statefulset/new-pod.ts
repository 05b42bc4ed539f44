import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { statefulSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { templateOf } from "../../history/revision-data.ts";
import { podFromTemplate } from "../../pods/pod-control.ts";
import { podName, withIdentity, withStorage } from "./identity.ts";

/** Label of Pods with the name of their revision. */
const revisionLabel = "controller-revision-hash";

/** Name of the Pod's revision; empty without the label. */
export function revisionOf({ metadata }: Pod): string {
  return metadata.labels?.[revisionLabel] ?? "";
}

/** The revision before and after an update; identical when no update is in progress. */
export interface Revisions {
  readonly current: ControllerRevision;
  readonly update: ControllerRevision;
}

/**
 * Builds the Pod of an ordinal: from the current revision below the partition, otherwise from the update revision.
 * Source: stateful_set_utils.go newVersionedStatefulSetPod
 */
export function newPod(set: StatefulSet, { current, update }: Revisions, ordinal: number): Pod {
  const revision = usesCurrentRevision(set, ordinal) ? current : update;
  const template = templateOf(revision) ?? set.spec.template;
  const name = podName(set, ordinal);
  const pod = podFromTemplate(set, template, newControllerRef(set, statefulSets));
  pod.metadata.name = name;
  pod.metadata.labels = { ...pod.metadata.labels, [revisionLabel]: revision.metadata.name ?? "" };
  pod.spec.hostname = name;
  pod.spec.subdomain = set.spec.serviceName;
  return withStorage(set, withIdentity(set, pod));
}

function usesCurrentRevision({ spec, status }: StatefulSet, ordinal: number): boolean {
  const { type, rollingUpdate } = spec.updateStrategy ?? {};
  if (rollingUpdate !== undefined) return ordinal < (rollingUpdate.partition ?? 0);
  return type === "RollingUpdate" && ordinal < (status?.currentReplicas ?? 0);
}
