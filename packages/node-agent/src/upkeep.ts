import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "./agent-config.ts";
import type { Background } from "./background.ts";
import type { AgentEvents } from "./events.ts";
import type { NodePod } from "./pod/pod.ts";
import { describePod, isMirrorPod } from "./pod/pod.ts";
import type { EndPod } from "./pods/end-pod.ts";
import { type HousekeepingOptions, keepHouse } from "./pods/housekeeping.ts";
import { type Eviction, newEviction } from "./resources/eviction.ts";
import { type Pressure, parseThresholds, withAllocatable } from "./resources/eviction-thresholds.ts";
import { areApart } from "./resources/machine.ts";
import type { ResourceManagers } from "./resources/resource-managers.ts";
import { newTreeUsages, observeNode, podUsage } from "./resources/usage.ts";
import { collectContainers } from "./runtime/container-gc.ts";
import { type ImageGc, newImageGc } from "./runtime/image-gc.ts";
import { runLogRotation } from "./runtime/log-rotation.ts";
import { podLogDirectory } from "./runtime/pod-logs.ts";
import { type ContainerRuntime, containerState } from "./runtime/runtime.ts";
import { withReportedFailures } from "./status/reported-failures.ts";
import type { FolderQuotas } from "./volumes/quota/folder-quotas.ts";
import type { VolumeUsages } from "./volumes/volume-usage.ts";

interface UpkeepOptions extends HousekeepingOptions {
  config: AgentConfig;
  background: Background;
  runtime: ContainerRuntime;
  clock: Clock;
  log: Logger;
  notify: AgentEvents;
  endPod: EndPod;
  managers: Pick<ResourceManagers, "reconcile">;
  usages: Pick<VolumeUsages, "refresh">;
  quotas: Pick<FolderQuotas, "usage"> | undefined;
  /** Called after each relist with the number of Pods in the runtime and of containers by state. */
  onLook: (pods: number, containers: Readonly<Record<string, number>>) => void;
  onEvicted: (signal: string) => void;
  /** @param ageMs age of the observations by which Pods are evicted for this signal */
  onEvictionDue: (signal: string, ageMs: number) => void;
  onPressureChange: (pressure: Pressure) => void;
}

const housekeepingMs = 2_000;
const containerGcMs = 60_000;
const imageGcMs = 300_000;
const evictionMs = 10_000;
/** How long evictions for memory and PIDs wait for the disk usage of Pods. */
const usageMs = 5_000;

/** Starts the periodic tasks: housekeeping, garbage collection, eviction, log rotation and usage measurements. */
export function startUpkeep(options: UpkeepOptions): void {
  const { config, background, runtime, clock, log, events, notify, managers, usages } = options;
  const imageGc = imageGcOf(options);
  const eviction = evictionOf(options, imageGc);

  background.every(housekeepingMs, "housekeeping", async () => {
    const seen = [...(events.pods()?.values() ?? [])];
    const states = seen.flatMap((pod) => [...pod.states.values()]);
    const count = ([name, number]: [string, number]) => [name, states.filter((one) => one === `container ${number}`).length];
    options.onLook(seen.length, Object.fromEntries(Object.entries(containerState).map(count)));
    await keepHouse(options);
  });
  const gcContainers = withReportedFailures(() => collectDead(options), { notify, reason: "ContainerGCFailed" });
  const gcImages = withReportedFailures(imageGc.collect, { notify, reason: "ImageGCFailed", tolerated: 1 });
  background.every(containerGcMs, "container garbage collection", gcContainers);
  background.every(evictionMs, "eviction", eviction.check);
  background.every(imageGcMs, "image garbage collection", gcImages);
  if (config.volumeStatsMs > 0) background.every(config.volumeStatsMs, "usage of volumes", usages.refresh);
  if (config.cpuManagerPolicy !== "none")
    background.every(config.cpuManagerReconcileMs, "CPUs of containers", managers.reconcile);
  const { containerLogMaxSizeBytes: maxSizeBytes, containerLogMaxFiles: maxFiles } = config;
  background.add(runLogRotation({ runtime, clock, log, maxSizeBytes, maxFiles }, background.signal));
}

/**
 * Removes ended containers of known Pods beyond the number to keep, and all such containers of unknown Pods.
 * @param isKnown by uid: whether ended containers of the Pod are kept
 */
function collectDead(options: UpkeepOptions, isKnown = (uid: string): boolean => options.intake.isKnown(uid)): Promise<void> {
  const { config, runtime, clock, log, intake, events, containerLogsDir } = options;
  return collectContainers({
    runtime,
    clock,
    log,
    containerLogsDir,
    maxPerContainer: config.maxDeadPerContainer,
    maxTotal: config.maxDead,
    minAgeMs: config.deadMinAgeMs,
    isKnown,
    allSourcesSynced: () => intake.sources.allSynced() && events.pods() !== undefined,
  });
}

function imageGcOf({ config, runtime, clock, log, notify }: UpkeepOptions): ImageGc {
  return newImageGc({
    runtime,
    clock,
    log,
    highThresholdPercent: config.imageGcHighThreshold,
    lowThresholdPercent: config.imageGcLowThreshold,
    minAgeMs: config.imageMinAgeMs,
    sandboxImage: config.sandboxImage,
    event: notify.node,
  });
}

/** Eviction by the configured thresholds; ended containers and unused images are removed before a Pod is evicted for its disk. */
function evictionOf(options: UpkeepOptions, imageGc: ImageGc): Eviction {
  const { config, runtime, clock, log, intake, workers, volumes, cgroups, endPod, notify, podLogsDir } = options;
  const { sources } = intake;
  const isActive = (pod: NodePod): boolean => intake.isActive(pod);
  let imageDir: string | undefined;
  let hasImageFs: boolean | undefined;
  const thresholds = parseThresholds({
    hard: config.evictionHard,
    soft: config.evictionSoft,
    softGraceMs: config.evictionSoftGraceMs,
    minReclaim: config.evictionMinReclaim,
  });
  const trees = newTreeUsages({ clock, log, waitMs: usageMs });
  const eviction: Eviction = newEviction({
    clock,
    log,
    thresholds: withAllocatable(thresholds),
    transitionMs: config.evictionTransitionMs,
    maxGraceSeconds: config.evictionMaxPodGraceSeconds,
    observe: async () => {
      imageDir ??= (await runtime.imageFilesystems().catch(() => []))[0]?.fsId?.mountpoint;
      if (imageDir !== undefined) hasImageFs ??= await areApart(config.rootDir, imageDir).catch(() => undefined);
      // Unless their limit is enforced there is nothing to observe, and the threshold for it is not met.
      const ofPods = config.enforceNodeAllocatable.includes("pods")
        ? await cgroups.memoryOfPods().catch(() => undefined)
        : undefined;
      return observeNode(config.rootDir, imageDir, ofPods);
    },
    hasImageFs: () => hasImageFs ?? false,
    usage: () =>
      trees.pass((measure) =>
        podUsage({
          runtime,
          pods: sources.list().filter(isActive),
          podDir: (uid) => volumes.podDir(uid),
          logDir: (pod) => podLogDirectory(podLogsDir, pod),
          everyPod: eviction.pressure.disk,
          processes: (uid) => cgroups.tasksOf(uid),
          quotas: options.quotas,
          measure,
        }),
      ),
    activePods: () => sources.list().filter((pod) => !isMirrorPod(pod) && isActive(pod)),
    reclaimDisk: async () => {
      await collectDead(options, (uid) => intake.isKnown(uid) && !workers.hasEnded(uid));
      await imageGc.removeUnused();
    },
    evict: async (pod, verdict, graceSeconds, signal) => {
      options.onEvicted(signal);
      await endPod(pod, verdict, graceSeconds).catch((err) =>
        log.error("Eviction manager: pod failed to evict", err, { pod: describePod(pod) }),
      );
    },
    onDue: options.onEvictionDue,
    reportNodeEvent: notify.node,
    onPressureChange: options.onPressureChange,
  });
  return eviction;
}
