import { Registry } from "prom-client";
import definitions from "../../metrics.json" with { type: "json" };
import { Turns } from "../event-loop/turns.ts";
import { coxswainVersion, kubernetesRelease } from "../release.ts";
import { ChildTable, type TableOptions } from "./child-table.ts";
import { collectProcessMetrics } from "./process-metrics.ts";

interface MetricOptions {
  /** The upstream metric name. */
  readonly name: string;
  readonly help: string;
  /** Label names, in the order of the arguments of `labels(…)`. */
  readonly labels?: readonly string[];
  /** Stability level, `ALPHA` or `STABLE`, prepended to the help text as upstream does. Default ALPHA. */
  readonly stability?: string;
  /** Release that deprecated the metric, `1.22.0`; shown in the help. From the next release on the metric is hidden. */
  readonly deprecatedSince?: string;
}

interface GaugeOptions extends MetricOptions {
  /** Called before rendering, to set values that are cheaper to compute than to maintain. */
  readonly collect?: (gauge: Gauge) => void;
}

interface HistogramOptions extends MetricOptions {
  /** Upper bounds, ascending, without +Inf. Default: Prometheus' 5 ms to 10 s. */
  readonly buckets?: readonly number[];
  /** Called before rendering, to observe values without events. */
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
  /** @param times number of observations of the value; default 1 */
  observe(value: number, times?: number): void;
  readonly count: number;
  readonly sum: number;
}

/** One child per set of label values, which hot paths should keep. A metric without labels is its own child. */
interface Family<Child> {
  labels(...values: string[]): Child;
  /** Removes the child with these label values. */
  remove(...values: string[]): void;
  /** Removes all children. */
  reset(): void;
}
export interface Counter extends Family<CounterChild>, CounterChild {}
export interface Gauge extends Family<GaugeChild>, GaugeChild {}
export interface Histogram extends Family<HistogramChild>, HistogramChild {}

export interface MetricsRegistryOptions {
  /** `--disabled-metrics`: metrics that are counted but not shown. */
  readonly disabled?: readonly string[];
  /** `--show-hidden-metrics-for-version`: also shows metrics that this release hides because an earlier one deprecated them. */
  readonly showHidden?: boolean;
  /** `--allow-metric-labels`: allowed values by `metric,label`; any other becomes `unexpected`. */
  readonly allowLabels?: Readonly<Record<string, readonly string[]>>;
  /** Adds metrics of the process: memory, CPU, event loop, garbage collection. */
  readonly processMetrics?: boolean;
  /** Adds what the program was built from. Default: with the metrics of the process. */
  readonly buildInfo?: boolean;
  /** The program's instance; default: one for this registry only. */
  readonly turns?: Turns;
}

export interface MetricsRegistry {
  /** Registers a metric, or returns the existing one of that name. @throws Error when its type or labels differ */
  counter(options: MetricOptions): Counter;
  gauge(options: GaugeOptions): Gauge;
  histogram(options: HistogramOptions): Histogram;
  /** Renders all metrics in Prometheus' text format, in chunks of about 32 KiB, each in a turn. */
  chunks(): AsyncGenerator<string>;
  /** Same as {@link chunks}, as one string. */
  render(): Promise<string>;
  /** Resets counters and histograms to zero; gauges keep their values. */
  reset(): void;
  readonly contentType: string;
}

/** Size from which a chunk is yielded. */
const chunkCharacters = 32 * 1024;

/**
 * Creates a registry of metrics under upstream's names. prom-client provides the process metrics only: its label hashing costs
 * more than the requests to be counted, and it renders everything in one event-loop iteration.
 * Source: k8s.io/component-base/metrics
 */
export function newMetricsRegistry(options: MetricsRegistryOptions = {}): MetricsRegistry {
  const { turns = new Turns() } = options;
  const process = new Registry();
  const shown: ChildTable[] = [];
  const known = new Map<string, ChildTable>();
  if (options.processMetrics === true) collectProcessMetrics(process);

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
        const turn = turns.next();
        if (turn !== undefined) await turn;
      }
    }
    yield text;
  }

  const built: MetricsRegistry = {
    counter: (metric) => table("counter", metric).family as Counter, // cast: a table's family has the methods of its kind
    gauge(metric) {
      // Cast: a table's family has the methods of its kind.
      const gauge: Gauge = table("gauge", { ...metric, collect: () => metric.collect?.(gauge) }).family as Gauge;
      return gauge;
    },
    histogram: (metric) => table("histogram", metric).family as Histogram, // cast: a table's family has the methods of its kind
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
  if (options.buildInfo ?? options.processMetrics) registerBuildInfo(built);
  return built;
}

function helpOf({ stability = "ALPHA", deprecatedSince, help }: MetricOptions): string {
  return `[${stability}] ${deprecatedSince === undefined ? "" : `(Deprecated since ${deprecatedSince}) `}${help}`;
}

/** True when the metric was deprecated in an earlier release than {@link kubernetesRelease}. Source: component-base/metrics/version_parser.go */
function isHidden({ deprecatedSince }: MetricOptions): boolean {
  return deprecatedSince !== undefined && Number(deprecatedSince.split(".")[1]) < Number(kubernetesRelease.minor);
}

const defaultBuckets: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `start`, `start × factor`, … Source: prometheus.ExponentialBuckets */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  const buckets = [start];
  while (buckets.length < count) buckets.push(buckets.at(-1)! * factor);
  return buckets;
}

/** Registers kubernetes_build_info, by which dashboards distinguish versions. */
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
      kubernetesRelease.gitVersion,
      process.version,
      kubernetesRelease.major,
      kubernetesRelease.minor,
      platform,
    )
    .set(1);
  registry.gauge(definitions.coxswain_build_info).labels(coxswainVersion, process.version).set(1);
}
