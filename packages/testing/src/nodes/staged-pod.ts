import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { durationMs } from "../time/duration.ts";
import { type PodStage, type StageOutcome, stageOf } from "./pod-stages.ts";

interface StagedPodOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recorder: EventRecorder;
  readonly stages: readonly PodStage[];
  /** True while its node is silent. */
  readonly isSilent: () => boolean;
  readonly hostIP: string;
  readonly podIP: string;
}

const retryMs = 500;

/** One Pod on a fake node whose life cycle is a list of stages. */
export class StagedPod {
  readonly #options: StagedPodOptions;
  #pod: Pod;
  #pending: PodStage | undefined;
  #timer: Timer | undefined;
  #isPlaying = false;
  #isStopped = false;

  constructor(options: StagedPodOptions, pod: Pod) {
    this.#options = options;
    this.#pod = pod;
  }

  /** Called for each new version of the Pod in the API. */
  changed(pod: Pod): void {
    this.#pod = pod;
    if (!this.#isPlaying) this.#plan();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #plan(): void {
    const stage = stageOf(this.#pod, this.#options.stages);
    if (this.#isStopped || (stage === this.#pending && this.#timer !== undefined)) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#pending = stage;
    if (stage !== undefined) this.#after(durationMs(stage.delay ?? 0), stage);
  }

  #after(delayMs: number, stage: PodStage): void {
    this.#timer = this.#options.clock.after(delayMs, () => void this.#play(stage));
  }

  async #play(stage: PodStage): Promise<void> {
    const { log, isSilent } = this.#options;
    const before = this.#pod;
    this.#isPlaying = true;
    let hasFailed = false;
    try {
      if (isSilent()) throw new Error("the node is silent");
      await this.#happen(stage.next);
    } catch (err) {
      hasFailed = !isNotFound(err);
      if (hasFailed) log.v(2)?.info("cannot play a stage of a pod yet", { stage: stage.name, err: String(err) });
    } finally {
      this.#isPlaying = false;
      this.#timer = undefined;
    }
    if (this.#isStopped) return;
    if (hasFailed) this.#after(retryMs, stage);
    // Otherwise the watch event of the status update triggers the next stage.
    else if (this.#pod !== before) this.#plan();
  }

  async #happen({ event, finalizers, status, delete: isDeleted }: StageOutcome): Promise<void> {
    const { client, recorder, clock, hostIP, podIP } = this.#options;
    const { namespace, name = "", uid } = this.#pod.metadata;
    const target = { namespace, name };
    if (event !== undefined)
      recorder.event({ ...this.#pod, apiVersion: "v1", kind: "Pod" }, event.type, event.reason, event.message);
    if (finalizers !== undefined) {
      const body = { metadata: { uid, finalizers: changedFinalizers(this.#pod.metadata.finalizers ?? [], finalizers) } };
      await client.patch(pods, target, { type: "merge", body });
    }
    if (isDeleted) {
      await client.delete(pods, target, { gracePeriodSeconds: 0, ...(uid && { preconditions: { uid } }) });
      return;
    }
    if (status === undefined) return;
    const now = formatTime(clock.now());
    const wanted = typeof status === "function" ? status(this.#pod, { now, hostIP, podIP }) : status;
    const body = { metadata: { uid }, status: completed(wanted, this.#pod, { now, hostIP, podIP }) };
    await client.patch(pods, { ...target, subresource: "status" }, { type: "strategic", body });
  }
}

function changedFinalizers(
  own: readonly string[],
  { add = [], remove = [], empty = false }: StageOutcome["finalizers"] & object,
): string[] {
  const kept = empty ? [] : own.filter((one) => !remove.includes(one));
  return [...new Set([...kept, ...add])];
}

function completed(
  status: Partial<PodStatus>,
  pod: Pod,
  { now, hostIP, podIP }: { now: string; hostIP: string; podIP: string },
): object {
  const own = pod.status ?? {};
  return {
    ...{ hostIP, podIP, podIPs: [{ ip: podIP }], startTime: own.startTime ?? now },
    ...status,
    ...(status.conditions && {
      conditions: status.conditions.map((condition) => {
        const before = own.conditions?.find(({ type }) => type === condition.type);
        const since = before?.status === condition.status ? before.lastTransitionTime : undefined;
        return { lastTransitionTime: since ?? now, ...condition };
      }),
    }),
  };
}
