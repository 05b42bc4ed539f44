/**
 * What APIServices say: who answers for a group version, whether it can be reached, and in which order groups and
 * versions are announced.
 * Source: kube-aggregator pkg/apis/apiregistration/v1/helper/helpers.go, pkg/apiserver/handler_apis.go
 */
import { compareKubeVersions, type GroupVersion } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type {
  APIServiceCondition,
  APIService as ApiServiceFields,
  ServiceReference,
} from "@coxswain/apimachinery/schema/kinds/apiregistration/v1";

export type ApiService = ApiServiceFields & KubeObject;

/** The group that the aggregator serves itself. No APIService stands for it, and it is announced first. */
export const aggregatorGroup = "apiregistration.k8s.io";

/** The one that stands for all of `/api`. */
export const legacyName = "v1.";

const defaultServicePort = 443;

/** A group as discovery announces it; the first version is the preferred one. */
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

/** undefined: this server answers itself. */
export function serviceOf({ spec }: ApiService): Required<ServiceReference> | undefined {
  const service = spec?.service;
  if (!service) return undefined;
  return { namespace: service.namespace ?? "", name: service.name ?? "", port: service.port ?? defaultServicePort };
}

export function availableCondition({ status }: ApiService): APIServiceCondition | undefined {
  return status?.conditions?.find(({ type }) => type === "Available");
}

export function isAvailable(service: ApiService): boolean {
  return availableCondition(service)?.status === "True";
}

/** Without the core group, which is not at `/apis`. Whether anybody answers for them makes no difference. */
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

/** A group stands where its highest priority puts it. */
function byGroupPriority(a: ApiService, b: ApiService): number {
  const difference = (b.spec?.groupPriorityMinimum ?? 0) - (a.spec?.groupPriorityMinimum ?? 0);
  return difference !== 0 ? difference : nameOf(a) < nameOf(b) ? -1 : 1;
}

function byVersionPriority(a: ApiService, b: ApiService): number {
  const difference = (b.spec?.versionPriority ?? 0) - (a.spec?.versionPriority ?? 0);
  return difference !== 0 ? difference : compareKubeVersions(groupVersionOf(a).version, groupVersionOf(b).version);
}
