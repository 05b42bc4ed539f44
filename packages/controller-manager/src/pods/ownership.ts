import type { Client } from "@coxswain/apimachinery/client/client";
import { isInvalid, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ResourceRef } from "@coxswain/apimachinery/meta/group-version";
import { adoptPatch, controllerOf, newControllerRef, releasePatch } from "@coxswain/apimachinery/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";

export interface Claim<T extends KubeObject> {
  readonly client: Client;
  /** Of the objects that are claimed. */
  readonly ref: ResourceRef;
  readonly owner: KubeObject;
  readonly ownerResource: ResourceRef;
  readonly selector: LabelSelector;
  readonly candidates: readonly T[];
  /** What must hold besides the selector for an object to be adopted or kept. */
  readonly filter?: (object: T) => boolean;
  /** Put on what is adopted, taken from what is released. */
  readonly finalizers?: readonly string[];
  readonly signal: AbortSignal;
}

type Writes = Omit<Claim<KubeObject>, "candidates" | "filter">;

/** What to do with one candidate. */
export type ClaimDecision = "own" | "adopt" | "release" | "ignore";

/**
 * Takes matching objects that nobody controls, lets go of own ones that no longer match.
 * @returns those that are the owner's in the end
 * @throws the first failure of a patch, after all were tried
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
      mayAdopt ??= checkMayAdopt(claim); // asked once for all of them
      await mayAdopt;
      return await adopt(claim, object);
    } catch (err) {
      failures.push(err);
      return false;
    }
  };
  // Most are its own, of which there may be a hundred thousand: only those that change wait for anything.
  const claimed: (T | undefined)[] = [];
  const changes: Promise<void>[] = [];
  for (const object of candidates) {
    const matches = selector.matches(object.metadata.labels) && filter(object);
    const decision = decideClaim(owner, object, matches);
    if (decision === "ignore") continue;
    const place = claimed.push(decision === "own" ? object : undefined) - 1;
    if (decision === "own") continue;
    changes.push(
      change(object, decision).then((isOwn) => {
        if (isOwn) claimed[place] = object;
      }),
    );
  }
  await Promise.all(changes);
  if (failures.length > 0) throw failures[0];
  return claimed.filter((object) => object !== undefined);
}

export function decideClaim(owner: KubeObject, object: KubeObject, matches: boolean): ClaimDecision {
  const controller = controllerOf(object);
  if (controller !== undefined) {
    if (controller.uid !== owner.metadata.uid) return "ignore"; // someone else's
    if (matches) return "own";
    return owner.metadata.deletionTimestamp ? "ignore" : "release";
  }
  if (owner.metadata.deletionTimestamp || !matches || object.metadata.deletionTimestamp) return "ignore";
  if (owner.metadata.namespace !== object.metadata.namespace) return "ignore";
  return "adopt";
}

/** The cache may be old: an owner that was deleted, or made anew under its name, must not adopt. */
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
    // Gone, or another object under its name: nothing of ours is left to release.
    if (!isNotFound(err) && !isInvalid(err)) throw err;
  }
}

/** What may be an owner's, of an informer with `orphanIndex`: what it controls, and what nobody in its namespace does. */
export function candidatesFor<T extends KubeObject>({ lister }: SharedInformer<T>, owner: KubeObject): T[] {
  return [...lister.controlledBy(owner), ...lister.byIndex(orphanIndex, owner.metadata.namespace ?? "")];
}

/** Index of objects that nobody controls, by namespace: the candidates for adoption. */
export const orphanIndex = "orphan";
export function byOrphan(object: KubeObject): string[] {
  return controllerOf(object) === undefined ? [object.metadata.namespace ?? ""] : [];
}
