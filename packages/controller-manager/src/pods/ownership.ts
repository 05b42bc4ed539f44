import type { Client } from "@coxswain/apimachinery/client/client";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isInvalid, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { adoptPatch, controllerOf, newControllerRef, releasePatch } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";

/** Input of `claimObjects`. */
interface Claim<T extends KubeObject> {
  readonly client: Client;
  /** Resource of the claimed objects. */
  readonly ref: ResourceRef;
  readonly owner: KubeObject;
  readonly ownerResource: ResourceRef;
  readonly selector: LabelSelector;
  readonly candidates: readonly T[];
  /** Additional condition for adopting or keeping an object. */
  readonly filter?: (object: T) => boolean;
  /** Finalizers added on adoption and removed on release. */
  readonly finalizers?: readonly string[];
  readonly signal: AbortSignal;
}

type Writes = Omit<Claim<KubeObject>, "candidates" | "filter">;

/** Action for one candidate. */
type ClaimDecision = "own" | "adopt" | "release" | "ignore";

/**
 * Adopts matching orphans and releases controlled objects that no longer match.
 * @returns the objects controlled by the owner afterwards
 * @throws the first failed patch, after all were attempted
 * Source: pkg/controller/controller_ref_manager.go
 */
export async function claimObjects<T extends KubeObject>(claim: Claim<T>): Promise<T[]> {
  const { candidates, owner, selector, filter = () => true } = claim;
  let mayAdopt: Promise<void> | undefined;
  const failures: unknown[] = [];
  const change = async (object: T, decision: "adopt" | "release"): Promise<boolean> => {
    try {
      if (decision === "release") {
        await release(claim, object);
        return false;
      }
      mayAdopt ??= checkMayAdopt(claim); // checked once for all candidates
      await mayAdopt;
      return await adopt(claim, object);
    } catch (err) {
      failures.push(err);
      return false;
    }
  };
  const claimed: T[] = [];
  for (const object of candidates) {
    const matches = selector.matches(object.metadata.labels) && filter(object);
    const decision = decideClaim(owner, object, matches);
    if (decision === "ignore") continue;
    // One after the other: thousands of patches at once would keep other owners from the client's rate limit for minutes.
    if (decision === "own" || (await change(object, decision))) claimed.push(object);
  }
  if (failures.length > 0) throw failures[0];
  return claimed;
}

/**
 * Pure: decides whether the owner keeps, adopts, releases or ignores the object.
 * @param matches whether selector and filter match
 */
export function decideClaim(owner: KubeObject, object: KubeObject, matches: boolean): ClaimDecision {
  const controller = controllerOf(object);
  if (controller !== undefined) {
    if (controller.uid !== owner.metadata.uid) return "ignore"; // controlled by another owner
    if (matches) return "own";
    return owner.metadata.deletionTimestamp ? "ignore" : "release";
  }
  if (owner.metadata.deletionTimestamp || !matches || object.metadata.deletionTimestamp) return "ignore";
  if (owner.metadata.namespace !== object.metadata.namespace) return "ignore";
  return "adopt";
}

/** Reads the owner from the API server: a stale cache must not let a deleted or recreated owner adopt. */
async function checkMayAdopt({ client, ownerResource, owner, signal }: Writes): Promise<void> {
  const { namespace, name = "", uid } = owner.metadata;
  const fresh = await client.get<KubeObject & object>(ownerResource, { namespace, name }, { signal });
  if (fresh.metadata.uid !== uid) {
    throw new Error(`original ${ownerResource.kind} ${namespace}/${name} is gone: got uid ${fresh.metadata.uid}, wanted ${uid}`);
  }
  if (fresh.metadata.deletionTimestamp) {
    throw new Error(`can't adopt ${namespace}/${name}: it has just been deleted at ${fresh.metadata.deletionTimestamp}.`);
  }
}

async function adopt(claim: Writes, { metadata }: KubeObject): Promise<boolean> {
  const { client, ref, owner, ownerResource, finalizers, signal } = claim;
  const { namespace, name = "", uid = "" } = metadata;
  try {
    await client.patch(
      ref,
      { namespace, name },
      { type: "strategic", body: adoptPatch(newControllerRef(owner, ownerResource), uid, finalizers) },
      { signal },
    );
    return true;
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err;
  }
}

async function release(claim: Writes, { metadata }: KubeObject): Promise<void> {
  const { client, ref, owner, finalizers, signal } = claim;
  const { namespace, name = "", uid = "" } = metadata;
  try {
    await client.patch(
      ref,
      { namespace, name },
      { type: "strategic", body: releasePatch([owner.metadata.uid ?? ""], uid, finalizers) },
      { signal },
    );
  } catch (err) {
    // The object was deleted or replaced by another of the same name.
    if (!isNotFound(err) && !isInvalid(err)) throw err;
  }
}

/** Candidates for an owner, from an informer with `orphanIndex`: objects it controls and orphans in its namespace. */
export function candidatesFor<T extends KubeObject>({ lister }: SharedInformer<T>, owner: KubeObject): T[] {
  return [...lister.controlledBy(owner), ...lister.byIndex(orphanIndex, owner.metadata.namespace ?? "")];
}

/** Index of objects without a controller, by namespace. */
export const orphanIndex = "orphan";
/** Index function of `orphanIndex`; the value of a cluster-scoped object is `""`. */
export function byOrphan(object: KubeObject): string[] {
  return controllerOf(object) === undefined ? [object.metadata.namespace ?? ""] : [];
}
