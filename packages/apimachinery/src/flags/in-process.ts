import type { ClientConfig } from "../client/config.ts";
import type { Transport } from "../client/transport.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";

/** Options of a daemon that runs inside another program. */
export interface InProcessOptions {
  readonly clientConfig: ClientConfig;
  /** Instead of connections to the configuration's host. */
  readonly transport?: Transport;
  /** Default: real time. */
  readonly clock?: Clock;
  /** Default: no logs. */
  readonly log?: Logger;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** A daemon whose flags were checked. */
export interface InProcessDaemon {
  /** Resolves when it has ended; rejects when it failed. */
  run(options: InProcessOptions): Promise<void>;
}
