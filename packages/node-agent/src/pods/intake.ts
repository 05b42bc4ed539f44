import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { AgentEvents } from "../events.ts";
import { describePod, fullName, isMirrorPod, isStaticPod, type NodePod } from "../pod/pod.ts";
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

/** Reports a Pod that is ignored because its source lists another one of its name. Source: pkg/kubelet/config/config.go filterInvalidPods */
export function reportDuplicate(notify: Pick<AgentEvents, "pod">, pod: NodePod, source: SourceName): void {
  const name = JSON.stringify(pod.metadata.name);
  const message = `Error validating pod ${describePod(pod)} from ${source} due to duplicate pod name ${name}, ignoring`;
  notify.pod(pod, undefined, "Warning", "FailedValidation", message);
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
  return new AdmittedPodIntake(options);
}

class AdmittedPodIntake implements PodIntake {
  readonly sources: PodSources;
  readonly #options: PodIntakeOptions;
  readonly #rejected = new Set<string>();
  /** Events queued during an asynchronous admission; undefined when none is running. */
  #waiting: (() => void | Promise<void>)[] | undefined;
  readonly #sources: PodSources;

  constructor(options: PodIntakeOptions) {
    this.#options = options;
    const { workers, status } = options;
    this.#sources = newPodSources(options.expected, {
      duplicate: options.onDuplicate,
      added: (pod) => {
        if (isMirrorPod(pod)) return this.#wakeStaticOf(pod);
        this.#inOrder(() => this.#takeIn(pod));
      },
      updated: (pod, previous) => {
        if (isMirrorPod(pod)) return this.#wakeStaticOf(pod);
        this.#inOrder(() => {
          if (this.#rejected.has(pod.metadata.uid) && pod.metadata.deletionTimestamp == null) return;
          if (matters(pod, previous)) workers.update(pod);
        });
      },
      removed: (pod) => {
        if (isMirrorPod(pod)) return this.#wakeStaticOf(pod);
        this.#inOrder(() => {
          this.#rejected.delete(pod.metadata.uid);
          if (workers.knows(pod.metadata.uid)) workers.remove(pod);
          else status.forget(pod.metadata.uid);
        });
      },
    });
    this.sources = this.#sources;
  }

  isActive(pod: NodePod): boolean {
    const { workers, status } = this.#options;
    return (
      !this.#rejected.has(pod.metadata.uid) &&
      !workers.hasEnded(pod.metadata.uid) &&
      !isTerminal(status.get(pod.metadata.uid) ?? pod.status ?? {})
    );
  }

  isKnown(uid: string): boolean {
    const { workers } = this.#options;
    return this.#sources.get(uid) !== undefined || workers.knows(uid);
  }

  named(namespace: string, name: string): NodePod | undefined {
    const found = this.#sources.list().filter((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name);
    return found.find((pod) => !isMirrorPod(pod)) ?? found[0];
  }

  /** Runs `step` synchronously when no admission is running, so that the caller sees its effect. */
  #inOrder(step: () => void | Promise<void>): void {
    if (this.#waiting !== undefined) return void this.#waiting.push(step);
    const running = step();
    if (running === undefined) return;
    this.#waiting = [];
    void running.finally(() => {
      const steps = this.#waiting ?? [];
      this.#waiting = undefined;
      for (const next of steps) this.#inOrder(next);
    });
  }

  #takeIn(pod: NodePod): void | Promise<void> {
    const { workers } = this.#options;
    const { uid, deletionTimestamp } = pod.metadata;
    // Pods that are already handled, terminating or terminated are not admitted again.
    if (workers.knows(uid) || deletionTimestamp != null || isTerminal(pod.status ?? {})) return workers.update(pod);
    const others = this.#sources.list().filter((other) => workers.knows(other.metadata.uid) && this.isActive(other));
    const settle = (rejection: Rejection | undefined): void => {
      if (rejection === undefined) workers.update(pod);
      else {
        this.#rejected.add(uid);
        this.#options.onRejected(pod, rejection);
      }
    };
    const answer = this.#options.admit(pod, others);
    return answer instanceof Promise ? answer.then(settle) : settle(answer);
  }

  #wakeStaticOf(mirror: NodePod): void {
    const { status, workers } = this.#options;
    const own = this.#sources.list().find((pod) => isStaticPod(pod) && fullName(pod) === fullName(mirror));
    if (own === undefined) return;
    status.resync(own.metadata.uid);
    workers.wake(own.metadata.uid);
  }
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
