/** Metrics of flow control, under upstream's names. Source: k8s.io/apiserver pkg/util/flowcontrol/metrics/metrics.go */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type {
  CounterChild,
  Gauge,
  GaugeChild,
  HistogramChild,
  MetricsRegistry,
} from "@coxswain/apimachinery/process/metrics/registry";
import { newSampledShares, type SampledShare } from "./sampled-share.ts";

/** Metrics of one flow schema at one priority level. */
export interface FlowMetrics {
  rejected(reason: RejectionReason): void;
  readonly dispatched: CounterChild;
  readonly inQueue: GaugeChild;
  readonly executing: GaugeChild;
  readonly seatsInUse: GaugeChild;
  readonly queueLength: HistogramChild;
  readonly noAccommodation: CounterChild;
  readonly executionSeconds: HistogramChild;
  readonly watchers: HistogramChild;
  readonly seats: HistogramChild;
  waited(seconds: number, runs: boolean): void;
}

type RejectionReason = "queue-full" | "concurrency-limit" | "time-out" | "cancelled";

export interface LevelMetrics {
  /** Waiting requests as a share of the queue length limit. */
  readonly waiting: SampledShare;
  /** Executing requests as a share of the concurrency limit. */
  readonly executing: SampledShare;
  /** Occupied seats as a share of the concurrency limit; includes seats occupied after the response. */
  readonly seats: SampledShare;
  readonly limit: GaugeChild;
  readonly currentR: GaugeChild;
  /** @param s start of the dispatched request; all, discounted: minimum and maximum over the queues with waiting requests */
  dispatched(currentR: number, s: number, all: readonly [number, number], discounted: readonly [number, number]): void;
}

const seconds = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30];
const level = ["priority_level"];
const flow = ["priority_level", "flow_schema"];
const prefix = "apiserver_flowcontrol_";

export class FlowControlMetrics {
  readonly #metrics: ReturnType<typeof register>;

  constructor(registry: MetricsRegistry, clock: Clock) {
    this.#metrics = register(registry, clock);
  }

  flow(name: string, schema: string): FlowMetrics {
    return {
      rejected: (reason) => this.#metrics.rejected.labels(name, schema, reason).inc(),
      waited: (took, runs) => this.#metrics.wait.labels(name, schema, String(runs)).observe(took),
      dispatched: this.#metrics.dispatched.labels(name, schema),
      inQueue: this.#metrics.inQueue.labels(name, schema),
      executing: this.#metrics.executing.labels(name, schema),
      seatsInUse: this.#metrics.inUse.labels(name, schema),
      queueLength: this.#metrics.queueLength.labels(name, schema),
      noAccommodation: this.#metrics.noAccommodation.labels(name, schema),
      executionSeconds: this.#metrics.execution.labels(name, schema),
      watchers: this.#metrics.watchers.labels(name, schema),
      seats: this.#metrics.seats.labels(name, schema),
    };
  }

  level(name: string): LevelMetrics {
    const ends = (of: Gauge) => [of.labels(name, "min"), of.labels(name, "max")] as const;
    const [r, s, all, discounted] = [
      this.#metrics.dispatchR.labels(name),
      this.#metrics.latestS.labels(name),
      ends(this.#metrics.nextS),
      ends(this.#metrics.nextDiscountedS),
    ];
    return {
      waiting: this.#metrics.requests("waiting", name),
      executing: this.#metrics.requests("executing", name),
      seats: this.#metrics.seatsTaken(name),
      limit: this.#metrics.limit.labels(name),
      currentR: this.#metrics.currentR.labels(name),
      dispatched(now, latest, bounds, discountedBounds) {
        r.set(now);
        s.set(latest);
        for (const end of [0, 1] as const) {
          all[end].set(bounds[end]);
          discounted[end].set(discountedBounds[end]);
        }
      },
    };
  }
}

function register(registry: MetricsRegistry, clock: Clock) {
  const gauge = (name: string, labels: string[], help: string) => registry.gauge({ name: prefix + name, labels, help });
  const counter = (name: string, labels: string[], help: string) => registry.counter({ name: prefix + name, labels, help });
  const histogram = (name: string, labels: string[], buckets: number[], help: string) =>
    registry.histogram({ name: prefix + name, labels, buckets, help });

  const shares = (name: string, labels: string[]) => newSampledShares(registry, clock, prefix + name, labels);
  return {
    rejected: counter(
      "rejected_requests_total",
      [...flow, "reason"],
      "Number of requests rejected by API Priority and Fairness system",
    ),
    dispatched: counter(
      "dispatched_requests_total",
      flow,
      "Number of requests released by API Priority and Fairness system for service",
    ),
    noAccommodation: counter(
      "request_dispatch_no_accommodation_total",
      flow,
      "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats",
    ),
    currentR: gauge("current_r", level, "R(time of last change)"),
    dispatchR: gauge("dispatch_r", level, "R(time of last dispatch)"),
    latestS: gauge("latest_s", level, "S(most recently dispatched request)"),
    nextS: gauge("next_s_bounds", [...level, "bound"], "min and max, over queues, of S(oldest waiting request in queue)"),
    nextDiscountedS: gauge(
      "next_discounted_s_bounds",
      [...level, "bound"],
      "min and max, over queues, of S(oldest waiting request in queue) - estimated work in progress",
    ),
    inQueue: gauge(
      "current_inqueue_requests",
      flow,
      "Number of requests currently pending in queues of the API Priority and Fairness system",
    ),
    executing: gauge(
      "current_executing_requests",
      flow,
      "Number of requests currently executing in the API Priority and Fairness system",
    ),
    limit: gauge("request_concurrency_limit", level, "Shared concurrency limit in the API Priority and Fairness system"),
    inUse: gauge(
      "request_concurrency_in_use",
      flow,
      "Concurrency (number of seats) occupided by the currently executing requests in the API Priority and Fairness system",
    ),
    queueLength: histogram(
      "request_queue_length_after_enqueue",
      flow,
      [0, 10, 25, 50, 100, 250, 500, 1000],
      "Length of queue in the API Priority and Fairness system, as seen by each request after it is enqueued",
    ),
    wait: histogram(
      "request_wait_duration_seconds",
      [...flow, "execute"],
      seconds,
      "Length of time a request spent waiting in its queue",
    ),
    execution: histogram(
      "request_execution_seconds",
      flow,
      seconds,
      "Duration of request execution in the API Priority and Fairness system",
    ),
    watchers: histogram(
      "watch_count_samples",
      flow,
      [0, 1, 10, 100, 1000, 10_000],
      "count of watchers for mutating requests in API Priority and Fairness",
    ),
    seats: histogram(
      "work_estimated_seats",
      flow,
      [1, 2, 4, 10],
      "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness",
    ),
    requests: shares("priority_level_request_count", ["phase", ...level]),
    seatsTaken: shares("priority_level_seat_count", level),
  };
}
