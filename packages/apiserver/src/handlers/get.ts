import type { Call } from "./env.ts";
import { revisionParam } from "./options.ts";
import { negotiateFor, writeEntry } from "./response.ts";

/** GET of one object: most recent, any (`resourceVersion=0`) or not older than a version. */
export async function get(call: Call): Promise<void> {
  const { ctx, served } = call;
  const output = negotiateFor(call);
  const minimumRevision = revisionParam(ctx.query.get("resourceVersion") ?? "");
  const store = served.store as NonNullable<typeof served.store>;
  const entry = await store.get(call.namespace, call.name, { minimumRevision, signal: ctx.signal });
  await writeEntry(call, 200, entry, output);
}
