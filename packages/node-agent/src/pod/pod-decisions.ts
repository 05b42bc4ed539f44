import { type ObjectRef, objectRef } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog, Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { outcomeOfError } from "@coxswain/apimachinery/decisions/outcome-of-error";
import type { PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isStaticPod, type NodePod } from "./pod.ts";

/** Source of a decision by the reason of the event with the same content. */
const topics: Readonly<Record<string, string>> = {
  FailedMount: "volumes",
  FailedMapVolume: "volumes",
  FailedAttachVolume: "volumes",
  VolumeResizeFailed: "volumes",
  FileSystemResizeFailed: "volumes",
  FailedCreatePodSandBox: "sandbox",
  FailedPodSandBoxStatus: "sandbox",
  NetworkNotReady: "sandbox",
  FailedCreatePodContainer: "sandbox",
  Unhealthy: "probe",
  ProbeWarning: "probe",
  FailedPostStartHook: "hook",
  FailedPreStopHook: "hook",
  FailedKillPod: "termination",
  ExceededGracePeriod: "termination",
  InspectFailed: "image",
  ErrImageNeverPull: "image",
};
/** Reasons of events that only repeat other events in general terms. */
const generalReasons: ReadonlySet<string> = new Set(["FailedSync"]);

/**
 * Records, for each Pod of the node, what the kubelet waits for. Decisions about a static Pod refer to its mirror Pod, which has another
 * uid and is what users see.
 */
export class PodDecisions {
  readonly #log: DecisionLog;
  readonly #now: () => number;

  constructor(log: DecisionLog, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Records an event as a decision, too; a Normal event clears the failures of the same source. */
  event(pod: NodePod, container: string | undefined, type: "Normal" | "Warning", reason: string, message: string): void {
    const of = container === undefined ? "" : `/${container}`;
    if (type === "Warning") {
      if (!generalReasons.has(reason))
        this.#record(pod, sourceOf(reason, message) + of, { verdict: "failed", reason, description: message });
    } else if (reason === "Pulled") this.#forget(pod, `image${of}`);
    else if (reason === "Started") for (const source of ["image", "container", "hook"]) this.#forget(pod, source + of);
  }

  /** Records that the node did not admit the Pod. */
  rejected(pod: NodePod, reason: string, message: string): void {
    this.#record(pod, "admission", { verdict: "refused", reason, description: message });
  }

  /** @param retryMs time until the next attempt */
  failed(pod: NodePod, stage: "sync" | "termination" | "cleanup", err: unknown, retryMs: number): void {
    this.#record(pod, stage, outcomeOfError(err, this.#now() + retryMs));
  }

  /** Records that the Pod waits for its containers to end. @param graceSeconds not finite when there is no limit */
  terminating(pod: NodePod, graceSeconds: number): void {
    const limit = Number.isFinite(graceSeconds) ? `, which have ${graceSeconds} s for it` : "";
    this.#record(pod, "termination", {
      verdict: "waiting",
      reason: "Terminating",
      description: `waits for its containers to end${limit}`,
    });
  }

  /** Clears the failures of a synced Pod: everything it needs is available, although its containers may still fail. */
  synced(pod: NodePod, status: PodStatus | undefined): void {
    for (const source of ["sync", "volumes", "sandbox"]) this.#forget(pod, source);
    for (const { name, ready } of status?.containerStatuses ?? []) if (ready) this.#forget(pod, `probe/${name}`);
  }

  /** Forgets all decisions about a Pod that no longer exists. */
  gone(pod: NodePod): void {
    this.#log.forgetObject(refOf(pod));
  }

  /** Records a failure of the node itself; one is kept for each reason. */
  node(name: string, reason: string, message: string): void {
    const { group, resource, kind } = nodes;
    const ref: ObjectRef = { group, resource, kind, namespace: "", name, uid: "" };
    this.#log.record(ref, `node/${reason}`, { verdict: "failed", reason, description: message });
  }

  #record(pod: NodePod, source: string, outcome: Outcome): void {
    if (this.#log.isKeeping) this.#log.record(refOf(pod), source, outcome);
  }

  #forget(pod: NodePod, source: string): void {
    if (this.#log.entries > 0) this.#log.forget(refOf(pod), source);
  }
}

function refOf(pod: NodePod): ObjectRef {
  const ref = objectRef(pods, pod);
  return isStaticPod(pod) ? { ...ref, uid: "" } : ref;
}

function sourceOf(reason: string, message: string): string {
  const topic = topics[reason];
  if (topic !== undefined) return topic;
  if (reason === "BackOff") return message.includes("pulling image") ? "image" : "container";
  if (reason === "Failed") return message.includes("image") || message.includes("Image") ? "image" : "container";
  return `event/${reason}`;
}
