import type { Client } from "@coxswain/apimachinery/client/client";
import type { Discovered, DiscoveredResource } from "@coxswain/apimachinery/client/discovery";
import { isMethodNotSupported, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isFinished } from "../../pods/pod-state.ts";

/** Result of deleting the contents of a namespace. */
export interface DeletionOutcome {
  /** Estimated seconds until the remaining content is deleted; 0 when nothing remains or it is unknown. */
  readonly estimateSeconds: number;
  readonly discoveryFailures: Discovered["failed"];
  readonly failures: readonly Error[];
  /** Number of remaining objects by `<resource>.<group>`. */
  readonly remaining: ReadonlyMap<string, number>;
  /** Number of remaining objects by finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
}

interface TerminatingNamespace {
  readonly name: string;
  /** Time since its deletion, in ms. */
  readonly forMs: number;
}

/**
 * Deletes all objects of all resources, one resource after the other. A failure does not stop the others.
 * Source: pkg/controller/namespace/deletion/namespaced_resources_deleter.go deleteAllContent
 */
export async function deleteContents(
  client: Client,
  discovered: Discovered,
  namespace: TerminatingNamespace,
  signal: AbortSignal,
): Promise<DeletionOutcome> {
  const remaining = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const failures: Error[] = [];
  let estimateSeconds = 0;
  for (const resource of discovered.resources) {
    if (!resource.namespaced || !resource.verbs.includes("delete")) continue;
    try {
      const result = await deleteAllOf(client, resource, namespace, signal);
      estimateSeconds = Math.max(estimateSeconds, result.estimateSeconds);
      if (result.objects.length > 0) remaining.set(`${resource.resource}.${resource.group}`, result.objects.length);
      for (const { metadata } of result.objects) {
        for (const name of metadata.finalizers ?? []) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
      }
      if (result.failure !== undefined) failures.push(result.failure);
    } catch (err) {
      signal.throwIfAborted();
      failures.push(err instanceof Error ? err : new Error(String(err)));
    }
  }
  return { estimateSeconds, discoveryFailures: discovered.failed, failures, remaining, finalizers };
}

interface RemainingObjects {
  readonly objects: readonly KubeObject[];
  readonly estimateSeconds: number;
  readonly failure?: Error;
}

async function deleteAllOf(
  client: Client,
  resource: DiscoveredResource,
  { name: namespace, forMs }: TerminatingNamespace,
  signal: AbortSignal,
): Promise<RemainingObjects> {
  const isPods = resource.group === pods.group && resource.resource === pods.resource;
  const graceSeconds = isPods ? await longestGracePeriod(client, namespace, signal) : 0;
  if (!resource.verbs.includes("list")) return { objects: [], estimateSeconds: 0 };
  if (!(await deleteCollection(client, resource, namespace, signal))) await deleteEach(client, resource, namespace, signal);

  const objects = await list(client, resource, namespace, signal);
  if (objects.length === 0) return { objects, estimateSeconds: 0 };
  // After their grace period all Pods should be deleted.
  if (graceSeconds * 1000 > forMs) return { objects, estimateSeconds: graceSeconds };
  // Objects with finalizers are deleted once the finalizers are removed.
  if (objects.some(({ metadata }) => (metadata.finalizers ?? []).length > 0))
    return { objects, estimateSeconds: finalizerEstimateSeconds };
  const name = `${resource.group}/${resource.version}, Resource=${resource.resource}`;
  return {
    objects,
    estimateSeconds: 0,
    failure: new Error(`unexpected items still remain in namespace: ${namespace} for gvr: ${name}`),
  };
}

const finalizerEstimateSeconds = 15;

async function longestGracePeriod(client: Client, namespace: string, signal: AbortSignal): Promise<number> {
  const { items } = await client.list<Pod>(pods, { namespace }, { signal });
  let longest = 0;
  for (const { spec, status } of items) {
    if (!isFinished(status?.phase)) longest = Math.max(longest, Number(spec.terminationGracePeriodSeconds ?? 0));
  }
  return longest;
}

/** Deletes the collection; returns false when the resource does not support it. */
async function deleteCollection(
  client: Client,
  resource: DiscoveredResource,
  namespace: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (!resource.verbs.includes("deletecollection")) return false;
  try {
    await client.deleteCollection(resource, { namespace }, { propagationPolicy: "Background", signal });
    return true;
  } catch (err) {
    if (isMethodNotSupported(err) || isNotFound(err)) return false;
    throw err;
  }
}

async function deleteEach(client: Client, resource: DiscoveredResource, namespace: string, signal: AbortSignal): Promise<void> {
  for (const { metadata } of await list(client, resource, namespace, signal)) {
    try {
      await client.delete(resource, { namespace, name: metadata.name ?? "" }, { propagationPolicy: "Background", signal });
    } catch (err) {
      if (!isNotFound(err) && !isMethodNotSupported(err)) throw err;
    }
  }
}

async function list(client: Client, resource: DiscoveredResource, namespace: string, signal: AbortSignal): Promise<KubeObject[]> {
  try {
    const { items } = await client.list<KubeObject>(resource, { namespace }, { metadataOnly: true, signal });
    return items;
  } catch (err) {
    if (isMethodNotSupported(err) || isNotFound(err)) return [];
    throw err;
  }
}
