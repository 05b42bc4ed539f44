import type { ResourceRef } from "../../objects/meta/group-version.ts";
import type { KubeObject } from "../../objects/meta/types.ts";
import { leases } from "../../objects/schema/kinds/resources.ts";
import type { newFakeClock } from "../../process/clock/fake-clock.ts";
import { discardLogger } from "../../process/logging/logger.ts";
import { type LeaderElectionOptions, runLeaderElection } from "../leader-election.ts";
import { newResourceLock } from "../resource-lock.ts";

type Clock = ReturnType<typeof newFakeClock>;

/** A candidate for the lease `kube-system/test`, whose events are its changes of state. */
export function candidate(
  client: LeaderElectionOptions["client"],
  clock: Clock,
  identity: string,
  extra: Partial<LeaderElectionOptions> = {},
  kind = "leases",
) {
  const stop = new AbortController();
  const events: string[] = [];
  const finished = runLeaderElection({
    client,
    lock: newResourceLock(kind, "kube-system", "test"),
    identity,
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2000,
    onStarted: (signal) => {
      events.push("started");
      signal.addEventListener("abort", () => events.push("stopping"));
    },
    onStopped: () => events.push("stopped"),
    onNewLeader: (leader) => events.push(`leader ${leader}`),
    log: discardLogger,
    clock,
    signal: stop.signal,
    random: () => 0,
    ...extra,
  });
  return { stop, events, finished };
}

/** The `spec` of that lease. */
export const leaseOf = (client: { object<T extends KubeObject>(ref: ResourceRef, key: string): T | undefined }) =>
  client.object<KubeObject & { spec: Record<string, unknown> }>(leases, "kube-system/test")?.spec ?? {};
