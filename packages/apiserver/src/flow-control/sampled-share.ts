/**
 * The used share of a limit, as if sampled every millisecond: a histogram of the samples, and histograms of the minimum and
 * maximum between samples. No timer runs: a change, or a scrape of the metrics, accounts for the milliseconds that have passed.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/metrics/sample_and_watermark.go
 */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { HistogramChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

const buckets = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

export class SampledShare {
  readonly #now: () => number;
  readonly #samples: HistogramChild;
  readonly #low: HistogramChild;
  readonly #high: HistogramChild;
  readonly #retired: (share: SampledShare) => void;
  #value = 0;
  #limit = 1;
  #share = 0;
  #least = 0;
  #most = 0;
  #lastMs: number;

  constructor(
    now: () => number,
    histograms: { readonly samples: HistogramChild; readonly low: HistogramChild; readonly high: HistogramChild },
    retired: (share: SampledShare) => void,
  ) {
    this.#now = now;
    this.#samples = histograms.samples;
    this.#low = histograms.low;
    this.#high = histograms.high;
    this.#retired = retired;
    this.#lastMs = now();
  }

  add(by: number): void {
    this.catchUp();
    this.#value += by;
    this.#changed();
  }

  setLimit(limit: number): void {
    this.catchUp();
    this.#limit = limit;
    this.#changed();
  }

  /** Accounts for the milliseconds that have begun since the last call. */
  catchUp(): void {
    const now = this.#now();
    const passed = now - this.#lastMs;
    if (passed <= 0) return;
    this.#lastMs = now;
    this.#samples.observe(this.#share, passed);
    this.#low.observe(this.#least);
    this.#high.observe(this.#most);
    this.#least = this.#most = this.#share;
    if (passed === 1) return;
    this.#low.observe(this.#share, passed - 1);
    this.#high.observe(this.#share, passed - 1);
  }

  /** Stops sampling on scrapes; further changes are still counted. */
  retire(): void {
    this.catchUp();
    this.#retired(this);
  }

  #changed(): void {
    this.#share = this.#value / this.#limit;
    this.#least = Math.min(this.#least, this.#share);
    this.#most = Math.max(this.#most, this.#share);
  }
}

/** @returns a factory of shares with the given label values; the metrics are `<name>_samples` and `<name>_watermarks` */
export function newSampledShares(registry: MetricsRegistry, clock: Clock, name: string, labels: readonly string[]) {
  const live = new Set<SampledShare>();
  const collect = (): void => {
    for (const share of live) share.catchUp();
  };
  const samples = registry.histogram({
    name: `${name}_samples`,
    help: "Periodic observations of the number of requests",
    labels,
    buckets,
    collect,
  });
  const watermarks = registry.histogram({
    name: `${name}_watermarks`,
    help: "Watermarks of the number of requests",
    labels: ["mark", ...labels],
    buckets,
    collect,
  });
  const now = (): number => Math.floor(clock.monotonic());
  return (...values: string[]): SampledShare => {
    const [low, high] = [watermarks.labels("low", ...values), watermarks.labels("high", ...values)];
    const share = new SampledShare(now, { samples: samples.labels(...values), low, high }, (gone) => live.delete(gone));
    live.add(share);
    return share;
  };
}
