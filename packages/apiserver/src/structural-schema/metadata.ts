import { decodeValue } from "@coxswain/apimachinery/objects/codec/json-decode";
import { child, type FieldError, index, invalidValue, mapKey, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { ObjectMeta, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { dns1035LabelProblems, pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import { validateObjectMeta } from "@coxswain/apimachinery/objects/validation/object-meta";
import { anySchema, hasInside, isEmbedded, itemsOf, knownFields, perSchema, type Schema } from "./schema.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Validates apiVersion, kind and metadata of a resource and of the resources embedded in it. A field of the wrong type is
 * reported alone, because the rest cannot be decoded.
 * @param isResource whether the value itself is a resource
 * Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta/{coerce,validation}.go
 */
export function embeddedResourceFaults(value: unknown, schema: Schema, path: string, isResource: boolean): FieldError[] {
  const all = resourcesIn(value, schema, path, isResource);
  const unreadable = all.flatMap(([resource, at]) => typeFaults(resource, at));
  return unreadable.length > 0 ? unreadable.slice(0, 1) : all.flatMap(([resource, at]) => faultsOf(resource, at));
}

function resourcesIn(value: unknown, schema: Schema | undefined, path: string, isResource: boolean): [Fields, string][] {
  if (schema === undefined || !(isResource || hasEmbedded(schema).within)) return [];
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (items === undefined || !(hasInside(items) || isEmbedded(items))) return [];
    return value.flatMap((item, i) => embeddedIn(item, items, index(path, i)));
  }
  if (!isJsonObject(value)) return [];
  const found: [Fields, string][] = isResource ? [[value, path]] : [];
  for (const [name, part, isAdditional] of knownFields(value, schema)) {
    const item = value[name];
    if (typeof item !== "object" || item === null) continue;
    for (const one of embeddedIn(item, part, isAdditional ? mapKey(path, name) : child(path, name))) found.push(one);
  }
  return found;
}

function embeddedIn(value: unknown, schema: Schema, path: string): [Fields, string][] {
  return resourcesIn(value, schema, path, isEmbedded(schema));
}

function typeFaults(resource: Fields, path: string): FieldError[] {
  const errors = ["apiVersion", "kind"]
    .filter((field) => Object.hasOwn(resource, field) && typeof resource[field] !== "string")
    .map((field) => invalidValue(child(path, field), resource[field], "must be a string"));
  try {
    metadataOf(resource);
  } catch (err) {
    errors.push(invalidValue(child(path, "metadata"), resource.metadata, messageOf(err)));
  }
  return errors;
}

const objectMeta = scheme.type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")!;

/** @throws DecodeFailure */
function metadataOf({ metadata }: Fields): ObjectMeta {
  return decodeValue(structuredClone(metadata ?? {}), objectMeta);
}

/** A name is not required here: an embedded resource gets one when it is created. */
function faultsOf(resource: Fields, path: string): FieldError[] {
  // Cast: `typeFaults` has reported other types; its faults end the validation before this.
  const { apiVersion = "", kind = "" } = resource as Readonly<Record<string, string>>;
  const metadata = metadataOf(resource);
  const named = { ...metadata, name: metadata.name || "fakename" };
  return [
    ...versionFaults(apiVersion, child(path, "apiVersion")),
    ...kindFaults(kind, child(path, "kind")),
    ...validateObjectMeta(named, Boolean(metadata.namespace), pathSegmentFaults, child(path, "metadata")),
  ];
}

function versionFaults(apiVersion: string, path: string): FieldError[] {
  if (apiVersion === "") return [required(path, "must not be empty")];
  const text = `unexpected GroupVersion string: ${apiVersion}`;
  return parseGroupVersion(apiVersion) ? [] : [invalidValue(path, apiVersion, text)];
}

function kindFaults(kind: string, path: string): FieldError[] {
  if (kind === "") return [required(path, "must not be empty")];
  const faults = dns1035LabelProblems(kind.toLowerCase());
  const text = `may have mixed case, but should otherwise match: ${faults.join(",")}`;
  return faults.length > 0 ? [invalidValue(path, kind, text)] : [];
}

/**
 * Normalizes the metadata of the object and of embedded resources, in place.
 * @param invalid `refuse` throws; `drop` removes the fields that cannot be decoded
 * @throws BadRequest
 */
export function coerceMetadata(
  value: unknown,
  schema: Schema | undefined,
  isResource: boolean,
  invalid: "refuse" | "drop",
): void {
  if (Array.isArray(value)) {
    const items = schema && itemsOf(schema);
    if (items === undefined || !hasEmbedded(items).within) return;
    for (const item of value) coerceMetadata(item, items, isEmbedded(items), invalid);
    return;
  }
  if (!isJsonObject(value)) return;
  if (isResource) coerceOwn(value as Unstructured, invalid); // cast: the metadata is checked by `coerceOwn`
  if (schema === undefined || !hasEmbedded(schema).within) return;
  for (const [name, part] of knownFields(value, schema)) {
    if (isResource && name === "metadata") continue;
    coerceMetadata(value[name], part, isEmbedded(part), invalid);
  }
}

/** Whether a schema contains embedded resources, cached: most have none, and the object need not be walked. */
const hasEmbedded = perSchema((schema) => ({ within: anySchema(schema, isEmbedded) }));

function coerceOwn(resource: Unstructured, invalid: "refuse" | "drop"): void {
  if (resource.metadata === undefined) return;
  try {
    resource.metadata = decodeValue(resource.metadata, objectMeta);
  } catch (err) {
    if (invalid === "refuse") throw badRequest(messageOf(err));
    resource.metadata = readableMetadata(resource.metadata);
  }
}

/** The decodable fields of stored metadata that was not validated when it was written. */
function readableMetadata(metadata: unknown): Unstructured["metadata"] {
  if (!isJsonObject(metadata)) return {};
  const readable = Object.entries(metadata).filter(([name, value]) => {
    try {
      decodeValue(Object.fromEntries([[name, value]]), objectMeta);
      return true;
    } catch {
      return false;
    }
  });
  return decodeValue(Object.fromEntries(readable), objectMeta);
}
