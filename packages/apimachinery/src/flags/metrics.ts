import type { MetricsRegistryOptions } from "../process/metrics/registry.ts";
import { kubernetesRelease } from "../process/release.ts";
import { ConfigError } from "./run-main.ts";
import { string, stringSlice, stringToString } from "./types.ts";

/** Metrics flags of all programs. Source: component-base/metrics/options.go */
export const metricsFlags = {
  "allow-metric-labels": stringToString({
    help: "Values that a metric's label may take, as <MetricName>,<LabelName>='<value>,<value>'; others are shown as 'unexpected'.",
  }),
  "disabled-metrics": stringSlice({
    help: "Metrics to turn off, by their full name. Wins over showing hidden metrics.",
  }),
  "show-hidden-metrics-for-version": string({
    help: "The previous version whose hidden metrics are shown, as <major>.<minor>. Only the previous minor version means something.",
  }),
};

interface MetricsFlags {
  readonly "allow-metric-labels": Readonly<Record<string, string>>;
  readonly "disabled-metrics": readonly string[];
  readonly "show-hidden-metrics-for-version": string;
}

const previousMinor = `${kubernetesRelease.major}.${Number(kubernetesRelease.minor) - 1}`;

/** @throws ConfigError for a version other than the previous one, and for malformed label keys */
export function metricsOptions(flags: MetricsFlags): MetricsRegistryOptions {
  const version = flags["show-hidden-metrics-for-version"];
  if (version !== "" && version !== previousMinor) {
    throw new ConfigError(
      `--show-hidden-metrics-for-version must be omitted or have the value '${previousMinor}'. Only the previous minor version is allowed`,
    );
  }
  const allowed = Object.entries(flags["allow-metric-labels"]);
  if (!allowed.every(([key]) => /^[a-zA-Z_:][a-zA-Z0-9_:]*,[a-zA-Z_][a-zA-Z0-9_]*$/.test(key))) {
    throw new ConfigError(
      "--allow-metric-labels must have a list of kv pair with format `metricName,labelName=labelValue, labelValue,...`",
    );
  }
  return {
    disabled: flags["disabled-metrics"],
    showHidden: version !== "",
    allowLabels: Object.fromEntries(allowed.map(([key, values]) => [key, values.split(",")])),
  };
}
