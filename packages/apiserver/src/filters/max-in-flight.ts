/**
 * Limits concurrent requests, reads and writes separately. Watches and streams are not counted; members
 * of system:masters are never rejected.
 * Source: k8s.io/apiserver pkg/server/filters/maxinflight.go
 */

import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { ReadWriteLoad } from "../flow-control/read-write-load.ts";
import { isReadOnly } from "../request/request-info.ts";
import { ArrivingBodies } from "./arriving-bodies.ts";
import type { Filter } from "./filter.ts";
import type { RequestMetrics } from "./metrics.ts";
import { noSeat, tooManyRequests } from "./too-many-requests.ts";

interface MaxInFlightOptions {
  /** 0: no limit. */
  maxReadOnly: number;
  /** 0: no limit. */
  maxMutating: number;
  clock: Clock;
  metrics: RequestMetrics;
  load: ReadWriteLoad;
}

/** Rejects requests beyond the limits with 429. */
export function maxInFlight(options: MaxInFlightOptions): Filter {
  const { metrics } = options;
  const running = { readOnly: 0, mutating: 0 };
  const limits = { readOnly: options.maxReadOnly, mutating: options.maxMutating };
  const gauges = { readOnly: metrics.inFlight.labels("readOnly"), mutating: metrics.inFlight.labels("mutating") };
  const load = { readOnly: options.load("executing", "readOnly"), mutating: options.load("executing", "mutating") };
  for (const kind of ["readOnly", "mutating"] as const) if (limits[kind] > 0) load[kind].setLimit(limits[kind]);
  const bodies = new ArrivingBodies(options.clock);
  return async (request, next) => {
    if (request.longRunning) return next(request);
    const kind = isReadOnly(request.info) ? "readOnly" : "mutating";
    const isRefused = (): boolean =>
      limits[kind] > 0 && running[kind] >= limits[kind] && !request.user.groups.includes("system:masters");
    if (isRefused()) return tooManyRequests(metrics, request);
    let isRunning = false;
    const enter = (): void => {
      isRunning = true;
      gauges[kind].set(++running[kind]);
      load[kind].add(1);
    };
    const leave = (): void => {
      if (!isRunning) return;
      isRunning = false;
      gauges[kind].set(--running[kind]);
      load[kind].add(-1);
    };
    enter();
    request.receive = (body) =>
      bodies.receive(body, request.exchange, {
        release: leave,
        async acquire() {
          if (isRefused()) throw noSeat(metrics, request);
          enter();
        },
      });
    request.exchange.onUnread = leave; // the rest of the response is encoded as the client reads
    try {
      await next(request);
    } finally {
      leave();
    }
  };
}
