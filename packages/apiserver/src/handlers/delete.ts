import { strategyContext } from "./admission.ts";
import { readDelete } from "./delete-body.ts";
import type { Call } from "./env.ts";
import { negotiateFor } from "./negotiation.ts";
import { writeEntry, writeSuccess } from "./response.ts";

/**
 * DELETE of one object. Responds with a Status when the object is removed; with the object when it remains for now
 * (finalizers, grace period), or when the resource always returns the last state.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/delete.go
 */
export async function remove(call: Call): Promise<void> {
  const { ctx, served } = call;
  const { definition } = served;
  const output = negotiateFor(call);
  const { options, dryRun, admit } = await readDelete(call);
  const store = served.store!;
  const { entry, deleted } = await store.delete(strategyContext(call, dryRun), call.name, options, admit);
  // 202 only for the deprecated orphanDependents=false; upstream returns 200 otherwise for compatibility with old clients.
  const status = !deleted && options.orphanDependents === false ? 202 : 200;
  if (!deleted || definition.returnDeletedObject === true) return writeEntry(call, status, entry, output);
  const details = {
    name: call.name,
    ...(definition.group === "" ? {} : { group: definition.group }),
    kind: definition.resource, // upstream names the resource here, not the kind
    uid: entry.object().metadata.uid ?? "",
  };
  return writeSuccess(ctx, status, details, output);
}
