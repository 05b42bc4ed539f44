import { strategyContext, writeAdmission } from "./admission.ts";
import { inputMediaType, readBody } from "./body.ts";
import { decodeObject } from "./decode.ts";
import type { Call } from "./env.ts";
import { trackFields } from "./managed-fields.ts";
import { negotiateFor } from "./negotiation.ts";
import { writeOptions } from "./options.ts";
import { writeEntry } from "./response.ts";

/**
 * POST on a collection: 201 with the stored object. The stages, each in a separate file: negotiate, read, decode (with defaults, to
 * the hub version), track managed fields, mutating admission, store (strategy, validation, validating admission, write), respond. From
 * decoding to storing all of them work on one `object`, in place.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/create.go
 */
export async function create(call: Call): Promise<void> {
  const { ctx, served, env } = call;
  const { turns } = env.services;
  const output = negotiateFor(call);
  const mediaType = inputMediaType(call);
  const body = await readBody(call);
  const options = writeOptions(ctx.query, "CreateOptions");
  const object = await decodeObject(call, body, mediaType, options.fieldValidation);
  await turns.next(body.length);
  await trackFields(call, options.fieldManager, undefined, object, body.length);
  const context = strategyContext(call, options.dryRun);
  const admission = writeAdmission(call, options, body.length);
  await admission.mutateAdmission(object, undefined);
  const store = served.store!;
  const entry = await store.create(context, object, { ...admission, untrackedWhenTooLarge: true, signal: ctx });
  await turns.next(body.length);
  await writeEntry(call, 201, entry, output);
}
