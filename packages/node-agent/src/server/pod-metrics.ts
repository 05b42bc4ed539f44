import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import { containersOf, type NodePod } from "../pod/pod.ts";
import type { PodWork } from "../pods/pod-workers.ts";
import type { Cgroups } from "../resources/cgroups.ts";

/** Measures the start of pods from when the agent first sees them. Source: pkg/kubelet/kubelet.go syncPod, pod_workers.go */
interface PodTimes {
  /** The pod's worker starts for the first time. */
  started(pod: NodePod, waitedMs: number): void;
  worked(work: PodWork, tookMs: number): void;
  /** @param phase after a sync */
  synced(pod: NodePod, phase: string | undefined): void;
  gone(uid: string): void;
}

/** Registers the metrics of Pod starts and workers. Durations are measured on the monotonic clock. */
export function newPodTimes(registry: MetricsRegistry, clock: Clock): PodTimes {
  const starts = registry.histogram(definitions.kubelet_pod_start_duration_seconds);
  const workerStarts = registry.histogram(definitions.kubelet_pod_worker_start_duration_seconds);
  const work = registry.histogram(definitions.kubelet_pod_worker_duration_seconds);
  const containers = registry.histogram(definitions.kubelet_containers_per_pod_count);
  /** Time, in ms of the monotonic clock, at which a pod was first seen; only for pods that were pending then. */
  const pending = new Map<string, number>();
  return {
    started(pod, waitedMs) {
      workerStarts.observe(waitedMs / 1000);
      containers.observe(pod.spec.containers.length);
      if ((pod.status?.phase ?? "Pending") === "Pending") pending.set(pod.metadata.uid, clock.monotonic() - waitedMs);
    },
    worked: (kind, tookMs) => work.labels(kind).observe(tookMs / 1000),
    synced({ metadata: { uid } }, phase) {
      const since = pending.get(uid);
      if (since === undefined || phase === undefined || phase === "Pending") return;
      pending.delete(uid);
      if (phase === "Running") starts.observe((clock.monotonic() - since) / 1000);
    },
    gone: (uid) => void pending.delete(uid),
  };
}

/** Counts the ephemeral containers of all pods of the node. Source: pkg/kubelet/pod/pod_manager.go updateMetrics */
export function newEphemeralContainerMetric(registry: MetricsRegistry, pods: () => readonly NodePod[]): void {
  registry.gauge({
    ...definitions.kubelet_managed_ephemeral_containers,
    collect: (gauge) => gauge.set(pods().reduce((sum, { spec }) => sum + (spec.ephemeralContainers?.length ?? 0), 0)),
  });
}

/** Wraps the cgroup operations for pods to measure their duration. Source: pkg/kubelet/cm/cgroup_manager_linux.go */
export function timedCgroups(cgroups: Cgroups, registry: MetricsRegistry, clock: Clock): Cgroups {
  const seconds = registry.histogram(definitions.kubelet_cgroup_manager_duration_seconds);
  const timed = async <T>(operation: "create" | "update" | "destroy", run: () => Promise<T>): Promise<T> => {
    const startedMs = clock.monotonic();
    try {
      return await run();
    } finally {
      seconds.labels(operation).observe((clock.monotonic() - startedMs) / 1000);
    }
  };
  const made = new Set<string>();
  return {
    start: (allocatable, enforce) => cgroups.start(allocatable, enforce),
    enforceReserved: (cgroup, reserved) => cgroups.enforceReserved(cgroup, reserved),
    ofPods: cgroups.ofPods,
    parentOf: (pod) => cgroups.parentOf(pod),
    exists: (uid) => cgroups.exists(uid),
    memoryOfPods: () => cgroups.memoryOfPods(),
    tasksOf: (uid) => cgroups.tasksOf(uid),
    list: () => cgroups.list(),
    unifiedOf: (container) => cgroups.unifiedOf(container),
    ensure(pod) {
      const { uid } = pod.metadata;
      if (made.has(uid)) return cgroups.ensure(pod);
      made.add(uid);
      return timed("create", () => cgroups.ensure(pod));
    },
    updateClasses: (pods) => timed("update", () => cgroups.updateClasses(pods)),
    remove(uid) {
      made.delete(uid);
      return timed("destroy", () => cgroups.remove(uid));
    },
  };
}

/**
 * `kubelet_container_log_filesystem_used_bytes`: size of the log files of each container, rotated ones included.
 * Source: pkg/kubelet/metrics/collectors/log_metrics.go
 * @param logsOf folder of a pod's logs, with one folder for each container
 */
export function newLogMetrics(registry: MetricsRegistry, pods: () => readonly NodePod[], logsOf: (pod: NodePod) => string): void {
  registry.gauge({
    ...definitions.kubelet_container_log_filesystem_used_bytes,
    collect(gauge) {
      gauge.reset();
      for (const pod of pods()) {
        const { uid, namespace, name } = pod.metadata;
        const logs = logsOf(pod);
        const present = new Set(namesIn(logs)); // a Pod may have thousands of containers that have not started
        if (present.size === 0) continue;
        for (const { container } of containersOf(pod)) {
          if (!present.has(container.name)) continue;
          const bytes = sizeOf(join(logs, container.name));
          if (bytes !== undefined) gauge.labels(uid, namespace, name, container.name).set(bytes);
        }
      }
    },
  });
}

/** @returns nothing for a folder that does not exist */
function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Synchronous, as metrics are collected: a folder has a handful of files. @returns undefined for a folder that does not exist */
function sizeOf(dir: string): number | undefined {
  try {
    return readdirSync(dir).reduce(
      (sum, file) => sum + (statSync(join(dir, file), { throwIfNoEntry: false })?.blocks ?? 0) * 512,
      0,
    );
  } catch {
    return undefined;
  }
}
