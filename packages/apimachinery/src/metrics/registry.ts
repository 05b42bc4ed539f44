import { collectDefaultMetrics, Registry } from "prom-client";
import { goFloat } from "./go-float.ts";

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
  /** Everything in Prometheus' text format. */
  render(): Promise<string>;
  /** Counters and histograms start again at zero; gauges tell of what is, and stay. */
  reset(): void;
  readonly contentType: string;
}

/**
 * Upstream's metric names over prom-client, which renders; the values are kept here, because its label hashing costs
 * more than the requests it would count.
 * Source: k8s.io/component-base/metrics
 */
export function newMetricsRegistry(options: MetricsRegistryOptions = {}): MetricsRegistry {
  const registry = new Registry();
  const known = new Map<string, ChildTable>();
  if (options.processMetrics === true) collectDefaultMetrics({ register: registry });

  const table = (
    type: ChildTable["type"],
    metric: MetricOptions & { buckets?: readonly number[]; collect?: () => void },
  ): ChildTable => {
    const existing = known.get(metric.name);
    if (existing !== undefined) {
      if (existing.type !== type || existing.labelNames.join() !== (metric.labels ?? []).join()) {
        throw new Error(`metric ${metric.name} is registered already, as another kind or with other labels`);
      }
      return existing;
    }
    const created = new ChildTable(type, metric, options.allowLabels ?? {});
    known.set(metric.name, created);
    const disabled = options.disabled?.includes(metric.name) ?? false;
    const shown = !disabled && (options.showHidden === true || !isHidden(metric));
    if (shown) registry.registerMetric(created as never);
    return created;
  };

  const built: MetricsRegistry = {
    counter: (metric) => table("counter", metric).family as unknown as Counter,
    gauge(metric) {
      const gauge: Gauge = table("gauge", { ...metric, collect: () => metric.collect?.(gauge) }).family as unknown as Gauge;
      return gauge;
    },
    histogram: (metric) => table("histogram", metric).family as unknown as Histogram,
    render: () => registry.metrics(),
    reset() {
      for (const table of known.values()) table.restart();
    },
    contentType: registry.contentType,
  };
  if (options.processMetrics === true) registerBuildInfo(built);
  return built;
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

interface Sample {
  metricName?: string;
  labels: Record<string, string>;
  value: number;
}

class NumberChild {
  value = 0;
  inc(by = 1): void {
    this.value += by;
  }
  dec(by = 1): void {
    this.value -= by;
  }
  set(value: number): void {
    this.value = value;
  }
  restart(): void {
    this.value = 0;
  }
}

class BucketChild {
  readonly counts: Float64Array;
  readonly #bounds: readonly number[];
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = new Float64Array(bounds.length);
  }

  observe(value: number, times = 1): void {
    this.sum += value * times;
    this.count += times;
    const bounds = this.#bounds;
    for (let i = 0; i < bounds.length; i++) {
      if (value <= (bounds[i] as number)) {
        (this.counts[i] as number) += times;
        return;
      }
    }
  }

  restart(): void {
    this.sum = 0;
    this.count = 0;
    this.counts.fill(0);
  }
}

type Child = NumberChild | BucketChild;

/** All children of one metric; what prom-client asks for its samples. */
class ChildTable {
  readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly labelNames: readonly string[];
  /** What users hold: `labels`, and the child's own methods when there are no labels. */
  readonly family: object;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #le: readonly string[];
  readonly #collect: (() => void) | undefined;
  readonly #allowed: readonly (readonly string[] | undefined)[];
  readonly #children = new Map<string, { values: string[]; child: Child }>();

  constructor(
    type: ChildTable["type"],
    metric: MetricOptions & { buckets?: readonly number[]; collect?: () => void },
    allowLabels: Readonly<Record<string, readonly string[]>>,
  ) {
    this.type = type;
    this.name = metric.name;
    this.labelNames = metric.labels ?? [];
    const deprecated = metric.deprecatedSince === undefined ? "" : `(Deprecated since ${metric.deprecatedSince}) `;
    this.#help = `[${metric.stability ?? "ALPHA"}] ${deprecated}${metric.help}`;
    this.#bounds = metric.buckets ?? defaultBuckets;
    this.#le = this.#bounds.map(goFloat);
    this.#collect = metric.collect;
    this.#allowed = this.labelNames.map((label) => allowLabels[`${metric.name},${label}`]);
    this.family = this.#newFamily();
  }

  /** prom-client's side: one value for each line. */
  get(): { name: string; help: string; type: string; values: Sample[]; aggregator: string } {
    this.#collect?.();
    const values: Sample[] = [];
    for (const { values: labelValues, child } of this.#children.values()) {
      const labels: Record<string, string> = {};
      for (const [i, label] of this.labelNames.entries()) labels[label] = labelValues[i] as string;
      if (child instanceof NumberChild) values.push({ labels, value: child.value });
      else this.#pushBuckets(values, labels, child);
    }
    return { name: this.name, help: this.#help, type: this.type, values, aggregator: "sum" };
  }

  reset(): void {
    this.#children.clear();
    if (this.labelNames.length === 0) this.#children.set("", { values: [], child: this.#newChild() });
  }

  /** Children stay: who holds on to one goes on counting with it. */
  restart(): void {
    if (this.type === "gauge") return;
    for (const { child } of this.#children.values()) child.restart();
  }

  #pushBuckets(values: Sample[], labels: Record<string, string>, child: BucketChild): void {
    let total = 0;
    for (const [i, le] of this.#le.entries()) {
      total += child.counts[i] as number;
      values.push({ metricName: `${this.name}_bucket`, labels: { ...labels, le }, value: total });
    }
    values.push({ metricName: `${this.name}_bucket`, labels: { ...labels, le: "+Inf" }, value: child.count });
    values.push({ metricName: `${this.name}_sum`, labels, value: child.sum });
    values.push({ metricName: `${this.name}_count`, labels, value: child.count });
  }

  #child(values: readonly string[]): Child {
    if (values.length !== this.labelNames.length) {
      throw new Error(`metric ${this.name} has the labels ${this.labelNames.join()}, got ${values.length} values`);
    }
    const checked = values.map((value, i) => (this.#allowed[i]?.includes(value) === false ? "unexpected" : value));
    const key = checked.length === 1 ? (checked[0] as string) : checked.join("\u{0}");
    let entry = this.#children.get(key);
    if (entry === undefined) {
      entry = { values: checked, child: this.#newChild() };
      this.#children.set(key, entry);
    }
    return entry.child;
  }

  #newChild(): Child {
    return this.type === "histogram" ? new BucketChild(this.#bounds) : new NumberChild();
  }

  #newFamily(): object {
    const own = (): Child => this.#child([]);
    if (this.labelNames.length === 0) own();
    const number = own as () => NumberChild;
    const buckets = own as () => BucketChild;
    return {
      labels: (...values: string[]) => this.#child(values),
      remove: (...values: string[]) => void this.#children.delete(values.join("\u{0}")),
      reset: () => this.reset(),
      inc: (by?: number) => number().inc(by),
      dec: (by?: number) => number().dec(by),
      set: (value: number) => number().set(value),
      observe: (value: number, times?: number) => buckets().observe(value, times),
      get value() {
        return number().value;
      },
      get count() {
        return buckets().count;
      },
      get sum() {
        return buckets().sum;
      },
    };
  }
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
