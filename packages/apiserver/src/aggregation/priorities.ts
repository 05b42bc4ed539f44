/**
 * Discovery priorities of the built-in groups and versions; higher values come first.
 * Source: cmd/kube-apiserver/app/aggregator.go apiVersionPriorities
 */
import type { GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";

export interface Priorities {
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
}

/** Custom resources come after all built-in groups. Source: crdregistration_controller.go */
export const customResourcePriorities: Priorities = { groupPriorityMinimum: 1000, versionPriority: 100 };

const groupPriorities: ReadonlyMap<string, number> = new Map([
  ["", 18_000],
  ["apps", 17_800],
  ["events.k8s.io", 17_750],
  ["authentication.k8s.io", 17_700],
  ["authorization.k8s.io", 17_600],
  ["autoscaling", 17_500],
  ["batch", 17_400],
  ["certificates.k8s.io", 17_300],
  ["networking.k8s.io", 17_200],
  ["policy", 17_100],
  ["rbac.authorization.k8s.io", 17_000],
  ["storage.k8s.io", 16_800],
  ["apiextensions.k8s.io", 16_700],
  ["admissionregistration.k8s.io", 16_700],
  ["scheduling.k8s.io", 16_600],
  ["coordination.k8s.io", 16_500],
  ["node.k8s.io", 16_300],
  ["discovery.k8s.io", 16_200],
  ["flowcontrol.apiserver.k8s.io", 16_100],
  ["internal.apiserver.k8s.io", 16_000],
]);

/** Exceptions to the default version priorities: 15 for stable, 9 for beta, 1 for alpha versions. */
const versionPriorities: ReadonlyMap<string, number> = new Map([
  ["/v1", 1],
  ["events.k8s.io/v1beta1", 5],
  ["autoscaling/v2", 30],
  ["autoscaling/v2beta2", 1],
  ["discovery.k8s.io/v1beta1", 12],
  ["flowcontrol.apiserver.k8s.io/v1beta2", 12],
  ["internal.apiserver.k8s.io/v1alpha1", 9],
]);

/** @returns undefined for group versions that are not built in, and for the aggregator's own group. */
export function prioritiesOf({ group, version }: GroupVersion): Priorities | undefined {
  const groupPriorityMinimum = groupPriorities.get(group);
  if (groupPriorityMinimum === undefined) return undefined;
  const byStage = version.includes("alpha") ? 1 : version.includes("beta") ? 9 : 15;
  return { groupPriorityMinimum, versionPriority: versionPriorities.get(`${group}/${version}`) ?? byStage };
}
