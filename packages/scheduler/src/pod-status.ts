import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

/** The outcome of a failed cycle, for the PodScheduled condition. */
interface SchedulingState {
  /** `Unschedulable` or `SchedulerError` */
  readonly reason: string;
  readonly message: string;
  /** `""` clears an earlier nomination; undefined keeps it. */
  readonly nominatedNode: string | undefined;
  readonly nowMs: number;
}

/** Unanswered writes from which the scheduling loop waits: with a rate limit, those of thousands of pods would pile up. */
const mostUnanswered = 16;

/**
 * Writes the scheduling status of pods. The scheduling loop does not wait for the answer of a write before the next pod: each pod that fits nowhere
 * would delay all others by a round trip. What depends on a pod's status waits for it: the pod's next cycle, and what clears its nomination.
 */
export class PodStatuses {
  readonly #client: Client;
  readonly #log: Pick<Logger, "error">;
  /** Writes without an answer by the pod's uid, oldest first. They do not reject. */
  readonly #unanswered = new Map<string, Promise<void>>();

  constructor(client: Client, log: Pick<Logger, "error">) {
    this.#client = client;
    this.#log = log;
  }

  /** Sets the PodScheduled condition to False with reason and message. Sends no request when nothing changes; logs a failure. */
  refuse(pod: Pod, state: SchedulingState): void {
    const status = statusAfter(pod, state);
    if (status === undefined) return;
    const { uid = "" } = pod.metadata;
    const failed = (err: unknown): void => {
      if (!isNotFound(err)) this.#log.error("cannot update the status of a pod that does not fit", err, { pod: keyOf(pod) });
    };
    const write = patchStatus(this.#client, pod, status)
      .catch(failed)
      .finally(() => this.#unanswered.delete(uid));
    this.#unanswered.set(uid, write);
  }

  /** Clears `status.nominatedNodeName`; no request when it is not set. Source: pkg/scheduler/util ClearNominatedNodeName */
  async clearNomination(pod: Pod): Promise<void> {
    const unanswered = this.written(pod);
    await unanswered;
    // The write may have set a nomination that the known pod does not show.
    if (unanswered !== undefined || pod.status?.nominatedNodeName)
      await patchStatus(this.#client, pod, { nominatedNodeName: null });
  }

  /** Resolves when the last write of the pod's status was answered; undefined when it was. */
  written({ metadata: { uid = "" } }: Pod): Promise<void> | undefined {
    return this.#unanswered.get(uid);
  }

  /** Resolves when another pod may be refused; undefined when it may be now. */
  room(): Promise<void> | undefined {
    return this.#unanswered.size < mostUnanswered ? undefined : this.#unanswered.values().next().value;
  }
}

/** Pure: the part of the status that changes; undefined without a change. */
function statusAfter({ status: known }: Pod, state: SchedulingState): Record<string, unknown> | undefined {
  const { reason, message, nominatedNode, nowMs } = state;
  const before = known?.conditions?.find(({ type }) => type === "PodScheduled");
  const status: Record<string, unknown> = {};
  if (before?.status !== "False" || before.reason !== reason || before.message !== message) {
    const lastTransitionTime = before?.status === "False" ? before.lastTransitionTime : formatTime(nowMs);
    status["conditions"] = [{ type: "PodScheduled", status: "False", reason, message, lastProbeTime: null, lastTransitionTime }];
  }
  if (nominatedNode !== undefined && nominatedNode !== (known?.nominatedNodeName ?? ""))
    status["nominatedNodeName"] = nominatedNode || null;
  return Object.keys(status).length > 0 ? status : undefined;
}

async function patchStatus(client: Client, { metadata }: Pod, status: Record<string, unknown>): Promise<void> {
  const target = { namespace: metadata.namespace, name: metadata.name ?? "", subresource: "status" };
  const body = { metadata: { uid: metadata.uid }, status };
  await client.patch(pods, target, { type: "strategic", body }, { readsMetadataOnly: true });
}
