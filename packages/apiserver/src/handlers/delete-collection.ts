import { strategyContext } from "./admission.ts";
import { readDelete } from "./delete-body.ts";
import type { Call } from "./env.ts";
import { negotiateFor } from "./negotiation.ts";
import { checkFieldSelector, listOptions, listRequest } from "./options.ts";
import { writeList } from "./write-list.ts";

/** DELETE on a collection: deletes the selected objects and responds with their list. */
export async function deleteCollection(call: Call): Promise<void> {
  const { ctx, served, env } = call;
  const output = negotiateFor(call);
  const selection = listOptions(ctx.query);
  checkFieldSelector(served.definition, selection.fields);
  const { options, dryRun, admit } = await readDelete(call);
  const store = served.store!;
  const chunking = env.gates.chunksLists;
  const request = listRequest(selection, ctx.signal, chunking, store.storage.cached === true);
  const result = await store.deleteCollection(strategyContext(call, dryRun), options, request, admit);
  await writeList(call, result, output);
}
