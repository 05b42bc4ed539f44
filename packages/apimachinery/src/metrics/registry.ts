import { collectDefaultMetrics, Registry } from "prom-client";
import { loopSlice } from "../event-loop/loop-slice.ts";
import { ChildTable, type TableOptions } from "./child-table.ts";

export interface MetricOptions {
  /** Upstream's name. */
  readonly name: string;
  readonly help: string;
  /** Names of the labels, in the order in which `labels(…)` takes their values. */
  readonly labels?: readonly string[];
  /** Written before the help text, as upstream does. Default ALPHA. */
  readonly stability?: "ALPHA" | "STABLE";
  /** The release since which it is deprecated, `1.22.0`; told in the help. One release later it is shown only on demand. */
  readonly deprecatedSince?: string;
}

export interface GaugeOptions extends MetricOptions {
  /** Called when the metrics are read, to set what is cheaper to look up than to keep. */
  readonly collect?: (gauge: Gauge) => void;
}

export interface HistogramOptions extends MetricOptions {
  /** Upper bounds, ascending, without +Inf. Default: Prometheus' 5 ms to 10 s. */
  readonly buckets?: readonly number[];
  /** Called when the metrics are read, to observe what no event has brought. */
  readonly collect?: () => void;
}

export interface CounterChild {
  inc(by?: number): void;
  readonly value: number;
}
export interface GaugeChild {
  set(value: number): void;
  inc(by?: number): void;
  dec(by?: number): void;
  readonly value: number;
}
export interface HistogramChild {
  /** @param times as if observed so often; default 1 */
  observe(value: number, times?: number): void;
  readonly count: number;
  readonly sum: number;
}

/** A child for each set of label values: hold on to it where it is hot. Without labels, the metric is its own child. */
interface Family<Child> {
  labels(...values: string[]): Child;
  /** Forgets one set of label values. */
  remove(...values: string[]): void;
  /** Forgets all of them. */
  reset(): void;
}
export interface Counter extends Family<CounterChild>, CounterChild {}
export interface Gauge extends Family<GaugeChild>, GaugeChild {}
export interface Histogram extends Family<HistogramChild>, HistogramChild {}

export interface MetricsRegistryOptions {
  /** `--disabled-metrics`: these are counted but never shown. */
  readonly disabled?: readonly string[];
  /** `--show-hidden-metrics-for-version`: those deprecated in an earlier release too. */
  readonly showHidden?: boolean;
  /** `--allow-metric-labels`: `metric,label` → the only values; any other becomes `unexpected`. */
  readonly allowLabels?: Readonly<Record<string, readonly string[]>>;
  /** Memory, CPU, event loop and garbage collection of this process, and which release it is of. */
  readonly processMetrics?: boolean;
}

export interface MetricsRegistry {
  /** Asking again for a name gives the same metric. @throws Error when its kind or labels differ. */
  counter(options: MetricOptions): Counter;
  gauge(options: GaugeOptions): Gauge;
  histogram(options: HistogramOptions): Histogram;
  /** Everything in Prometheus' text format, in pieces of about 32 KiB that are made within the shared time slice of the event loop. */
  chunks(): AsyncGenerator<string>;
  /** The same as one text. */
  render(): Promise<string>;
  /** Counters and histograms start again at zero; gauges tell of what is, and stay. */
  reset(): void;
  readonly contentType: string;
}

/** A piece of the text is given away when it is so long. */
const chunkCharacters = 32 * 1024;

/**
 * Metrics under upstream's names. prom-client measures the process; the values of all others are kept and rendered here, because its
 * label hashing costs more than the requests it would count, and it renders everything in one iteration of the event loop.
 * Source: k8s.io/component-base/metrics
 */
export function newMetricsRegistry(options: MetricsRegistryOptions = {}): MetricsRegistry {
  const process = new Registry();
  const shown: ChildTable[] = [];
  const known = new Map<string, ChildTable>();
  if (options.processMetrics === true) collectDefaultMetrics({ register: process });

  const table = (
    type: ChildTable["type"],
    metric: MetricOptions & Partial<Pick<TableOptions, "buckets" | "collect">>,
  ): ChildTable => {
    const existing = known.get(metric.name);
    if (existing !== undefined) {
      if (existing.type !== type || existing.labelNames.join() !== (metric.labels ?? []).join()) {
        throw new Error(`metric ${metric.name} is registered already, as another kind or with other labels`);
      }
      return existing;
    }
    const labelNames = metric.labels ?? [];
    const created = new ChildTable(type, {
      ...metric,
      help: helpOf(metric),
      labels: labelNames,
      buckets: metric.buckets ?? defaultBuckets,
      allowed: labelNames.map((label) => options.allowLabels?.[`${metric.name},${label}`]),
    });
    known.set(metric.name, created);
    const disabled = options.disabled?.includes(metric.name) ?? false;
    if (!disabled && (options.showHidden === true || !isHidden(metric))) shown.push(created);
    return created;
  };

  async function* chunks(): AsyncGenerator<string> {
    let text = options.processMetrics === true ? await process.metrics() : "";
    for (const table of shown) {
      if (text !== "") text += "\n";
      for (const lines of table.text()) {
        text += lines;
        if (text.length < chunkCharacters) continue;
        yield text;
        text = "";
        const turn = loopSlice.next();
        if (turn !== undefined) await turn;
      }
    }
    yield text;
  }

  const built: MetricsRegistry = {
    counter: (metric) => table("counter", metric).family as unknown as Counter,
    gauge(metric) {
      const gauge: Gauge = table("gauge", { ...metric, collect: () => metric.collect?.(gauge) }).family as unknown as Gauge;
      return gauge;
    },
    histogram: (metric) => table("histogram", metric).family as unknown as Histogram,
    chunks,
    async render() {
      let text = "";
      for await (const chunk of chunks()) text += chunk;
      return text;
    },
    reset() {
      for (const table of known.values()) table.restart();
    },
    contentType: process.contentType,
  };
  if (options.processMetrics === true) registerBuildInfo(built);
  return built;
}

function helpOf({ stability = "ALPHA", deprecatedSince, help }: MetricOptions): string {
  return `[${stability}] ${deprecatedSince === undefined ? "" : `(Deprecated since ${deprecatedSince}) `}${help}`;
}

/** The release whose metrics these are. */
export const release = { major: "1", minor: "23", gitVersion: "v1.23.0" };

/** What was deprecated before this release. Source: component-base/metrics/version_parser.go */
function isHidden({ deprecatedSince }: MetricOptions): boolean {
  return deprecatedSince !== undefined && Number(deprecatedSince.split(".")[1]) < Number(release.minor);
}

const defaultBuckets: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `start`, `start × factor`, … Source: prometheus.ExponentialBuckets */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  const buckets = [start];
  while (buckets.length < count) buckets.push((buckets.at(-1) as number) * factor);
  return buckets;
}

/** `start`, `start + width`, … Source: prometheus.LinearBuckets */
export function linearBuckets(start: number, width: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => start + i * width);
}

/** Dashboards tell versions apart by this. */
function registerBuildInfo(registry: MetricsRegistry): void {
  const labels = [
    "build_date",
    "compiler",
    "git_commit",
    "git_tree_state",
    "git_version",
    "go_version",
    "major",
    "minor",
    "platform",
  ];
  const help =
    "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.";
  const platform = `${process.platform}/${process.arch === "x64" ? "amd64" : process.arch}`;
  registry
    .gauge({ name: "kubernetes_build_info", help, labels })
    .labels(
      "1970-01-01T00:00:00Z",
      "node",
      "",
      "clean",
      release.gitVersion,
      process.version,
      release.major,
      release.minor,
      platform,
    )
    .set(1);
}
