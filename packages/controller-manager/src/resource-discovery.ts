import type { Client } from "@coxswain/apimachinery/client/client";
import { type Discovered, discoverPreferredResources } from "@coxswain/apimachinery/client/discovery";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/** How long the resources are kept. Callers that repeat discovery with the same period ask at the same time. */
const keptMs = 5_000;

interface Reading {
  readonly result: Promise<Discovered>;
  readonly stop: AbortController;
  callers: number;
  /** By the monotonic clock; undefined while the requests are under way. */
  endedAt?: number;
}

/**
 * The resources that the API server serves, read once for all controllers that ask at about the same time: reading them takes one
 * request for each group version.
 */
export class ResourceDiscovery {
  readonly #client: Client;
  readonly #clock: Clock;
  #latest: Reading | undefined;

  constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * Resources as of 5 seconds ago or later. What could not be read completely is shared by those who wait for it, and not kept.
   * @param signal ends the wait of this caller; the requests are aborted when nobody waits for them
   * @throws Error when the list of groups cannot be read
   */
  async resources(signal: AbortSignal): Promise<Discovered> {
    signal.throwIfAborted();
    const reading = this.#recent() ?? this.#begin();
    const aborted = Promise.withResolvers<never>();
    const onAbort = (): void => aborted.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    reading.callers++;
    try {
      return await Promise.race([reading.result, aborted.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      reading.callers--;
      if (reading.callers === 0 && reading.endedAt === undefined) {
        this.#forget(reading);
        reading.stop.abort(signal.reason);
      }
    }
  }

  #recent(): Reading | undefined {
    const endedAt = this.#latest?.endedAt;
    return endedAt === undefined || this.#clock.monotonic() - endedAt < keptMs ? this.#latest : undefined;
  }

  #begin(): Reading {
    const stop = new AbortController();
    const result = discoverPreferredResources(this.#client, { signal: stop.signal });
    const reading: Reading = { result, stop, callers: 0 };
    const end = (isComplete: boolean): void => {
      reading.endedAt = this.#clock.monotonic();
      if (!isComplete) this.#forget(reading);
    };
    result.then(
      ({ failed }) => end(failed.length === 0),
      () => end(false),
    );
    this.#latest = reading;
    return reading;
  }

  #forget(reading: Reading): void {
    if (this.#latest === reading) this.#latest = undefined;
  }
}
