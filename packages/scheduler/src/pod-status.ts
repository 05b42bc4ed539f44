import type { Client } from "@coxswain/apimachinery/client/client";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";

/** The outcome of a failed cycle, for the PodScheduled condition. */
interface SchedulingState {
  /** `Unschedulable` or `SchedulerError` */
  readonly reason: string;
  readonly message: string;
  /** `""` clears an earlier nomination; undefined keeps it. */
  readonly nominatedNode: string | undefined;
  readonly nowMs: number;
}

/** Patches the PodScheduled condition to False with reason and message. Sends no request when nothing changes. */
export async function patchScheduling(client: Client, pod: Pod, state: SchedulingState): Promise<void> {
  const { reason, message, nominatedNode, nowMs } = state;
  const before = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  const status: Record<string, unknown> = {};
  if (before?.status !== "False" || before.reason !== reason || before.message !== message) {
    const lastTransitionTime = before?.status === "False" ? before.lastTransitionTime : formatTime(nowMs);
    status["conditions"] = [{ type: "PodScheduled", status: "False", reason, message, lastProbeTime: null, lastTransitionTime }];
  }
  if (nominatedNode !== undefined && nominatedNode !== (pod.status?.nominatedNodeName ?? ""))
    status["nominatedNodeName"] = nominatedNode || null;
  if (Object.keys(status).length > 0) await patchStatus(client, pod, status);
}

/** Clears `status.nominatedNodeName`; no request when it is not set. Source: pkg/scheduler/util ClearNominatedNodeName */
export async function clearNomination(client: Client, pod: Pod): Promise<void> {
  if (pod.status?.nominatedNodeName) await patchStatus(client, pod, { nominatedNodeName: null });
}

async function patchStatus(client: Client, { metadata }: Pod, status: Record<string, unknown>): Promise<void> {
  const target = { namespace: metadata.namespace, name: metadata.name ?? "", subresource: "status" };
  await client.patch(pods, target, { type: "strategic", body: { metadata: { uid: metadata.uid }, status } });
}
