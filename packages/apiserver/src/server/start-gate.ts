/**
 * What the port answers while the server starts: health to everybody, the version where anonymous requests are allowed,
 * anything else 503 with Retry-After on a connection that is told to end, so that a client behind a load balancer gets
 * to another server. Without it a request would meet a server that does not know the default roles yet, and be answered
 * 403 for a reason that is gone a second later.
 */

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { indentJson } from "@coxswain/apimachinery/codec/json";
import { serviceUnavailable } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { writeError } from "../handlers/response.ts";
import { serverVersion } from "../handlers/version.ts";
import type { Edge } from "./edge.ts";

export interface StartGate {
  readonly handle: ExchangeHandler;
  readonly isOpen: boolean;
  /** From now on every request is for `serve`. */
  open(serve: ExchangeHandler): void;
}

/** The start takes seconds; whoever asks again after one has the least to wait. */
const retryAfterSeconds = 1;

export function newStartGate(edge: Edge, options: { readonly anonymousAuth: boolean }): StartGate {
  const starting: ExchangeHandler = (exchange) => {
    const path = exchange.url.split("?")[0] as string;
    if (/^\/(healthz|livez|readyz)(\/|$)/.test(path)) return edge.handle(exchange);
    if (path === "/version" && options.anonymousAuth && exchange.method === "GET") return answerVersion(exchange);
    exchange.goAway();
    exchange.setHeader("cache-control", "no-cache, private");
    writeError(exchange, serviceUnavailable("the server is starting, please try again later", retryAfterSeconds));
  };
  let current = starting;
  return {
    handle: (exchange) => current(exchange),
    get isOpen() {
      return current !== starting;
    },
    open(serve) {
      current = serve;
    },
  };
}

export interface StartProgress {
  /** What is not done yet; nothing when the server can serve. */
  missing(): readonly string[];
  /** For how long the start has been failing. */
  failingMs(): number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const pollMs = 20;
/** Upstream's server ends itself when the roles could not be written for 30 s. Source: rest/storage_rbac.go */
const repairAfterMs = 60_000;

/**
 * Resolves when requests may come in: the start is complete, or it has failed for a minute. Whoever repairs the cause (a
 * webhook that refuses the default roles, say) needs the API for it; /readyz goes on failing until it is repaired.
 * @throws the signal's reason
 */
export async function untilServable({ missing, failingMs, clock, log, signal }: StartProgress): Promise<void> {
  for (;;) {
    const names = missing();
    if (names.length === 0) return;
    if (failingMs() >= repairAfterMs) {
      log.error("the start keeps failing; serving requests so that the cause can be repaired", undefined, {
        missing: names.join(","),
      });
      return;
    }
    await clock.sleep(pollMs, signal);
  }
}

function answerVersion(exchange: Exchange): void {
  exchange.respond(200, { "content-type": "application/json" }, indentJson(JSON.stringify(serverVersion)));
}
