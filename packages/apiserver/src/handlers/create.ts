import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { admissionAttributes, strategyContext } from "./admission.ts";
import { decodeBody, dedupOwnerReferences, inputMediaType, matchNamespace, readBody } from "./body.ts";
import { toHubInTurns } from "./convert.ts";
import type { Call } from "./env.ts";
import { guardEntries, trackFields, withEntries, withoutEntriesWhenTooLarge } from "./managed-fields.ts";
import { negotiateFor } from "./negotiation.ts";
import { writeOptions } from "./options.ts";
import { writeEntry } from "./response.ts";

/**
 * POST on a collection: decode, default and convert to the hub version; mutating admission; store (strategy, validation,
 * validating admission, write); 201 with the stored object.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/create.go
 */
export async function create(call: Call): Promise<void> {
  const { ctx, served, env } = call;
  const { turns } = env.services;
  const output = negotiateFor(call);
  const mediaType = inputMediaType(call);
  const body = await readBody(call);
  const options = writeOptions(ctx.query, "CreateOptions");
  const decoded = await decodeBody(call, body, mediaType, served.kind, options.fieldValidation);
  await turns.next(body.length);
  const object = await toHubInTurns(turns, served, decoded);
  matchNamespace(object, call.namespace);
  dedupOwnerReferences(call, object, false);
  await turns.next(body.length);

  const attributes = (subject: KubeObject) =>
    admissionAttributes(call, "CREATE", subject, undefined, { dryRun: options.dryRun, options });
  const mutation = attributes(object);
  await trackFields(call, options.fieldManager, undefined, object);
  await turns.next(body.length);
  const subject = () => mutation.object ?? object;
  await guardEntries(call, subject, () => env.admission.mutate(mutation));
  const admitted = subject();
  if (admitted.metadata.ownerReferences !== undefined) dedupOwnerReferences(call, admitted, true);
  await turns.next(body.length);

  const store = served.store as NonNullable<typeof served.store>;
  const write = () =>
    store.create(strategyContext(call, options.dryRun), admitted, {
      async validateAdmission(made) {
        await turns.next(body.length);
        await env.admission.validate(attributes(made));
        await turns.next(body.length);
      },
    });
  const entry = await withoutEntriesWhenTooLarge(turns, write, () => withEntries(admitted, undefined));
  await turns.next(body.length);
  await writeEntry(call, 201, entry, output);
}
