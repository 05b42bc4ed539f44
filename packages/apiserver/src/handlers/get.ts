import type { RequestContext } from "../request/context.ts";
import type { ReadOptions } from "../storage/storage.ts";
import type { Call } from "./env.ts";
import { revisionParam } from "./options.ts";
import { negotiateFor, writeEntry } from "./response.ts";

/** GET of one object: most recent, any (`resourceVersion=0`) or not older than a version. */
export async function get(call: Call): Promise<void> {
  const { ctx, served } = call;
  const output = negotiateFor(call);
  const store = served.store as NonNullable<typeof served.store>;
  const minimumRevision = revisionParam(ctx.query.get("resourceVersion") ?? "", store.storage.cached ? "cache" : "etcd");
  const entry = await store.get(call.namespace, call.name, new RequestedRead(ctx, minimumRevision));
  await writeEntry(call, 200, entry, output);
}

/**
 * The request's signal is made only where etcd is asked: it costs as much as the rest of a read from memory. A class,
 * because a getter in an object literal gives every request a hidden class of its own, which keeps the request alive.
 */
class RequestedRead implements ReadOptions {
  readonly minimumRevision: number | undefined;
  readonly #ctx: RequestContext;

  constructor(ctx: RequestContext, minimumRevision: number | undefined) {
    this.#ctx = ctx;
    this.minimumRevision = minimumRevision;
  }

  get signal(): AbortSignal {
    return this.#ctx.signal;
  }
}
