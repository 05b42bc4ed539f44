/**
 * Makes an object of a request's body, with upstream's error texts: decoded in the request's version, then with that version's defaults
 * in the hub version, in which all later stages work on it.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/create.go, update.go, rest.go
 */
import { decodeBodyObject } from "@coxswain/apimachinery/objects/codec/codec";
import type { Strictness } from "@coxswain/apimachinery/objects/codec/json";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { maxBodyValues } from "@coxswain/apimachinery/objects/codec/json-parse";
import { invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { badRequest, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepCloneInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import {
  formatGroupVersion,
  type GroupVersionKind,
  parseGroupVersion,
  setKind,
} from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Cancellation, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Call } from "./env.ts";
import type { FieldValidation } from "./options.ts";
import type { ServedResource } from "./served-resources.ts";

/**
 * Decodes the object of a create or an update.
 * @returns the object in the hub version, with defaults and the namespace of the request; owned by the caller
 * @throws BadRequest, Invalid: as `decodeBody`, or another name or namespace than the URL has
 */
export async function decodeObject(
  call: Call,
  body: Buffer,
  mediaType: string,
  fieldValidation: FieldValidation,
): Promise<KubeObject> {
  const { served } = call;
  const { turns } = call.env.services;
  const decoded = await decodeBody(call, body, mediaType, served.kind, fieldValidation);
  await turns.next(body.length);
  const object = await toHubInTurns(turns, served, decoded, { sizeBytes: body.length, request: call.ctx });
  if (call.name !== "") checkName(object, call.name, call.namespace);
  matchNamespace(object, call.namespace);
  dedupOwnerReferences(call, object, false);
  return object;
}

/**
 * @param expected kind and version assumed when the body has none
 * @param otherVersions further accepted versions of the expected group
 * @throws BadRequest: malformed, another kind or version, or (strict) unknown or duplicate fields. Invalid: a custom
 *   resource with another kind
 */
export async function decodeBody(
  call: Call,
  bytes: Buffer,
  mediaType: string,
  expected: GroupVersionKind,
  fieldValidation: FieldValidation = "Ignore",
  otherVersions: readonly string[] = [],
): Promise<KubeObject> {
  const { turns } = call.env.services;
  const mode = call.env.gates.validatesFields ? fieldValidation : "Ignore";
  const strict = mode === "Strict" ? "strict" : mode === "Warn" ? "warn" : "ignore";
  const { object, warnings } = await decodeBodyObject(bytes, mediaType, expected, {
    strict,
    maxElements: maxBodyValues,
    turns,
    request: call.ctx,
  });
  for (const warning of warnings) call.ctx.warn(warning);
  const found = { ...(parseGroupVersion(object.apiVersion ?? "") ?? { group: "", version: "" }), kind: object.kind ?? "" };
  const isCustom = call.served.definition.custom === true && expected.kind === call.served.kind.kind;
  if (found.kind !== expected.kind && !isCustom) {
    throw badRequest(
      `${found.kind} in version ${JSON.stringify(found.version)} cannot be handled as a ${expected.kind}: ` +
        `converting (${found.version}.${found.kind}) to (${expected.version}.${expected.kind}): unknown conversion`,
    );
  }
  const knownVersion = found.version === expected.version || otherVersions.includes(found.version);
  if (found.group !== expected.group || !knownVersion) {
    throw badRequest(
      `the API version in the data (${formatGroupVersion(found)}) does not match the expected API version (${formatGroupVersion(expected)})`,
    );
  }
  object.metadata ??= {};
  if (found.kind !== expected.kind) {
    const fault = invalidValue("kind", found.kind, `must be ${expected.kind}`);
    throw invalid({ group: found.group, kind: found.kind }, object.metadata.name ?? "", [fault]);
  }
  reportUnknownFields(call, object, expected, strict);
  if (call.ctx.audit !== undefined) {
    await turns.next(bytes.length);
    const { audit } = call.ctx;
    const json = audit.recordsRequest ? await turns.run(withDefaults(call, object, expected), bytes.length, call.ctx) : "";
    audit.requestObject(object, () => json);
  }
  return object;
}

/** Reports fields unknown to the schema of a custom resource. @throws BadRequest with strict field validation */
function reportUnknownFields({ served, ctx }: Call, object: KubeObject, expected: GroupVersionKind, strict: Strictness): void {
  if (strict === "ignore" || expected.kind !== served.kind.kind || served.version.unknownFields === undefined) return;
  const complaints = served.version.unknownFields(object).map((path) => `unknown field ${JSON.stringify(path)}`);
  if (complaints.length === 0) return;
  if (strict === "strict") {
    const { version, kind } = expected;
    const what = `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}`;
    throw badRequest(`${what}: strict decoding error: ${complaints.join(", ")}`);
  }
  for (const complaint of complaints) ctx.warn(complaint);
}

/** The JSON of the object for the audit event: decoded, with the version's defaults, before admission. */
function* withDefaults({ served }: Call, object: KubeObject, expected: GroupVersionKind): Steps<string> {
  const copy = yield* deepCloneInSteps(object);
  if (expected.kind === served.kind.kind) {
    if (served.version.defaultsInSteps === undefined) served.version.defaults?.(copy);
    else yield* served.version.defaultsInSteps(copy);
  }
  return yield* encodeJsonTextInSteps(copy, expected);
}

/** Checks that the object of a PUT is the one that the URL names. @throws BadRequest */
export function checkName(object: KubeObject, name: string, namespace: string): void {
  const found = object.metadata.name ?? "";
  if (found === "") {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  if (found !== name) throw badRequest(`the name of the object (${found}) does not match the name on the URL (${name})`);
  const foundNamespace = object.metadata.namespace ?? "";
  if (namespace !== "" && foundNamespace !== "" && foundNamespace !== namespace) {
    throw badRequest(
      `the namespace of the object (${foundNamespace}) does not match the namespace on the request (${namespace})`,
    );
  }
}

/** Sets or checks the object's namespace; removes it from a cluster-scoped object. @throws BadRequest */
export function matchNamespace(object: KubeObject, namespace: string): void {
  const found = object.metadata.namespace ?? "";
  if (found === namespace) return;
  if (namespace === "") delete object.metadata.namespace;
  else if (found === "") object.metadata.namespace = namespace;
  else throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

/** Removes duplicate owner references and warns the client. Source: handlers/rest.go, dedupOwnerReferences */
export function dedupOwnerReferences(call: Call, object: KubeObject, afterAdmission: boolean): void {
  const references = object.metadata.ownerReferences;
  if (!Array.isArray(references) || references.length < 2) return;
  if (new Set(references.map(({ uid }) => uid)).size === references.length) return; // duplicates have the same UID
  const seen = new Map<string, OwnerReference>();
  const repeated = new Set<string>();
  for (const reference of references) {
    const id = JSON.stringify([
      reference.apiVersion,
      reference.kind,
      reference.name,
      reference.uid,
      reference.controller ?? null,
      reference.blockOwnerDeletion ?? null,
    ]);
    if (seen.has(id)) repeated.add(reference.uid);
    else seen.set(id, reference);
  }
  if (repeated.size === 0) return;
  object.metadata.ownerReferences = [...seen.values()];
  call.ctx.warn(
    `.metadata.ownerReferences contains duplicate entries${afterAdmission ? " after mutating admission happens" : ""}; ` +
      "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; " +
      `please fix your requests; duplicate UID(s) observed: ${[...repeated].join(", ")}`,
  );
}

/** Applies the version's defaults, then converts to the hub version. Takes ownership of `object`. */
export function toHub(served: ServedResource, object: KubeObject): KubeObject {
  served.version.defaults?.(object);
  return toHubAsIs(served, object);
}

/**
 * As `toHub`, yielding to the event loop for large client input.
 * @param during the size of the object as it was sent, when known, and the request that waits for it
 * @returns a promise only when it yields
 */
export function toHubInTurns(
  turns: Turns,
  served: ServedResource,
  object: KubeObject,
  during: { readonly sizeBytes?: number; readonly request?: Cancellation } = {},
): KubeObject | Promise<KubeObject> {
  const { defaultsInSteps, toHubInSteps } = served.version;
  if (defaultsInSteps === undefined && toHubInSteps === undefined) return toHub(served, object);
  return turns.run(toHubSteps(served, object), during.sizeBytes, during.request);
}

function* toHubSteps({ version, hubKind }: ServedResource, object: KubeObject): Steps<KubeObject> {
  if (version.defaultsInSteps === undefined) version.defaults?.(object);
  else yield* version.defaultsInSteps(object);
  return setKind(version.toHubInSteps === undefined ? object : yield* version.toHubInSteps(object), hubKind);
}

/** Converts without defaults: for objects that have them, or that are only compared. */
export function toHubAsIs(served: ServedResource, object: KubeObject): KubeObject {
  const hub = served.version.toHub?.(object) ?? object;
  return setKind(hub, served.hubKind);
}
