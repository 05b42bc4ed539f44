import { DecidedError } from "@coxswain/apimachinery/decisions/outcome-of-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { newBackoff } from "../pod/backoff.ts";
import { type NodePod, usedVolumes } from "../pod/pod.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import { ClaimError, VolumeError, VolumeWaits } from "../volumes/volume.ts";
import type { VolumeFailure } from "../volumes/volume-manager.ts";

const retryInitialMs = 500;
const retryMaxMs = 122_000;
/** Retry interval while volumes wait to be attached. */
const attachCheckMs = 1_000;
/** An event with all missing volumes is recorded after this time. */
const waitMs = 123_000;

/** Failures reported as events: of each Pod's, the recorder writes a burst of 25. */
const mostReported = 100;

/** Tracks Pods with missing volumes: events and retry delays. */
export interface MissingVolumes {
  /** Records events. @returns the sync error, and when to retry */
  failed(pod: NodePod, failures: readonly VolumeFailure[]): { error: Error; retryMs: number };
  /** Records events for volumes that are mounted but could not be refreshed. */
  outdated(pod: NodePod, failures: readonly VolumeFailure[]): void;
  /** Called when all volumes are mounted, or the Pod is gone. */
  forget(uid: string): void;
  /** Removes expired entries. */
  collect(): void;
}

/**
 * Retry delays are 1 s while volumes wait to be attached, else 0.5 s to about 2 min.
 * Source: pkg/kubelet/volumemanager/volume_manager.go WaitForAttachAndMount
 */
export function newMissingVolumes({ clock, event }: { clock: Clock; event: ContainerEvent }): MissingVolumes {
  const retries = newBackoff({ initialMs: retryInitialMs, maxMs: retryMaxMs, clock });
  const missingSince = new Map<string, number>();

  function reportEach(pod: NodePod, failures: readonly VolumeFailure[]): (reason: string, message: string) => void {
    const warn = (reason: string, message: string): void => event(pod, undefined, "Warning", reason, message);
    for (const failure of failures.slice(0, mostReported)) reportFailure(failure, warn);
    return warn;
  }

  return {
    outdated: (pod, failures) => void reportEach(pod, failures),
    failed(pod, failures) {
      const { uid } = pod.metadata;
      const warn = reportEach(pod, failures);
      const claims = failures.filter(({ cause }) => cause instanceof ClaimError).map(({ message }) => message);
      const text = summary(pod, failures, claims);
      const since = missingSince.getOrInsert(uid, clock.monotonic());
      if (claims.length > 0) warn("FailedMount", text);
      else if (clock.monotonic() - since > waitMs) {
        warn("FailedMount", text);
        missingSince.set(uid, clock.monotonic());
      }
      const waits = failures.every(({ cause }) => cause instanceof VolumeWaits);
      const each = failures.map(({ volume, message }) => `${volume}: ${message}`).join("; ");
      const error = new DecidedError(text, {
        verdict: waits ? "waiting" : "failed",
        reason: claims.length > 0 ? "ClaimUnusable" : waits ? "VolumesNotAttached" : "VolumesNotMounted",
        description: `waits for its volumes: ${each}`,
      });
      if (waits) return { error, retryMs: attachCheckMs };
      retries.next(uid);
      return { error, retryMs: retries.current(uid) };
    },
    forget(uid) {
      missingSince.delete(uid);
      retries.forget(uid);
    },
    collect: () => retries.collect(),
  };
}

function reportFailure({ volume, message, cause }: VolumeFailure, warn: (reason: string, message: string) => void): void {
  if (cause instanceof ClaimError || cause instanceof VolumeWaits) return;
  const [step, name] = cause instanceof VolumeError ? [cause.step, cause.volume] : ["MountVolume.SetUp failed", volume];
  const [, reason = "FailedMount"] = reasons.find(([prefix]) => step.startsWith(prefix)) ?? [];
  warn(reason, `${step} for volume ${JSON.stringify(name)} : ${message}`);
}

const reasons = [
  ["MapVolume", "FailedMapVolume"],
  ["AttachVolume", "FailedAttachVolume"],
] as const;

function summary(pod: NodePod, failures: readonly VolumeFailure[], claims: readonly string[]): string {
  const missing = failures.map(({ volume }) => volume).join(" ");
  const all = usedVolumes(pod)
    .map((volume) => volume.name)
    .join(" ");
  const why = claims.length > 0 ? claims.join("; ") : "timed out waiting for the condition";
  return `Unable to attach or mount volumes: unmounted volumes=[${missing}], unattached volumes=[${all}]: ${why}`;
}
