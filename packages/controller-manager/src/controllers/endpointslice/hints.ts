import type { Endpoint, EndpointSlice } from "@coxswain/apimachinery/schema/kinds/discovery/v1";
import type { SlicePlan } from "./labels.ts";
import type { ZoneShares } from "./zones.ts";

/** So much more than its share a zone's endpoints may have to carry. */
const overload = 0.2;

/** How many endpoints a zone needs. */
interface Allocation {
  readonly desired: number;
  readonly most: number;
}

type Allocations = ReadonlyMap<string, Allocation>;

/** Endpoints by zone. */
type Counts = Map<string, number>;

/**
 * Pure: the plan with hints, which zones an endpoint is for. Endpoints are for their own zone as far as each zone has what
 * its share of the cluster needs, the rest are lent out. Slices that need not change keep their hints while these still do.
 * Where there are too few endpoints, or one is nowhere, no endpoint has hints.
 * @param existing the service's slices
 * @param shares undefined: no hints
 * Source: endpointslice/topologycache AddHints
 */
export function withHints(plan: SlicePlan, existing: readonly EndpointSlice[], shares: ZoneShares | undefined): SlicePlan {
  const [create, update] = [plan.create, plan.update].map((slices) => slices.map(withoutHints)) as [
    EndpointSlice[],
    EndpointSlice[],
  ];
  const written = new Set([...plan.update, ...plan.delete].map(({ metadata }) => metadata.name));
  const unchanged = existing.filter(({ metadata }) => !written.has(metadata.name));
  for (const type of new Set([...create, ...update, ...unchanged].map(({ addressType }) => addressType))) {
    const ofType = (slices: readonly EndpointSlice[]): EndpointSlice[] =>
      slices.filter(({ addressType }) => addressType === type);
    const changing = [...ofType(create), ...ofType(update)];
    update.push(...hint(changing, ofType(unchanged), shares));
  }
  return { create, update, delete: plan.delete };
}

/** Gives the slices that are written their hints, in place. @returns others that have to be written too */
function hint(
  changing: readonly EndpointSlice[],
  unchanged: readonly EndpointSlice[],
  shares: ZoneShares | undefined,
): EndpointSlice[] {
  const ready = [...changing, ...unchanged].flatMap((slice) => readyOf(slice));
  const allocations = ready.every(({ zone }) => zone) ? allocate(shares, ready.length) : undefined;
  if (allocations === undefined) return unchanged.filter(hasHints).map(withoutHints);
  const counts: Counts = new Map();
  const invalid: EndpointSlice[] = [];
  for (const slice of unchanged) {
    const own = countsOf(slice, counts, allocations);
    if (own === undefined) invalid.push(withoutHints(slice));
    else for (const [zone, count] of own) add(counts, zone, count);
  }
  const endpoints = [...changing, ...invalid].flatMap(readyOf);
  for (const endpoint of endpoints) {
    endpoint.hints = { forZones: [{ name: endpoint.zone as string }] };
    add(counts, endpoint.zone as string, 1);
  }
  lend(endpoints, allocations, counts);
  return invalid;
}

/** @returns undefined where there are not enough for every zone */
function allocate(shares: ZoneShares | undefined, endpoints: number): Allocations | undefined {
  if (shares === undefined || shares.size > endpoints) return undefined;
  const zones = [...shares].map(([zone, share]) => ({ zone, share, least: Math.ceil((share * endpoints) / (1 + overload)) }));
  const spare = endpoints - zones.reduce((sum, { least }) => sum + least, 0);
  if (spare < 0) return undefined;
  return new Map(
    zones.map(({ zone, share, least }) => [zone, { desired: Math.max(share * endpoints, least), most: least + spare }]),
  );
}

/** What the hints of a slice give to each zone; undefined when they cannot stay. */
function countsOf(slice: EndpointSlice, before: Counts, allocations: Allocations): Counts | undefined {
  const own: Counts = new Map();
  for (const { hints } of readyOf(slice)) {
    if (!hints?.forZones?.length) return undefined;
    for (const { name } of hints.forZones) add(own, name, 1);
  }
  for (const [zone, count] of own) {
    if (count + (before.get(zone) ?? 0) > (allocations.get(zone)?.most ?? -1)) return undefined;
  }
  return own;
}

/** Hands endpoints of zones that have more than they need to those that have less, as many as are to give and to take. */
function lend(endpoints: readonly Endpoint[], allocations: Allocations, counts: Counts): void {
  const surplus = new Map<string, number>();
  for (const [zone, { desired }] of allocations) surplus.set(zone, (counts.get(zone) ?? 0) - desired);
  for (const [zone, count] of counts) if (!allocations.has(zone)) surplus.set(zone, count);
  const giving: Counts = new Map();
  const receiving: Counts = new Map();
  for (;;) {
    const [from, spare] = farthest(surplus, 1);
    const [to, lack] = farthest(surplus, -1);
    if (spare < 0.5 || lack < 0.5 || (spare < 1 && lack < 1)) break;
    add(surplus, from, -1);
    add(surplus, to, 1);
    add(giving, from, 1);
    add(receiving, to, 1);
  }
  for (const endpoint of endpoints) {
    const [to] = receiving.keys();
    const zone = endpoint.zone as string;
    if (to === undefined || !giving.has(zone)) continue;
    endpoint.hints = { forZones: [{ name: to }] };
    take(giving, zone);
    take(receiving, to);
  }
}

/** The zone that has most too much (1) or too little (-1), and how much that is. */
function farthest(surplus: ReadonlyMap<string, number>, sign: 1 | -1): [zone: string, much: number] {
  let most: [string, number] = ["", 0];
  for (const [zone, much] of surplus) if (much * sign > most[1]) most = [zone, much * sign];
  return most;
}

function add(counts: Map<string, number>, zone: string, count: number): void {
  counts.set(zone, (counts.get(zone) ?? 0) + count);
}

function take(counts: Counts, zone: string): void {
  const left = (counts.get(zone) ?? 0) - 1;
  if (left > 0) counts.set(zone, left);
  else counts.delete(zone);
}

function readyOf({ endpoints }: EndpointSlice): Endpoint[] {
  return (endpoints ?? []).filter(({ conditions }) => conditions?.ready === true);
}

function hasHints({ endpoints }: EndpointSlice): boolean {
  return (endpoints ?? []).some(({ hints }) => hints !== undefined);
}

/** A copy that may be changed. */
function withoutHints(slice: EndpointSlice): EndpointSlice {
  return { ...slice, endpoints: (slice.endpoints ?? []).map(({ hints: _, ...endpoint }) => endpoint) };
}
