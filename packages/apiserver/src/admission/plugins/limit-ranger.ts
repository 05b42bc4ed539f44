/**
 * Enforces LimitRanges: sets default requests and limits of containers, and rejects pods and claims outside the bounds.
 * Source: plugin/pkg/admission/limitranger/admission.go
 */
import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Container, LimitRangeItem, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { limitRanges } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import {
  addResources,
  maskResources,
  maxResources,
  quantityIn,
  type ResourceList,
} from "@coxswain/apimachinery/quota/resource-list";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { namespacedLookup } from "./lookups.ts";
import { isOn } from "./pod-of.ts";

interface LimitRangeObject extends KubeObject {
  spec?: { limits?: LimitRangeItem[] };
}

const annotation = "kubernetes.io/limit-ranger";

export function limitRanger(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespacedLookup<LimitRangeObject>(ctx.informers, ctx.client, limitRanges);
  return {
    name: "LimitRanger",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    resources: ["pods", "persistentvolumeclaims"],
    ready: () => lookup.synced,
    async admit(attributes) {
      if (!isLimited(attributes) || !isOn<Pod>(attributes, "pods")) return;
      for (const { spec } of await lookup.in(attributes.namespace)) fillPod(attributes.object!, spec?.limits ?? []);
    },
    async validate(attributes) {
      if (!isLimited(attributes)) return;
      for (const { spec } of await lookup.in(attributes.namespace)) {
        const problems = problemsIn(attributes, spec?.limits ?? []);
        if (problems.length > 0) throw refuse(attributes, joinedFailures(problems));
      }
    },
  };
}

function problemsIn(attributes: AdmissionAttributes, limits: readonly LimitRangeItem[]): string[] {
  if (isOn<Pod>(attributes, "pods")) return podProblems(attributes.object!, limits);
  return isOn<PersistentVolumeClaim>(attributes, "persistentvolumeclaims") ? claimProblems(attributes.object!, limits) : [];
}

/** Pods are checked on create only: their resources are immutable. */
function isLimited({ resource, subresource, operation, oldObject }: AdmissionAttributes): boolean {
  if (resource.group !== "" || subresource !== "") return false;
  if (operation === "UPDATE" && oldObject?.metadata.deletionTimestamp) return false;
  return resource.resource === "persistentvolumeclaims" || (resource.resource === "pods" && operation === "CREATE");
}

function fillPod(pod: Pod, limits: readonly LimitRangeItem[]): void {
  const requests: Record<string, string> = {};
  const upper: Record<string, string> = {};
  for (const limit of limits) {
    if (limit.type !== "Container") continue;
    Object.assign(requests, limit.defaultRequest);
    Object.assign(upper, limit.default);
  }
  const done: string[] = [];
  const fillAll = (containers: readonly Container[] | undefined, what: string): void => {
    for (const container of containers ?? [])
      done.push(...fillContainer(container, requests, upper, `${what} ${container.name}`));
  };
  fillAll(pod.spec?.containers, "container");
  fillAll(pod.spec?.initContainers, "init container");
  if (done.length === 0) return;
  const { metadata } = pod;
  metadata.annotations = { ...metadata.annotations, [annotation]: `LimitRanger plugin set: ${done.join("; ")}` };
}

function fillContainer(container: Container, requests: ResourceList, limits: ResourceList, what: string): string[] {
  const had = container.resources ?? {};
  const missing = (wanted: ResourceList, present: ResourceList | undefined): string[] =>
    Object.keys(wanted)
      .filter((name) => present === undefined || !Object.hasOwn(present, name))
      .sort();
  const newRequests = missing(requests, had.requests);
  const newLimits = missing(limits, had.limits);
  if (newRequests.length === 0 && newLimits.length === 0) return [];
  const merged = (wanted: ResourceList, names: readonly string[], present: ResourceList | undefined): ResourceList => ({
    ...present,
    ...Object.fromEntries(names.map((name) => [name, wanted[name]!])),
  });
  container.resources = {
    ...had,
    ...(newLimits.length > 0 ? { limits: merged(limits, newLimits, had.limits) } : {}),
    ...(newRequests.length > 0 ? { requests: merged(requests, newRequests, had.requests) } : {}),
  };
  return [
    ...(newRequests.length > 0 ? [`${newRequests.join(", ")} request for ${what}`] : []),
    ...(newLimits.length > 0 ? [`${newLimits.join(", ")} limit for ${what}`] : []),
  ];
}

/** Pure: violations of container and pod limits, with upstream's texts; may contain duplicates. */
export function podProblems(pod: Pod, limits: readonly LimitRangeItem[]): string[] {
  const problems: string[] = [];
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  for (const limit of limits) {
    if (limit.type === "Container") {
      for (const { resources } of containers)
        problems.push(...usageProblems(limit, resources?.requests ?? {}, resources?.limits ?? {}));
    }
    if (limit.type === "Pod") {
      problems.push(...usageProblems(limit, totalOf(pod, "requests"), totalOf(pod, "limits")));
    }
  }
  return problems;
}

/**
 * Requests or limits of a whole pod: the larger of the sum over containers and the maximum of init containers. A resource is
 * summed only when all containers specify it.
 */
function totalOf({ spec }: Pod, which: "requests" | "limits"): ResourceList {
  const said = (spec?.containers ?? []).map(({ resources }) => resources?.[which] ?? {});
  const names = Object.keys(said[0] ?? {}).filter((name) => said.every((list) => Object.hasOwn(list, name)));
  let total = inPlainUnits(maskResources(said.reduce(addResources, {}), names));
  for (const { resources } of spec?.initContainers ?? []) total = maxResources(total, resources?.[which] ?? {});
  return total;
}

/** Without binary or decimal suffix, as in upstream's messages: `3221225472` for 3 x `1Gi`, `2500m` for cpu. */
function inPlainUnits(list: ResourceList): ResourceList {
  const plain = (name: string): string => new Quantity(quantityIn(list, name)?.nanos ?? 0n, "DecimalSI").toString();
  return Object.fromEntries(Object.keys(list).map((name) => [name, plain(name)]));
}

function claimProblems(claim: PersistentVolumeClaim, limits: readonly LimitRangeItem[]): string[] {
  const requests: ResourceList = claim.spec?.resources?.requests ?? {};
  return limits
    .filter(({ type }) => type === "PersistentVolumeClaim")
    .flatMap(({ type, min, max }) => [
      ...problemsOf(min, type, requests, {}, belowMinimum),
      ...problemsOf(max, type, requests, {}, aboveMaximumRequest),
    ]);
}

function usageProblems(
  { type, min, max, maxLimitRequestRatio }: LimitRangeItem,
  requests: ResourceList,
  limits: ResourceList,
): string[] {
  return [
    ...problemsOf(min, type, requests, limits, belowMinimum),
    ...problemsOf(max, type, requests, limits, aboveMaximum),
    ...problemsOf(maxLimitRequestRatio, type, requests, limits, aboveRatio),
  ];
}

/** A bound of a resource, and what is requested of it. */
interface Usage {
  readonly bound: Quantity;
  readonly name: string;
  readonly type: string;
  readonly request: Quantity | undefined;
  readonly upper: Quantity | undefined;
}

function problemsOf(
  bounds: ResourceList | undefined,
  type: string,
  requests: ResourceList,
  limits: ResourceList,
  check: (usage: Usage) => string | undefined,
): string[] {
  return Object.keys(bounds ?? {})
    .sort()
    .flatMap((name) => {
      const bound = Quantity.parse(bounds![name]!);
      return check({ bound, name, type, request: quantityIn(requests, name), upper: quantityIn(limits, name) }) ?? [];
    });
}

function belowMinimum({ bound, name, type, request, upper }: Usage): string | undefined {
  const sentence = `minimum ${name} usage per ${type} is ${bound.toString()}`;
  if (request === undefined) return `${sentence}.  No request is specified`;
  if (request.cmp(bound) < 0) return `${sentence}, but request is ${request.toString()}`;
  if (upper !== undefined && upper.cmp(bound) < 0) return `${sentence}, but limit is ${upper.toString()}`;
  return undefined;
}

function aboveMaximum({ bound, name, type, request, upper }: Usage): string | undefined {
  const sentence = `maximum ${name} usage per ${type} is ${bound.toString()}`;
  if (upper === undefined) return `${sentence}.  No limit is specified`;
  if (upper.cmp(bound) > 0) return `${sentence}, but limit is ${upper.toString()}`;
  if (request !== undefined && request.cmp(bound) > 0) return `${sentence}, but request is ${request.toString()}`;
  return undefined;
}

function aboveMaximumRequest({ bound, name, type, request }: Usage): string | undefined {
  const sentence = `maximum ${name} usage per ${type} is ${bound.toString()}`;
  if (request === undefined) return `${sentence}.  No request is specified`;
  return request.cmp(bound) > 0 ? `${sentence}, but request is ${request.toString()}` : undefined;
}

function aboveRatio({ bound, name, type, request, upper }: Usage): string | undefined {
  const sentence = `${name} max limit to request ratio per ${type} is ${bound.toString()}`;
  if (request === undefined || request.isZero) return `${sentence}, but no request is specified or request is 0`;
  if (upper === undefined || upper.isZero) return `${sentence}, but no limit is specified or limit is 0`;
  const ratio = upper.milliValue() / request.milliValue();
  return ratio * 1000 > bound.milliValue() ? `${sentence}, but provided ratio is ${ratio.toFixed(6)}` : undefined;
}
