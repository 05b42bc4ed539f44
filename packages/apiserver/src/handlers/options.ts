/**
 * Query parameters (and the body of a DELETE) as validated options, with upstream's errors: 400 for a value that cannot be
 * parsed, 422 of kind `ListOptions.meta.k8s.io` etc. for one that is not allowed. Unknown parameters are ignored.
 * Source: k8s.io/apimachinery pkg/apis/meta/v1/validation, pkg/apis/meta/internalversion/validation, pkg/conversion/queryparams
 */

import { type FieldError, forbiddenField, notSupported, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { badRequest, invalid, plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { parseResourceVersion } from "@coxswain/apimachinery/objects/meta/resource-version";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { validateFieldManager } from "@coxswain/apimachinery/objects/validation/object-meta";
import { validateDeleteOptions, validateDryRun } from "../registry/generic/delete-options.ts";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import type { ListRequest, ReadOptions } from "../storage/storage.ts";

const metaGroup = "meta.k8s.io";
export type FieldValidation = "Ignore" | "Warn" | "Strict";

export interface WriteRequestOptions {
  readonly dryRun: boolean;
  /** `""` when not given: the product name of the User-Agent is used. */
  readonly fieldManager: string;
  /** Default: Warn. Effective only with the gate ServerSideFieldValidation. */
  readonly fieldValidation: FieldValidation;
  readonly force: boolean | undefined;
}

type WriteOptionsKind = "CreateOptions" | "UpdateOptions" | "PatchOptions";

/** @throws BadRequest, Invalid */
export function writeOptions(query: URLSearchParams, kind: WriteOptionsKind, isApply = false): WriteRequestOptions {
  const dryRun = query.getAll("dryRun");
  const fieldManager = query.get("fieldManager") ?? "";
  const fieldValidation = query.get("fieldValidation") ?? "";
  const force = boolParam(query, "force");
  const errors: FieldError[] = [];
  if (kind === "PatchOptions") {
    if (isApply && fieldManager === "") errors.push(required("fieldManager", "is required for apply patch"));
    if (!isApply && force !== undefined) errors.push(forbiddenField("force", "may not be specified for non-apply patch"));
  }
  errors.push(...validateFieldManager(fieldManager, "fieldManager"));
  if (dryRun.length > 0) errors.push(...validateDryRun(dryRun));
  if (!fieldValidations.has(fieldValidation)) {
    errors.push(notSupported("fieldValidation", fieldValidation, [...fieldValidations]));
  }
  if (errors.length > 0) throw invalid({ group: metaGroup, kind }, "", errors);
  return {
    dryRun: dryRun.length > 0,
    fieldManager,
    fieldValidation: fieldValidation === "" ? "Warn" : (fieldValidation as FieldValidation), // cast: `fieldValidations` has no other words
    force,
  };
}

const fieldValidations: ReadonlySet<string> = new Set(["", "Ignore", "Strict", "Warn"]);

/** @param body the decoded DeleteOptions; when present, the query is ignored. @throws BadRequest, Invalid */
export function deleteOptions(query: URLSearchParams, body: DeleteOptions | undefined): DeleteOptions {
  const options = body === undefined ? deleteOptionsOfQuery(query) : knownDeleteOptions(body);
  const errors = validateDeleteOptions(options);
  if (errors.length > 0) throw invalid({ group: metaGroup, kind: "DeleteOptions" }, "", errors);
  return options;
}

function deleteOptionsOfQuery(query: URLSearchParams): DeleteOptions {
  const options: DeleteOptions = {};
  const gracePeriodSeconds = intParam(query, "gracePeriodSeconds");
  if (gracePeriodSeconds !== undefined) options.gracePeriodSeconds = gracePeriodSeconds;
  const orphanDependents = boolParam(query, "orphanDependents");
  if (orphanDependents !== undefined) options.orphanDependents = orphanDependents;
  const policy = query.get("propagationPolicy");
  // Cast: `validateDeleteOptions` checks it.
  if (policy !== null) options.propagationPolicy = policy as NonNullable<DeleteOptions["propagationPolicy"]>;
  const dryRun = query.getAll("dryRun");
  if (dryRun.length > 0) options.dryRun = dryRun;
  return options;
}

function knownDeleteOptions(body: DeleteOptions): DeleteOptions {
  const { gracePeriodSeconds, preconditions, orphanDependents, propagationPolicy, dryRun } = body;
  return {
    ...(gracePeriodSeconds == null ? {} : { gracePeriodSeconds }),
    ...(preconditions == null ? {} : { preconditions }),
    ...(orphanDependents == null ? {} : { orphanDependents }),
    ...(propagationPolicy == null ? {} : { propagationPolicy }),
    ...(dryRun == null || dryRun.length === 0 ? {} : { dryRun }),
  };
}

export interface ListOptions {
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  readonly watch: boolean;
  readonly allowWatchBookmarks: boolean;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: "" | "Exact" | "NotOlderThan";
  readonly timeoutSeconds: number | undefined;
  readonly limit: number;
  readonly continueToken: string;
}

/** @throws BadRequest, Invalid */
export function listOptions(query: URLSearchParams, forceWatch = false): ListOptions {
  const resourceVersion = query.get("resourceVersion") ?? "";
  const match = query.get("resourceVersionMatch") ?? "";
  const continueToken = query.get("continue") ?? "";
  const watch = boolParam(query, "watch") === true || forceWatch;
  const limit = intParam(query, "limit") ?? 0;
  const timeoutSeconds = intParam(query, "timeoutSeconds");
  const labels = parseSelector(() => LabelSelector.parse(query.get("labelSelector") ?? ""));
  const fields = parseSelector(() => FieldSelector.parse(query.get("fieldSelector") ?? ""));
  const errors = checkMatch(match, { watch, resourceVersion, continueToken });
  if (errors.length > 0) throw invalid({ group: metaGroup, kind: "ListOptions" }, "", errors);
  return {
    labels,
    fields,
    watch,
    allowWatchBookmarks: boolParam(query, "allowWatchBookmarks") === true,
    resourceVersion,
    resourceVersionMatch: match as ListOptions["resourceVersionMatch"], // cast: `checkMatch` has checked it
    timeoutSeconds,
    limit: Math.max(0, limit),
    continueToken,
  };
}

/** Parse errors of a selector are client errors, whatever the parser throws. */
function parseSelector<T>(parse: () => T): T {
  try {
    return parse();
  } catch (err) {
    throw badRequest(messageOf(err));
  }
}

function checkMatch(match: string, given: { watch: boolean; resourceVersion: string; continueToken: string }): FieldError[] {
  if (match === "") return [];
  const field = "resourceVersionMatch";
  const errors: FieldError[] = [];
  if (given.watch) errors.push(forbiddenField(field, "resourceVersionMatch is forbidden for watch"));
  if (given.resourceVersion === "") {
    errors.push(forbiddenField(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
  }
  if (given.continueToken !== "")
    errors.push(forbiddenField(field, "resourceVersionMatch is forbidden when continue is provided"));
  if (match !== "Exact" && match !== "NotOlderThan") errors.push(notSupported(field, match, ["Exact", "NotOlderThan", ""]));
  if (match === "Exact" && given.resourceVersion === "0") {
    errors.push(forbiddenField(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return errors;
}

/**
 * Converts list options to a store request. The store implements the resourceVersion semantics, except that a continue token
 * excludes a resourceVersion other than "0".
 * @param cached whether the store may answer from memory
 * @throws BadRequest; 500 as `revisionParam`
 */
export function listRequest(
  options: ListOptions,
  signal: AbortSignal,
  chunking: boolean,
  cached: boolean,
): Omit<ListRequest, "prefix"> {
  const { continueToken, limit, resourceVersionMatch } = options;
  const fromEtcd = !cached || continueToken !== "" || (chunking && limit > 0) || resourceVersionMatch === "Exact";
  const revision = revisionParam(options.resourceVersion, fromEtcd ? "etcd" : "cache");
  if (options.continueToken !== "" && revision !== undefined && revision !== 0) {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  return {
    labels: options.labels,
    fields: options.fields,
    signal,
    ...(chunking && options.limit > 0 ? { limit: options.limit } : {}),
    ...(options.continueToken !== "" ? { continueToken: options.continueToken } : { revision }),
    ...(options.resourceVersionMatch === "" ? {} : { match: options.resourceVersionMatch }),
  };
}

/** The options of a GET: which state it asks for. @throws BadRequest; 500 as `revisionParam` */
export function readOptions(ctx: RequestContext, readBy: "etcd" | "cache"): ReadOptions {
  return new RequestedRead(ctx, revisionParam(ctx.query.get("resourceVersion") ?? "", readBy));
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

/**
 * Parses a resourceVersion.
 * @param readBy what evaluates it upstream: etcd's store reports an invalid one as a client error, the cache (and every
 *   watch) as an internal error
 * @returns undefined for `""`
 * @throws BadRequest, or 500 without a reason
 */
export function revisionParam(resourceVersion: string, readBy: "etcd" | "cache"): number | undefined {
  if (resourceVersion === "") return undefined;
  try {
    return parseResourceVersion(resourceVersion);
  } catch (err) {
    const why = messageOf(err);
    throw readBy === "etcd" ? badRequest(`invalid resource version: ${why}`) : plainError(why);
  }
}

/**
 * @throws BadRequest for a field that the resource does not support in selectors
 * Source: pkg/apis/<group>/<version>/conversion.go, AddFieldLabelConversionFunc
 */
export function checkFieldSelector(definition: ResourceDefinition, fields: FieldSelector): void {
  if (fields.empty) return;
  if (fields.terms.length === 0) return;
  const known = selectableFieldsOf(definition);
  for (const { field } of fields.terms) {
    if (field === "metadata.name" || known.has(field)) continue;
    if (field === "metadata.namespace" && !(definition.custom && !definition.namespaced)) continue;
    throw badRequest(
      definition.unknownFieldText?.(field) ??
        (known.size === 0
          ? `${goQuote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`
          : `field label not supported: ${field}`),
    );
  }
}

/** The selectable fields of a definition, determined by evaluating them for an empty object. */
function selectableFieldsOf(definition: ResourceDefinition): ReadonlySet<string> {
  // Cast: selectable fields read no others.
  const empty = { metadata: {}, spec: {}, status: {}, involvedObject: {}, source: {} } as KubeObject;
  return new Set(Object.keys(definition.selectableFields?.(empty) ?? {}));
}

/** A boolean parameter: `?x`, `?x=`, `?x=1`, `?x=yes` are true; `false` and `0` are not. */
export function boolParam(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name);
  if (value === null) return undefined;
  return !(value.toLowerCase() === "false" || value === "0");
}

/** @throws BadRequest */
export function intParam(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null) return undefined;
  if (!/^[+-]?\d+$/.test(value)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
  const number = Number(value);
  // The double of an integer beside the limit may be the limit itself.
  const isBesideLimit = Math.abs(number) === 2 ** 63;
  if (Math.abs(number) > 2 ** 63 || (isBesideLimit && BigInt.asIntN(64, BigInt(value)) !== BigInt(value))) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: value out of range`);
  }
  return number;
}
