import type { Endpoint, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { SlicePlan } from "./labels.ts";
import type { ZoneShares } from "./zones.ts";

/** Maximum relative overload of a zone's endpoints. */
const overload = 0.2;

/** Desired and maximum number of endpoints for a zone. */
interface Allocation {
  readonly desired: number;
  readonly most: number;
}

type Allocations = ReadonlyMap<string, Allocation>;

/** Number of endpoints by zone. */
type Counts = Map<string, number>;

/**
 * Pure: adds topology hints to the plan. Endpoints serve their own zone as far as every zone has the endpoints that
 * its CPU share requires; surplus endpoints are assigned to other zones. Unchanged slices keep valid hints. With too
 * few endpoints, or an endpoint without a zone, all hints are removed.
 * @param existing the Service's slices
 * @param shares undefined disables hints
 * Source: endpointslice/topologycache AddHints
 */
export function withHints(plan: SlicePlan, existing: readonly EndpointSlice[], shares: ZoneShares | undefined): SlicePlan {
  const create = plan.create.map(withoutHints);
  const update = plan.update.map(withoutHints);
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

/**
 * Sets hints of the slices in `changing`, in place.
 * @returns further slices that have to be updated
 */
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
    endpoint.hints = { forZones: [{ name: endpoint.zone! }] };
    add(counts, endpoint.zone!, 1);
  }
  redistribute(endpoints, allocations, counts);
  return invalid;
}

/** Endpoints per zone; undefined when there are not enough for every zone. */
function allocate(shares: ZoneShares | undefined, endpoints: number): Allocations | undefined {
  if (shares === undefined || shares.size > endpoints) return undefined;
  const zones = [...shares].map(([zone, share]) => ({ zone, share, least: Math.ceil((share * endpoints) / (1 + overload)) }));
  const spare = endpoints - zones.reduce((sum, { least }) => sum + least, 0);
  if (spare < 0) return undefined;
  return new Map(
    zones.map(({ zone, share, least }) => [zone, { desired: Math.max(share * endpoints, least), most: least + spare }]),
  );
}

/** Number of endpoints that a slice's hints assign to each zone; undefined when the hints are no longer valid. */
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

/** Assigns surplus endpoints of overprovisioned zones to underprovisioned ones. */
function redistribute(endpoints: readonly Endpoint[], allocations: Allocations, counts: Counts): void {
  const surplus = new Map<string, number>();
  for (const [zone, { desired }] of allocations) surplus.set(zone, (counts.get(zone) ?? 0) - desired);
  for (const [zone, count] of counts) if (!allocations.has(zone)) surplus.set(zone, count);
  const donors: Counts = new Map();
  const recipients: Counts = new Map();
  for (;;) {
    const [from, spare] = extremeZone(surplus, 1);
    const [to, lack] = extremeZone(surplus, -1);
    if (spare < 0.5 || lack < 0.5 || (spare < 1 && lack < 1)) break;
    add(surplus, from, -1);
    add(surplus, to, 1);
    add(donors, from, 1);
    add(recipients, to, 1);
  }
  for (const endpoint of endpoints) {
    const [to] = recipients.keys();
    const zone = endpoint.zone!;
    if (to === undefined || !donors.has(zone)) continue;
    endpoint.hints = { forZones: [{ name: to }] };
    decrement(donors, zone);
    decrement(recipients, to);
  }
}

/** The zone with the largest surplus (sign 1) or deficit (sign -1), and its amount. */
function extremeZone(surplus: ReadonlyMap<string, number>, sign: 1 | -1): [zone: string, amount: number] {
  let most: [string, number] = ["", 0];
  for (const [zone, amount] of surplus) if (amount * sign > most[1]) most = [zone, amount * sign];
  return most;
}

function add(counts: Map<string, number>, zone: string, count: number): void {
  counts.set(zone, (counts.get(zone) ?? 0) + count);
}

function decrement(counts: Counts, zone: string): void {
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

/** A mutable copy without hints. */
function withoutHints(slice: EndpointSlice): EndpointSlice {
  return { ...slice, endpoints: (slice.endpoints ?? []).map(({ hints: _, ...endpoint }) => endpoint) };
}
