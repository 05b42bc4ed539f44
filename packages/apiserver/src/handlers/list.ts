import type { Call } from "./env.ts";
import { negotiateFor } from "./negotiation.ts";
import { checkFieldSelector, listOptions, listRequest } from "./options.ts";
import { watch } from "./watch.ts";
import { writeList } from "./write-list.ts";

/** GET on a collection: a list, or a watch with ?watch=true. */
export async function list(call: Call): Promise<void> {
  const { ctx, served, env } = call;
  const output = negotiateFor(call); // upstream checks Accept before the query
  const options = listOptions(ctx.query);
  checkFieldSelector(served.definition, options.fields);
  if (options.watch) return watch(call, options);
  const chunking = env.gates.chunksLists;
  const store = served.store!;
  const result = await store.list(call.namespace, listRequest(options, ctx.signal, chunking, store.storage.cached === true));
  if (!env.gates.countsRemaining) delete result.remainingItemCount;
  await writeList(call, result, output);
}
