import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";

const named = <N extends keyof typeof metricsFlags, F extends string>(flag: N, field?: F) => ({
  ...metricsFlags[flag],
  flag,
  ...(field === undefined ? {} : { field }),
});

/** The metrics flags of all programs, one of which the kubelet's file sets too. */
export const metricsSettings = {
  allowMetricLabels: named("allow-metric-labels"),
  disabledMetrics: named("disabled-metrics"),
  showHiddenMetrics: named("show-hidden-metrics-for-version", "showHiddenMetricsForVersion"),
};
