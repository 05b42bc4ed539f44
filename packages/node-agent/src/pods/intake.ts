import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { fullName, isMirrorPod, isStaticPod, type NodePod } from "../pod/pod.ts";
import type { Rejection } from "../pod/pod-verdict.ts";
import { newPodSources, type PodSources, type SourceName } from "../sources/merge.ts";
import type { StatusManager } from "../status/status-manager.ts";
import { isTerminal } from "./pod-runner.ts";
import type { PodWorkers } from "./pod-workers.ts";

export interface PodIntakeOptions {
  /** Pod sources that have to report before the set of wanted Pods is complete. */
  expected: readonly SourceName[];
  workers: PodWorkers;
  status: StatusManager;
  /**
   * Whether the node can run a new Pod beside the active Pods `others`. Further events are queued until the result is known,
   * because it affects the next admission. A promise never rejects.
   */
  admit: (pod: NodePod, others: readonly NodePod[]) => Rejection | undefined | Promise<Rejection | undefined>;
  onRejected: (pod: NodePod, rejection: Rejection) => void;
  /** Called when a source lists two Pods with one name: `pod` is ignored. */
  onDuplicate: (pod: NodePod, source: SourceName) => void;
}

/** The wanted Pods and their state. */
export interface PodIntake {
  /** Wanted Pods, including mirror Pods. */
  sources: PodSources;
  /** Neither rejected nor terminated: the Pod holds resources of the node. */
  isActive(pod: NodePod): boolean;
  /** Wanted by a source, or still handled by a worker. */
  isKnown(uid: string): boolean;
  /** The Pod with that name; the static Pod rather than its mirror Pod. */
  named(namespace: string, name: string): NodePod | undefined;
}

/**
 * Passes the Pods of all sources to the workers: new Pods after admission, changed Pods if the change matters to the worker.
 * Mirror Pods have no worker; their events trigger a sync of the static Pod. Source: pkg/kubelet/kubelet.go syncLoop
 */
export function newPodIntake(options: PodIntakeOptions): PodIntake {
  const { workers, status } = options;
  const rejected = new Set<string>();
  const isActive = (pod: NodePod): boolean =>
    !rejected.has(pod.metadata.uid) &&
    !workers.hasEnded(pod.metadata.uid) &&
    !isTerminal(status.get(pod.metadata.uid) ?? pod.status ?? {});

  /** Events queued during an asynchronous admission; undefined when none is running. */
  let waiting: (() => void | Promise<void>)[] | undefined;

  /** Runs `step` synchronously when no admission is running, so that the caller sees its effect. */
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
    // Pods that are already handled, terminating or terminated are not admitted again.
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

/** Whether an update is relevant to the worker; status updates are the agent's own writes. */
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
