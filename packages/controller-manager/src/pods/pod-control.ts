import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { hasCause, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KubeObject, OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";

export interface PodWriter {
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly turns: Turns;
}

/**
 * Creates a Pod from its owner's template and records an Event on the owner.
 * @param generateName defaults to the owner's name and a dash
 * @throws the client's error, after a FailedCreate Event (not in a terminating namespace)
 * Source: pkg/controller/controller_utils.go, RealPodControl
 */
export async function createPod(
  ctx: PodWriter,
  owner: KubeObject,
  template: PodTemplateSpec,
  controllerRef: OwnerReference,
  signal: AbortSignal,
  generateName?: string,
): Promise<void> {
  const turn = ctx.turns.next(); // one batch creates hundreds, and each of them may take milliseconds to encode
  if (turn !== undefined) await turn;
  const pod = podFromTemplate(owner, template, controllerRef, generateName);
  try {
    const { namespace } = owner.metadata;
    const { metadata } = await ctx.client.create<Pod>(pods, pod, { namespace, readsMetadataOnly: true, signal });
    ctx.recorder.event(owner, "Normal", "SuccessfulCreate", `Created pod: ${metadata.name}`);
  } catch (err) {
    if (!hasCause(err, "NamespaceTerminating"))
      ctx.recorder.event(owner, "Warning", "FailedCreate", `Error creating: ${messageOf(err)}`);
    throw err;
  }
}

/**
 * Deletes a Pod and records an Event on the owner.
 * @returns false when the Pod did not exist, so that no watch event may follow
 * @throws the client's error after a FailedDelete Event
 */
export async function deletePod(ctx: PodWriter, owner: KubeObject, pod: Pod, signal: AbortSignal): Promise<boolean> {
  const { namespace, name = "" } = pod.metadata;
  try {
    await ctx.client.delete(pods, { namespace, name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return false;
    ctx.recorder.event(owner, "Warning", "FailedDelete", `Error deleting: ${messageOf(err)}`);
    throw err;
  }
  ctx.recorder.event(owner, "Normal", "SuccessfulDelete", `Deleted pod: ${name}`);
  return true;
}

/** Builds a Pod from a template, whose parts it shares, with the controller as its owner; does not create it. */
export function podFromTemplate(
  owner: KubeObject,
  template: PodTemplateSpec,
  controllerRef: OwnerReference,
  generateName = podNamePrefix(owner.metadata.name ?? ""),
): Pod {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      generateName,
      ...(owner.metadata.namespace === undefined ? {} : { namespace: owner.metadata.namespace }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ownerReferences: [controllerRef],
    },
    spec: { ...(template.spec ?? { containers: [] }) },
  };
}

/** The owner's name and a dash, which is omitted when the name would become too long. */
function podNamePrefix(ownerName: string): string {
  return ownerName.length < 253 ? `${ownerName}-` : ownerName;
}

/**
 * Calls `work` `count` times in batches that start at one and double as long as all calls succeed, so that a rejected
 * template does not cause many failing requests.
 * @returns the number of successes, and the first failure
 * Source: pkg/controller/replicaset/replica_set.go, slowStartBatch
 */
export async function slowStartBatch(
  count: number,
  work: (index: number) => Promise<void>,
): Promise<{ succeeded: number; error?: unknown }> {
  let succeeded = 0;
  let started = 0;
  for (let batch = Math.min(count, 1); batch > 0; batch = Math.min(2 * batch, count - started)) {
    const results = await Promise.allSettled(Array.from({ length: batch }, (_, i) => work(started + i)));
    started += batch;
    succeeded += results.filter(({ status }) => status === "fulfilled").length;
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) return { succeeded, error: failed.reason };
  }
  return { succeeded };
}
