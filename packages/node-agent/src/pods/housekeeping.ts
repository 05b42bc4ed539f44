import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import type { Cgroups } from "../resources/cgroups.ts";
import type { LifecycleEvents } from "../runtime/lifecycle-events.ts";
import { removePodLogs } from "../runtime/pod-logs.ts";
import type { MirrorPods } from "../status/mirror-pods.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import type { PodIntake } from "./intake.ts";
import type { PodRunner } from "./pod-runner.ts";
import type { PodWorkers } from "./pod-workers.ts";

export interface HousekeepingOptions {
  intake: PodIntake;
  workers: PodWorkers;
  runner: PodRunner;
  events: LifecycleEvents;
  volumes: VolumeManager;
  cgroups: Cgroups;
  /** Undefined in standalone mode. */
  mirrors: MirrorPods | undefined;
  podLogsDir: string;
  containerLogsDir: string;
  log: Logger;
}

/**
 * Terminates Pods in the runtime that are no longer wanted, and removes directories, logs, cgroups and mirror Pods of
 * Pods that are gone. Does nothing until all Pod sources have reported. Failures are logged and retried by the next call.
 * Source: pkg/kubelet/kubelet_pods.go HandlePodCleanups
 */
export async function keepHouse(options: HousekeepingOptions): Promise<void> {
  const { intake, workers, events, volumes, cgroups, log } = options;
  const { sources } = intake;
  const isKnown = (uid: string): boolean => intake.isKnown(uid);
  if (!sources.allSynced()) return;
  const seen = events.pods();
  if (seen === undefined) return;
  // The last relist may be outdated.
  if ([...seen.keys()].some((uid) => !isKnown(uid))) await events.relist();
  const inRuntime = events.pods() ?? seen;
  for (const { uid, name, namespace } of inRuntime.values()) {
    if (isKnown(uid)) continue;
    log.info("Stopping a pod that no source requests any more", { pod: `${namespace}/${name}`, podUID: uid });
    workers.removeOrphan(orphan(uid, name, namespace));
  }
  const isGone = (uid: string): boolean => !isKnown(uid) && !inRuntime.has(uid);
  const failed = (what: string, uid: string) => (err: Error) =>
    log.warn(`cannot remove the ${what} of a removed pod`, { podUID: uid, reason: err.message });
  for (const uid of (await volumes.list()).filter(isGone)) {
    await removePodLogs(options, uid).catch(failed("logs", uid));
    await volumes.remove(uid).catch(failed("volumes", uid));
  }
  for (const uid of (await cgroups.list()).filter(isGone)) await cgroups.remove(uid).catch(failed("cgroup", uid));
  await cgroups.updateClasses(sources.list().filter((pod) => intake.isActive(pod)));
  // Mirror Pods remain while their static Pod is terminating.
  await options.mirrors?.removeOrphans([...sources.list(), ...workers.ending()]);
  options.runner.collect();
}

function orphan(uid: string, name: string, namespace: string): NodePod {
  return { apiVersion: "v1", kind: "Pod", metadata: { uid, name, namespace }, spec: { containers: [] } };
}
