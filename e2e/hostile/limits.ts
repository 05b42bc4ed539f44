/** Measurements of a well-behaved client (bystander) during an attack, and of the server before and after it. */
export interface Figures {
  /** Latencies of its requests without the time spent waiting for a CPU, in ms. */
  readonly latenciesMs: readonly number[];
  /** CPU time of the longest iteration of the server's event loop, in ms. */
  readonly longestTurnMs: number;
  /** Responses other than 200, and failed requests. */
  readonly failures: readonly string[];
  /** Longest time between two renewals of its lease without the time spent waiting for a CPU, in ms. */
  readonly longestRenewalMs: number;
  /** Numbers that its watch received. */
  readonly watched: readonly number[];
  /** Numbers that it wrote and that were acknowledged. */
  readonly written: readonly number[];
  readonly before: Holdings;
  readonly after: Holdings;
}

/** Resources held by the server. */
export interface Holdings {
  /** Heap and external memory after a forced garbage collection, without `cachedBytes`. */
  readonly heldBytes: number;
  /** What its caches hold within their limits, by its metric `coxswain_apiserver_cache_bytes`. */
  readonly cachedBytes: number;
  readonly residentBytes: number;
  readonly descriptors: number;
}

export interface Limits {
  readonly turnMs: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  readonly renewalMs: number;
  /** Failed requests: an etcd that gets no CPU refuses writes, whatever the API server does. */
  readonly failures: number;
  readonly moreBytes: number;
  readonly moreDescriptors: number;
}

const MB = 2 ** 20;
/** An iteration of the event loop is to be below 100 ms; three times as much allows for a CPU that is shared. */
export const limits: Limits = {
  turnMs: 300,
  p99Ms: 250,
  longestMs: 1000,
  renewalMs: 10_000,
  failures: 0,
  moreBytes: 50 * MB,
  moreDescriptors: 8,
};
/** For short attacks on a machine that runs other tests too: finds what blocks, starves or leaks, not what is slow. */
export const wideLimits: Limits = {
  turnMs: 1000,
  p99Ms: 2000,
  longestMs: 10_000,
  renewalMs: 30_000,
  failures: 5,
  moreBytes: 100 * MB,
  moreDescriptors: 20,
};

/** @returns one line per violated limit; empty when there is none */
export function breaches(figures: Figures, limit: Limits = limits): string[] {
  const found: string[] = [];
  const above = (what: string, value: number, most: number, unit: string): void => {
    if (value > most) found.push(`${what} ${Math.round(value)} ${unit}, at most ${most} ${unit}`);
  };
  if (figures.latenciesMs.length === 0) found.push("the bystander got no answer");
  above("turn", figures.longestTurnMs, limit.turnMs, "ms of CPU time");
  above("p99", quantile(figures.latenciesMs, 0.99), limit.p99Ms, "ms");
  above("longest", Math.max(0, ...figures.latenciesMs), limit.longestMs, "ms");
  above("between two renewals of the lease", figures.longestRenewalMs, limit.renewalMs, "ms");
  if (figures.failures.length > limit.failures)
    found.push(`${figures.failures.length} failures: ${[...new Set(figures.failures)].slice(0, 3)}`);
  const hole = firstDifference(figures.written, figures.watched);
  if (hole !== undefined)
    found.push(`the watch showed ${hole.shown ?? "nothing"} where ${hole.written ?? "nothing"} was written`);
  above("held more", (figures.after.heldBytes - figures.before.heldBytes) / MB, limit.moreBytes / MB, "MB");
  above("descriptors more", figures.after.descriptors - figures.before.descriptors, limit.moreDescriptors, "open");
  return found;
}

/** A value of the series: nearest rank, without interpolation; 0 of an empty one. @param part 0 to 1 */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function firstDifference(
  written: readonly number[],
  shown: readonly number[],
): { written: number | undefined; shown: number | undefined } | undefined {
  for (let i = 0; i < Math.max(written.length, shown.length); i++) {
    if (written[i] !== shown[i]) return { written: written[i], shown: shown[i] };
  }
  return undefined;
}

/** Growth in bytes from the first third of a series to the last one, by their medians, so that a single outlier is no trend. */
export function trend(series: readonly number[]): number {
  const third = Math.max(1, Math.floor(series.length / 3));
  return quantile(series.slice(-third), 0.5) - quantile(series.slice(0, third), 0.5);
}
