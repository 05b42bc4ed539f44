/** Cordons, drains and uncordons a node. */

import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound, isTooManyRequests } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Failure } from "../failure.ts";
import { until } from "../host/until.ts";

const requestMs = 30_000;
const shown = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

/**
 * Pure: which pods of a node are evicted. Pods of DaemonSets would be recreated at once, static pods belong to the node, and
 * finished pods hold no resources.
 * @throws Failure naming pods without a controller, since nothing would recreate them
 */
export function podsToEvict(found: readonly Pod[]): Pod[] {
  const due = found.filter(({ metadata, status }) => {
    const isStatic = metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined;
    const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
    return !isStatic && !hasEnded && controllerOf(metadata)?.kind !== "DaemonSet";
  });
  const alone = due.filter(({ metadata }) => controllerOf(metadata) === undefined);
  if (alone.length > 0)
    throw new Failure(
      alone.map((pod) => `pod ${shown(pod)} has no controller that would make it anew: delete it, or leave out --drain`),
    );
  return due;
}

const controllerOf = ({ ownerReferences }: Pod["metadata"]) => ownerReferences?.find(({ controller }) => controller === true);

/** Pods of all namespaces on the node, finished ones included. */
export async function podsOn(client: Client, nodeName: string): Promise<Pod[]> {
  const options = { fieldSelector: `spec.nodeName=${nodeName}`, signal: AbortSignal.timeout(requestMs) };
  return (await client.list<Pod>(pods, {}, options)).items;
}

/** Cordons or uncordons the node. @throws NotFound when there is no such node */
export async function setSchedulable(client: Client, nodeName: string, isSchedulable: boolean): Promise<void> {
  const body = { spec: { unschedulable: isSchedulable ? null : true } };
  await client.patch(nodes, { name: nodeName }, { type: "merge", body }, { signal: AbortSignal.timeout(requestMs) });
}

interface DrainOptions {
  readonly client: Client;
  readonly nodeName: string;
  readonly timeoutMs: number;
}

/** Evicts pods as disruption budgets allow, and waits until they are gone. @throws Failure after the time limit */
export async function drain({ client, nodeName, timeoutMs }: DrainOptions): Promise<void> {
  // Errors are reported before anything is changed.
  podsToEvict(await podsOn(client, nodeName));
  await setSchedulable(client, nodeName, false);
  const evicted = new Set<string | undefined>();
  const kept = new Set<string | undefined>();
  let left: readonly Pod[] = [];
  const step = async (): Promise<boolean> => {
    left = podsToEvict(await podsOn(client, nodeName));
    for (const pod of left)
      if (!evicted.has(pod.metadata.uid)) ((await evict(client, pod)) ? evicted : kept).add(pod.metadata.uid);
    return left.length === 0;
  };
  try {
    await until(step, {
      timeoutMs,
      what: `the pods of ${nodeName} to end`,
      everyMs: 1_000,
      isFinal: (err) => err instanceof Failure,
    });
  } catch (err) {
    const isKept = ({ metadata: { uid } }: Pod): boolean => kept.has(uid) && !evicted.has(uid);
    const waiting = left.map((pod) => `${shown(pod)}${isKept(pod) ? " (a PodDisruptionBudget keeps it)" : ""}`);
    throw new Failure([messageOf(err), ...(waiting.length > 0 ? [`remaining: ${waiting.join(", ")}`] : [])]);
  }
}

/** @returns false when a disruption budget refused the eviction for now */
async function evict(client: Client, { metadata }: Pod): Promise<boolean> {
  const { name = "", namespace } = metadata;
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
  try {
    await client.create(pods, eviction, { name, subresource: "eviction", signal: AbortSignal.timeout(requestMs) });
    return true;
  } catch (err) {
    if (isNotFound(err)) return true;
    if (isTooManyRequests(err)) return false;
    throw err;
  }
}
