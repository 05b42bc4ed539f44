import type { Clock } from "../clock/clock.ts";
import type { MetricsRegistry } from "../metrics/registry.ts";

/** Whether this process leads: for metrics, and for the page of health. */
export interface LeaderStatus {
  /** Told by the election. */
  leads(is: boolean): void;
  /** The lease was seen to change, by this process or another. */
  leaseSeen(): void;
  readonly isLeader: boolean;
  /** @throws Error for a leader whose lease has not been renewed for long; who waits for the lease is well */
  check(): void;
}

/** How much later than the end of its lease a leader counts as ill. Source: NewLeaderHealthzAdaptor(time.Second * 20) */
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
  const gauge = metrics.gauge({
    name: "leader_election_master_status",
    help: "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
    labels: ["name"],
  });
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
