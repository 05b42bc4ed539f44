import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { controllerRevisions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../controller-context.ts";
import { withData } from "./revision-data.ts";

/**
 * Creates a revision. An existing one of the same name and data is returned instead, because a stale cache may hide
 * this controller's last write.
 * @returns undefined when the name is taken by another revision (hash collision)
 */
export async function createRevision(
  { client, turns }: Pick<ControllerContext, "client" | "turns">,
  revision: ControllerRevision,
  signal: AbortSignal,
): Promise<ControllerRevision | undefined> {
  try {
    return await client.create<ControllerRevision>(controllerRevisions, revision, { signal });
  } catch (err) {
    if (!isAlreadyExists(err)) throw err;
    const { namespace, name = "" } = revision.metadata;
    const existing = await client.get<ControllerRevision>(controllerRevisions, { namespace, name }, { signal });
    return (await turns.run(withData([existing], revision.data)))[0];
  }
}

/** Updates the revision number, the only mutable field besides metadata. */
export function renumber(
  client: Client,
  stored: ControllerRevision,
  revision: number,
  signal: AbortSignal,
): Promise<ControllerRevision> {
  return client.update<ControllerRevision>(controllerRevisions, { ...stored, revision }, { signal });
}

/** Deletes revisions; missing ones are ignored. */
export async function deleteRevisions(
  client: Client,
  revisions: readonly ControllerRevision[],
  signal: AbortSignal,
): Promise<void> {
  for (const { metadata } of revisions) {
    const { namespace, name = "" } = metadata;
    await client.delete(controllerRevisions, { namespace, name }, { signal }).catch((err) => {
      if (!isNotFound(err)) throw err;
    });
  }
}
