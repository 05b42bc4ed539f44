/**
 * Handles requests while the server starts: health is served to all clients, the version when anonymous requests are allowed.
 * Other requests get 503 with Retry-After, and their connection is closed, so that a load balancer selects another server.
 * Otherwise clients would get 403 from a server that has not loaded the default roles yet.
 */

import { indentJson } from "@coxswain/apimachinery/objects/codec/json";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { writeError } from "../handlers/response.ts";
import { serverVersion } from "../handlers/version.ts";
import type { Edge } from "./edge.ts";

/** Startup takes a few seconds. */
const retryAfterSeconds = 1;

/** @param options.anonymousAuth whether /version is served without authentication during startup */
export function whileStarting(edge: Edge, options: { readonly anonymousAuth: boolean }): ExchangeHandler {
  return (exchange) => {
    const path = exchange.url.split("?")[0]!;
    if (/^\/(healthz|livez|readyz)(\/|$)/.test(path)) return edge.handle(exchange);
    if (path === "/version" && options.anonymousAuth && exchange.method === "GET") return answerVersion(exchange);
    exchange.goAway();
    exchange.setHeader("cache-control", "no-cache, private");
    writeError(exchange, serviceUnavailable("the server is starting, please try again later", retryAfterSeconds));
  };
}

interface StartProgress {
  /** Names of the unfinished steps; empty when the server can serve requests. */
  missing(): readonly string[];
  /** Milliseconds for which startup has been failing. */
  failingMs(): number;
  /** Settles when the last startup step ends. Then `missing` is evaluated at once instead of at the next poll. */
  readonly lastStep: Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const pollMs = 20;
/** Upstream's server exits when the roles could not be written for 30 s. Source: rest/storage_rbac.go */
const repairAfterMs = 60_000;

/**
 * Resolves when requests may be served: startup is complete, or has been failing for a minute. To repair the cause, e.g. a
 * webhook that rejects the default roles, an administrator needs the API. /readyz fails until it is repaired.
 * @throws the signal's reason
 */
export async function untilServable(progress: StartProgress): Promise<void> {
  const { missing, lastStep } = progress;
  const polled = pollUntilServable(progress);
  polled.catch(() => {}); // ends with the server when the last step was faster
  const ended = lastStep.then(
    () => (missing().length === 0 ? undefined : polled),
    () => polled,
  );
  await Promise.race([polled, ended]);
}

async function pollUntilServable({ missing, failingMs, clock, log, signal }: StartProgress): Promise<void> {
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
