import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Cgroups } from "../resources/cgroups.ts";
import type { LifecycleEvents } from "../runtime/lifecycle-events.ts";
import { removePodLogs } from "../runtime/pod-logs.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import type { PodIntake } from "./intake.ts";
import type { MirrorPods } from "./mirror-pods.ts";
import type { NodePod } from "./pod.ts";
import type { PodRunner } from "./pod-runner.ts";
import type { PodWorkers } from "./pod-workers.ts";

export interface HousekeepingOptions {
  intake: PodIntake;
  workers: PodWorkers;
  runner: PodRunner;
  events: LifecycleEvents;
  volumes: VolumeManager;
  cgroups: Cgroups;
  /** Undefined without an API server. */
  mirrors: MirrorPods | undefined;
  podLogsDir: string;
  containerLogsDir: string;
  log: Logger;
}

/**
 * Ends what the runtime has and nobody wants, then removes folders, logs, cgroups and mirrors of Pods that are gone.
 * Does nothing before every source has said what it wants. What cannot be removed is tried again next time, and keeps
 * nothing else waiting. Source: pkg/kubelet/kubelet_pods.go HandlePodCleanups
 */
export async function keepHouse(options: HousekeepingOptions): Promise<void> {
  const { intake, workers, events, volumes, cgroups, log } = options;
  const { isKnown, sources } = intake;
  if (!sources.allSynced()) return;
  const seen = events.pods();
  if (seen === undefined) return;
  // What was looked at a moment ago may be gone by now.
  if ([...seen.keys()].some((uid) => !isKnown(uid))) await events.relist();
  const inRuntime = events.pods() ?? seen;
  for (const { uid, name, namespace } of inRuntime.values()) {
    if (isKnown(uid)) continue;
    log.info("Ending a pod that nobody wants any more", { pod: `${namespace}/${name}`, podUID: uid });
    workers.removeOrphan(orphan(uid, name, namespace));
  }
  const isGone = (uid: string): boolean => !isKnown(uid) && !inRuntime.has(uid);
  const failed = (what: string, uid: string) => (err: Error) =>
    log.warn(`cannot remove the ${what} of a pod that is gone`, { podUID: uid, reason: err.message });
  for (const uid of (await volumes.list()).filter(isGone)) {
    await removePodLogs(options, uid).catch(failed("logs", uid));
    await volumes.remove(uid).catch(failed("volumes", uid));
  }
  for (const uid of (await cgroups.list()).filter(isGone)) await cgroups.remove(uid).catch(failed("cgroup", uid));
  await cgroups.updateClasses(sources.list().filter(intake.isActive));
  // As long as it runs there is something to be seen of it.
  await options.mirrors?.removeOrphans([...sources.list(), ...workers.ending()]);
  options.runner.collect();
}

function orphan(uid: string, name: string, namespace: string): NodePod {
  return { apiVersion: "v1", kind: "Pod", metadata: { uid, name, namespace }, spec: { containers: [] } };
}
