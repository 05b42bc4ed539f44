/**
 * Estimates the cost of a request: seats while it executes, and for a write also seats that stay occupied briefly afterwards,
 * while its event is sent to the watchers.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/request/{width,list_work_estimator,mutating_work_estimator}.go
 */
import type { RequestInfo } from "../request/request-info.ts";

export interface WorkEstimate {
  readonly initialSeats: number;
  /** Occupied for `additionalMs` after the response. */
  readonly finalSeats: number;
  readonly additionalMs: number;
}

export interface WorkFacts {
  /** Stored objects of a resource (`deployments.apps`); "stale" when the last count is too old, undefined when never counted. */
  storedObjects(resource: string): number | "stale" | undefined;
  /** Number of watches that may receive the event of this write. */
  watchers(info: RequestInfo): number;
}

const mostSeats = 10;
const objectsPerSeat = 100;
const watchersPerSeat = 10;
const eventMs = 5;
const oneSeat: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalMs: 0 };

/** The seats that the request occupies while it executes and afterwards. */
export const maxSeats = ({ initialSeats, finalSeats }: WorkEstimate): number => Math.max(initialSeats, finalSeats);

interface RequestToEstimate {
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
}

/** Estimates the seats of a request. A malformed limit gets the maximum. */
export function estimateWork(request: RequestToEstimate, facts: WorkFacts): WorkEstimate {
  switch (request.info.verb) {
    case "list":
      return { ...oneSeat, initialSeats: seatsOfList(request, facts) };
    case "create":
    case "update":
    case "patch":
    case "delete":
      return workOfWrite(facts.watchers(request.info));
    default:
      return oneSeat;
  }
}

function seatsOfList({ info: { group, resource }, query }: RequestToEstimate, facts: WorkFacts): number {
  const limitText = query.get("limit") ?? "";
  if (!/^[+-]?\d*$/.test(limitText)) return mostSeats; // rejected later, by the handler
  const stored = facts.storedObjects(group === "" ? resource : `${resource}.${group}`);
  if (stored === "stale") return mostSeats;
  if (stored === undefined) return 1; // an aggregated or unknown resource
  const requested = Number(limitText);
  const limit = requested > 0 ? Math.min(requested, stored) : stored;
  let processed = 2 * limit;
  if (!readsStorage(query, requested)) processed = stored;
  else if (query.get("labelSelector") || query.get("fieldSelector")) processed = stored + limit;
  return Math.min(Math.max(Math.ceil(processed / objectsPerSeat), 1), mostSeats);
}

/** False for lists served from the watch cache, which filters all objects in memory. */
function readsStorage(query: URLSearchParams, limit: number): boolean {
  const revision = query.get("resourceVersion") ?? "";
  const pages = Boolean(query.get("continue")) || (limit > 0 && revision !== "0");
  return revision === "" || pages || query.get("resourceVersionMatch") === "Exact";
}

function workOfWrite(watchers: number): WorkEstimate {
  if (watchers < watchersPerSeat) return oneSeat;
  const seats = Math.ceil(watchers / watchersPerSeat);
  const finalSeats = Math.min(seats, mostSeats);
  return { initialSeats: 1, finalSeats, additionalMs: (seats * eventMs) / finalSeats };
}
