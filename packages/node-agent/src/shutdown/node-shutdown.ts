import { formatDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { describePod, type NodePod } from "../pod/pod.ts";
import type { PodVerdict, Rejection } from "../pod/pod-verdict.ts";
import type { ShutdownGroup } from "../settings/structures.ts";
import type { InhibitLock, Logind } from "./logind.ts";
import { byGroup } from "./shutdown-groups.ts";

export interface NodeShutdownOptions {
  groups: readonly ShutdownGroup[];
  connect: () => Promise<Logind>;
  activePods: () => readonly NodePod[];
  /** Resolves when no container of the Pod runs. */
  endPod: (pod: NodePod, verdict: PodVerdict, graceSeconds: number) => Promise<void>;
  reportNodeEvent: (type: "Normal", reason: string, message: string) => void;
  onChange: () => void;
  clock: Clock;
  log: Logger;
}

const reconnectMs = 1_000;
const verdict: PodVerdict = {
  reason: "Terminated",
  message: "Pod was terminated in response to imminent node shutdown.",
};
const refused: Rejection = { reason: "NodeShutdown", message: "Pod was rejected as the node is shutting down." };

/**
 * Graceful node shutdown: terminates Pods group by group within the grace period of each group, while logind's inhibitor lock delays the
 * shutdown. Source: pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go
 */
export class NodeShutdown {
  readonly #options: NodeShutdownOptions;
  readonly #neededMs: number;
  #shuttingDown = false;
  /** Number of shutdown events and cancellations: only the current shutdown releases the lock. */
  #current = 0;
  /** The last shutdown whose Pods have ended. */
  #completed: number | undefined;
  #lock: InhibitLock | undefined;

  constructor(options: NodeShutdownOptions) {
    this.#options = options;
    const { groups } = options;
    this.#neededMs = groups.reduce((sum, group) => sum + group.shutdownGracePeriodSeconds * 1000, 0);
  }

  /** The reason why the node is not ready: a shutdown is in progress. */
  problem(): string | undefined {
    return this.#shuttingDown ? "node is shutting down" : undefined;
  }

  /** The rejection of new Pods while a shutdown is in progress. */
  refusal(): Rejection | undefined {
    return this.#shuttingDown ? refused : undefined;
  }

  /**
   * Takes the inhibitor lock. Reconnects when the connection to logind is lost; ends with the signal.
   * @throws Error when logind is unreachable, or does not allow the required delay
   */
  async start(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    void this.#keepWatching(await this.#watch(), signal).catch((err) => log.error("Shutdown manager ended", err));
  }

  async #acquire(logind: Logind): Promise<void> {
    const before = this.#lock;
    const lock = await logind.inhibitShutdown();
    if (this.#current === this.#completed) return lock.release(); // a shutdown came meanwhile, and has nothing left to do
    this.#lock = lock;
    before?.release();
  }

  async #watch(): Promise<Logind> {
    const { log } = this.#options;
    const logind = await this.#options.connect();
    try {
      if ((await logind.inhibitDelayMs()) < this.#neededMs) {
        await logind.overrideInhibitDelay(this.#neededMs).catch((err: Error) => {
          throw new Error(`unable to override inhibit delay by shutdown manager: ${err.message}`);
        });
        const delayMs = await logind.inhibitDelayMs();
        if (delayMs < this.#neededMs) {
          throw new Error(
            `node shutdown manager was unable to update logind InhibitDelayMaxSec to ${formatDuration(this.#neededMs)} (ShutdownGracePeriod), current value of InhibitDelayMaxSec (${formatDuration(delayMs)}) is less than requested ShutdownGracePeriod`,
          );
        }
      }
      await logind.onShutdown(
        (goesDown) => void this.#heard(logind, goesDown).catch((err) => log.error("Shutdown manager failed", err)),
      );
      await this.#acquire(logind);
    } catch (err) {
      logind.close();
      throw err;
    }
    return logind;
  }

  async #heard(logind: Logind, goesDown: boolean): Promise<void> {
    const { log, groups } = this.#options;
    const what = goesDown ? "event" : "cancellation";
    log.info("Shutdown manager detected new shutdown event", { event: goesDown ? "shutdown" : "cancelled" });
    this.#options.reportNodeEvent("Normal", "NodeShutdown", `Shutdown manager detected shutdown ${what}`);
    const before = this.#shuttingDown;
    this.#shuttingDown = goesDown;
    this.#options.onChange();
    if (goesDown === before) return goesDown ? undefined : this.#acquire(logind);
    const mine = ++this.#current;
    if (!goesDown) return this.#acquire(logind);
    try {
      for (const { group, pods } of byGroup(groups, this.#options.activePods()))
        if (pods.length > 0) await this.#endGroup(group, pods);
    } finally {
      if (mine === this.#current) {
        this.#completed = mine;
        this.#lock?.release();
        this.#lock = undefined;
      }
      log.info("Shutdown manager completed processing shutdown event, node will shutdown shortly");
    }
  }

  async #endGroup({ priority, shutdownGracePeriodSeconds }: ShutdownGroup, pods: readonly NodePod[]): Promise<void> {
    const { log, clock } = this.#options;
    const ending = pods.map(async (pod) => {
      const own = pod.spec.terminationGracePeriodSeconds;
      const graceSeconds = Math.min(own ?? Number.POSITIVE_INFINITY, shutdownGracePeriodSeconds);
      log.info("Shutdown manager killing pod with gracePeriod", { pod: describePod(pod), gracePeriod: graceSeconds });
      await this.#options
        .endPod(pod, verdict, graceSeconds)
        .catch((err) => log.error("Shutdown manager failed killing pod", err, { pod: describePod(pod) }));
    });
    const timeout = new AbortController();
    const timer = clock.sleep(shutdownGracePeriodSeconds * 1000, timeout.signal).then(
      () => log.info("Shutdown manager pod killing time out", { gracePeriod: shutdownGracePeriodSeconds, priority }),
      () => undefined,
    );
    await Promise.race([Promise.all(ending), timer]);
    timeout.abort();
  }

  async #keepWatching(first: Logind, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    let logind: Logind | undefined = first;
    signal.addEventListener("abort", () => logind?.close(), { once: true });
    while (!signal.aborted) {
      await logind?.closed;
      logind = undefined;
      await clock.sleep(reconnectMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      log.v(1)?.info("Restarting watch for node shutdown events");
      logind = await this.#watch().catch((err) => {
        log.error("Unable to watch the node for shutdown events", err);
        return undefined;
      });
    }
    logind?.close();
  }
}
