import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { StorageMetrics } from "../metrics.ts";
import { EtcdError, statusErrorOf } from "./errors.ts";

const noSpaceWarningMs = 60_000;

export interface MeasuredCallsOptions {
  /** Go's name of the stored type, `*core.Pod`. */
  readonly goType: string;
  /** For the log. */
  readonly servers: readonly string[];
  /** For the log: `/registry/pods/`. */
  readonly prefix: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: StorageMetrics | undefined;
}

/** Times the etcd calls of one resource and converts their errors to Status errors. */
export class MeasuredCalls {
  readonly #options: MeasuredCallsOptions;
  readonly #listType: string;
  /** Time of the last warning. Reads and readiness are unaffected, so the log must show it, at a limited rate. */
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: MeasuredCallsOptions) {
    this.#options = options;
    this.#listType = `*[]${options.goType.slice(1)}`;
  }

  /**
   * @param operation `get`, `list`, `update`, …: the metric's label
   * @param type the metric's other label; the resource's type or, for `list`, the type of its list
   * @throws what `call` throws, as a Status error
   */
  async timed<T>(
    operation: string,
    call: Promise<T>,
    type = operation === "list" ? this.#listType : this.#options.goType,
  ): Promise<T> {
    const { clock, metrics } = this.#options;
    const started = clock.monotonic();
    try {
      return await call;
    } catch (err) {
      if (err instanceof EtcdError && err.reason === "no-space") this.#warnOfNoSpace();
      throw statusErrorOf(err);
    } finally {
      metrics?.etcdRequest(operation, type, (clock.monotonic() - started) / 1000);
    }
  }

  #warnOfNoSpace(): void {
    const { clock, log, servers, prefix } = this.#options;
    if (clock.monotonic() - this.#warnedAt < noSpaceWarningMs) return;
    this.#warnedAt = clock.monotonic();
    log.warn("etcd has no space left and refuses all writes", { servers: servers.join(","), prefix });
  }
}
