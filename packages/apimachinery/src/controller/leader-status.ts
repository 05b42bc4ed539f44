import definitions from "../metrics.json" with { type: "json" };
import type { Clock } from "../process/clock/clock.ts";
import type { MetricsRegistry } from "../process/metrics/registry.ts";

/** Leadership of this process, for metrics and health checks. */
export interface LeaderStatus {
  /** Called by the election when this process becomes or ceases to be the leader. */
  leads(is: boolean): void;
  /** Reports that the lease has changed, by any candidate. */
  leaseSeen(): void;
  readonly isLeader: boolean;
  /** Health check. @throws Error for a leader whose lease was not renewed in time; other candidates are healthy */
  check(): void;
}

/** Tolerance after the end of the lease before a leader counts as unhealthy. Source: NewLeaderHealthzAdaptor(time.Second * 20) */
const toleratedMs = 20_000;

/**
 * @param name of the lease
 * Source: k8s.io/client-go tools/leaderelection/healthzadaptor.go, LeaderElector.Check; component-base
 * metrics/prometheus/clientgo/leaderelection
 */
export function newLeaderStatus(options: {
  name: string;
  leaseDurationMs: number;
  clock: Clock;
  metrics: MetricsRegistry;
}): LeaderStatus {
  const { name, leaseDurationMs, clock, metrics } = options;
  const gauge = metrics.gauge(definitions.leader_election_master_status);
  let isLeader = false;
  let seenAt = clock.monotonic();
  gauge.labels(name).set(0);
  return {
    leads(is) {
      isLeader = is;
      gauge.labels(name).set(is ? 1 : 0);
    },
    leaseSeen() {
      seenAt = clock.monotonic();
    },
    get isLeader() {
      return isLeader;
    },
    check() {
      if (isLeader && clock.monotonic() - seenAt > leaseDurationMs + toleratedMs)
        throw new Error(`failed election to renew leadership on lease ${name}`);
    },
  };
}
