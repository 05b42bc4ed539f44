/**
 * Debug pages with the state of priority levels, queues and requests.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/apf_controller_debug.go
 */
import type { ServerRequest } from "../request/server-request.ts";
import type { FlowControl } from "./priority-and-fairness.ts";
import type { Queue } from "./queue.ts";
import type { Ticket } from "./ticket.ts";

const prefix = "/debug/api_priority_and_fairness/";
const none = "<none>";

type Row = readonly (string | number | boolean)[];

/** @returns a handler that returns false when the path is not one of the pages */
export function flowControlPages(flowControl: FlowControl): (request: ServerRequest) => boolean {
  const pages: Readonly<Record<string, (details: boolean) => Row[]>> = {
    dump_priority_levels: () => levelRows(flowControl),
    dump_queues: () => queueRows(flowControl),
    dump_requests: (details) => requestRows(flowControl, details),
  };
  return (request) => {
    const { path } = request.info;
    if (!path.startsWith(prefix)) return false;
    const name = path.slice(prefix.length);
    const page = Object.hasOwn(pages, name) ? pages[name] : undefined;
    if (page === undefined) return false;
    const rows = page(Boolean(request.query.get("includeRequestDetails")));
    request.exchange.respond(200, { "content-type": "text/plain; charset=utf-8" }, aligned(rows));
    return true;
  };
}

function levelRows(flowControl: FlowControl): Row[] {
  const head = ["PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests"];
  const rows: Row[] = [head];
  for (const { plan, queues: set, quiescing } of flowControl.levels()) {
    if (set === undefined) rows.push([plan.name, ...head.slice(1).map(() => none)]);
    else rows.push([plan.name, set.queues.filter(hasWaiting).length, set.idle, quiescing, set.waiting, set.executing]);
  }
  return rows;
}

const hasWaiting = ({ tickets }: Queue<Ticket>): boolean => tickets.length > 0;

function queueRows(flowControl: FlowControl): Row[] {
  const head = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
  ];
  const rows: Row[] = [head];
  for (const { plan, queues: set } of flowControl.levels()) {
    if (set === undefined) rows.push([plan.name, ...head.slice(1).map(() => none)]);
    for (const [i, queue] of set?.queues.entries() ?? []) {
      const { tickets, executing, seatsInUse, nextR, workWaiting } = queue;
      const initial = sum(tickets, ({ request }) => request.work.initialSeats);
      const most = sum(tickets, ({ seats }) => seats);
      rows.push([
        plan.name,
        i,
        tickets.length,
        executing,
        seatsInUse,
        seatSeconds(nextR),
        initial,
        most,
        seatSeconds(workWaiting),
      ]);
    }
  }
  return rows;
}

const sum = (tickets: readonly Ticket[], of: (ticket: Ticket) => number): number =>
  tickets.reduce((total, ticket) => total + of(ticket), 0);

const seatSeconds = (value: number): string => `${value.toFixed(8)}ss`;

function requestRows(flowControl: FlowControl, details: boolean): Row[] {
  const head = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
  ];
  const more = ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];
  const rows: Row[] = [details ? [...head, ...more] : head];
  for (const { plan, queues: set } of flowControl.levels()) {
    for (const [i, { tickets }] of set?.queues.entries() ?? []) {
      for (const [at, { request }] of tickets.entries()) {
        const { schema, flow, work, requested } = request;
        const arrived = new Date(requested.receivedMs).toISOString();
        const latency = work.additionalMs === 0 ? "0s" : `${work.additionalMs}ms`;
        const row: Row = [plan.name, schema, i, at, flow, arrived, work.initialSeats, work.finalSeats, latency];
        rows.push(details ? [...row, ...detailsOf(requested)] : row);
      }
    }
  }
  return rows;
}

function detailsOf({ user, info }: Ticket["request"]["requested"]): Row {
  const version = info.group === "" ? info.version : `${info.group}/${info.version}`;
  return [user.name, info.verb, info.path, info.namespace, info.name, version, info.resource, info.subresource];
}

/** Left-aligned columns as wide as their longest cell, at least 8. Source: Go's text/tabwriter */
function aligned(rows: readonly Row[]): string {
  const cells = rows.map((row) => row.map((cell, i) => (i < row.length - 1 ? `${cell},` : String(cell))));
  const widths = (cells[0] ?? []).map((_, i) => Math.max(8, ...cells.map((row) => row[i]!.length + 1)));
  const line = (row: string[]): string => row.map((cell, i) => (i < row.length - 1 ? cell.padEnd(widths[i]!) : cell)).join("");
  return cells.map((row) => `${line(row)}\n`).join("");
}
