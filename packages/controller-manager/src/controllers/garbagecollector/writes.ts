import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { ControllerContext } from "../../controller-context.ts";
import type { Identity } from "./graph.ts";

/** Removes the finalizer from the stored object, if it has it. */
export async function removeFinalizer(
  ctx: ControllerContext,
  ref: ResourceRef,
  identity: Identity,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const latest = await getLive(ctx, ref, identity, signal);
  const finalizers = latest?.metadata.finalizers ?? [];
  if (latest === undefined || !finalizers.includes(finalizer)) return;
  await patchMetadata(ctx, ref, latest, { finalizers: finalizers.filter((name) => name !== finalizer) }, signal);
}

/** Merge patch, which every resource supports. Fails with Conflict when the object changed since it was read, and is retried. */
export async function patchMetadata(
  { client }: ControllerContext,
  ref: ResourceRef,
  { metadata }: KubeObject,
  change: { finalizers?: readonly string[]; ownerReferences?: readonly OwnerReference[] },
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name = "", uid, resourceVersion } = metadata;
  try {
    await client.patch(
      ref,
      { namespace, name },
      { type: "merge", body: { metadata: { uid, resourceVersion, ...change } } },
      { signal },
    );
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}

/** Reads the object from the API server; undefined when it is deleted or its name is used by an object of another uid. */
export async function getLive(
  { client }: ControllerContext,
  ref: ResourceRef,
  identity: Identity,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const { namespace, name, uid } = identity;
  try {
    const found = await client.get<KubeObject & object>(ref, { namespace, name }, { metadataOnly: true, signal });
    return found.metadata.uid === uid ? found : undefined;
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}
