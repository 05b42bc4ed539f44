/**
 * PATCH on a named object: server-side apply (`apply.ts`), JSON patch, merge patch or strategic merge patch. The patch is
 * applied to the object in the request's version, and after a conflict again to the current object.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go
 */

import {
  claimedKind,
  coerce,
  coerceFields,
  largeJsonBytes,
  parseJson,
  parseLargeJson,
} from "@coxswain/apimachinery/objects/codec/json";
import { strictComplaints } from "@coxswain/apimachinery/objects/codec/json-decode";
import type { ParseOptions } from "@coxswain/apimachinery/objects/codec/json-parse";
import { invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import {
  badRequest,
  invalid,
  notFound,
  plainError,
  StatusError,
  unsupportedMediaType,
} from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { jsonWord } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { goText } from "@coxswain/apimachinery/objects/patch/go-text";
import { jsonPatchSteps } from "@coxswain/apimachinery/objects/patch/json-patch";
import { mergePatchInto } from "@coxswain/apimachinery/objects/patch/merge-patch";
import { structOf } from "@coxswain/apimachinery/objects/patch/patch-schema";
import { checkingRestorable } from "@coxswain/apimachinery/objects/patch/restore";
import { mergeInSteps } from "@coxswain/apimachinery/objects/patch/strategic-merge";
import type { TypeDescriptor } from "@coxswain/apimachinery/objects/schema/descriptor";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { strategyContext, writeAdmission } from "./admission.ts";
import { apply } from "./apply.ts";
import { readBody } from "./body.ts";
import { fromHubInSteps } from "./convert.ts";
import { checkName, toHubInTurns } from "./decode.ts";
import type { Call } from "./env.ts";
import { trackFields } from "./managed-fields.ts";
import { negotiateFor, unsupportedByRoute } from "./negotiation.ts";
import { writeOptions } from "./options.ts";
import { writeEntry } from "./response.ts";

type PatchType = "json" | "merge" | "strategic";

const patchTypes: Readonly<Record<string, PatchType | "apply">> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

/** Handles PATCH. @param store the subresource's store where it differs from the resource's */
export async function patch(call: Call, store = call.served.store!): Promise<void> {
  const { ctx, served } = call;
  const { turns } = call.env.services;
  const type = patchTypeOf(call, served.kind);
  if (type === "apply") return apply(call, store);
  const output = negotiateFor(call);
  const patched = await readPatch(call, type, served.kind);
  const options = writeOptions(ctx.query, "PatchOptions");
  const { entry, created } = await store.update(
    strategyContext(call, options.dryRun),
    call.name,
    async (current) => {
      if (current === undefined) throw notFound(served.definition, call.name);
      const shown = await turns.run(fromHubInSteps(served, current), 0, ctx);
      await turns.next();
      const changed = await turns.run(patched(shown), 0, ctx);
      checkName(changed, call.name, call.namespace);
      const next = await toHubInTurns(turns, served, changed, { request: ctx });
      await turns.next();
      return trackFields(call, options.fieldManager, current, next);
    },
    { ...writeAdmission(call, options), untrackedWhenTooLarge: true, signal: ctx },
  );
  await writeEntry(call, created ? 201 : 200, entry, output);
}

/** @throws UnsupportedMediaType, also for a strategic merge patch of a kind without a schema (custom resources) */
export function patchTypeOf(call: Call, kind: GroupVersionKind): PatchType | "apply" {
  const contentType = (call.ctx.exchange.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const type = Object.hasOwn(patchTypes, contentType) ? patchTypes[contentType] : undefined;
  const taken = (one: PatchType | "apply"): boolean =>
    one === "strategic" ? scheme.kind(kind) !== undefined : one !== "apply" || call.env.gates.tracksFields;
  if (type === undefined || !taken(type)) {
    // The routes of built-in resources reject it before the handler.
    if (scheme.kind(kind) !== undefined) throw unsupportedByRoute(call.ctx);
    // Cast: the loop is over its keys.
    const accepted = Object.keys(patchTypes).filter((name) => taken(patchTypes[name] as PatchType));
    throw unsupportedMediaType(
      `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
    );
  }
  return type;
}

/**
 * Reads the patch; the returned function may be called for any number of objects.
 * @returns a function from an object of `kind`, which it takes over, to the patched object, checked against the schema
 */
export async function readPatch(
  call: Call,
  type: PatchType,
  kind: GroupVersionKind,
): Promise<(object: KubeObject) => Steps<KubeObject>> {
  const bytes = await readBody(call);
  const descriptor = scheme.kind(kind);
  const repeated: string[] | undefined = isValidated(call, descriptor) ? [] : undefined;
  const patched = patchFunction(type, bytes, descriptor, repeated);
  const complain = complaintsOf(call, descriptor, repeated);
  return function* (object) {
    const { value, patch, touched } = yield* patchedBy(patched, object);
    yield;
    const complaints = complain(value);
    const result =
      patch === undefined ? checked(value, kind, descriptor, touched) : yield* restored(value, patch, kind, descriptor);
    if (complaints.length > 0) throw refusal(result, `strict decoding error: ${complaints.join(", ")}`);
    return result;
  };
}

/** Whether field validation is enabled for the request. */
function isValidated(call: Call, descriptor: TypeDescriptor | undefined): boolean {
  if (descriptor === undefined || !call.env.gates.validatesFields) return false;
  return call.ctx.query.get("fieldValidation") !== "Ignore";
}

/**
 * Handles duplicate fields of a patch and unknown fields of its result by `?fieldValidation=`: warns, or returns them.
 * @param repeated undefined when field validation is off
 * @returns the errors to reject the request with
 */
function complaintsOf(
  call: Call,
  descriptor: TypeDescriptor | undefined,
  repeated: readonly string[] | undefined,
): (value: unknown) => readonly string[] {
  if (repeated === undefined || descriptor === undefined) return () => [];
  const isStrict = call.ctx.query.get("fieldValidation") === "Strict";
  return (value) => {
    const complaints = [...repeated, ...strictComplaints(value, descriptor)];
    if (isStrict) return complaints;
    // Again for each retry after a conflict: the response has each text once.
    for (const complaint of complaints) call.ctx.warn(complaint);
    return [];
  };
}

type OnDuplicate = NonNullable<ParseOptions["onDuplicate"]>;

function nameInto(repeated: string[]): OnDuplicate {
  return (_container, _key, path) => {
    const complaint = `duplicate field ${JSON.stringify(path())}`;
    if (!repeated.includes(complaint) && repeated.length < 100) repeated.push(complaint);
  };
}

interface Patched {
  readonly value: unknown;
  /** The remainder of a strategic merge patch; error texts quote it. */
  readonly patch?: object;
  /** The only fields that may have changed. */
  readonly touched?: readonly string[];
}

/** Some malformed patches result in plain errors, which are answered with 500, as upstream. */
function* patchedBy(patched: (object: KubeObject) => Steps<Patched>, object: KubeObject): Steps<Patched> {
  try {
    return yield* patched(object);
  } catch (err) {
    throw err instanceof StatusError ? err : plainError(messageOf(err));
  }
}

function patchFunction(
  type: PatchType,
  bytes: Buffer,
  descriptor: TypeDescriptor | undefined,
  repeated: string[] | undefined,
): (object: KubeObject) => Steps<Patched> {
  if (type === "json") {
    if (repeated !== undefined) nameRepeated(bytes, repeated);
    return function* (object) {
      return { value: yield* jsonPatchSteps(object, bytes) };
    };
  }
  // Parsed when there is an object: for a missing object upstream answers 404, whatever the patch is.
  let document: object | undefined;
  return function* (object) {
    let patch: object;
    if (bytes.length > largeJsonBytes) {
      // Parsed again for a retry: it yields, unlike a clone.
      patch = yield* parsePatch(type, bytes, repeated);
    } else {
      document ??= yield* parsePatch(type, bytes, repeated);
      yield;
      patch = deepClone(document);
    }
    yield;
    // Cast: `parsePatch` takes no list for a strategic merge patch.
    if (type === "strategic") return { value: yield* mergeInSteps({ ...object }, patch as Unstructured, descriptor!), patch };
    const touched = Object.keys(patch);
    return { value: mergePatchInto(object, patch), touched };
  };
}

/** Collects the duplicate fields of a JSON patch, whose own parser does not detect them. */
function nameRepeated(bytes: Buffer, repeated: string[]): void {
  try {
    parseJson(bytes, { onDuplicate: nameInto(repeated) });
  } catch {
    // The patch's own parser reports the error, when there is an object.
  }
}

/**
 * Parses a merge patch, an object or a list, or a strategic merge patch, an object; null as the latter changes nothing.
 * @param repeated collects `duplicate field "spec.paused"`, each once
 * @throws BadRequest with the text of upstream's parser
 */
function* parsePatch(type: "merge" | "strategic", bytes: Buffer, repeated: string[] | undefined): Steps<object> {
  let document: unknown;
  try {
    document = yield* parseLargeJson(bytes, repeated && { onDuplicate: nameInto(repeated) });
  } catch (err) {
    throw type === "merge" ? badRequest("Invalid JSON Patch") : err;
  }
  if (document === null && type === "strategic") return {};
  if (document !== null && typeof document === "object" && (type === "merge" || !Array.isArray(document))) return document;
  if (type === "merge") throw badRequest("Invalid JSON Patch");
  throw badRequest(`json: cannot unmarshal ${jsonWord(document)} into Go value of type map[string]interface {}`);
}

/**
 * The result of a strategic merge patch. Its kind is the request's, whatever the patch contains.
 * @throws Invalid on `patch`
 */
function* restored(
  value: unknown,
  patch: object,
  kind: GroupVersionKind,
  descriptor: TypeDescriptor | undefined,
): Steps<KubeObject> {
  const type = descriptor!; // custom resources have no strategic merge
  try {
    yield* checkingRestorable(value, structOf(type));
  } catch (err) {
    throw invalid({ group: "", kind: "" }, "", [invalidValue("patch", goText(patch), messageOf(err))]);
  }
  yield;
  const object = coerce(value, type);
  object.metadata ??= {};
  return Object.assign(object, { apiVersion: formatGroupVersion(kind), kind: kind.kind });
}

/**
 * Checks that the result of a JSON patch or merge patch is still an object of its kind.
 * @param touched the fields to check; undefined: all
 * @throws Invalid on `patch`
 */
function checked(
  value: unknown,
  kind: GroupVersionKind,
  descriptor: TypeDescriptor | undefined,
  touched: readonly string[] | undefined,
): KubeObject {
  const refuse = (why: string): Error => refusal(value, why);
  try {
    claimedKind(value);
  } catch (err) {
    throw refuse(messageOf(err));
  }
  if (value === null || value === undefined) throw refuse("Object 'Kind' is missing in 'null'");
  const object = value as Unstructured; // cast: `claimedKind` has refused scalars and lists, the line above null
  if (object.kind !== kind.kind || object.apiVersion !== formatGroupVersion(kind)) {
    throw refuse(`no kind ${textOf(object.kind)} is registered for version ${textOf(object.apiVersion)}`);
  }
  if (descriptor === undefined) {
    if (object.metadata === null || typeof object.metadata !== "object") throw refuse("metadata is not an object");
    return object;
  }
  try {
    const coerced = touched === undefined ? coerce(object, descriptor) : coerceFields(object, descriptor, touched);
    coerced.metadata ??= {};
    return coerced;
  } catch (err) {
    throw refuse(messageOf(err));
  }
}

function refusal(value: unknown, why: string): Error {
  return invalid({ group: "", kind: "" }, "", [invalidValue("patch", truncated(value), why)]);
}

/** JSON for an error text; large integers are rounded. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, member) => (typeof member === "bigint" ? Number(member) : member)) ?? "";
}

function truncated(value: unknown): string {
  const text = textOf(value);
  return text.length > 1024 ? `${text.slice(0, 1024)} ...` : text;
}
