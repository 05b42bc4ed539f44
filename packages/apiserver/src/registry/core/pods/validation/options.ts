import type { ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import type { Container, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { quantityOf } from "../../../field-checks.ts";
import { podDeletionCostFault } from "./deletion-cost.ts";
import { isHugePage, pageSizeFits } from "./resources.ts";

/** Options of pod validation. Features that the stored object already uses stay allowed. */
export interface PodValidationOptions {
  /** --allow-privileged. */
  readonly allowPrivileged: boolean;
  readonly featureEnabled: (gate: string) => boolean;
  readonly hugePagesInDownwardApi: boolean;
  readonly anyPodDeletionCost: boolean;
  /** Allows amounts of huge pages that are not a multiple of the page size. */
  readonly partialHugePages: boolean;
  readonly windowsHostProcess: boolean;
  readonly longDnsConfig: boolean;
  /** Searches of the stored object beyond the limits without that, which stay allowed while they do not change. */
  readonly longSearches: readonly string[] | undefined;
  readonly os: boolean;
}

interface Carrier {
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?: PodSpec | undefined;
}

/**
 * @param old the stored pod or template, on update
 * Source: pkg/api/pod GetValidationOptionsFromPodSpecAndMeta
 */
export function podValidationOptions(
  featureEnabled: (gate: string) => boolean,
  old?: Carrier | undefined,
  allowPrivileged = true,
): PodValidationOptions {
  const spec = old?.spec;
  return {
    allowPrivileged,
    featureEnabled,
    hugePagesInDownwardApi: featureEnabled("DownwardAPIHugePages") || usesHugePagesInDownwardApi(spec),
    anyPodDeletionCost: !featureEnabled("PodDeletionCost") || podDeletionCostFault(old?.metadata?.annotations) !== undefined,
    partialHugePages: usesPartialHugePages(spec),
    windowsHostProcess: featureEnabled("WindowsHostProcessContainers") || setsHostProcess(spec),
    longDnsConfig: featureEnabled("ExpandedDNSConfig"),
    longSearches: longSearchesOf(spec),
    os: featureEnabled("IdentifyPodOS") || spec?.os !== undefined,
  };
}

/** Fields of a PodSpec with containers, in upstream's order. */
export const containerLists = ["initContainers", "containers", "ephemeralContainers"] as const;

function allContainers(spec: PodSpec | undefined): Container[] {
  return containerLists.flatMap((list) => spec?.[list] ?? []);
}

function usesHugePagesInDownwardApi(spec: PodSpec | undefined): boolean {
  const variables = allContainers(spec).flatMap(({ env }) => env ?? []);
  const files = (spec?.volumes ?? []).flatMap(({ downwardAPI }) => downwardAPI?.items ?? []); // projected ones do not count
  const references = [
    ...variables.map(({ valueFrom }) => valueFrom?.resourceFieldRef),
    ...files.map((file) => file.resourceFieldRef),
  ];
  return references.some((reference) => /^(limits|requests)\.hugepages-/.test(reference?.resource ?? ""));
}

function usesPartialHugePages(spec: PodSpec | undefined): boolean {
  const lists = allContainers(spec).flatMap(({ resources }) => [resources?.limits, resources?.requests]);
  return [...lists, spec?.overhead].some((list) =>
    Object.keys(list ?? {}).some((name) => isHugePage(name) && !pageSizeFits(name, quantityOf(list?.[name]))),
  );
}

function setsHostProcess(spec: PodSpec | undefined): boolean {
  const contexts = [spec?.securityContext, ...allContainers(spec).map((container) => container.securityContext)];
  return contexts.some((context) => context?.windowsOptions?.hostProcess !== undefined);
}

function longSearchesOf(spec: PodSpec | undefined): readonly string[] | undefined {
  const searches = spec?.dnsConfig?.searches ?? [];
  return searches.length > 6 || searches.join(" ").length > 256 ? searches : undefined;
}
