import { formatDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { newBackoff } from "../pod/backoff.ts";
import { type AnyContainer, type ContainerKind, describePod, type NodePod } from "../pod/pod.ts";
import { ContainerError } from "../runtime/container-error.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import { containerHash } from "../runtime/labels.ts";
import { containersNamed, type PodRecord } from "../runtime/pod-record.ts";

const initialMs = 10_000;
const maxMs = 300_000;

/** Restart back-off of containers. */
export interface CrashLoops {
  /** @throws ContainerError CrashLoopBackOff while the container has to wait */
  check(pod: NodePod, record: PodRecord, container: AnyContainer, kind: ContainerKind): void;
  /** Removes expired entries. */
  collect(): void;
}

/**
 * Back-off by Pod, container name and container hash: 10 s to 5 min.
 * Source: pkg/kubelet/kuberuntime/kuberuntime_manager.go doBackOff
 */
export function newCrashLoops({ clock, event }: { clock: Clock; event: ContainerEvent }): CrashLoops {
  const loops = newBackoff({ initialMs, maxMs, clock });
  return {
    check(pod, record, container, kind) {
      const ended = containersNamed(record, container.name).find(({ state }) => state === "exited");
      if (ended === undefined) return;
      const key = `${describePod(pod)}_${container.name}_${containerHash(container)}`;
      const agoMs = clock.now() - ended.finishedAt;
      const endedMsAgo = agoMs < 0 ? undefined : agoMs; // negative when the wall clock was set back
      if (!loops.isWaiting(key, endedMsAgo)) return loops.next(key, endedMsAgo);
      event(pod, { name: container.name, kind }, "Warning", "BackOff", "Back-off restarting failed container");
      const wait = formatDuration(loops.current(key));
      throw new ContainerError(
        "CrashLoopBackOff",
        `back-off ${wait} restarting failed container=${container.name} pod=${describePod(pod)}`,
      );
    },
    collect: () => loops.collect(),
  };
}
