import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { formatDuration } from "@coxswain/apimachinery/meta/time";
import { describePod, type NodePod } from "../pod/pod.ts";
import type { PodVerdict, Rejection } from "../pod/pod-verdict.ts";
import type { ShutdownGroup } from "../settings/structures.ts";
import type { InhibitLock, Logind } from "./logind.ts";
import { byGroup } from "./shutdown-groups.ts";

/** Graceful node shutdown with logind's inhibitor locks. */
export interface NodeShutdown {
  /**
   * Takes the inhibitor lock. Reconnects when the connection to logind is lost; ends with the signal.
   * @throws Error when logind is unreachable, or does not allow the required delay
   */
  start(signal: AbortSignal): Promise<void>;
  /** The reason why the node is not ready: a shutdown is in progress. */
  problem(): string | undefined;
  /** The rejection of new Pods while a shutdown is in progress. */
  refusal(): Rejection | undefined;
}

export interface NodeShutdownOptions {
  groups: readonly ShutdownGroup[];
  connect: () => Promise<Logind>;
  activePods: () => readonly NodePod[];
  /** Resolves when no container of the Pod runs. */
  endPod: (pod: NodePod, verdict: PodVerdict, graceSeconds: number) => Promise<void>;
  tellNode: (type: "Normal", reason: string, message: string) => void;
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
 * On shutdown, terminates Pods group by group within the grace period of each group, while the inhibitor lock delays the
 * shutdown. Source: pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go
 */
export function newNodeShutdown(options: NodeShutdownOptions): NodeShutdown {
  const { groups, clock, log } = options;
  const neededMs = groups.reduce((sum, group) => sum + group.shutdownGracePeriodSeconds * 1000, 0);
  let shuttingDown = false;
  /** Number of shutdown events and cancellations: only the current shutdown releases the lock. */
  let current = 0;
  let lock: InhibitLock | undefined;

  async function acquire(logind: Logind): Promise<void> {
    const before = lock;
    lock = await logind.inhibitShutdown();
    before?.release();
  }

  async function watch(): Promise<Logind> {
    const logind = await options.connect();
    try {
      if ((await logind.inhibitDelayMs()) < neededMs) {
        await logind.overrideInhibitDelay(neededMs).catch((err: Error) => {
          throw new Error(`unable to override inhibit delay by shutdown manager: ${err.message}`);
        });
        const delayMs = await logind.inhibitDelayMs();
        if (delayMs < neededMs) {
          throw new Error(
            `node shutdown manager was unable to update logind InhibitDelayMaxSec to ${formatDuration(neededMs)} (ShutdownGracePeriod), current value of InhibitDelayMaxSec (${formatDuration(delayMs)}) is less than requested ShutdownGracePeriod`,
          );
        }
      }
      await logind.onShutdown(
        (goesDown) => void heard(logind, goesDown).catch((err) => log.error("Shutdown manager failed", err)),
      );
      await acquire(logind);
    } catch (err) {
      logind.close();
      throw err;
    }
    return logind;
  }

  async function heard(logind: Logind, goesDown: boolean): Promise<void> {
    const what = goesDown ? "event" : "cancellation";
    log.info("Shutdown manager detected new shutdown event", { event: goesDown ? "shutdown" : "cancelled" });
    options.tellNode("Normal", "NodeShutdown", `Shutdown manager detected shutdown ${what}`);
    const before = shuttingDown;
    shuttingDown = goesDown;
    options.onChange();
    if (goesDown === before) return goesDown ? undefined : acquire(logind);
    const mine = ++current;
    if (!goesDown) return acquire(logind);
    try {
      for (const { group, pods } of byGroup(groups, options.activePods())) if (pods.length > 0) await endGroup(group, pods);
    } finally {
      if (mine === current) {
        lock?.release();
        lock = undefined;
      }
      log.info("Shutdown manager completed processing shutdown event, node will shutdown shortly");
    }
  }

  async function endGroup({ priority, shutdownGracePeriodSeconds }: ShutdownGroup, pods: readonly NodePod[]): Promise<void> {
    const ending = pods.map(async (pod) => {
      const own = pod.spec.terminationGracePeriodSeconds;
      const graceSeconds = Math.min(own ?? Number.POSITIVE_INFINITY, shutdownGracePeriodSeconds);
      log.info("Shutdown manager killing pod with gracePeriod", { pod: describePod(pod), gracePeriod: graceSeconds });
      await options
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

  async function keepWatching(first: Logind, signal: AbortSignal): Promise<void> {
    let logind: Logind | undefined = first;
    signal.addEventListener("abort", () => logind?.close(), { once: true });
    while (!signal.aborted) {
      await logind?.closed;
      logind = undefined;
      await clock.sleep(reconnectMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      log.v(1)?.info("Restarting watch for node shutdown events");
      logind = await watch().catch((err) => {
        log.error("Unable to watch the node for shutdown events", err);
        return undefined;
      });
    }
    logind?.close();
  }

  return {
    problem: () => (shuttingDown ? "node is shutting down" : undefined),
    refusal: () => (shuttingDown ? refused : undefined),
    async start(signal) {
      void keepWatching(await watch(), signal).catch((err) => log.error("Shutdown manager ended", err));
    },
  };
}
