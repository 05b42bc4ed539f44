/**
 * Refuses what is more than the server can work on at once, reads and writes counted apart. Watches and streams are not
 * counted; members of system:masters always get an answer.
 * Source: k8s.io/apiserver pkg/server/filters/maxinflight.go
 */

import type { Filter } from "./filter.ts";
import type { RequestMetrics } from "./metrics.ts";
import { isReadOnly, tooManyRequests } from "./too-many-requests.ts";

export interface MaxInFlightOptions {
  /** 0: no limit. */
  maxReadOnly: number;
  /** 0: no limit. */
  maxMutating: number;
  metrics: RequestMetrics;
}

export function maxInFlight(options: MaxInFlightOptions): Filter {
  const { metrics } = options;
  const running = { readOnly: 0, mutating: 0 };
  const limits = { readOnly: options.maxReadOnly, mutating: options.maxMutating };
  const gauges = { readOnly: metrics.inFlight.labels("readOnly"), mutating: metrics.inFlight.labels("mutating") };
  return async (request, next) => {
    if (request.longRunning) return next(request);
    const kind = isReadOnly(request) ? "readOnly" : "mutating";
    if (limits[kind] > 0 && running[kind] >= limits[kind] && !request.user.groups.includes("system:masters")) {
      return tooManyRequests(metrics, request);
    }
    gauges[kind].set(++running[kind]);
    try {
      await next(request);
    } finally {
      gauges[kind].set(--running[kind]);
    }
  };
}
