import type { Client } from "@coxswain/apimachinery/client/client";
import type { Node, NodeConfigSource, NodeConfigStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import definitions from "../metrics.json" with { type: "json" };
import { type ConfigSource, pathOfSource } from "./config-source.ts";

/** Reports the configuration in use in the node's status and in metrics. */
export interface ConfigReport {
  /** Sets the sync error, which takes precedence over an error at startup; `""` clears it. */
  setSyncError(error: string): void;
  setLastKnownGood(source: ConfigSource): void;
  /** Writes pending changes. @throws Error when the write failed and has to be retried */
  write(signal: AbortSignal): Promise<void>;
}

/** Creates a report that is written by the next `write`. Source: pkg/kubelet/kubeletconfig/status/status.go Sync */
export function newConfigReport(options: {
  client: Client;
  nodeName: string;
  /** The status determined at startup. */
  status: NodeConfigStatus;
  metrics: ConfigMetrics;
}): ConfigReport {
  const { client, nodeName, metrics } = options;
  let status = options.status;
  let syncError = "";
  let pending = true;
  return {
    setSyncError(error) {
      pending ||= error !== syncError;
      syncError = error;
    },
    setLastKnownGood(lastKnownGood) {
      status = { ...status, lastKnownGood };
      pending = true;
    },
    async write(signal) {
      if (!pending) return;
      pending = false;
      const error = syncError || status.error;
      const config = { ...status, ...(error && { error }) };
      metrics.show(config);
      try {
        const node = await client.get<Node>(nodes, { name: nodeName }, { signal });
        const body = { status: { config: { ...absent(node.status?.config), ...config } } };
        await client.patch<Node>(nodes, { name: nodeName, subresource: "status" }, { type: "strategic", body }, { signal });
      } catch (err) {
        pending = true;
        throw new Error("cannot write the status of the configuration", { cause: err });
      }
    },
  };
}

/** Null for each field: keys of a merge patch that are not overridden are deleted. */
const absent = (config: NodeConfigStatus = {}): Record<string, null> =>
  Object.fromEntries(Object.keys(config).map((name) => [name, null]));

/** The metrics `kubelet_node_config_*`. */
interface ConfigMetrics {
  show(status: NodeConfigStatus): void;
}

/** Registers the metrics of dynamic configuration. Source: pkg/kubelet/metrics/metrics.go */
export function newConfigMetrics(registry: MetricsRegistry): ConfigMetrics {
  const sourceGauge = (name: string, help: string) =>
    registry.gauge({
      name: `kubelet_node_config_${name}`,
      help: `${help} The count is always 1.`,
      labels: ["node_config_source", "node_config_uid", "node_config_resource_version", "node_config_kubelet_key"],
    });
  const gauges = {
    assigned: sourceGauge("assigned", "The node's understanding of intended config."),
    active: sourceGauge("active", "The config source the node is actively using."),
    lastKnownGood: sourceGauge(
      "last_known_good",
      "The config source the node will fall back to when it encounters certain errors.",
    ),
  };
  const error = registry.gauge(definitions.kubelet_node_config_error);
  return {
    show(status) {
      for (const [field, gauge] of entriesOf(gauges)) {
        gauge.reset();
        gauge.labels(...labelsOf(status[field])).set(1);
      }
      error.set(status.error ? 1 : 0);
    },
  };
}

function labelsOf(source: NodeConfigSource | undefined): string[] {
  const map = source?.configMap;
  if (source === undefined || map === undefined) return ["local", "", "", ""];
  return [pathOfSource(source), map.uid ?? "", map.resourceVersion ?? "", map.kubeletConfigKey ?? ""];
}
