import { deepEqual, valuesPerStep } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { canonicalIp, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import type { EndpointAddress, EndpointSubset, Endpoints } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointPort, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpoints as endpointsResource } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Pace, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { ipFamilyOf } from "../../services/service-pods.ts";
import type { GroupSize } from "../../services/slice-metrics.ts";
import { lastChangeAnnotation } from "../../services/trigger-times.ts";
import { managedByLabel, type SlicePlan, serviceNameLabel } from "../endpointslice/labels.ts";

export const managerName = "endpointslicemirroring-controller.k8s.io";

/** Slices to create, update and delete, with counts for Events and metrics. */
export interface MirrorPlan extends SlicePlan {
  /** Number of invalid addresses. */
  readonly invalid: number;
  /** Number of addresses not mirrored: invalid ones and those beyond the limit per subset. */
  readonly skipped: number;
  readonly added: number;
  readonly updated: number;
  readonly removed: number;
  /** For each group: number of endpoints, and number of slices after the plan. */
  readonly groups: readonly GroupSize[];
}

/**
 * Pure: plans one slice for each combination of address family and ports.
 * Source: pkg/controller/endpointslicemirroring/reconciler.go
 */
export function* planningMirror(
  endpoints: Endpoints,
  existing: readonly EndpointSlice[],
  maxPerSubset: number,
): Steps<MirrorPlan> {
  const { groups, invalid, skipped } = yield* groupsOf(endpoints, maxPerSubset);
  const metadata = metadataOf(endpoints);
  const plan: Record<keyof SlicePlan, EndpointSlice[]> = { create: [], update: [], delete: [] };
  const totals = { added: 0, updated: 0, removed: 0 };
  const sizes: GroupSize[] = [];
  const ofKey = Map.groupBy(existing, ({ addressType, ports }) => keyOf(addressType, portsKeyOf(ports)));
  for (const [key, { addressType, ports, endpoints: wanted }] of groups) {
    yield;
    const [first, ...others] = ofKey.get(key) ?? [];
    ofKey.delete(key);
    plan.delete.push(...others);
    const change = changesOf(first, wanted);
    for (const kind of ["added", "updated", "removed"] as const) totals[kind] += change[kind];
    sizes.push({ endpoints: wanted.size, slices: 1 });
    const slice: EndpointSlice = {
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata },
      ...{ addressType, endpoints: [...wanted.values()].slice(0, maxPerSubset), ports },
    };
    if (first === undefined) plan.create.push(slice);
    else if (change.added + change.updated + change.removed > 0 || !sameMetadata(first, slice))
      plan.update.push(named(slice, first));
  }
  for (const unwanted of ofKey.values()) {
    for (const slice of unwanted) totals.removed += slice.endpoints?.length ?? 0;
    plan.delete.push(...unwanted);
  }
  return { ...withReusedSlices(plan), ...totals, invalid, skipped, groups: sizes };
}

interface Group {
  readonly addressType: "IPv4" | "IPv6";
  readonly ports: EndpointPort[];
  /** Endpoints by identity. */
  readonly endpoints: Map<string, Endpoint>;
}

/** Non-empty groups by address family and ports. */
function* groupsOf(
  { subsets }: Endpoints,
  maxPerSubset: number,
): Steps<{ groups: Map<string, Group>; invalid: number; skipped: number }> {
  const pace = new Pace(valuesPerStep);
  const groups = new Map<string, Group>();
  let invalid = 0;
  let skipped = 0;
  for (const subset of subsets ?? []) {
    const ports = portsOf(subset);
    const portsKey = portsKeyOf(ports);
    const addresses = [
      ...(subset.addresses ?? []).map((address) => ({ address, ready: true })),
      ...(subset.notReadyAddresses ?? []).map((address) => ({ address, ready: false })),
    ];
    let added = 0;
    for (const { address, ready } of addresses) {
      if (added >= maxPerSubset) break;
      if (pace.isDue()) yield;
      const ip = parseIp(address.ip);
      if (ip === undefined) {
        invalid++;
        continue;
      }
      added++;
      const endpoint = endpointOf(address, canonicalIp(ip), ready);
      const addressType = ipFamilyOf(endpoint.addresses[0]!);
      const key = keyOf(addressType, portsKey);
      const group = groups.get(key) ?? { addressType, ports, endpoints: new Map() };
      groups.set(key, group);
      group.endpoints.set(identityOf(endpoint), endpoint);
    }
    skipped += addresses.length - added;
  }
  return { groups, invalid, skipped };
}

function portsOf({ ports }: EndpointSubset): EndpointPort[] {
  return (ports ?? []).map(({ name = "", port, protocol = "TCP", appProtocol }) => ({
    name,
    port,
    protocol,
    ...(appProtocol === undefined ? {} : { appProtocol }),
  }));
}

function endpointOf({ targetRef, nodeName, hostname }: EndpointAddress, ip: string, ready: boolean): Endpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...(hostname ? { hostname } : {}),
    ...(targetRef === undefined ? {} : { targetRef }),
    ...(nodeName === undefined ? {} : { nodeName }),
  };
}

/** Source: pkg/controller/util/endpointslice/endpointset.go */
function identityOf({ addresses, targetRef, hostname = "" }: Endpoint): string {
  return JSON.stringify([addresses.toSorted(), hostname, targetRef?.namespace ?? "", targetRef?.name ?? ""]);
}

const keyOf = (addressType: string, portsKey: string): string => `${addressType} ${portsKey}`;

/** The order of ports is irrelevant. */
function portsKeyOf(ports: readonly EndpointPort[] | undefined | null): string {
  const texts = (ports ?? []).map(({ name = "", protocol = "TCP", port, appProtocol = "" }) =>
    JSON.stringify([name, protocol, port, appProtocol]),
  );
  return JSON.stringify(texts.sort());
}

function changesOf(
  slice: EndpointSlice | undefined,
  wanted: ReadonlyMap<string, Endpoint>,
): { added: number; updated: number; removed: number } {
  const listed = slice?.endpoints ?? [];
  let kept = 0;
  let updated = 0;
  for (const endpoint of listed) {
    const same = wanted.get(identityOf(endpoint));
    if (same === undefined) continue;
    kept++;
    if (!deepEqual(endpoint, same)) updated++;
  }
  return { added: wanted.size - kept, updated, removed: listed.length - kept };
}

// ---- Slices --------------------------------------------------------------------------------------------------------------

/** Annotations about the Endpoints object itself. */
const notMirrored = [lastChangeAnnotation, "kubectl.kubernetes.io/last-applied-configuration"];

/** Shared by all slices: copies of 50,000 labels for each of 10,000 slices would not fit into memory. */
function metadataOf(owner: Endpoints): ObjectMeta {
  const { namespace, name = "", labels, annotations } = owner.metadata;
  const mirrored = Object.entries(annotations ?? {}).filter(([key]) => !notMirrored.includes(key));
  return {
    // The dash is omitted when generateName would exceed 253 characters.
    generateName: name.length < 253 ? `${name}-` : name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: { ...labels, [serviceNameLabel]: name, [managedByLabel]: managerName },
    ...(mirrored.length === 0 ? {} : { annotations: Object.fromEntries(mirrored) }),
    ownerReferences: [newControllerRef(owner, endpointsResource)],
  };
}

function sameMetadata({ metadata: a }: EndpointSlice, { metadata: b }: EndpointSlice): boolean {
  return deepEqual(a.labels ?? {}, b.labels ?? {}) && deepEqual(a.annotations ?? {}, b.annotations ?? {});
}

function named(slice: EndpointSlice, { metadata: { name = "" } }: EndpointSlice): EndpointSlice {
  const { generateName: _, ...metadata } = slice.metadata;
  return { ...slice, metadata: { ...metadata, name } };
}

/** Reuses slices that would be deleted, which saves a create and a delete. Source: recycleSlices */
function withReusedSlices({ create, update, delete: unwanted }: SlicePlan): SlicePlan {
  const left = Map.groupBy(unwanted.toReversed(), ({ addressType }) => addressType);
  const made: EndpointSlice[] = [];
  const rewritten: EndpointSlice[] = [];
  const reused = new Set<EndpointSlice>();
  for (const slice of create) {
    const other = left.get(slice.addressType)?.pop();
    if (other === undefined) made.push(slice);
    else {
      reused.add(other);
      rewritten.push(named(slice, other));
    }
  }
  return { create: made, update: [...update, ...rewritten], delete: unwanted.filter((slice) => !reused.has(slice)) };
}
