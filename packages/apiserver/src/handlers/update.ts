import { deepCloneInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { strategyContext, writeAdmission } from "./admission.ts";
import { inputMediaType, readBody } from "./body.ts";
import { decodeObject } from "./decode.ts";
import type { Call } from "./env.ts";
import { trackFields } from "./managed-fields.ts";
import { negotiateFor } from "./negotiation.ts";
import { writeOptions } from "./options.ts";
import { writeEntry } from "./response.ts";

/**
 * PUT on a named object: replaces it, or creates it where the resource allows that (201).
 * Source: k8s.io/apiserver pkg/endpoints/handlers/update.go
 */
export async function update(call: Call, store = call.served.store!): Promise<void> {
  const { ctx } = call;
  const { turns } = call.env.services;
  const output = negotiateFor(call);
  const body = await readBody(call);
  const options = writeOptions(ctx.query, "UpdateOptions");
  const mediaType = inputMediaType(call); // creation checks the media type before the options, update after them
  const object = await decodeObject(call, body, mediaType, options.fieldValidation);
  await turns.next(body.length);
  const uid = object.metadata.uid;
  const { entry, created } = await store.update(
    strategyContext(call, options.dryRun),
    call.name,
    async (current) => {
      // The function may run again after a conflict, and admission and strategy modify the object.
      const next = await turns.run(deepCloneInSteps(object), body.length);
      return trackFields(call, options.fieldManager, current, next, body.length);
    },
    {
      ...writeAdmission(call, options, body.length),
      ...(uid ? { preconditions: { uid } } : {}),
      untrackedWhenTooLarge: true,
      signal: ctx,
    },
  );
  await writeEntry(call, created ? 201 : 200, entry, output);
}
