import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { RegistryStore } from "../registry/generic/resource.ts";
import { admissionAttributes, authorizeCreate, strategyContext } from "./admission.ts";
import { checkName, decodeBody, dedupOwnerReferences, inputMediaType, matchNamespace, readBody } from "./body.ts";
import { toHubInTurns } from "./convert.ts";
import type { Call } from "./env.ts";
import { guardEntries, trackFields, withEntries, withoutEntriesWhenTooLarge } from "./managed-fields.ts";
import { negotiateFor } from "./negotiation.ts";
import { type WriteRequestOptions, writeOptions } from "./options.ts";
import { writeEntry } from "./response.ts";

/**
 * PUT on a named object: replaces it, or creates it where the resource allows that (201).
 * Source: k8s.io/apiserver pkg/endpoints/handlers/update.go
 */
export async function update(call: Call, store = call.served.store as RegistryStore): Promise<void> {
  const { ctx, served } = call;
  const { turns } = call.env.services;
  const output = negotiateFor(call);
  const body = await readBody(call);
  const options = writeOptions(ctx.query, "UpdateOptions");
  const mediaType = inputMediaType(call); // creation checks the media type before the options, update after them
  const decoded = await decodeBody(call, body, mediaType, served.kind, options.fieldValidation);
  await turns.next(body.length);
  const object = await toHubInTurns(turns, served, decoded);
  checkName(object, call.name, call.namespace);
  matchNamespace(object, call.namespace);
  dedupOwnerReferences(call, object, false);
  await turns.next(body.length);
  const uid = object.metadata.uid;
  let track = true;
  const write = () =>
    store.update(
      strategyContext(call, options.dryRun),
      call.name,
      async (current) => {
        // The function may run again after a conflict, and admission and strategy modify the object.
        const next = deepClone(object);
        await turns.next(body.length);
        return track ? trackFields(call, options.fieldManager, current, next) : withEntries(next, undefined);
      },
      { ...writeAdmission(call, options), ...(uid ? { preconditions: { uid } } : {}), signal: ctx },
    );
  const { entry, created } = await withoutEntriesWhenTooLarge(turns, write, () => {
    track = false;
  });
  await writeEntry(call, created ? 201 : 200, entry, output);
}

/** The admission hooks of writes through `store.update`: CREATE when the object does not exist yet, else UPDATE. */
export function writeAdmission(call: Call, options: WriteRequestOptions) {
  const { env } = call;
  const { turns } = env.services;
  const attributes = (next: KubeObject, current: KubeObject | undefined) =>
    admissionAttributes(call, current === undefined ? "CREATE" : "UPDATE", next, current, { dryRun: options.dryRun, options });
  return {
    async mutateAdmission(next: KubeObject, current: KubeObject | undefined): Promise<void> {
      await turns.next();
      await guardEntries(
        call,
        () => next,
        () => env.admission.mutate(attributes(next, current)),
      );
      dedupOwnerReferences(call, next, true);
      await turns.next();
    },
    async validateAdmission(next: KubeObject, current: KubeObject | undefined): Promise<void> {
      await turns.next();
      if (current === undefined) await authorizeCreate(call);
      await env.admission.validate(attributes(next, current));
      await turns.next();
    },
  };
}
