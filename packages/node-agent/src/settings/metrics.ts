import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import { settingOf } from "@coxswain/apimachinery/flags/settings";

/** The metrics flags of all programs, one of which the kubelet's file sets too. */
export const metricsSettings = {
  allowMetricLabels: settingOf(metricsFlags, "allow-metric-labels"),
  disabledMetrics: settingOf(metricsFlags, "disabled-metrics"),
  showHiddenMetrics: settingOf(metricsFlags, "show-hidden-metrics-for-version", { field: "showHiddenMetricsForVersion" }),
};
