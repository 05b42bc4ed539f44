/**
 * Reads APIServices: the service of a group version, its availability, and the order of groups and versions in discovery.
 * Source: kube-aggregator pkg/apis/apiregistration/v1/helper/helpers.go, pkg/apiserver/handler_apis.go
 */
import { compareKubeVersions, type GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  APIServiceCondition,
  APIService as ApiServiceFields,
  ServiceReference,
} from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";

export type ApiService = ApiServiceFields & KubeObject;

/** The group served by the aggregator itself. It has no APIService and is listed first in discovery. */
export const aggregatorGroup = "apiregistration.k8s.io";

/** Name of the APIService for all of `/api`. */
export const legacyName = "v1.";

const defaultServicePort = 443;

/** A group as listed in discovery; the first version is the preferred one. */
export interface AnnouncedGroup {
  readonly name: string;
  readonly versions: readonly string[];
}

export function nameOf({ metadata }: ApiService): string {
  return metadata.name ?? "";
}

export function groupVersionOf({ spec }: ApiService): GroupVersion {
  return { group: spec?.group ?? "", version: spec?.version ?? "" };
}

/** undefined for group versions served locally. */
export function serviceOf({ spec }: ApiService): Required<ServiceReference> | undefined {
  const service = spec?.service;
  if (!service) return undefined;
  return { namespace: service.namespace ?? "", name: service.name ?? "", port: service.port ?? defaultServicePort };
}

export function availableCondition({ status }: ApiService): APIServiceCondition | undefined {
  return status?.conditions?.find(({ type }) => type === "Available");
}

/** Whether the condition Available is True; false without the condition, as for an APIService that was not probed yet. */
export function isAvailable(service: ApiService): boolean {
  return availableCondition(service)?.status === "True";
}

/** Groups without the core group, which is not below `/apis`. Includes unavailable ones, as upstream. */
export function announcedGroups(services: readonly ApiService[]): AnnouncedGroup[] {
  const byGroup = new Map<string, ApiService[]>();
  for (const service of services.toSorted(byGroupPriority)) {
    const { group } = groupVersionOf(service);
    if (group === "") continue;
    const known = byGroup.get(group);
    if (known === undefined) byGroup.set(group, [service]);
    else known.push(service);
  }
  return [...byGroup].map(([name, group]) => ({
    name,
    versions: group.toSorted(byVersionPriority).map((service) => groupVersionOf(service).version),
  }));
}

/** A group is ordered by the highest groupPriorityMinimum of its versions. */
function byGroupPriority(a: ApiService, b: ApiService): number {
  const difference = (b.spec?.groupPriorityMinimum ?? 0) - (a.spec?.groupPriorityMinimum ?? 0);
  return difference !== 0 ? difference : nameOf(a) < nameOf(b) ? -1 : 1;
}

function byVersionPriority(a: ApiService, b: ApiService): number {
  const difference = (b.spec?.versionPriority ?? 0) - (a.spec?.versionPriority ?? 0);
  return difference !== 0 ? difference : compareKubeVersions(groupVersionOf(a).version, groupVersionOf(b).version);
}
