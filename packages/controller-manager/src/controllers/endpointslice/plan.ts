import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isControlledBy } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointPort, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { isOneOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { familiesOf } from "../../services/service-pods.ts";
import type { GroupSize } from "../../services/slice-metrics.ts";
import type { EndpointGroup } from "./endpoints-of-pods.ts";
import { labelsOfSlice, newSlice, type SlicePlan } from "./labels.ts";

/**
 * Pure: plans the changes with the fewest writes. Existing endpoints stay in their slice. New endpoints are added to
 * slices that are updated anyway, then to one slice with enough space, then to new slices. A Service without endpoints
 * keeps one empty slice per address type, so that readers can distinguish "no endpoints" from "not processed yet".
 * Source: endpointslice/reconciler.go reconcileByPortMapping
 */
export function planSlices(options: PlanOptions): CountedPlan {
  return atOnce(planSlicesInSteps(options));
}

interface PlanOptions {
  service: Service;
  existing: readonly EndpointSlice[];
  /** `portsText` of the existing slices' ports; default: computed here. */
  existingPorts?: ReadonlyMap<EndpointSlice, string>;
  desired: readonly EndpointGroup[];
  maxPerSlice: number;
}

export function* planSlicesInSteps(options: PlanOptions): Steps<CountedPlan> {
  const { service, existing, desired, maxPerSlice } = options;
  const existingPorts = options.existingPorts ?? new Map(existing.map((slice) => [slice, portsText(slice.ports)]));
  const plan: Changes = { create: [], update: [], delete: [], counts: { added: 0, removed: 0, groups: [] } };
  const families = familiesOf(service);
  const labels = labelsOfSlice(service); // shared by all slices: a Service may have 60,000
  yield;
  plan.delete.push(...existing.filter(({ addressType }) => !isOneOf(families, addressType)));
  for (const addressType of families) {
    const ofType = existing.filter((slice) => slice.addressType === addressType);
    const groups = desired
      .filter((group) => group.addressType === addressType)
      .map((group) => ({ group, ports: portsText(group.ports) }));
    const wanted = new Set(groups.map(({ ports }) => ports));
    const unwanted = ofType.filter((slice) => !wanted.has(existingPorts.get(slice) ?? ""));
    const own: Changes = { create: [], update: [], delete: unwanted, counts: plan.counts };
    plan.counts.removed += unwanted.reduce((sum, { endpoints }) => sum + (endpoints?.length ?? 0), 0);
    // By ports: each of thousands of pods may give a named port another number.
    const byPorts = Map.groupBy(ofType, (slice) => existingPorts.get(slice) ?? "");
    for (const { group, ports } of groups) {
      yield* planGroup(own, { service, labels, maxPerSlice }, group, byPorts.get(ports) ?? []);
      yield;
    }
    keepPlaceholder(own, { service, labels }, addressType, ofType);
    plan.create.push(...own.create);
    plan.update.push(...own.update);
    plan.delete.push(...own.delete);
  }
  return plan;
}

/** A plan with the counts for metrics. */
export interface CountedPlan extends SlicePlan {
  readonly counts: {
    /** Numbers of endpoints. */
    readonly added: number;
    readonly removed: number;
    readonly groups: readonly GroupSize[];
  };
}

interface Changes {
  create: EndpointSlice[];
  update: EndpointSlice[];
  delete: EndpointSlice[];
  readonly counts: { added: number; removed: number; readonly groups: GroupSize[] };
}

/** A Service with the labels of its slices. */
interface Labelled {
  readonly service: Service;
  readonly labels: Record<string, string>;
}

function* planGroup(
  plan: Changes,
  { service, labels, maxPerSlice }: Labelled & { readonly maxPerSlice: number },
  group: EndpointGroup,
  slices: readonly EndpointSlice[],
): Steps<void> {
  const left = new Map(group.endpoints.map((endpoint) => [identityOf(endpoint), endpoint]));
  const changed: EndpointSlice[] = [];
  const unchanged: EndpointSlice[] = [];
  const before = plan.create.length - plan.delete.length;
  for (const slice of slices) {
    const kept: Endpoint[] = [];
    let differs = !deepEqual(slice.metadata.labels ?? {}, labels);
    for (const endpoint of slice.endpoints ?? []) {
      const wanted = left.get(identityOf(endpoint));
      if (wanted === undefined) {
        differs = true; // removed or duplicate
        plan.counts.removed++;
        continue;
      }
      left.delete(identityOf(endpoint));
      if (!deepEqual(withoutHints(endpoint), wanted)) differs = true;
      kept.push(wanted);
    }
    if (!differs) unchanged.push(slice);
    else if (kept.length === 0) plan.delete.push(slice);
    else changed.push(withEndpoints(slice, kept, labels));
    yield;
  }

  const rest = [...left.values()];
  plan.counts.added += rest.length;
  for (const slice of changed) slice.endpoints.push(...rest.splice(0, maxPerSlice - slice.endpoints.length));
  // One additional update is better than a new slice; several are not.
  if (rest.length > 0 && rest.length < maxPerSlice) {
    const fitting = bestFit(unchanged, rest.length, maxPerSlice);
    if (fitting !== undefined) changed.push(withEndpoints(fitting, [...(fitting.endpoints ?? []), ...rest.splice(0)], labels));
  }
  // Reuses slices that would be deleted, which saves a create and a delete. Slices owned by a former Service of this name are not
  // reused: they are garbage collected.
  const own = new Set(slices);
  const reusable = own.size === 0 ? [] : plan.delete.filter((slice) => own.has(slice) && isControlledBy(slice, service));
  const reused = new Set<EndpointSlice>();
  for (let at = 0; at < rest.length; at += maxPerSlice) {
    const endpoints = rest.slice(at, at + maxPerSlice);
    const slice = reusable[reused.size];
    if (slice === undefined) {
      plan.create.push({ ...newSlice(service, group.addressType, group.ports, labels), endpoints });
      continue;
    }
    reused.add(slice);
    changed.push(withEndpoints(slice, endpoints, labels));
  }
  if (reused.size > 0) plan.delete = plan.delete.filter((slice) => !reused.has(slice));
  plan.update.push(...changed);
  const made = plan.create.length - plan.delete.length - before;
  plan.counts.groups.push({ endpoints: group.endpoints.length, slices: slices.length + made });
}

/** The fullest slice with space for `count` more endpoints. */
function bestFit(slices: readonly EndpointSlice[], count: number, maxPerSlice: number): EndpointSlice | undefined {
  const sizeOf = ({ endpoints }: EndpointSlice): number => endpoints?.length ?? 0;
  return slices.filter((slice) => sizeOf(slice) + count <= maxPerSlice).toSorted((a, b) => sizeOf(b) - sizeOf(a))[0];
}

function keepPlaceholder(
  plan: Changes,
  { service, labels }: Labelled,
  addressType: string,
  existing: readonly EndpointSlice[],
): void {
  if (plan.create.length > 0 || plan.delete.length < existing.length) return;
  const placeholder = plan.delete.find(({ endpoints, ports }) => (endpoints ?? []).length === 0 && (ports ?? []).length === 0);
  if (placeholder === undefined) {
    plan.create.push(newSlice(service, addressType, [], labels));
    return;
  }
  plan.delete = plan.delete.filter((slice) => slice !== placeholder);
  if (!deepEqual(placeholder.metadata.labels ?? {}, labels)) plan.update.push(withEndpoints(placeholder, [], labels));
}

function withEndpoints(slice: EndpointSlice, endpoints: Endpoint[], labels: Record<string, string>): EndpointSlice {
  return { ...slice, metadata: { ...slice.metadata, labels }, endpoints };
}

/** Identity of an endpoint: Pod, addresses and hostname, regardless of its state. Source: endpointset.go */
function identityOf({ addresses, targetRef, hostname = "" }: Endpoint): string {
  return JSON.stringify([addresses.toSorted(), targetRef?.uid ?? "", hostname]);
}

function withoutHints({ hints: _, ...endpoint }: Endpoint): Endpoint {
  return endpoint;
}

/** The ports as text that does not depend on their order. */
export function portsText(ports: readonly EndpointPort[] | undefined | null): string {
  const each = (ports ?? []).map(({ name = "", protocol = "TCP", port, appProtocol = "" }) =>
    JSON.stringify([name, protocol, port, appProtocol]),
  );
  return JSON.stringify(each.sort());
}
