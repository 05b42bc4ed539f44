import type { Call } from "./env.ts";
import { negotiateFor } from "./negotiation.ts";
import { readOptions } from "./options.ts";
import { writeEntry } from "./response.ts";

/** GET of one object: the most recent state, any state (`resourceVersion=0`), or one not older than a version. */
export async function get(call: Call): Promise<void> {
  const { ctx, served } = call;
  const output = negotiateFor(call);
  const store = served.store!;
  const read = readOptions(ctx, store.storage.cached ? "cache" : "etcd");
  const entry = await store.get(call.namespace, call.name, read);
  await writeEntry(call, 200, entry, output);
}
