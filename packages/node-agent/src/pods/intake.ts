import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { newPodSources, type PodSources, type SourceName } from "../sources/merge.ts";
import type { StatusManager } from "../status/status-manager.ts";
import type { Rejection } from "./admit.ts";
import { fullName, isMirrorPod, isStaticPod, type NodePod } from "./pod.ts";
import { isTerminal } from "./pod-runner.ts";
import type { PodWorkers } from "./pod-workers.ts";

export interface PodIntakeOptions {
  /** What says which Pods are wanted. */
  expected: readonly SourceName[];
  workers: PodWorkers;
  status: StatusManager;
  /**
   * Whether a new Pod can run beside the others, which hold resources of the node. Nothing else is taken in before it has
   * answered: what the next one can have depends on it. A promise is never rejected.
   */
  admit: (pod: NodePod, others: readonly NodePod[]) => Rejection | undefined | Promise<Rejection | undefined>;
  onRejected: (pod: NodePod, rejection: Rejection) => void;
  /** A source says two Pods of one name: this one is not wanted. */
  onDuplicate: (pod: NodePod, source: SourceName) => void;
}

export interface PodIntake {
  /** Wanted Pods, mirrors among them. */
  sources: PodSources;
  /** Neither refused nor ended: it holds resources of the node. */
  isActive(pod: NodePod): boolean;
  /** Somebody wants it, or a worker still has it. */
  isKnown(uid: string): boolean;
  /** The static Pod rather than its mirror, where both have that name. */
  named(namespace: string, name: string): NodePod | undefined;
}

/**
 * What the sources want reaches the workers: a new Pod if the node can take it, a changed one if the change concerns
 * its worker. A mirror has no worker; what becomes of it concerns its static Pod. Source: pkg/kubelet/kubelet.go syncLoop
 */
export function newPodIntake(options: PodIntakeOptions): PodIntake {
  const { workers, status } = options;
  const rejected = new Set<string>();
  const isActive = (pod: NodePod): boolean =>
    !rejected.has(pod.metadata.uid) &&
    !workers.hasEnded(pod.metadata.uid) &&
    !isTerminal(status.get(pod.metadata.uid) ?? pod.status ?? {});

  /** What came while an answer was awaited; undefined when none is. */
  let waiting: (() => void | Promise<void>)[] | undefined;

  /** At once where no answer is awaited, so that a caller sees what its event did. */
  function inOrder(step: () => void | Promise<void>): void {
    if (waiting !== undefined) return void waiting.push(step);
    const running = step();
    if (running === undefined) return;
    waiting = [];
    void running.finally(() => {
      const steps = waiting ?? [];
      waiting = undefined;
      for (const next of steps) inOrder(next);
    });
  }

  function takeIn(pod: NodePod): void | Promise<void> {
    const { uid, deletionTimestamp } = pod.metadata;
    // What runs already, ends or has ended is not judged again.
    if (workers.knows(uid) || deletionTimestamp != null || isTerminal(pod.status ?? {})) return workers.update(pod);
    const others = sources.list().filter((other) => workers.knows(other.metadata.uid) && isActive(other));
    const settle = (rejection: Rejection | undefined): void => {
      if (rejection === undefined) workers.update(pod);
      else {
        rejected.add(uid);
        options.onRejected(pod, rejection);
      }
    };
    const answer = options.admit(pod, others);
    return answer instanceof Promise ? answer.then(settle) : settle(answer);
  }

  function wakeStaticOf(mirror: NodePod): void {
    const own = sources.list().find((pod) => isStaticPod(pod) && fullName(pod) === fullName(mirror));
    if (own === undefined) return;
    status.resync(own.metadata.uid);
    workers.wake(own.metadata.uid);
  }

  const sources = newPodSources(options.expected, {
    duplicate: options.onDuplicate,
    added(pod) {
      if (isMirrorPod(pod)) return wakeStaticOf(pod);
      inOrder(() => takeIn(pod));
    },
    updated(pod, previous) {
      if (isMirrorPod(pod)) return wakeStaticOf(pod);
      inOrder(() => {
        if (rejected.has(pod.metadata.uid) && pod.metadata.deletionTimestamp == null) return;
        if (matters(pod, previous)) workers.update(pod);
      });
    },
    removed(pod) {
      if (isMirrorPod(pod)) {
        rejected.delete(pod.metadata.uid);
        return wakeStaticOf(pod);
      }
      inOrder(() => {
        rejected.delete(pod.metadata.uid);
        if (workers.knows(pod.metadata.uid)) workers.remove(pod);
        else status.forget(pod.metadata.uid);
      });
    },
  });

  return {
    sources,
    isActive,
    isKnown: (uid) => sources.get(uid) !== undefined || workers.knows(uid),
    named(namespace, name) {
      const found = sources.list().filter((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name);
      return found.find((pod) => !isMirrorPod(pod)) ?? found[0];
    },
  };
}

/** Whether a change is one that a worker has to know of; a status is written by ourselves. */
function matters(pod: NodePod, previous: NodePod): boolean {
  const { metadata, spec } = pod;
  return (
    (spec.readinessGates ?? []).length > 0 ||
    !semanticEqual(spec, previous.spec) ||
    !semanticEqual(metadata.labels, previous.metadata.labels) ||
    !semanticEqual(metadata.annotations, previous.metadata.annotations) ||
    metadata.deletionTimestamp !== previous.metadata.deletionTimestamp ||
    metadata.deletionGracePeriodSeconds !== previous.metadata.deletionGracePeriodSeconds
  );
}
