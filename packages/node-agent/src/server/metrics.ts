import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import type { ContainerKind } from "../pod/pod.ts";
import type { ProbeManagerOptions } from "../probes/probe-manager.ts";
import { MetricText } from "./metric-text.ts";
import type { Summary } from "./stats.ts";

const containerTypes: Readonly<Record<ContainerKind, string>> = {
  regular: "container",
  init: "init_container",
  ephemeral: "ephemeral_container",
};

/** Metrics of the agent, with upstream's names. Source: pkg/kubelet/metrics/metrics.go */
export function newAgentMetrics(registry: MetricsRegistry) {
  return {
    ...startMetrics(registry),
    ...relistMetrics(registry),
    ...operationMetrics(registry),
    ...evictionMetrics(registry),
    ...pluginMetrics(registry),
    nodeName: registry.gauge(definitions.kubelet_node_name),
  };
}

function startMetrics(registry: MetricsRegistry) {
  const startedPods = registry.counter(definitions.kubelet_started_pods_total);
  const failedPods = registry.counter(definitions.kubelet_started_pods_errors_total);
  const startedContainers = registry.counter(definitions.kubelet_started_containers_total);
  const failedContainers = registry.counter(definitions.kubelet_started_containers_errors_total);
  const runningPods = registry.gauge(definitions.kubelet_running_pods);
  const runningContainers = registry.gauge(definitions.kubelet_running_containers);
  return {
    started(what: "pod" | ContainerKind, failure?: string): void {
      if (what === "pod") (failure === undefined ? startedPods : failedPods).inc();
      else if (failure === undefined) startedContainers.labels(containerTypes[what]).inc();
      else failedContainers.labels(containerTypes[what], failure).inc();
    },
    /** @param containers number of containers in the runtime by state */
    running(pods: number, containers: Readonly<Record<string, number>>): void {
      runningPods.set(pods);
      for (const [state, count] of Object.entries(containers)) runningContainers.labels(state).set(count);
    },
  };
}

/** Periodic listing of containers (upstream: PLEG). */
function relistMetrics(registry: MetricsRegistry) {
  const interval = registry.histogram(definitions.kubelet_pleg_relist_interval_seconds);
  const seen = registry.gauge(definitions.kubelet_pleg_last_seen_seconds);
  const duration = registry.histogram(definitions.kubelet_pleg_relist_duration_seconds);
  // Registered because upstream exposes it, and always 0: state changes wake the pod's worker directly and are never discarded.
  registry.counter(definitions.kubelet_pleg_discard_events);
  let last: number | undefined;
  return {
    /** @param now end of the relist, in ms since the epoch */
    relisted(tookMs: number, now: number): void {
      duration.observe(tookMs / 1000);
      if (last !== undefined) interval.observe((now - last) / 1000);
      last = now;
      seen.set(now / 1000);
    },
  };
}

/** Calls of the container runtime. */
function operationMetrics(registry: MetricsRegistry) {
  const operations = registry.counter(definitions.kubelet_runtime_operations_total);
  const errors = registry.counter(definitions.kubelet_runtime_operations_errors_total);
  const seconds = registry.histogram(definitions.kubelet_runtime_operations_duration_seconds);
  const sandboxSeconds = registry.histogram(definitions.kubelet_run_podsandbox_duration_seconds);
  const sandboxErrors = registry.counter(definitions.kubelet_run_podsandbox_errors_total);
  return {
    /** @param request the request message; `runtimeHandler` of RunPodSandbox is read */
    runtimeCall(method: string, durationMs: number, err: unknown, request?: object): void {
      const name = operationName(method);
      if (method === "RunPodSandbox") {
        const { runtimeHandler = "" }: { runtimeHandler?: string } = request ?? {};
        sandboxSeconds.labels(runtimeHandler).observe(durationMs / 1000);
        if (err !== undefined) sandboxErrors.labels(runtimeHandler).inc();
      }
      operations.labels(name).inc();
      seconds.labels(name).observe(durationMs / 1000);
      if (err !== undefined) errors.labels(name).inc();
    },
  };
}

function evictionMetrics(registry: MetricsRegistry) {
  const evictions = registry.counter(definitions.kubelet_evictions);
  const statsAge = registry.histogram(definitions.kubelet_eviction_stats_age_seconds);
  return {
    evicted(signal: string): void {
      evictions.labels(signal).inc();
    },
    evictionDue(signal: string, ageMs: number): void {
      statsAge.labels(signal).observe(ageMs / 1000);
    },
    preemptions: registry.counter(definitions.kubelet_preemptions),
  };
}

/** Calls of CSI drivers, device plugins, and clients of the pod resources API. */
function pluginMetrics(registry: MetricsRegistry) {
  const csiOperations = registry.histogram(definitions.csi_operations_seconds);
  return {
    csiCall(driver: string, method: string, code: string, tookMs: number): void {
      csiOperations.labels(driver, method, code, "false").observe(tookMs / 1000);
    },
    pluginRegistrations: registry.counter(definitions.kubelet_device_plugin_registration_total),
    deviceAllocation: registry.histogram(definitions.kubelet_device_plugin_alloc_duration_seconds),
    podResourcesRequests: registry.counter(definitions.kubelet_pod_resources_endpoint_requests_total),
  };
}

/** Pure: the operation of a CRI method as upstream writes it. Source: pkg/kubelet/kuberuntime/instrumented_services.go */
export function operationName(method: string): string {
  if (method === "UpdateContainerResources") return "update_container";
  return method
    .replace("PodSandbox", "Podsandbox")
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, "_")
    .toLowerCase();
}

/** Counts probe results. Source: pkg/kubelet/prober/prober_manager.go */
export function newProbeMetrics(registry: MetricsRegistry): NonNullable<ProbeManagerOptions["onProbe"]> {
  const total = registry.counter(definitions.prober_probe_total);
  return (kind, result, pod, container) => {
    const { name, namespace, uid } = pod.metadata;
    const probeType = `${kind[0]?.toUpperCase()}${kind.slice(1)}`;
    total.labels(probeType, result, container, name, namespace, uid).inc();
  };
}

/** `/metrics/resource`, scraped by metrics-server. Source: pkg/kubelet/metrics/collectors/resource_metrics.go */
export function resourceMetrics(stats: Summary): string {
  const text = new MetricText();
  const at = (time: string): string => String(Date.parse(time));
  text.family(
    "container_cpu_usage_seconds_total",
    "counter",
    "[ALPHA] Cumulative cpu time consumed by the container in core-seconds",
  );
  for (const { labels, container } of containers(stats)) {
    text.sample(
      "container_cpu_usage_seconds_total",
      labels,
      (container.cpu.usageCoreNanoSeconds ?? 0) / 1e9,
      at(container.cpu.time),
    );
  }
  text.family("container_memory_working_set_bytes", "gauge", "[ALPHA] Current working set of the container in bytes");
  for (const { labels, container } of containers(stats)) {
    text.sample("container_memory_working_set_bytes", labels, container.memory.workingSetBytes ?? 0, at(container.memory.time));
  }
  text.family("container_start_time_seconds", "gauge", "[ALPHA] Start time of the container since unix epoch in seconds");
  for (const { labels, container } of containers(stats)) {
    text.sample("container_start_time_seconds", labels, Date.parse(container.startTime) / 1000, at(container.startTime));
  }
  text.family("node_cpu_usage_seconds_total", "counter", "[ALPHA] Cumulative cpu time consumed by the node in core-seconds");
  text.sample("node_cpu_usage_seconds_total", {}, (stats.node.cpu.usageCoreNanoSeconds ?? 0) / 1e9, at(stats.node.cpu.time));
  text.family("node_memory_working_set_bytes", "gauge", "[ALPHA] Current working set of the node in bytes");
  text.sample("node_memory_working_set_bytes", {}, stats.node.memory.workingSetBytes ?? 0, at(stats.node.memory.time));
  text.family("pod_cpu_usage_seconds_total", "counter", "[ALPHA] Cumulative cpu time consumed by the pod in core-seconds");
  for (const pod of stats.pods) {
    text.sample(
      "pod_cpu_usage_seconds_total",
      podLabels(pod.podRef),
      (pod.cpu.usageCoreNanoSeconds ?? 0) / 1e9,
      at(pod.cpu.time),
    );
  }
  text.family("pod_memory_working_set_bytes", "gauge", "[ALPHA] Current working set of the pod in bytes");
  for (const pod of stats.pods) {
    text.sample("pod_memory_working_set_bytes", podLabels(pod.podRef), pod.memory.workingSetBytes ?? 0, at(pod.memory.time));
  }
  text.family("scrape_error", "gauge", "[ALPHA] 1 if there was an error while getting container metrics, 0 otherwise");
  text.sample("scrape_error", {}, 0);
  return text.toString();
}

function* containers(
  stats: Summary,
): Generator<{ labels: Record<string, string>; container: Summary["pods"][number]["containers"][number] }> {
  for (const pod of stats.pods) {
    for (const container of pod.containers) yield { labels: { container: container.name, ...podLabels(pod.podRef) }, container };
  }
}

function podLabels(ref: { namespace: string; name: string }): Record<string, string> {
  return { namespace: ref.namespace, pod: ref.name };
}
