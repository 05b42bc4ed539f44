import type { RequestContext } from "../request/context.ts";
import type { ReadOptions } from "../storage/storage.ts";
import type { Call } from "./env.ts";
import { revisionParam } from "./options.ts";
import { negotiateFor, writeEntry } from "./response.ts";

/** GET of one object: the most recent state, any state (`resourceVersion=0`), or one not older than a version. */
export async function get(call: Call): Promise<void> {
  const { ctx, served } = call;
  const output = negotiateFor(call);
  const store = served.store as NonNullable<typeof served.store>;
  const minimumRevision = revisionParam(ctx.query.get("resourceVersion") ?? "", store.storage.cached ? "cache" : "etcd");
  const entry = await store.get(call.namespace, call.name, new RequestedRead(ctx, minimumRevision));
  await writeEntry(call, 200, entry, output);
}

/**
 * Defers the creation of the request's signal until etcd is read: it costs as much as the rest of a read from memory. A
 * class, since a getter in an object literal creates a hidden class per request that keeps the request alive.
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
